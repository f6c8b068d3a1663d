"""What a trained model is worth: errors, rollouts, symmetry, cost. Needs ``cscnn[data]``."""

from cscnn.evaluation.evaluate import Evaluation, evaluate
from cscnn.evaluation.frames import FramesError, boosted_error, frames_error, rotated_error
from cscnn.evaluation.rollout import Rollout, forecast, persistence, rollout
from cscnn.evaluation.table import table

__all__ = [
    "Evaluation",
    "FramesError",
    "Rollout",
    "boosted_error",
    "evaluate",
    "forecast",
    "frames_error",
    "persistence",
    "rollout",
    "rotated_error",
    "table",
]
