"""The page of a report: all sections in one file of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import cscnn
from cscnn._util.files import check_folder, write_text
from cscnn._util.optional import require
from cscnn._util.progress import Bar
from cscnn.viz.figures import matplotlib
from cscnn.viz.report import curves, headline, kernels, rollouts, summary, table, viewer
from cscnn.viz.report.contents import Contents, load_runs

#: Makers of sections, in the order of the page; each has a template of its own.
SECTIONS = (
    headline.headline,
    viewer.forecasts,
    rollouts.errors,
    rollouts.physics,
    curves.symmetry,
    curves.learning,
    table.numbers,
    kernels.kernels,
    summary.making,
)


def write_report(
    folders: Sequence[str | Path], out: str | Path = "report.html", *, quiet: bool = True
) -> Path:
    """Write one HTML page about runs, whole or not at all.

    Args:
        folders: of runs, as written by ``cscnn train`` and ``cscnn evaluate``.
        out: the file.
        quiet: show no progress.

    Returns:
        its path.
    """
    out = Path(out)
    check_folder(out.parent, f"to write {out.name} into")
    write_text(out, render(load_runs(folders), quiet=quiet))
    return out


def render(runs: Sequence[Contents], *, quiet: bool = True) -> str:
    """The page as text; it needs nothing else."""
    matplotlib()  # an error now, not after the work
    made = (make(runs) for make in Bar("sections", quiet=quiet).over("drawing", SECTIONS))
    sections = [section for section in made if section is not None]
    return render_template(
        "page.html",
        runs=runs,
        heading=summary.heading(runs),
        sections=sections,
        version=cscnn.__version__,
        style=_asset("style.css"),
        script=_asset("script.js"),
    )


def render_template(name: str, **variables: Any) -> str:
    """The text of one of the templates; all variables are escaped."""
    return str(_templates().get_template(name).render(**variables))


@cache
def _templates() -> Any:
    jinja = require("jinja2", "the report", "viz")
    environment = jinja.Environment(
        loader=jinja.PackageLoader("cscnn.viz.report"),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
