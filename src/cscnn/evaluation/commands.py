"""The commands about trained models: ``cscnn evaluate``, ``predict`` and ``export``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_commands(commands: Any) -> None:
    """Add the subcommand to those of ``cscnn``."""
    evaluate = commands.add_parser(
        "evaluate",
        help="measure a trained model: errors, rollouts, symmetry, cost",
        description="Measures errors of one step and of rollouts, beside the forecast that nothing "
        "changes, violations of translations, grid symmetries, rotations and boosts, test errors "
        "seen from other frames, and cost. Prints a table and writes evaluation.json and "
        "samples.npz into the folder of the run.",
        epilog="example: cscnn evaluate runs/smoke --split test --rollout 20",
    )
    evaluate.add_argument("folder", type=Path, metavar="RUN", help="folder of a run")
    evaluate.add_argument("--split", default="test", help="which data (default: %(default)s)")
    evaluate.add_argument("--data", type=Path, metavar="FILE", help="use this file instead")
    evaluate.add_argument(
        "--windows", type=int, default=256, help="for errors of one step (default: %(default)s)"
    )
    evaluate.add_argument(
        "--rollout", type=int, metavar="STEPS", help="frames of rollouts (default: all there are)"
    )
    evaluate.add_argument(
        "--trajectories", type=int, default=16, help="for rollouts (default: %(default)s)"
    )
    evaluate.add_argument("--batch", type=int, default=8, help="(default: %(default)s)")
    evaluate.add_argument("--device", default="cpu", help="(default: %(default)s)")
    evaluate.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    evaluate.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write this JSON file instead, and the samples to the same name with .npz",
    )
    evaluate.set_defaults(run=_evaluate)

    predict = commands.add_parser(
        "predict",
        help="write a model's forecasts as data",
        description="Forecasts every trajectory of a file, feeding predictions back, and writes "
        "the forecasts in the format of data files.",
        epilog="example: cscnn predict runs/smoke data/smoke/test.h5 --steps 10 --out forecast.h5",
    )
    predict.add_argument("folder", type=Path, metavar="RUN", help="folder of a run")
    predict.add_argument("file", type=Path, metavar="FILE", help="trajectories to begin with")
    predict.add_argument("--out", type=Path, required=True, help="the file to write")
    predict.add_argument("--steps", type=int, default=10, help="frames (default: %(default)s)")
    predict.add_argument(
        "--start", type=int, default=0, help="first frame that is shown (default: %(default)s)"
    )
    predict.add_argument("--device", default="cpu", help="(default: %(default)s)")
    predict.set_defaults(run=_predict)

    export = commands.add_parser(
        "export",
        help="write a model for programs without this library",
        description="Writes the model as plain convolutions, in physical units, verified against "
        "the original. It takes and returns (batch, channels, *grid, blades).",
        epilog="example: cscnn export runs/smoke --out smoke.onnx",
    )
    export.add_argument("folder", type=Path, metavar="RUN", help="folder of a run")
    export.add_argument(
        "--out", type=Path, required=True, help="a file .pt2 (torch.export) or .onnx"
    )
    export.add_argument("--batch", type=int, default=1, help="fixed size (default: %(default)s)")
    export.set_defaults(run=_export)


def _evaluate(args: argparse.Namespace) -> int:
    from cscnn.evaluation import evaluate, table

    out = args.out or args.folder / "evaluation.json"
    samples = out.with_suffix(".npz") if args.out else args.folder / "samples.npz"
    if not args.folder.is_dir():
        raise FileNotFoundError(f"there is no folder {args.folder}")
    if not out.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {out.parent} to write {out.name} into")
    if samples == out:
        raise ValueError(f"--out names a JSON file, got {out}")
    found = evaluate(
        args.folder,
        split=args.split,
        data=args.data,
        windows=args.windows,
        steps=args.rollout,
        trajectories=args.trajectories,
        device=_device(args.device),
        batch=args.batch,
        seed=args.seed,
        quiet=False,
    )
    found.save(out, samples)
    print(table(found.result))
    print(f"\nwritten to {out} and {samples}")
    return 0


def _predict(args: argparse.Namespace) -> int:
    from cscnn.evaluation.predict import predict
    from cscnn.training.run import Run

    if not args.out.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {args.out.parent} to write {args.out} into")
    predict(
        Run(args.folder), args.file, args.out, steps=args.steps, start=args.start,
        device=_device(args.device), quiet=False,
    )  # fmt: skip
    print(f"{args.out}: see it with cscnn plot {args.out}")
    return 0


def _export(args: argparse.Namespace) -> int:
    from cscnn.training.export import SUFFIXES, export
    from cscnn.training.run import Run

    kinds = {suffix: kind for kind, suffix in SUFFIXES.items()}
    if args.out.suffix not in kinds:
        raise ValueError(f"--out must end in {' or '.join(kinds)}, got {args.out.name}")
    if not args.out.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {args.out.parent} to write {args.out} into")
    error = export(Run(args.folder), args.out, kinds[args.out.suffix], args.batch)
    print(f"{args.out}: differs from the original by {error:.1g}")
    return 0


def _device(name: str) -> Any:
    import torch

    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(f"cannot compute on device {name!r}: {error}") from error
    return device
