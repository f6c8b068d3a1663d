"""What a trained forecaster is worth: errors, rollouts, symmetry, cost. Needs ``cscnn[data]``."""

from cscnn.forecasting.evaluation.evaluate import evaluate
from cscnn.forecasting.evaluation.evaluator import Evaluator, NonFinitePrediction
from cscnn.forecasting.evaluation.observers import boosted_errors, observer_errors, rotated_errors
from cscnn.forecasting.evaluation.results import Evaluation, Samples
from cscnn.forecasting.evaluation.rollout import Rollout, persistence, rollout
from cscnn.forecasting.evaluation.table import table

__all__ = [
    "Evaluation",
    "Evaluator",
    "NonFinitePrediction",
    "Rollout",
    "Samples",
    "boosted_errors",
    "evaluate",
    "observer_errors",
    "persistence",
    "rollout",
    "rotated_errors",
    "table",
]
