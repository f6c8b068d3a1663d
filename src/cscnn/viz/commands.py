"""The command about pictures: ``cscnn plot``."""

from __future__ import annotations

import argparse
from pathlib import Path

from cscnn._util.files import check_output
from cscnn._util.parser import Parser, add_out, add_quiet
from cscnn._util.progress import Bar, status


def add_plot(command: Parser) -> None:
    """``cscnn plot``."""
    command.describe(
        "Draws the fields of one trajectory of a file (of this library, PDEArena or "
        "The Well): stills as .png, .pdf or .svg, films as .gif or, with ffmpeg, .mp4.",
        "cscnn plot data/smoke/train.h5 --frames 0 5 10 --out smoke.png",
        "cscnn plot data/smoke/train.h5 --fields smoke --out smoke.gif",
    )
    command.add_argument("file", type=Path, metavar="FILE", help="a data file")
    add_out(command, "FILE", "the picture (default: the name of the file, .png)")
    command.add_argument(
        "--trajectory", type=int, metavar="N", default=0, help="which one (default: %(default)s)"
    )
    command.add_argument(
        "--frames", type=int, nargs="+", metavar="N", help="of stills; by default a few of all"
    )
    command.add_argument("--fields", nargs="+", metavar="NAME", help="by default all")
    command.add_argument(
        "--fps", type=float, metavar="N", default=8, help="of films (default: %(default)s)"
    )
    add_quiet(command)
    command.set_defaults(run=_plot)


def _plot(args: argparse.Namespace) -> int:
    from cscnn.data import open_fields
    from cscnn.viz import animate, plot_fields
    from cscnn.viz.figures import STILLS, save
    from cscnn.viz.films import SUFFIXES

    if (args.file / "config.json").is_file() or (args.file / "model.safetensors").is_file():
        raise ValueError(
            f"{args.file} is a trained forecaster, not data: draw its forecasts, which cscnn "
            f"predict {args.file} DATA --out forecast.h5 writes, or compare runs by cscnn report"
        )
    out = args.out or Path(args.file.with_suffix(".png").name)
    if out.suffix not in (*STILLS, *SUFFIXES):
        raise ValueError(f"--out must end in one of {', '.join((*STILLS, *SUFFIXES))}, got {out}")
    if args.frames is not None and out.suffix in SUFFIXES:
        raise ValueError(f"--frames is for stills, a film such as {out} shows all: leave it out")
    check_output(out, inputs=[args.file], overwrite=args.overwrite)
    with open_fields(args.file) as source:
        if out.suffix in SUFFIXES:
            bar = Bar("frames", quiet=args.quiet)
            animate(
                source, out, args.trajectory, args.fields, args.fps,
                progress=lambda done, total: bar("drawing", done, total),
            )  # fmt: skip
        else:
            if not args.quiet:
                status(f"drawing {out}")
            figure = plot_fields(source, args.trajectory, args.frames, args.fields)
            save(figure, out)
    print(out)
    return 0
