"""The page of benchmarks: a section for each, with how to read it."""

import pytest

from benchmarks import registry, report
from benchmarks.runner import Row

MACHINE = {"processor": "abacus", "torch threads": "2"}


@pytest.fixture
def benchmarks():
    return [registry.get(name) for name in registry.names()]


def page_of(benchmarks, **changes):
    values = {"seconds": 0.0123, "spread": 0.04, "ratio": 0.5, "peak_bytes": 0, "error": None}
    rows = [
        Row(entry.name, "a case", "ours", **values | changes, target="") for entry in benchmarks
    ]
    return report.markdown(benchmarks, rows, MACHINE, repeats=10)


def test_every_benchmark_has_a_section_in_order(benchmarks):
    page = page_of(benchmarks)
    titles = [line[3:] for line in page.splitlines() if line.startswith("## ")]
    assert titles == [entry.title for entry in benchmarks]
    assert page.count("| a case | ours | 12.30 ms | +4% | 0.50 |") == len(benchmarks)
    assert "- **time**: the minimum of 10 interleaved timings" in page
    assert "Machine: processor abacus, torch threads 2." in page
    assert not [line for line in page.splitlines() if len(line) > 100]


def test_sections_of_other_benchmarks_are_kept(benchmarks):
    page = page_of(benchmarks)
    row = Row(benchmarks[1].name, "a case", "ours", 1.0, 0.0, 1.0, 0, None, "")
    newer = report.markdown(benchmarks[1:2], [row], {"processor": "slide rule"}, 10, page)
    before, after = (text.split("\n## ") for text in (page, newer))
    assert len(before) == len(after)
    assert [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b] == [2]
    assert "Machine: processor slide rule." in after[2]
    assert "| 1000.00 ms |" in after[2]
    assert "abacus" in after[3]


def test_the_order_is_from_products_to_trainings(benchmarks):
    order = ["geometric_product", "kernel", "conv", "points", "model", "training", "trajectory"]
    names = [entry.name for entry in benchmarks]
    assert sorted(order, key=names.index) == order


def test_how_to_read_it_is_one_sentence(benchmarks):
    for entry in benchmarks:
        assert entry.reading.endswith("."), entry.name
        assert ". " not in entry.reading, entry.name
        assert len(entry.reading.split()) <= 25, entry.name


def test_small_ratios_keep_two_digits(benchmarks):
    assert "| 0.0038 |" in page_of(benchmarks[:1], ratio=0.00384)


def test_a_benchmark_without_rows_has_no_table(benchmarks):
    page = report.markdown(benchmarks[:1], [], MACHINE, repeats=10)
    assert benchmarks[0].reading in page.replace("\n", " ")
    assert "|" not in page
