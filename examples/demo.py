"""The main job, end to end: simulate, train two models, evaluate, write a report.

    python examples/demo.py [--out demo] [--epochs N] [--train N]

Smoke that rises in a box. A Clifford-steerable ResNet, which is equivariant to rotations and
reflections by construction, and a plain ResNet with as many parameters learn to forecast it. Both
are told the direction of buoyancy. Run it again to go on after an interruption.
"""

import argparse
import json
import shlex
import sys
import time
from pathlib import Path

from cscnn.cli import main as cscnn
from cscnn.progress import duration

MODELS = {  # half the depth of the paper's networks, for a CPU
    "cs_resnet": "{blocks: 4, kernel_size: 5, kernel: complete, activation: product}",
    "resnet": "{blocks: 4, kernel_size: 5}",
}
SPLITS = ("train", "valid", "test")
WIDTHS = (11, 12, 9, 20)


def run(command: str) -> None:
    """One command of the command line, as you would type it."""
    print(f"\n$ cscnn {command}", flush=True)
    if code := cscnn(shlex.split(command)):
        sys.exit(code)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder (default: demo)")
    parser.add_argument("--epochs", type=int, help="of training (default: those of the preset)")
    parser.add_argument("--train", type=int, default=32, help="trajectories (default: 32)")
    arguments = parser.parse_args()
    out, start = arguments.out, time.monotonic()
    data = out / "data"
    splits = f"train={arguments.train} valid=8 test=16"
    run(f"generate navier_stokes --preset small --out {data} --split {splits} --workers 2")
    for model, options in MODELS.items():
        files = " ".join(f"--data.{split} {data / split}.h5" for split in SPLITS)
        more = f" --trainer.epochs {arguments.epochs}" if arguments.epochs else ""
        run(
            f"train --preset navier_stokes_small {files} --model.name {model} "
            f"--model.options '{options}' --out {out / model}{more}"
        )
    for model in MODELS:
        run(f"evaluate {out / model}")
    report = out / "report.html"
    run(f"report {' '.join(str(out / model) for model in MODELS)} --out {report}")
    summary(out)
    print(f"\n{duration(time.monotonic() - start)} in all. The report: {report.resolve()}")


def summary(out: Path) -> None:
    """The three numbers that matter, whoever wins."""
    print(
        "\nRelative error of forecasts of unseen smoke (predicting zero would give 1), seen as in "
        "training,\nand on average over the box turned and mirrored in all ways:"
    )
    columns = ("parameters", "as trained", "turned", "equivariance error")
    print(f"{'':<11}" + "".join(f"{c:>{w}}" for c, w in zip(columns, WIDTHS, strict=True)))
    for model in MODELS:
        found = json.loads((out / model / "evaluation.json").read_text(encoding="utf-8"))
        usual, *turned = found["symmetry"]["frames"]["relative_l2"]
        numbers = (
            f"{found['model']['parameters']:,}",
            f"{usual:.3f}",
            f"{sum(turned) / len(turned):.3f}",
            f"{found['symmetry']['point group']:.1e}",
        )
        print(f"{model:<11}" + "".join(f"{n:>{w}}" for n, w in zip(numbers, WIDTHS, strict=True)))


if __name__ == "__main__":
    main()
