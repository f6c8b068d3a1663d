"""The page as a whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

import cscnn
from cscnn.atomic import write_text
from cscnn.viz.backend import matplotlib
from cscnn.viz.report import curves, sections, viewer
from cscnn.viz.report.contents import Contents, load_runs

#: Nothing is loaded from anywhere.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"

PARTS = (
    sections.headline,
    viewer.forecasts,
    curves.rollout,
    curves.symmetry,
    curves.learning,
    sections.table,
    sections.kernels,
    sections.making,
)


def write_report(folders: Sequence[str | Path], out: str | Path = "report.html") -> Path:
    """Write one HTML page about some runs, whole or not at all.

    Args:
        folders: of runs, as written by ``cscnn train`` and ``cscnn evaluate``.
        out: the file.

    Returns:
        its path.
    """
    out = Path(out)
    if not out.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {out.parent} to write {out.name} into")
    write_text(out, render(load_runs(folders)))
    return out


def render(runs: Sequence[Contents]) -> str:
    """The page as text; it needs nothing else."""
    matplotlib()
    body = "\n".join(text for part in PARTS if (text := part(runs)))
    links = "".join(
        f'<li><a href="#{name}">{title}</a></li>'
        for name, title in re.findall(r'<section id="(\w+)"><h2>(.*?)</h2>', body)
    )
    names = ", ".join(run.label for run in runs)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(names)} – cscnn report</title>\n<style>\n{_asset('style.css')}</style>\n"
        f'</head>\n<body>\n{sections.heading(runs)}\n<nav aria-label="sections"><ul>{links}</ul>'
        f"</nav>\n<main>\n{body}\n</main>\n"
        f"<footer><p>Written by cscnn {cscnn.__version__}.</p></footer>\n"
        f"<script>\n{_asset('script.js')}</script>\n</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
