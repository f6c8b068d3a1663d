"""The command ``python -m experiments.rollouts``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from experiments.rollouts.command import rollout_command
from experiments.rollouts.presets import CONTENDERS, RECIPES, SETTINGS


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    return rollout_command(
        argv,
        name="rollouts",
        description="Trains networks with several recipes in the same time, and measures how long "
        "their forecasts last. Learning rate and recipe of each are chosen on the validation "
        "split.",
        only="cs_resnet resnet",
        presets=(SETTINGS, CONTENDERS, RECIPES),
    )


if __name__ == "__main__":
    sys.exit(main())
