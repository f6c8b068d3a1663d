"""Training: configuration, the Lightning module and data module, run folders. Needs ``train``."""

from cscnn.training.run import Run

__all__ = ["Run"]
