"""Training: configuration, the Lightning module, loaders. Needs ``cscnn[train]``."""

from cscnn.forecasting.training.config import (
    DataConfig,
    ModelConfig,
    OptimizerConfig,
    TrainConfig,
    TrainerConfig,
)

__all__ = ["DataConfig", "ModelConfig", "OptimizerConfig", "TrainConfig", "TrainerConfig"]
