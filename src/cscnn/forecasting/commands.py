"""The commands about trained forecasters: ``cscnn evaluate``, ``predict`` and ``export``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from cscnn._util.checks import check_int
from cscnn._util.files import check_output
from cscnn._util.parser import Parser, add_batch, add_device, add_out, add_quiet, add_seed

if TYPE_CHECKING:
    from cscnn.forecasting.forecaster import Forecaster


def add_forecaster(command: Parser) -> None:
    """The forecaster that a command is about."""
    command.add_argument(
        "forecaster",
        type=_forecaster_path,
        metavar="RUN",
        help="folder of a run or of hub save, file of a forecaster, or e.g. zoo:navier_stokes",
    )


def _forecaster_path(text: str) -> Path:
    """A path, or the folder of an entry of the zoo."""
    from cscnn.forecasting import zoo

    if not text.startswith(zoo.PREFIX):
        return Path(text)
    try:
        return zoo.folder(text.removeprefix(zoo.PREFIX))
    except (ValueError, OSError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _add_stride(command: Parser) -> None:
    command.add_argument(
        "--stride",
        type=int,
        metavar="N",
        help="show every Nth frame of the data, and forecast in such steps: one of the range of "
        "data.stride in training (default: the smallest)",
    )


def add_evaluate(command: Parser) -> None:
    """``cscnn evaluate``."""
    command.describe(
        "Measures errors of one step and of rollouts beside the persistence forecast, "
        "how long rollouts last and what energy they have, violations of translations, grid "
        "symmetries, rotations and boosts, test errors for other observers, and cost. Prints "
        "a table and writes evaluation.json and samples.npz into the folder of the run, in place "
        "of those from before.",
        "cscnn evaluate runs/smoke --split test --steps 20",
        "cscnn evaluate zoo:navier_stokes --data data/smoke/test.h5 --out smoke.json",
    )
    add_forecaster(command)
    command.add_argument("--split", default="test", help="which data (default: %(default)s)")
    command.add_argument(
        "--data",
        nargs="+",
        metavar="FILE",
        help="use these instead: files, a folder, or a pattern in quotes",
    )
    command.add_argument(
        "--windows",
        type=int,
        metavar="N",
        default=256,
        help="for errors of one step (default: %(default)s)",
    )
    command.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="frames of rollouts (default: all there are; after a gap those of one forecast)",
    )
    _add_stride(command)
    command.add_argument(
        "--trajectories",
        type=int,
        metavar="N",
        default=16,
        help="for rollouts (default: %(default)s)",
    )
    add_batch(command, "windows that are computed together", 8)
    add_device(command)
    add_seed(command)
    add_out(
        command,
        "FILE",
        "write this .json file instead, and the samples to the same name with .npz",
    )
    add_quiet(command)
    command.set_defaults(run=_evaluate)


def add_predict(command: Parser) -> None:
    """``cscnn predict``."""
    command.describe(
        "Forecasts every trajectory, feeding predictions back, and writes the "
        "forecasts into one file in the format of data files.",
        "cscnn predict runs/smoke data/smoke/test.h5 --steps 10 --out forecast.h5",
        "cscnn predict zoo:navier_stokes data/smoke/test.h5 --start 2 --out forecast.h5",
    )
    add_forecaster(command)
    command.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        help="trajectories to begin with: files, a folder, or a pattern in quotes",
    )
    add_out(command, "FILE", "the file to write", required=True)
    command.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="frames to forecast (default: 10; after a gap those of one forecast)",
    )
    _add_stride(command)
    command.add_argument(
        "--start",
        type=int,
        metavar="N",
        default=0,
        help="first frame that is shown (default: %(default)s)",
    )
    add_device(command)
    add_quiet(command)
    command.set_defaults(run=_predict)


def add_export(command: Parser) -> None:
    """``cscnn export``."""
    command.describe(
        "Writes the forecaster as plain convolutions with its units inside, verified "
        "against the original. It takes and returns physical fields by name, (batch, frames, "
        "*grid, components).",
        "cscnn export runs/smoke --out smoke.onnx",
        "cscnn export zoo:navier_stokes --grid 32 32 --batch 4 --out smoke.pt2",
    )
    add_forecaster(command)
    add_out(command, "FILE", "a file .pt2 (torch.export) or .onnx", required=True)
    command.add_argument(
        "--grid",
        type=int,
        nargs="+",
        metavar="N",
        help="points per axis of space, as the network sees them (default: those of the run's "
        "training data)",
    )
    add_batch(command, "fixed size", 1)
    add_quiet(command)
    command.set_defaults(run=_export)


def _evaluate(args: argparse.Namespace) -> int:
    from cscnn._util.machine import usable_device
    from cscnn.forecasting.evaluation import evaluate, table

    check_int("--seed", args.seed, low=0)
    out, samples_file = _evaluation_files(args.forecaster, args.out, args.overwrite)
    evaluation, samples = evaluate(
        args.forecaster,
        split=args.split,
        data=args.data,
        windows=args.windows,
        steps=args.steps,
        trajectories=args.trajectories,
        device=usable_device(args.device),
        batch=args.batch,
        seed=args.seed,
        quiet=args.quiet,
        stride=args.stride,
    )
    samples.save(samples_file)
    evaluation.save(out)
    print(table(evaluation))
    print(f"\nwritten to {out} and {samples_file}")
    return 0


def _evaluation_files(forecaster: Path, out: Path | None, overwrite: bool) -> tuple[Path, Path]:
    """Where numbers and samples go."""
    from cscnn.forecasting.runs import EVALUATED, is_run

    if not forecaster.exists():
        raise FileNotFoundError(f"there is no folder or file {forecaster}")
    if out is None:  # measuring a run again replaces its own numbers
        if not is_run(forecaster):
            raise ValueError(f"{forecaster} is not the folder of a run: give --out FILE")
        numbers, samples = (forecaster / name for name in EVALUATED)
        overwrite = True
    elif out.suffix != ".json":
        raise ValueError(f"--out must end in .json, got {out}")
    else:
        numbers, samples = out, out.with_suffix(".npz")
    for file in (numbers, samples):
        check_output(file, inputs=_inputs(forecaster), overwrite=overwrite)
    return numbers, samples


def _inputs(forecaster: Path) -> list[Path]:
    """What is read of a forecaster: its file, or the files that training wrote."""
    from cscnn.forecasting.runs import TRAINED

    return [forecaster, *(forecaster / name for name in TRAINED)]


def _predict(args: argparse.Namespace) -> int:
    from cscnn._util.machine import usable_device
    from cscnn.data.paths import list_files
    from cscnn.forecasting.predict import predict
    from cscnn.forecasting.runs import load_forecaster

    inputs = [*list_files(args.file), *_inputs(args.forecaster)]
    check_output(args.out, inputs=inputs, overwrite=args.overwrite)
    forecaster = load_forecaster(args.forecaster, usable_device(args.device))
    task = forecaster.task
    default = task.frames_out if task.gap else 10
    predict(
        forecaster,
        args.file,
        args.out,
        steps=default if args.steps is None else args.steps,
        start=args.start,
        stride=args.stride,
        quiet=args.quiet,
    )
    print(f"{args.out}: see it with cscnn plot {args.out}")
    return 0


def _export(args: argparse.Namespace) -> int:
    from cscnn.forecasting.export import SUFFIXES, export
    from cscnn.forecasting.runs import load_forecaster

    if args.out.suffix not in SUFFIXES:
        raise ValueError(f"--out must end in {' or '.join(SUFFIXES)}, got {args.out.name}")
    check_output(args.out, inputs=_inputs(args.forecaster), overwrite=args.overwrite)
    forecaster = load_forecaster(args.forecaster)
    grid = args.grid or _training_grid(args.forecaster, forecaster)
    error = export(forecaster, args.out, grid=grid, batch=args.batch, quiet=args.quiet)
    print(f"{args.out}: differs from the original by {error:.1g}")
    return 0


def _training_grid(path: Path, forecaster: Forecaster) -> tuple[int, ...]:
    """The grid of the training data of a run, as the network sees them."""
    from cscnn.forecasting.runs import Run, is_run

    if not is_run(path):
        raise ValueError(f"{path} does not name its training data, as a run would: give --grid")
    try:
        with Run(path).source("train") as source:
            return forecaster.view(source).header.grid
    except (OSError, ValueError) as error:
        raise ValueError(f"give --grid, as the training data are not readable: {error}") from error
