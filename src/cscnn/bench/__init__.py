"""Benchmarks: each hot path side by side with its competitors, in one process, as ratios."""

from cscnn.bench.registry import Case, benchmark, names
from cscnn.bench.runner import Row, run
from cscnn.measure import machine

__all__ = ["Case", "Row", "benchmark", "machine", "names", "run"]
