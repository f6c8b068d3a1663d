"""What is measured. A benchmark is a function that yields cases; the runner measures them."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

Work = Callable[[], Sequence[Tensor]]

#: Modules of cases, in the order of the page: from single products to whole trainings, then data.
MODULES = ("algebra", "calculus", "kernel", "conv", "point", "model", "training", "data")


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
        reading: one sentence for the page that says how to read its table.
        cases: makes them.
        packages: optional packages that it compares with; variants of absent ones are left out.
    """

    name: str
    title: str
    reading: str
    cases: Callable[[], Iterator[Case]] = field(repr=False)
    packages: tuple[str, ...] = ()

    def missing(self) -> str:
        """A sentence on the packages that are not installed; empty if all are."""
        absent = [name for name in self.packages if importlib.util.find_spec(name) is None]
        return f"Not measured, since not installed: {', '.join(absent)}." if absent else ""


_registry: dict[str, Benchmark] = {}


def benchmark(
    name: str, title: str, reading: str, packages: tuple[str, ...] = ()
) -> Callable[[Callable[[], Iterator[Case]]], Benchmark]:
    """Register a generator of cases under a name, see `Benchmark`."""

    def register(cases: Callable[[], Iterator[Case]]) -> Benchmark:
        if name in _registry:
            raise ValueError(f"there is a benchmark named {name!r} already")
        _registry[name] = Benchmark(name, title, reading, cases, packages)
        return _registry[name]

    return register


def names() -> tuple[str, ...]:
    """All registered benchmarks, in the order of `MODULES` and of the functions in them."""
    order = {f"benchmarks.{name}_cases": number for number, name in enumerate(MODULES)}
    for module in order:
        importlib.import_module(module)  # which registers its cases
    modules = {name: entry.cases.__module__ for name, entry in _registry.items()}
    return tuple(sorted(_registry, key=lambda name: order.get(modules[name], len(order))))


def get(name: str) -> Benchmark:
    """The benchmark of that name, or an error that lists the names."""
    if name not in names():
        raise ValueError(f"unknown benchmark {name!r}: choose from {', '.join(names())}")
    return _registry[name]
