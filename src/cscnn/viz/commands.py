"""The command about pictures: ``cscnn plot``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cscnn._util.command import add_overwrite
from cscnn._util.files import check_output
from cscnn._util.progress import Bar, status


def add_commands(commands: Any) -> None:
    """Add the subcommand to those of ``cscnn``."""
    plot = commands.add_parser(
        "plot",
        help="draw stills or a film of stored fields",
        description="Draws the fields of one trajectory of a file (of this library, PDEArena or "
        "The Well): stills as .png, .pdf or .svg, films as .gif or, with ffmpeg, .mp4.",
        epilog="example: cscnn plot data/smoke/train.h5 --fields smoke --out smoke.gif",
    )
    plot.add_argument("file", type=Path)
    plot.add_argument("--out", type=Path, help="(default: the name of the file, .png)")
    plot.add_argument("--trajectory", type=int, default=0, help="which one (default: %(default)s)")
    plot.add_argument("--frames", type=int, nargs="+", help="of stills; by default a few of all")
    plot.add_argument("--fields", nargs="+", metavar="NAME", help="by default all")
    plot.add_argument("--fps", type=float, default=8, help="of films (default: %(default)s)")
    add_overwrite(plot)
    plot.set_defaults(run=_plot)


def _plot(args: argparse.Namespace) -> int:
    from cscnn.data import open_fields
    from cscnn.viz import animate, plot_fields
    from cscnn.viz.figures import STILLS, save
    from cscnn.viz.films import SUFFIXES

    out = args.out or Path(args.file.with_suffix(".png").name)
    if out.suffix not in (*STILLS, *SUFFIXES):
        raise ValueError(f"--out must end in one of {', '.join((*STILLS, *SUFFIXES))}, got {out}")
    if args.frames is not None and out.suffix in SUFFIXES:
        raise ValueError(f"--frames is for stills, a film such as {out} shows all: leave it out")
    check_output(out, inputs=[args.file], overwrite=args.overwrite)
    with open_fields(args.file) as source:
        if out.suffix in SUFFIXES:
            bar = Bar("frames")
            animate(
                source, out, args.trajectory, args.fields, args.fps,
                progress=lambda done, total: bar("drawing", done, total),
            )  # fmt: skip
        else:
            status(f"drawing {out}")
            figure = plot_fields(source, args.trajectory, args.frames, args.fields)
            save(figure, out)
    print(out)
    return 0
