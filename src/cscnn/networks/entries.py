"""The table of networks: each class enters itself by `register`, in its own file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from torch import nn

from cscnn._util.registry import Registry

NetworkClass = TypeVar("NetworkClass", bound=Callable[..., nn.Module])

#: What the first argument of a network's class is, before the channels of input and output.
Interface = Literal["multivectors", "components", "metric components", "points"]


@dataclass(frozen=True)
class Sizes:
    """How a network grows, for a budget of parameters; see `cscnn.networks.budget`.

    Attributes:
        pairs: ``width`` may be a pair.
        second: else what beside ``width`` may be changed.
        values: the values of ``second`` to try; without them the number of parameters must be
            quadratic in both.
        ratio: in that case, the usual ratio of ``second`` to the width.
        fallbacks: further options to try, in this order, if that is not enough.
        step: widths are multiples of this.
        least: narrower networks are tried only if no fallback fits: half this width, and so on.
    """

    pairs: bool = False
    second: str = ""
    values: tuple[int, ...] = ()
    ratio: int = 1
    fallbacks: tuple[Mapping[str, Any], ...] = ()
    step: int = 1
    least: int = 1


@dataclass(frozen=True)
class Entry:
    """A registered network; attributes as of `register`."""

    network: Callable[..., nn.Module]
    interface: Interface = "multivectors"
    sizes: Sizes = field(default_factory=Sizes)
    on_meta: bool = False


#: By name.
ENTRIES: Registry[Entry] = Registry("network", source=lambda entry: entry.network)


def register(
    name: str,
    *,
    interface: Interface = "multivectors",
    sizes: Sizes | None = None,
    on_meta: bool = False,
) -> Callable[[NetworkClass], NetworkClass]:
    """Decorator that makes the class of a network known by a name.

    Args:
        name: for `build`, configurations and the command line.
        interface: ``"multivectors"`` for a class (algebra, c_in, c_out, ...) on grids,
            ``"components"`` for one that takes (dim, c_in, c_out, ...) and maps components,
            ``"metric components"`` likewise with the metric first, ``"points"`` for one that takes
            (algebra, c_in, c_out, ...) and maps features along edges. An option ``grid``, or for
            points ``neighbourhood``, is given if the class has it.
        sizes: how it grows, for budgets of parameters.
        on_meta: whether it can be built on the device "meta", to count parameters without them.

    Example::

        @register("mine")
        class Mine(nn.Module):
            def __init__(self, algebra, c_in, c_out, width=8):
                super().__init__()
    """

    def add(network: NetworkClass) -> NetworkClass:
        ENTRIES.add(name, Entry(network, interface, sizes or Sizes(), on_meta))
        return network

    return add
