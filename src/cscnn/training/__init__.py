"""Training: configuration, the Lightning module and data module, run folders. Needs ``train``."""

from cscnn.training.config import (
    DataConfig,
    ModelConfig,
    OptimizerConfig,
    TrainConfig,
    TrainerConfig,
)
from cscnn.training.run import Run

__all__ = [
    "DataConfig",
    "ModelConfig",
    "OptimizerConfig",
    "Run",
    "TrainConfig",
    "TrainerConfig",
]
