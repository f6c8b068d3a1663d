"""What is measured. A benchmark is a function that yields cases; the runner measures them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

Work = Callable[[], Sequence[Tensor]]


@dataclass(frozen=True)
class Case:
    """Several ways to compute one thing.

    Args:
        label: what distinguishes this case from the others of its benchmark, e.g. ``"d=3"``.
        variants: name -> a function that does the whole work once and returns the tensors to
            compare (outputs and gradients). The first variant is ours.
        reference: the variant that ratios refer to.
        truth: the same tensors in float64, for the error column.
        compare: the variants that compute what ``truth`` does; by default all.
        speedup: how many times faster than the reference the first variant has to be.
        memory: which fraction of the reference's peak memory the first variant may take.
        gigabytes: how much peak memory the first variant may take.
        seconds: how long the first variant may take.
        judged: the variants that the targets are asked of; by default the first.
        repeats: at most this many measurements of each variant, for slow cases.
        series: (name, size) of a case that is one of several of growing size; the slopes of time
            against size on logarithmic axes are reported in the end.
        slope: the largest slope that the judged variants may have.
        timed: for variants that cannot be called in turns: number of repeats -> name -> seconds.
    """

    label: str
    variants: Mapping[str, Work]
    reference: str
    truth: Work | None = None
    speedup: float | None = None
    memory: float | None = None
    gigabytes: float | None = None
    seconds: float | None = None
    compare: tuple[str, ...] | None = None
    judged: tuple[str, ...] | None = None
    repeats: int | None = None
    series: tuple[str, float] | None = None
    slope: float | None = None
    timed: Callable[[int], Mapping[str, Sequence[float]]] | None = None

    def __post_init__(self) -> None:
        if self.reference not in self.variants:
            raise ValueError(f"reference {self.reference!r} is not one of {list(self.variants)}")


@dataclass(frozen=True)
class Benchmark:
    """A named group of cases with a line that says what they show.

    Attributes:
        name: of the benchmark.
        title: what its cases show.
        cases: makes them.
        any_of: optional packages to compare with; without any of them there are no cases.
    """

    name: str
    title: str
    cases: Callable[[], Iterator[Case]] = field(repr=False)
    any_of: tuple[str, ...] = ()

    def missing(self) -> str:
        """Why there are no cases on this machine; empty if there are some."""
        if not self.any_of or any(importlib.util.find_spec(name) for name in self.any_of):
            return ""
        return f"needs one of the packages {', '.join(self.any_of)}"


_registry: dict[str, Benchmark] = {}


def benchmark(
    name: str, title: str, any_of: tuple[str, ...] = ()
) -> Callable[[Callable[[], Iterator[Case]]], Benchmark]:
    """Register a generator of cases under a name, see `Benchmark`."""

    def register(cases: Callable[[], Iterator[Case]]) -> Benchmark:
        if name in _registry:
            raise ValueError(f"there is a benchmark named {name!r} already")
        _registry[name] = Benchmark(name, title, cases, any_of)
        return _registry[name]

    return register


def names() -> tuple[str, ...]:
    """All registered benchmarks, in the order of registration."""
    # Importing them registers their cases.
    from benchmarks import (  # noqa: F401
        algebra_cases,
        calculus_cases,
        conv_cases,
        data_cases,
        kernel_cases,
        model_cases,
        point_cases,
        training_cases,
    )

    return tuple(_registry)


def get(name: str) -> Benchmark:
    """The benchmark of that name, or an error that lists the names."""
    if name not in names():
        raise ValueError(f"unknown benchmark {name!r}: choose from {', '.join(names())}")
    return _registry[name]
