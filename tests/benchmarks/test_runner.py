"""How it is measured: times, errors, verdicts, slopes."""

import time

import pytest
import torch

from benchmarks import registry, runner
from benchmarks.registry import Case
from benchmarks.runner import Row


def test_peak_memory_is_judged():
    case = Case("x", {"a": list}, reference="a", gigabytes=1.0)
    verdicts = [runner._verdict(case, 1.0, peak, 1, 1.0) for peak in (10**8, 2 * 10**9)]
    assert verdicts == ["memory ≤ 1 GB: met", "memory ≤ 1 GB: MISSED"]


@pytest.mark.parametrize(
    ("targets", "verdicts"),
    [
        ({"speedup": 4}, ["4x faster: met (5.0x)", "4x faster: MISSED (2.0x)"]),
        ({"speedup": 1 / 0.4}, ["time ≤ 0.40: met (0.20)", "time ≤ 0.40: MISSED (0.50)"]),
        ({"memory": 0.3}, ["memory ≤ 0.30: met (0.20)", "memory ≤ 0.30: MISSED (0.50)"]),
        ({"seconds": 0.3}, ["time ≤ 300 ms: met", "time ≤ 300 ms: MISSED"]),
    ],
)
def test_targets_are_judged(targets, verdicts):
    case = Case("x", {"a": list}, reference="a", **targets)
    judged = [runner._verdict(case, part, int(part * 10), 10, part) for part in (0.2, 0.5)]
    assert judged == verdicts


def test_errors_are_relative_to_the_truth():
    one, two = torch.ones(2), torch.full((2,), 2.0)
    variants = {"exact": lambda: [one, two], "wrong": lambda: [one, 1.5 * two], "other": list}
    case = Case(
        "x", variants, "exact", truth=lambda: [one.double(), two.double()],
        compare=("exact", "wrong"),
    )  # fmt: skip
    assert runner._errors(case) == {"exact": 0.0, "wrong": 0.5}


def test_times_are_minima_and_the_spread_is_that_of_the_median():
    times = {"ours": [4.0, 2.0, 3.0], "theirs": [8.0, 4.0, 4.0]}
    case = Case("x", dict.fromkeys(times, list), reference="theirs", timed=lambda _: times)
    ours, theirs = runner._measure("name", case, repeats=3)
    assert (ours.seconds, ours.spread, ours.ratio) == (2.0, 0.5, 0.5)
    assert (theirs.seconds, theirs.spread, theirs.ratio) == (4.0, 0.0, 1.0)


def test_variants_take_turns():
    calls = []
    variants = {name: lambda name=name: calls.append(name) or time.sleep(0.006) for name in "ab"}
    times = runner.timings(variants, repeats=3)
    assert calls == [*"ab", *"ab" * 3]  # one call of each to count loops
    assert {name: len(values) for name, values in times.items()} == {"a": 3, "b": 3}


def test_slopes_of_a_series_are_reported(monkeypatch):
    def growing():
        for size in (1, 2, 4):
            yield Case(
                label=f"{size}",
                variants={"linear": lambda: [torch.ones(1)], "also": lambda: [torch.ones(1)]},
                reference="also",
                series=("size", size),
                slope=1.1,
            )

    def measure(name, case, repeats):
        for variant, power in (("linear", 1), ("also", 2)):
            yield Row(name, case.label, variant, float(case.label) ** power, 0.0, 1.0, 0, None, "")

    registry.names()  # registers all others
    entry = registry.Benchmark("growing", "for this test", "Slopes.", growing)
    monkeypatch.setitem(registry._registry, "growing", entry)
    monkeypatch.setattr("benchmarks.runner._measure", measure)
    rows = [row for row in runner.run("growing") if row.slope is not None]
    assert [(row.case, row.variant, round(row.slope, 9)) for row in rows] == [
        ("growth with size", "linear", 1.0),
        ("growth with size", "also", 2.0),
    ]
    assert rows[0].target == "slope ≤ 1.1: met (1.00)"
    assert rows[1].target == ""


def test_names_are_unique():
    registry.names()  # registers all
    with pytest.raises(ValueError, match="a benchmark named 'conv' already"):
        registry.benchmark("conv", "again", "Nothing.")(list)
