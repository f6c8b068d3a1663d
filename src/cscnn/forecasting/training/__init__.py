"""Training: configuration, the Lightning module, loaders. Needs ``cscnn[train]``."""

from cscnn.forecasting.training.config import (
    DataConfig,
    ModelConfig,
    OptimizerConfig,
    TrainConfig,
    TrainerConfig,
)
from cscnn.forecasting.training.learning import LearningConfig

__all__ = [
    "DataConfig",
    "LearningConfig",
    "ModelConfig",
    "OptimizerConfig",
    "TrainConfig",
    "TrainerConfig",
]
