"""The commands about data: ``cscnn generate`` and ``cscnn data``."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cscnn._util.files import check_folder, check_output
from cscnn._util.parser import (
    Parser,
    add_batch,
    add_device,
    add_out,
    add_quiet,
    add_seed,
    add_workers,
)
from cscnn._util.progress import Bar
from cscnn._util.resources import size


def add_info(command: Parser) -> None:
    """``cscnn data info``."""
    command.describe(
        "Describes files: fields, grid, boundary, and how they were made.",
        "cscnn data info data/smoke/train.h5",
        "cscnn data info data/smoke/*.h5 --json",
    )
    command.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        help="a file; a folder or a pattern in quotes is described as one split",
    )
    command.add_argument("--json", action="store_true", help="machine-readable")
    command.set_defaults(run=_info)


def add_check(command: Parser) -> None:
    """``cscnn data check``."""
    command.describe(
        "Reads every number, compares the checksums, and measures the laws of physics. It fails if "
        "a file is damaged.",
        "cscnn data check data/smoke/train.h5",
        "cscnn data check data/smoke --quiet",
    )
    command.add_argument(
        "file", nargs="+", metavar="FILE", help="a file, a folder, or a pattern in quotes"
    )
    add_quiet(command)
    command.set_defaults(run=_check)


def add_merge(command: Parser) -> None:
    """``cscnn data merge``."""
    command.describe(
        "Joins shards, i.e. files of cscnn generate --shard, into one file.",
        "cscnn data merge data/train.shard-*.h5 --out data/train.h5",
        "cscnn data merge one.h5 two.h5 --out data/train.h5 --overwrite",
    )
    command.add_argument("file", nargs="+", metavar="FILE", type=Path, help="a shard")
    add_out(command, "FILE", "the file to write", required=True)
    add_quiet(command)
    command.set_defaults(run=_merge)


def add_export(command: Parser) -> None:
    """``cscnn data export``."""
    command.describe(
        "Writes trajectories in the format of another tool. the_well: OUT/data/SPLIT/NAME.hdf5, "
        "for the package the_well. vtk: a folder OUT for ParaView, with a .pvd file for each "
        "trajectory. netcdf: the file OUT.",
        "cscnn data export data/test.h5 --format vtk --out paraview",
        "cscnn data export data/smoke --format the_well --out well --trajectories 10",
    )
    command.add_argument(
        "file", nargs="+", metavar="FILE", help="a file, a folder, or a pattern in quotes"
    )
    command.add_argument("--format", required=True, metavar="NAME", help="the_well, vtk or netcdf")
    add_out(command, "PATH", "the folder or file to write", required=True)
    command.add_argument(
        "--trajectories", type=int, metavar="N", help="only the first N (default: all)"
    )
    add_quiet(command)
    command.set_defaults(run=_export)


def add_generate(command: Parser) -> None:
    """``cscnn generate``."""
    command.describe(
        "Simulates a data set and writes one HDF5 file per split. Run the same command "
        "again after an interruption, whatever it was, and it goes on; the result does not depend "
        "on interruptions, workers or batches. Files of other data are refused, or with "
        "--overwrite replaced.",
        "cscnn generate --list",
        "cscnn generate navier_stokes --preset small --out data/smoke \\\n"
        "      --split train=512 valid=64 test=64 --workers 8",
        "cscnn generate sine_gordon --out data/solitons --set grid=64 frames=64",
        "cscnn generate elastodynamics --out data/solid --set dim=3 cells=32",
    )
    command.add_argument("task", nargs="?", metavar="TASK", help="which equations, see --list")
    command.add_argument("--list", action="store_true", help="list tasks and options, and stop")
    add_out(command, "FOLDER", "folder for the files")
    command.add_argument(
        "--split",
        nargs="+",
        default=["train=64", "valid=8", "test=8"],
        metavar="NAME=COUNT",
        help="trajectories of each split (default: train=64 valid=8 test=8)",
    )
    command.add_argument(
        "--preset", help="paper or full, see --list, or small for a laptop (default: the first)"
    )
    command.add_argument(
        "--set",
        nargs="+",
        default=[],
        metavar="OPTION=VALUE",
        help="change options, e.g. --set grid=96,96 viscosity=0.02",
    )
    add_seed(command)
    add_workers(command)
    add_batch(command, "trajectories that are simulated together")
    command.add_argument("--shard", default="0/1", metavar="I/N", help="only part I of N, from 0")
    command.add_argument("--dtype", default="float32", help="stored numbers: float32 or float64")
    command.add_argument("--compression", default="none", help="none, lzf or gzip")
    add_device(command)
    add_quiet(command)
    command.settings = _settings
    command.set_defaults(run=_generate)


def _settings() -> set[str]:
    """Options of all simulators, which ``--set`` takes."""
    from cscnn.data.simulators import SIMULATORS

    return {f.name for simulator in SIMULATORS.values() for f in dataclasses.fields(simulator)}


def _generate(args: argparse.Namespace) -> int:
    from cscnn._util.machine import usable_device
    from cscnn.data.generate import generate, plans
    from cscnn.data.simulators import create

    if args.list:
        return _list_tasks()
    if args.task is None or args.out is None:
        raise ValueError(
            "generate needs a task and --out FOLDER; cscnn generate --list shows tasks"
        )
    check_folder(args.out, "for the files of --out", create=True)
    usable_device(args.device)
    simulator = create(args.task, args.preset, **_named("--set", map(_option, args.set)))
    chosen = plans(
        simulator,
        args.out,
        _named("--split", map(_split, args.split)),
        seed=args.seed,
        shard=_shard(args.shard),
        dtype=args.dtype,
        compression=args.compression,
        device=args.device,
    )
    try:
        made = generate(
            chosen,
            workers=args.workers,
            batch=args.batch,
            overwrite=args.overwrite,
            progress=Bar("trajectories", quiet=args.quiet),
        )
    except KeyboardInterrupt:
        print("\ninterrupted: what is finished is kept, run the same command to go on")
        return 130
    for path, new in made.items():
        print(f"{path}: {size(path.stat().st_size)}" + " (was already complete)" * (not new))
    return 0


def _list_tasks() -> int:
    from cscnn.data.simulators import SIMULATORS

    for name, simulator in SIMULATORS.items():
        summary = (simulator.__doc__ or "").splitlines()[0]
        print(f"{name}: {summary} Presets: {', '.join(simulator.presets)}.")
        for field in dataclasses.fields(simulator):
            values = [
                f"{preset} {_spelled(options[field.name])}"
                for preset, options in simulator.presets.items()
                if field.name in options
            ]
            print(f"  {field.name}={_spelled(field.default)}" + "".join(f" ({v})" for v in values))
    return 0


def _spelled(value: object) -> str:
    """A value as --set takes it, e.g. 64,64."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _option(text: str) -> tuple[str, Any]:
    """``grid=64,64`` -> ("grid", (64, 64))"""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--set takes OPTION=VALUE, got {text!r}")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return name, value


