"""Benchmarks: each hot path and its competitors, interleaved in one process, as ratios.

``python -m benchmarks`` measures; ``python -m benchmarks.models`` tabulates what networks cost.
"""

from benchmarks.registry import Case, benchmark, names
from benchmarks.runner import Row, run

__all__ = ["Case", "Row", "benchmark", "names", "run"]
