"""The command ``python -m experiments.tensors``."""

from __future__ import annotations

import sys

from experiments.rollouts.command import Command
from experiments.tensors.networks import add_networks
from experiments.tensors.presets import CONTENDERS, RECIPES, SETTINGS

main = Command(
    "tensors",
    "Trains networks on elastic waves along one axis, and tests them on waves along others: with "
    "stresses as tensors, with their components as scalars, and networks without geometry. With "
    "equal parameters and in the same time. The learning rate of each is chosen on the validation "
    "split.",
    "tensors components",
    SETTINGS,
    CONTENDERS,
    RECIPES,
    parts=("levers", "time"),
    networks=add_networks,
)

if __name__ == "__main__":
    sys.exit(main())
