"""Training without the remarks of others."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

#: Remarks of Lightning and torch that are of no use to people who train.
NOISE = (
    ".*does not have many workers",
    ".*number of training batches",
    ".*Total length of `list` across ranks is zero",
    ".*isinstance\\(treespec, LeafSpec\\)",
    ".*[Gg]rad strides do not match bucket view strides",
    "Experiment logs directory .* exists and is not empty",  # CSVLog keeps them
)


@contextmanager
def quietly() -> Iterator[None]:
    """Without remarks of Lightning and torch, those about dead processes excepted."""
    for name in ("lightning.pytorch", "lightning.fabric", "lightning.pytorch.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("lightning.fabric.strategies.launchers").setLevel(logging.INFO)
    with warnings.catch_warnings():
        for message in NOISE:
            warnings.filterwarnings("ignore", message)
        yield
