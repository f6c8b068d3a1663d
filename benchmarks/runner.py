"""How it is measured: minimum of interleaved timings, peak memory, error against float64.

Other work on the machine only adds to a time, so the minimum is the best estimate of what the work
itself takes. How far the median lies above it says how much the timings scatter.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from benchmarks.registry import Case, Work, get
from cscnn._util.machine import peak_memory

#: Timings of each variant.
REPEATS = 10


@dataclass(frozen=True)
class Row:
    """One variant of one case, measured."""

    benchmark: str
    case: str
    variant: str
    seconds: float  # the minimum of the timings
    spread: float  # how far their median lies above it, relative to it
    ratio: float  # minimum relative to that of the reference
    peak_bytes: int
    error: float | None  # largest relative deviation from float64
    target: str  # what was asked of this variant, and whether it held; empty if nothing was
    slope: float | None = None  # of log time against log size: a row about a series of cases


def run(
    name: str, *, repeats: int = REPEATS, progress: Callable[[str], None] = lambda _: None
) -> Iterator[Row]:
    """Measure all cases of one benchmark, yielding rows as they become known."""
    series: dict[str, list[tuple[Case, dict[str, float]]]] = {}
    for case in get(name).cases():
        progress(f"{name}: {case.label}")
        rows = list(_measure(name, case, repeats))
        yield from rows
        if case.series is not None:
            times = {row.variant: row.seconds for row in rows}
            series.setdefault(case.series[0], []).append((case, times))
    for title, members in series.items():
        yield from _slopes(name, title, members)


def _slopes(name: str, title: str, members: list[tuple[Case, dict[str, float]]]) -> Iterator[Row]:
    """One row per variant with its slope over a series of cases."""
    sizes = [math.log(case.series[1]) for case, _ in members if case.series is not None]
    first = members[0][0]
    for variant in first.variants:
        times = [math.log(times[variant]) for _, times in members]
        slope = statistics.linear_regression(sizes, times).slope
        target = ""
        if first.slope is not None and variant in (first.judged or tuple(first.variants)[:1]):
            verdict = "met" if slope <= first.slope else "MISSED"
            target = f"slope ≤ {first.slope:g}: {verdict} ({slope:.2f})"
        nan = math.nan
        yield Row(name, f"growth with {title}", variant, nan, nan, nan, 0, None, target, slope)


def _measure(name: str, case: Case, repeats: int) -> Iterator[Row]:
    errors = _errors(case)
    times: Mapping[str, Sequence[float]]
    if case.timed is not None:
        peaks, times = dict.fromkeys(case.variants, 0), case.timed(repeats)
    else:
        peaks = {variant: peak_memory(work) for variant, work in case.variants.items()}
        times = timings(case.variants, repeats)
    seconds = {variant: min(values) for variant, values in times.items()}
    judged = case.judged or tuple(case.variants)[:1]
    for variant in case.variants:
        ratio = seconds[variant] / seconds[case.reference]
        yield Row(
            benchmark=name,
            case=case.label,
            variant=variant,
            seconds=seconds[variant],
            spread=statistics.median(times[variant]) / seconds[variant] - 1,
            ratio=ratio,
            peak_bytes=peaks[variant],
            error=errors.get(variant),
            target=_verdict(case, ratio, peaks[variant], peaks[case.reference], seconds[variant])
            if variant in judged
            else "",
        )


def timings(variants: Mapping[str, Work], repeats: int) -> dict[str, list[float]]:
    """Seconds of each variant, in turns, so that a slow moment of the machine hits all alike."""
    loops = {variant: _loops(work) for variant, work in variants.items()}
    times: dict[str, list[float]] = {variant: [] for variant in variants}
    for _ in range(repeats):
        for variant, work in variants.items():
            times[variant].append(_time(work, loops[variant]))
    return times


def _verdict(case: Case, time_ratio: float, peak: int, of: int, seconds: float) -> str:
    """What was asked and whether it held.

    Args:
        time_ratio: time relative to the reference.
        peak, of: peak memory of the variant and of the reference, bytes.
        seconds: time.
    """
    parts = []
    if case.seconds is not None:
        met = "met" if seconds <= case.seconds else "MISSED"
        parts.append(f"time ≤ {case.seconds * 1e3:.4g} ms: {met}")
    if case.speedup is not None:
        met = "met" if time_ratio * case.speedup <= 1 else "MISSED"
        if case.speedup == int(case.speedup):
            parts.append(f"{case.speedup:g}x faster: {met} ({1 / time_ratio:.1f}x)")
        else:
            parts.append(f"time ≤ {1 / case.speedup:.2f}: {met} ({time_ratio:.2f})")
    if case.gigabytes is not None:
        met = "met" if peak <= case.gigabytes * 1e9 else "MISSED"
        parts.append(f"memory ≤ {case.gigabytes:g} GB: {met}")
    if case.memory is not None:
        memory_ratio = peak / max(of, 1)
        met = "met" if memory_ratio <= case.memory else "MISSED"
        parts.append(f"memory ≤ {case.memory:.2f}: {met} ({memory_ratio:.2f})")
    return ", ".join(parts)


def _errors(case: Case) -> dict[str, float]:
    """Largest relative deviation from the truth, for each variant that computes it."""
    if case.truth is None:
        return {}
    truth = [t.detach() for t in case.truth()]
    scale = max(t.abs().max() for t in truth)
    errors = {}
    for variant in case.compare or case.variants:
        outputs = case.variants[variant]()
        errors[variant] = max(
            ((a.detach().double() - b).abs().max() / b.abs().max().clamp(min=1e-6 * scale)).item()
            for a, b in zip(outputs, truth, strict=True)
        )
    return errors


def _loops(work: Work) -> int:
    """Enough calls per measurement that the clock does not matter."""
    return max(1, int(5e-3 / max(_time(work, 1), 1e-7)))


def _time(work: Work, loops: int) -> float:
    _synchronize()
    start = time.perf_counter()
    for _ in range(loops):
        work()
    _synchronize()
    return (time.perf_counter() - start) / loops


def _synchronize() -> None:
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()
