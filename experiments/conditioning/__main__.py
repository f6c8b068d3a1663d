"""The command ``python -m experiments.conditioning``."""

from __future__ import annotations

import sys

from experiments.conditioning.networks import add_networks
from experiments.conditioning.presets import CONTENDERS, RECIPES, SETTINGS
from experiments.rollouts.command import Command

main = Command(
    "conditioning",
    "Trains networks with conditional kernels, with plain global context and with neither, with "
    "equal parameters and in the same time. The learning rate of each is chosen on the validation "
    "split.",
    "complete complete_context complete_conditional",
    SETTINGS,
    CONTENDERS,
    RECIPES,
    parts=("levers", "time"),
    networks=add_networks,
)

if __name__ == "__main__":
    sys.exit(main())
