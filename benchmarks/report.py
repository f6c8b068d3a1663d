"""Rows as a table for the terminal and as a page for the docs."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.registry import Benchmark
from benchmarks.runner import Row

HEADER = f"{'case':<27}{'variant':<26}{'time':>11}{'ratio':>8}{'peak':>11}{'error':>10}  target"


def line(row: Row) -> str:
    """One row of the terminal table."""
    ratio, peak = _ratio(row), _peak(row)
    return (
        f"{row.case:<27}{row.variant:<26}{_time(row):>11}{ratio:>8}{peak:>11}{_error(row):>10}"
        f"  {row.target}"
    ).rstrip()


def _time(row: Row) -> str:
    return f"slope {row.slope:.2f}" if row.slope is not None else f"{row.seconds * 1e3:.2f} ms"


def _ratio(row: Row) -> str:
    return "" if row.slope is not None else f"{row.ratio:.2f}"


def _peak(row: Row) -> str:
    return "" if row.slope is not None or not row.peak_bytes else f"{row.peak_bytes / 1e6:.1f} MB"


def _error(row: Row) -> str:
    return "" if row.error is None else f"{row.error:.0e}"


def markdown(chosen: Sequence[Benchmark], rows: Sequence[Row], machine: dict[str, str]) -> str:
    """A page with one table per benchmark and the machine it was run on."""
    parts = [
        "# Benchmarks",
        "",
        "Written by `make bench`. Times are medians of interleaved repeats in one process.",
        "Ratios are relative to the reference of each case, whose ratio is 1. Peak is the memory",
        "that torch allocates during the work. Error is the largest relative deviation from "
        "float64.",
        "",
        "Machine: " + ", ".join(f"{key} {value}" for key, value in machine.items()) + ".",
    ]
    for entry in chosen:
        parts += ["", f"## {entry.title}", ""]
        parts += ["| case | variant | time | ratio | peak | error | target |"]
        parts += ["|---|---|---:|---:|---:|---:|---|"]
        parts += [
            f"| {r.case} | {r.variant} | {_time(r)} | {_ratio(r)} | {_peak(r)} | {_error(r)} "
            f"| {r.target} |"
            for r in rows
            if r.benchmark == entry.name
        ]
    return "\n".join(parts) + "\n"
