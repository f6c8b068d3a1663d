"""The command ``python -m experiments.rollouts``."""

from __future__ import annotations

import sys

from experiments.rollouts.command import Command
from experiments.rollouts.presets import CONTENDERS, RECIPES, SETTINGS

main = Command(
    "rollouts",
    "Trains networks with several recipes in the same time, and measures how long their forecasts "
    "last. Learning rate and recipe of each are chosen on the validation split.",
    "cs_resnet resnet",
    SETTINGS,
    CONTENDERS,
    RECIPES,
)

if __name__ == "__main__":
    sys.exit(main())