def _split(text: str) -> tuple[str, int]:
    name, equals, count = text.partition("=")
    if not equals or not _is_count(count):
        raise ValueError(f"--split takes NAME=COUNT, e.g. train=512, got {text!r}")
    return name, int(count)


def _shard(text: str) -> tuple[int, int]:
    part, slash, parts = text.partition("/")
    if not slash or not _is_count(part) or not _is_count(parts):
        raise ValueError(f"--shard takes I/N, e.g. 0/8, got {text!r}")
    return int(part), int(parts)


def _is_count(text: str) -> bool:
    """Whether a text is a number in plain digits, of a size that a file can hold."""
    return text.isascii() and text.isdigit() and len(text) < 20


def _named(option: str, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Name -> value; each name may be given once."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ValueError(f"{option} has {name} twice: {values[name]} and {value}")
        values[name] = value
    return values


def _info(args: argparse.Namespace) -> int:
    from cscnn.data.readers import open_fields

    described = []
    for path in args.file:
        with open_fields(path) as source:
            described.append(
                {
                    "path": str(path),
                    "files": len(source.files),
                    "trajectories": len(source),
                    "bytes": sum(file.path.stat().st_size for file in source.files),
                    "dtype": source.dtype,
                    "compression": ", ".join(
                        sorted({getattr(file, "compression", "none") for file in source.files})
                    ),
                    "staggering": source.staggering,
                    "points": [min(source.sizes), max(source.sizes)] if source.sizes else None,
                    **source.header.to_dict(),
                }
            )
    if args.json:
        print(json.dumps(described, indent=2))
        return 0
    for number, entry in enumerate(described):
        print("\n" * bool(number) + _describe(entry))
    return 0


def _maker(entry: dict[str, Any]) -> str:
    """What made a file, as far as it tells: files of users need not name a generator."""
    if not entry["generator"]:
        return "a program that the file does not name"
    return f"{entry['generator']} {entry['generator_version']}, seed {entry['seed']}"


def _describe(entry: dict[str, Any]) -> str:
    """A file for people."""
    from cscnn.data.fields import grade_text

    metric = "".join("+" if s > 0 else "-" for s in entry["metric"])
    length, time = (
        unit if (unit := entry["units"].get(name, "")) != "1" else "" for name in ("length", "time")
    )
    lines = [
        f"{entry['path']}: "
        + f"{entry['files']} files, " * (entry["files"] > 1)
        + f"{entry['trajectories']} trajectories, {size(entry['bytes'])}, "
        f"{entry['dtype']}, compression {entry['compression']}",
        f"  made by     {_maker(entry)}, split {entry['split'] or 'without a name'}",
        f"  metric      {metric} on axes {', '.join(entry['axes'])}"
        + (", time is an axis of the grid" if entry["time_axis"] is not None else ""),
        _space(entry, length),
        f"  boundary    {', '.join(entry['boundary'])}",
        f"  frames      {entry['frames']}, {entry['frame_spacing']:g} {time} apart"
        + (f", from t = {entry['start_time']:g} {time}".rstrip() if entry["start_time"] else ""),
    ]
    for field in entry["fields"]:
        grade = grade_text(field["grade"])
        lines.append(f"  field       {field['name']}: {grade}, {field['units']}")
    for given in entry["given"]:
        grade = grade_text(given["grade"])
        lines.append(f"  {given['kind']:<12}{given['name']}: {grade}, {given['units']}")
    for background in entry["backgrounds"]:
        lines.append(
            f"  background  {background['name']}: {grade_text(background['grade'])}, "
            f"{tuple(background['components'])}"
        )
    if entry["staggering"]:
        lines.append(f"  staggered   {entry['staggering']}")
    lines.append(f"  options     {json.dumps(entry['parameters'])}")
    return "\n".join(lines)


def _space(entry: dict[str, Any], length: str) -> str:
    """Where the fields are."""
    if entry["points"] is None:
        grid, spacing = " × ".join(map(str, entry["grid"])), entry["spacing"]
        text = (
            f"  grid        {grid} points of space, spacing {', '.join(f'{h:g}' for h in spacing)}"
        )
        return f"{text} {length}".rstrip()
    low, high = entry["points"]
    weights = ", with weights" * entry["cloud"]["weights"]
    text = f"  points      {low if low == high else f'{low} to {high}'} in a trajectory{weights}"
    if any(entry["cloud"]["period"]):
        periods = ("none" if p is None else f"{p:g}" for p in entry["cloud"]["period"])
        text += f", period {', '.join(periods)} {length}".rstrip()
    return text


def _check(args: argparse.Namespace) -> int:
    from cscnn.data.files import find_damage
    from cscnn.data.paths import list_files

    damaged = 0
    bar = Bar("trajectories", quiet=args.quiet)
    for path in list_files(args.file):
        defects = list(find_damage(path, bar))
        damaged += bool(defects)
        for text in defects or [f"{path}: all well", *_laws(path, bar)]:
            print(text)
    return int(damaged > 0)


def _laws(path: Path, bar: Bar) -> list[str]:
    """How well the data of a good file obey the equations behind them, a line for each."""
    from cscnn.data.files import FieldFile
    from cscnn.data.laws import residuals
    from cscnn.data.simulators import laws_of

    with FieldFile(path) as source:
        measured = residuals(
            laws_of(source.header),
            source,
            progress=lambda numbers: bar.over(f"{path.name}: laws of physics", numbers),
        )
    return ["  " + "warning: " * found.violated + found.sentence() for found in measured]


def _merge(args: argparse.Namespace) -> int:
    from cscnn.data.merge import merge

    check_output(args.out, inputs=args.file, overwrite=args.overwrite)
    count = merge(args.file, args.out, progress=Bar("trajectories", quiet=args.quiet))
    print(f"{args.out}: {count} trajectories")
    return 0


def _export(args: argparse.Namespace) -> int:
    from cscnn._util.checks import check_int
    from cscnn.data.readers import open_fields
    from cscnn.data.writers import export

    with open_fields(args.file if len(args.file) > 1 else args.file[0]) as source:
        count = len(source)
        if args.trajectories is not None:
            count = min(count, check_int("--trajectories", args.trajectories, low=1))
        paths = export(
            source,
            args.out,
            args.format,
            trajectories=range(count),
            overwrite=args.overwrite,
            progress=Bar("trajectories", quiet=args.quiet),
        )
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    print(f"{paths[0]}{more}: {count} trajectories")
    return 0
