"""The forecasters that come with the package, made again: ``python -m experiments.zoo``.

Simulates the data of each, trains it, evaluates it, and writes it with a card into the package,
with checksums, commands and errors in ``index.json``. Run it again to go on after an interruption.
Each takes about two minutes of one core.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from cscnn.cli import main as cscnn
from cscnn.forecasting import Run, zoo
from cscnn.forecasting.evaluation import Evaluation

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Recipe:
    """How a forecaster is made.

    Attributes:
        summary: what it forecasts, in one sentence.
        simulator: of its data, as words of ``cscnn generate``.
        split: trajectories.
        training: words of ``cscnn train``.
    """

    summary: str
    simulator: str
    split: str
    training: str


RECIPES = {
    "navier_stokes": Recipe(
        "Smoke and air in a closed box, 32² cells, by a U-Net with complete kernels.",
        "navier_stokes --preset small",
        "train=32 valid=4 test=16",
        "--preset navier_stokes_small --model.constraints {} --optimizer.lr 0.005 "
        "--trainer.epochs 8",
    ),
    "maxwell3d": Recipe(
        "Electric and magnetic fields in space, 16³ points, by a ResNet with complete kernels.",
        "maxwell3d --preset small",
        "train=24 valid=4 test=16",
        "--preset maxwell3d_small --model.params 20000 --model.predict change "
        "--model.options '{blocks: 2, kernel_size: 3, kernel: complete, activation: product}' "
        "--optimizer.lr 0.005 --optimizer.warmup 20 --trainer.epochs 10",
    ),
    "sine_gordon": Recipe(
        "Relativistic solitons on a line, by a ResNet with differential kernels.",
        "sine_gordon --preset small",
        "train=128 valid=16 test=32",
        "--preset sine_gordon_small --model.params 15000 --optimizer.lr 0.005 "
        "--optimizer.warmup 20 --trainer.epochs 10",
    ),
}


def commands(name: str, out: Path) -> list[list[str]]:
    """What is typed to make an entry, without the word cscnn.

    Args:
        name: of the entry.
        out: folder for data and runs.
    """
    recipe, folder = RECIPES[name], out / name
    files = [word for s in SPLITS for word in (f"--data.{s}", f"{folder.as_posix()}/{s}.h5")]
    run = (folder / "run").as_posix()
    generate = ["generate", *recipe.simulator.split(), "--out", folder.as_posix(), "--split"]
    train = ["train", *shlex.split(recipe.training), *files, "--out", run]
    return [
        [*generate, *recipe.split.split()],
        [*train, "--trainer.accelerator", "cpu"],
        ["evaluate", run, "--windows", "64"],
    ]


def make(name: str, out: Path, into: Path) -> None:
    """Make one entry, or what is missing of it.

    Args:
        name: of the entry.
        out: folder for data and runs.
        into: folder for the entry.
    """
    words = commands(name, out)
    run = out / name / "run"
    for command in words:
        if command[0] == "evaluate" and _is_evaluated(run):
            continue
        print(f"\n$ cscnn {shlex.join(command)}", flush=True)
        if code := cscnn(command):
            sys.exit(code)
    zoo.add(
        name,
        Run(run),
        into,
        summary=RECIPES[name].summary,
        commands=[f"cscnn {shlex.join(command)}" for command in words],
    )


def _is_evaluated(run: Path) -> bool:
    """Whether the numbers of a run are those of its weights."""
    numbers = run / "evaluation.json"
    if not numbers.exists():
        return False
    Evaluation.load(numbers)
    return numbers.stat().st_mtime >= (run / "model.safetensors").stat().st_mtime


def main() -> None:
    """Make all entries."""
    parser = argparse.ArgumentParser(prog="experiments.zoo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("zoo"), help="folder of data and runs")
    parser.add_argument(
        "--into", type=Path, default=zoo.FOLDER, help="folder of the entries (default: the package)"
    )
    parser.add_argument("--only", nargs="+", choices=RECIPES, default=list(RECIPES), metavar="NAME")
    arguments = parser.parse_args()
    for name in arguments.only:
        make(name, arguments.out, arguments.into)


if __name__ == "__main__":
    main()
