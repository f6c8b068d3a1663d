"""Rows as a table for the terminal and as a page for the docs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from benchmarks.registry import Benchmark, get, names
from benchmarks.runner import Row

HEADER = (
    f"{'case':<27}{'variant':<26}{'time':>11}{'median':>8}{'ratio':>8}{'peak':>11}{'error':>10}"
    "  target"
)

INTRODUCTION = """
After this page you can compare the speed, memory and rounding error of each hot path with its
alternatives. `make bench` writes this page.

- **time**: the minimum of {repeats} interleaved timings in one process.
- **median**: how far the median of the timings lies above their minimum.
- **ratio**: the time relative to the reference of each case, whose ratio is 1.
- **peak**: the memory that torch allocates during the work; other packages do not count.
- **error**: the largest relative deviation from float64.
- **target**: what we ask of a variant. Missed targets stay on the page.
"""


def line(row: Row) -> str:
    """One row of the terminal table."""
    return (
        f"{row.case:<27}{row.variant:<26}{_time(row):>11}{_spread(row):>8}{_ratio(row):>8}"
        f"{_peak(row):>11}{_error(row):>10}  {row.target}"
    ).rstrip()


def _time(row: Row) -> str:
    return f"slope {row.slope:.2f}" if row.slope is not None else f"{row.seconds * 1e3:.2f} ms"


def _spread(row: Row) -> str:
    return "" if row.slope is not None else f"+{row.spread:.0%}"


def _ratio(row: Row) -> str:
    return (
        ""
        if row.slope is not None
        else f"{row.ratio:.2g}"
        if row.ratio < 0.1
        else f"{row.ratio:.2f}"
    )


def _peak(row: Row) -> str:
    return "" if row.slope is not None or not row.peak_bytes else f"{row.peak_bytes / 1e6:.1f} MB"


def _error(row: Row) -> str:
    return "" if row.error is None else f"{row.error:.0e}"


def markdown(
    chosen: Sequence[Benchmark],
    rows: Sequence[Row],
    machine: dict[str, str],
    repeats: int,
    page: str = "",
) -> str:
    """A page with one section per benchmark and the machine it was run on.

    Args:
        chosen: the benchmarks that were run.
        rows: of all of them.
        machine: what the numbers were measured on.
        repeats: timings per variant.
        page: an earlier one, whose sections of other benchmarks are kept.
    """
    _, *kept = page.split("\n## ")
    sections = {section.split("\n", 1)[0]: f"## {section.strip()}" for section in kept}
    for entry in chosen:
        measured = [row for row in rows if row.benchmark == entry.name]
        sections[entry.title] = _section(entry, measured, machine)
    parts = ["# Benchmarks", INTRODUCTION.format(repeats=repeats).strip()]
    titles = [get(name).title for name in names()]
    return "\n\n".join([*parts, *(sections[t] for t in titles if t in sections)]) + "\n"


def _section(entry: Benchmark, rows: Sequence[Row], machine: dict[str, str]) -> str:
    facts = ", ".join(f"{key} {value}" for key, value in machine.items())
    parts = [f"## {entry.title}", _paragraph(f"{entry.reading} {entry.missing()}")]
    parts += ["\n".join(_table(rows))] if rows else []
    return "\n\n".join([*parts, _paragraph(f"Machine: {facts}.")])


def _paragraph(text: str) -> str:
    """The text in lines of at most 100 characters."""
    return textwrap.fill(
        " ".join(text.split()), 100, break_long_words=False, break_on_hyphens=False
    )


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| case | variant | time | median | ratio | peak | error | target |"
    yield "|---|---|---:|---:|---:|---:|---:|---|"
    for row in rows:
        cells = (row.case, row.variant, _time(row), _spread(row), _ratio(row), _peak(row))
        yield f"| {' | '.join((*cells, _error(row), row.target))} |"
