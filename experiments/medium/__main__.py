"""The command ``python -m experiments.medium``."""

from __future__ import annotations

import sys

from experiments.medium.presets import CONTENDERS, RECIPES, SETTINGS
from experiments.rollouts.command import Command

main = Command(
    "medium",
    "Trains our networks, the paper's and those of others with 200,000 parameters on the tasks of "
    "the paper, in equal time. The learning rate of each is chosen on the validation split. All of "
    "it takes some 25 hours of one core.",
    "cs_unet unet",
    SETTINGS,
    CONTENDERS,
    RECIPES,
    parts=("levers", "time", "few"),
)

if __name__ == "__main__":
    sys.exit(main())
