"""CGENN's own code beside ours: ``python -m experiments.nbody.beside DIR``.

Both learn from the same batches, a step of one after a step of the other, each with the optimiser
and learning rate of its public command. DIR is a checkout of
https://github.com/DavidRuhe/clifford-group-equivariant-neural-networks, which needs scikit-learn.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cscnn._util.command import run_command
from cscnn._util.files import check_folder
from cscnn._util.jsonform import write_json
from cscnn._util.machine import machine
from cscnn._util.parser import Parser
from cscnn._util.progress import Bar
from experiments.nbody.network import all_pairs
from experiments.nbody.presets import CONTENDERS, SETTING, Setting, Trial
from experiments.nbody.simulate import Samples, open_data
from experiments.nbody.training import MANY, Training, mean_square

PROGRAM = "python -m experiments.nbody.beside"
FILE = "nbody_beside.json"
#: Of the public command.
RATE, DECAY = 4e-3, 1e-4


@dataclass(frozen=True)
class Row:
    """What a network gave.

    Attributes:
        label: for people.
        parameters: their number.
        seconds: of a step, the median.
        valid: mean squared error of the validation split at the end.
    """

    label: str
    parameters: int
    seconds: float
    valid: float


@dataclass(frozen=True)
class Comparison:
    """Rows after a number of steps, and on what machine."""

    steps: int
    machine: dict[str, str]
    rows: tuple[Row, ...]


class Theirs:
    """The public network, its optimiser and a step.

    Args:
        checkout: of the public code.
    """

    def __init__(self, checkout: Path):
        file = checkout / "models" / "nbody_cggnn.py"
        if not file.is_file():
            raise FileNotFoundError(f"{checkout} is no checkout of CGENN: there is no {file}")
        sys.path.insert(0, str(checkout))
        try:
            module = importlib.import_module("models.nbody_cggnn")
        finally:
            sys.path.remove(str(checkout))
        torch.manual_seed(0)
        self.network: nn.Module = module.NBodyCGGNN()
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=RATE, weight_decay=DECAY)

    def loss(self, samples: Samples) -> Tensor:
        """Mean squared error of all coordinates."""
        x, v, charges = samples.start
        pairs = all_pairs(1, charges.shape[1])
        products = (charges[:, pairs[0]] * charges[:, pairs[1]]).unsqueeze(-1)
        edges = pairs.expand(len(x), 2, -1)
        batch: tuple[Any, ...] = (x, v, products, charges.unsqueeze(-1), samples.end, edges)
        loss: Tensor = self.network(batch, 0)[0]
        return loss

    def learn(self, samples: Samples) -> None:
        """A step."""
        self.optimizer.zero_grad()
        self.loss(samples).backward()
        self.optimizer.step()

    @torch.no_grad()
    def error(self, samples: Samples) -> float:
        """Of a split."""
        total = 0.0
        for first in range(0, len(samples), MANY):
            some = samples.select(slice(first, first + MANY))
            total += float(self.loss(some)) * len(some)
        return total / len(samples)


def compare(
    checkout: Path, steps: int, out: Path, key: str = "moves", setting: Setting = SETTING
) -> Comparison:
    """Train both.

    Args:
        checkout: of the public code.
        steps: of each.
        out: folder of the study, with its data.
        key: of our contender.
        setting: sizes of the splits, and how ours learns.
    """
    splits = open_data(out / "data.npz", setting.sizes)
    data = {split: samples.float() for split, samples in splits.items()}
    contender = CONTENDERS[key]
    ours = Training(Trial(key, contender, replace(setting, steps=steps), 0), data)
    theirs = Theirs(checkout)
    works: dict[str, Callable[[], None]] = {
        contender.label: ours.learn,
        "CGENN": lambda: theirs.learn(_batch(data["train"], len(times["CGENN"]), setting.batch)),
    }
    times: dict[str, list[float]] = {label: [] for label in works}
    for _ in Bar("steps").over("side by side", range(steps)):
        for label, work in works.items():
            start = time.perf_counter()
            work()
            times[label].append(time.perf_counter() - start)
    rows = [
        Row(label, _count(network), statistics.median(times[label]), error)
        for label, network, error in (
            (contender.label, ours.network, mean_square(ours.network, data["valid"])),
            ("CGENN", theirs.network, theirs.error(data["valid"])),
        )
    ]
    return Comparison(steps, machine(), tuple(rows))


def _batch(train: Samples, step: int, size: int) -> Samples:
    """Of a step: of each epoch a permutation."""
    epoch, place = divmod(step, len(train) // size)
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(epoch))
    return train.select(order[place * size : (place + 1) * size])


def _count(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters())


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = Parser(
        PROGRAM,
        "Trains CGENN's public code and ours on the same particles, step by step in turn.",
        [f"{PROGRAM} ../cgenn --steps 300 --page docs"],
    )
    add = parser.add_argument
    add("checkout", type=Path, metavar="DIR", help="checkout of the public code")
    add("--steps", type=int, default=300, help="of each (default: %(default)s)")
    add("--out", type=Path, default=Path("nbody"), help="of the study (default: %(default)s)")
    add("--page", type=Path, metavar="DIR", help=f"keep {FILE} here (default: that of --out)")
    add("--debug", action="store_true", help="show the traceback of errors")
    args = parser.parse_args(argv)
    return run_command(PROGRAM, lambda: _run(args), debug=args.debug)


def _run(args: argparse.Namespace) -> int:
    if args.steps < 1:
        raise ValueError(f"--steps must be positive, got {args.steps}")
    for folder in (args.out, args.page or args.out):
        check_folder(folder, "for the files of the study", create=True)
        folder.mkdir(parents=True, exist_ok=True)
    found = compare(args.checkout, args.steps, args.out)
    for row in found.rows:
        print(
            f"{row.label}: {row.parameters:,} parameters, {1e3 * row.seconds:.0f} ms a step, "
            f"validation error {row.valid:.4f} after {found.steps} steps"
        )
    write_json((args.page or args.out) / FILE, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
