"""The main job, end to end: simulate, train two models, evaluate, write a report.

    python examples/demo.py [--out demo] [--epochs N] [--train N]

Smoke that rises in a box. A Clifford-steerable U-Net, which is equivariant to rotations and
reflections by construction, and a plain U-Net with as many parameters learn to forecast it. Both
are trained for about the same time: steps of the plain one are faster, so it takes more of them.
Both predict changes without divergence, and both are told the direction of buoyancy. Run it again
to go on after an interruption.
"""

import argparse
import shlex
import sys
import time
from pathlib import Path

from cscnn._util.progress import duration
from cscnn.cli import main as cscnn
from cscnn.forecasting import Run
from cscnn.forecasting.evaluation import Evaluation

#: Options of the networks beside those of the preset, and how many epochs take as long as one of
#: the first. Learning rates were chosen in experiments/rollouts.
MODELS = {
    "cs_unet": ((), 1),
    "unet": (("--model.name", "unet", "--model.options", "{}", "--optimizer.lr", "0.005"), 3),
}
SPLITS = ("train", "valid", "test")
EPOCHS, STEPS = 20, (1, 5, 10)
WIDTHS = (11, 13, 9, 9, 9, 11, 10, 20)


def run(*command: object) -> None:
    """One command of the command line, as you would type it."""
    words = [str(word) for word in command]
    print(f"\n$ cscnn {shlex.join(words)}", flush=True)
    if code := cscnn(words):
        sys.exit(code)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder (default: demo)")
    parser.add_argument(
        "--epochs", type=int, default=EPOCHS, help="of the first model (default: %(default)s)"
    )
    parser.add_argument("--train", type=int, default=32, help="trajectories (default: %(default)s)")
    arguments = parser.parse_args()
    out, start = arguments.out, time.monotonic()
    data = out / "data"
    counts = (f"train={arguments.train}", "valid=8", "test=16")
    run("generate", "navier_stokes", "--preset", "small", "--out", data, "--split", *counts,
        "--workers", 2)  # fmt: skip
    files = [word for s in SPLITS for word in (f"--data.{s}", data / f"{s}.h5")]
    for model, (options, factor) in MODELS.items():
        run("train", "--preset", "navier_stokes_small", *files, *options, "--out", out / model,
            "--trainer.epochs", factor * arguments.epochs)  # fmt: skip
    for model in MODELS:
        run("evaluate", out / model, "--steps", max(STEPS))
    report = out / "report.html"
    run("report", *(out / model for model in MODELS), "--out", report, "--overwrite")
    summary(out)
    print(f"\n{duration(time.monotonic() - start)} in all. The report: {report.resolve()}")


def summary(out: Path) -> None:
    """The numbers that matter."""
    print(
        "\nRelative error of forecasts of unseen smoke (a forecast of zeros has error 1):\n"
        "rollouts from the first frames; one step at any time, for smoke as in training, and\n"
        "rotated and reflected; and the equivariance error:"
    )
    steps = (f"step {step}" for step in STEPS)
    columns = (
        "parameters", "trained for", *steps, "one step", "rotated", "equivariance error",
    )  # fmt: skip
    print(f"{'':<8}" + "".join(f"{c:>{w}}" for c, w in zip(columns, WIDTHS, strict=True)))
    for model in MODELS:
        evaluation = Evaluation.load(out / model / "evaluation.json")
        rows = Run(out / model).metrics()
        symmetry, errors = evaluation.symmetry, evaluation.rollout.relative_l2
        as_trained, *rotated = symmetry.observers.relative_l2
        numbers = (
            f"{evaluation.model.parameters:,}",
            duration(sum(row["seconds"] for row in rows)),
            *(f"{errors[step - 1]:.3f}" for step in STEPS),
            f"{as_trained:.3f}",
            f"{sum(rotated) / len(rotated):.3f}",
            f"{symmetry.point_group:.1e}",
        )
        print(f"{model:<8}" + "".join(f"{n:>{w}}" for n, w in zip(numbers, WIDTHS, strict=True)))


if __name__ == "__main__":
    main()
