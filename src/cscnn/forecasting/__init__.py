"""Forecasts: tasks, forecasters, windows, training, evaluation. Needs ``cscnn[data]``."""

from typing import TYPE_CHECKING

from cscnn.data.fields import Background, Field
from cscnn.forecasting.augment import RandomNoise, RandomSymmetry
from cscnn.forecasting.constraints import Constraint
from cscnn.forecasting.forecaster import Forecaster
from cscnn.forecasting.neighbours import find_neighbours
from cscnn.forecasting.points import Points
from cscnn.forecasting.runs import Run
from cscnn.forecasting.task import Task
from cscnn.forecasting.training.config import TrainConfig
from cscnn.forecasting.units import Units
from cscnn.forecasting.windows import Window, Windows, collate

if TYPE_CHECKING:
    from cscnn.forecasting.evaluation.evaluate import evaluate
    from cscnn.forecasting.training.train import train

__all__ = [
    "Background",
    "Constraint",
    "Field",
    "Forecaster",
    "Points",
    "RandomNoise",
    "RandomSymmetry",
    "Run",
    "Task",
    "TrainConfig",
    "Units",
    "Window",
    "Windows",
    "collate",
    "evaluate",
    "find_neighbours",
    "train",
]


if not TYPE_CHECKING:  # to type checkers a module with __getattr__ has every name

    def __getattr__(name):
        """What is imported when first used: training needs Lightning."""
        if name == "train":
            from cscnn.forecasting.training.train import train

            return train
        if name == "evaluate":
            from cscnn.forecasting.evaluation import evaluate

            return evaluate
        raise AttributeError(f"module 'cscnn.forecasting' has no attribute {name!r}")
