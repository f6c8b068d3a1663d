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

MODELS = ("cs_resnet", "resnet")
SPLITS = ("train", "valid", "test")
SHAPE = "{blocks: 4, kernel_size: 5}"  # half the depth of the paper's, for a CPU


def run(command: str) -> None:
    """One command of the command line, as you would type it."""
    print(f"\n$ cscnn {command}", flush=True)
    if code := cscnn(shlex.split(command)):
        sys.exit(code)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder (default: demo)")
    parser.add_argument("--epochs", type=int, help="of training (default: those of the preset)")
    parser.add_argument("--train", type=int, default=64, help="trajectories (default: 64)")
    arguments = parser.parse_args()
    out, start = arguments.out, time.monotonic()
    data = out / "data"
    splits = f"train={arguments.train} valid=8 test=16"
    run(f"generate navier_stokes --preset small --out {data} --split {splits} --workers 2")
    for model in MODELS:
        files = " ".join(f"--data.{split} {data / split}.h5" for split in SPLITS)
        more = f" --trainer.epochs {arguments.epochs}" if arguments.epochs else ""
        run(
            f"train --preset navier_stokes_small {files} --model.name {model} "
            f"--model.options '{SHAPE}' --out {out / model}{more}"
        )
    for model in MODELS:
        run(f"evaluate {out / model}")
    report = out / "report.html"
    run(f"report {' '.join(str(out / model) for model in MODELS)} --out {report}")
    summary(out)
    print(f"\n{duration(time.monotonic() - start)} in all. The report: {report.resolve()}")


def summary(out: Path) -> None:
    """The three numbers that matter, whoever wins."""
    print("\nRelative error of the forecast of unseen smoke (1 would be as wrong as predicting zero)")
    print(f"{'':<11}{'parameters':>11}{'as trained':>12}{'turned, mirrored':>18}"
          f"{'equivariance error':>20}")  # fmt: skip
    for model in MODELS:
        found = json.loads((out / model / "evaluation.json").read_text(encoding="utf-8"))
        frames = found["symmetry"]["frames"]["relative_l2"]
        print(
            f"{model:<11}{found['model']['parameters']:>11,}"
            f"{found['one_step']['relative_l2']:>12.3f}{sum(frames) / len(frames):>18.3f}"
            f"{found['symmetry']['point group']:>20.1e}"
        )


if __name__ == "__main__":
    main()
