"""The main job, end to end: simulate, train two models, evaluate, write a report.

    python examples/demo.py [--out demo] [--epochs N] [--train N]

Smoke that rises in a box. A Clifford-steerable ResNet, which is equivariant to rotations and
reflections by construction, and a plain ResNet with as many parameters learn to forecast it. Both
are told the direction of buoyancy. Run it again to go on after an interruption.
"""

import argparse
import shlex
import sys
import time
from pathlib import Path

from cscnn._util.progress import duration
from cscnn.cli import main as cscnn
from cscnn.forecasting.evaluation import Evaluation

MODELS = {  # half the depth of the paper's networks, for a CPU
    "cs_resnet": "{blocks: 4, kernel_size: 5, kernel: complete, activation: product}",
    "resnet": "{blocks: 4, kernel_size: 5}",
}
SPLITS = ("train", "valid", "test")
WIDTHS = (11, 12, 9, 20)


def run(*command: object) -> None:
    """One command of the command line, as you would type it."""
    words = [str(word) for word in command]
    print(f"\n$ cscnn {shlex.join(words)}", flush=True)
    if code := cscnn(words):
        sys.exit(code)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder (default: demo)")
    parser.add_argument("--epochs", type=int, help="of training (default: those of the preset)")
    parser.add_argument("--train", type=int, default=32, help="trajectories (default: 32)")
    arguments = parser.parse_args()
    out, start = arguments.out, time.monotonic()
    data = out / "data"
    counts = (f"train={arguments.train}", "valid=8", "test=16")
    run("generate", "navier_stokes", "--preset", "small", "--out", data, "--split", *counts,
        "--workers", 2)  # fmt: skip
    files = [word for s in SPLITS for word in (f"--data.{s}", data / f"{s}.h5")]
    epochs = ["--trainer.epochs", arguments.epochs] if arguments.epochs else []
    for model, options in MODELS.items():
        run("train", "--preset", "navier_stokes_small", *files, "--model.name", model,
            "--model.options", options, "--out", out / model, *epochs)  # fmt: skip
    for model in MODELS:
        run("evaluate", out / model)
    report = out / "report.html"
    run("report", *(out / model for model in MODELS), "--out", report, "--overwrite")
    summary(out)
    print(f"\n{duration(time.monotonic() - start)} in all. The report: {report.resolve()}")


def summary(out: Path) -> None:
    """The three numbers that matter, whoever wins."""
    print(
        "\nRelative error of forecasts of unseen smoke (a forecast of zeros has error 1), seen as "
        "in training,\nand the mean over all rotations and reflections of the box:"
    )
    columns = ("parameters", "as trained", "rotated", "equivariance error")
    print(f"{'':<11}" + "".join(f"{c:>{w}}" for c, w in zip(columns, WIDTHS, strict=True)))
    for model in MODELS:
        evaluation = Evaluation.load(out / model / "evaluation.json")
        symmetry = evaluation.symmetry
        as_trained, *rotated = symmetry.observers.relative_l2
        numbers = (
            f"{evaluation.model.parameters:,}",
            f"{as_trained:.3f}",
            f"{sum(rotated) / len(rotated):.3f}",
            f"{symmetry.point_group:.1e}",
        )
        print(f"{model:<11}" + "".join(f"{n:>{w}}" for n, w in zip(numbers, WIDTHS, strict=True)))


if __name__ == "__main__":
    main()
