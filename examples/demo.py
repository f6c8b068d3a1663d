"""The main job, end to end: simulate, train two models, evaluate, write a report.

    python examples/demo.py [--out demo] [--epochs N]

Solitons of the sine-Gordon equation, a relativistic wave equation in 1 + 1 dimensions. A
Clifford-steerable ResNet, which is equivariant to Lorentz boosts, and a plain ResNet with as many
parameters learn to forecast 16 time steps from the 16 before. Run it again to go on after an
interruption.
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


def run(command: str) -> None:
    """One command of the command line, as you would type it."""
    print(f"\n$ cscnn {command}", flush=True)
    if code := cscnn(shlex.split(command)):
        sys.exit(code)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder (default: demo)")
    parser.add_argument("--epochs", type=int, help="of training (default: those of the preset)")
    parser.add_argument("--train", type=int, default=64, help="training trajectories")
    arguments = parser.parse_args()
    start = time.monotonic()
    out = arguments.out
    data = out / "data"
    splits = f"train={arguments.train} valid=8 test=16"
    run(f"generate sine_gordon --preset small --out {data} --split {splits}")
    for model in MODELS:
        files = " ".join(f"--data.{s} {data / f'{s}.h5'}" for s in ("train", "valid", "test"))
        more = f" --trainer.epochs {arguments.epochs}" if arguments.epochs else ""
        run(
            f"train --preset sine_gordon_small --model.name {model} {files} "
            f"--out {out / model}{more}"
        )
    for model in MODELS:
        run(f"evaluate {out / model}")
    report = out / "report.html"
    run(f"report {' '.join(str(out / model) for model in MODELS)} --out {report}")
    print(f"\nAfter {duration(time.monotonic() - start)}: mean squared errors of the forecast, in "
          "units of the data's variance")  # fmt: skip
    print(f"{'':<12}{'parameters':>11}{'test error':>12}{'seen from moving frames':>25}"
          f"{'equivariance error':>20}")  # fmt: skip
    for model in MODELS:
        found = json.loads((out / model / "evaluation.json").read_text(encoding="utf-8"))
        frames, symmetry = found["symmetry"]["frames"], found["symmetry"]
        boosted = symmetry["boost"]["errors"][-1]
        print(
            f"{model:<12}{found['model']['parameters']:>11,}{found['one_step']['mse']:>12.4f}"
            f"{frames['mean']:>25.4f}{boosted:>20.4f}"
        )
    print(f"\nThe report: {report.resolve()}")


if __name__ == "__main__":
    main()
