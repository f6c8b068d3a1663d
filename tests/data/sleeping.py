"""The command line with a simulator that never ends: python -m tests.data.sleeping ARGUMENTS."""

import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from cscnn.cli import main
from cscnn.data.simulators import SIMULATORS, NavierStokes


@dataclass(frozen=True)
class Sleeping(NavierStokes):
    """Leaves the number of its process in a folder, and sleeps."""

    name: ClassVar[str] = "sleeping"
    folder: str = ""

    def simulate(
        self, rngs: Sequence[np.random.Generator], device: torch.device | str = "cpu"
    ) -> dict[str, torch.Tensor]:
        Path(self.folder, str(os.getpid())).touch()
        time.sleep(600)
        raise AssertionError("nobody waits so long")


if __name__ == "__main__":
    SIMULATORS["sleeping"] = Sleeping
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the one who tests may ignore it
    sys.exit(main(sys.argv[1:]))
