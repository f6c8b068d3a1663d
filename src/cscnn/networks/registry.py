"""Networks by name: those of this library, and those that other packages offer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Literal, TypeVar

from torch import nn

from cscnn.kernels import KernelChoice
from cscnn.networks.components import OnComponents
from cscnn.networks.fieldtype import FieldType
from cscnn.networks.grid import Grid
from cscnn.networks.pointnet import Neighbourhood

NetworkClass = TypeVar("NetworkClass", bound=Callable[..., nn.Module])

#: Group of entry points by which other packages offer networks: name = "package.module:Class".
ENTRY_POINTS = "cscnn.networks"

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
    """

    pairs: bool = False
    second: str = ""
    values: tuple[int, ...] = ()
    ratio: int = 1
    fallbacks: tuple[Mapping[str, Any], ...] = ()
    step: int = 1


@dataclass(frozen=True)
class Entry:
    """A registered network: its class, what that takes, and how it grows."""

    network: Callable[..., nn.Module]
    interface: Interface = "multivectors"
    sizes: Sizes = field(default_factory=Sizes)
    on_meta: bool = False  #: can be built on the device "meta", to count parameters without them


_entries: dict[str, Entry] = {}


def register(
    name: str, *, interface: Interface = "multivectors", sizes: Sizes | None = None
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

    Example:
        >>> from cscnn.networks import names, register
        >>> @register("mine")
        ... class Mine(nn.Module):
        ...     def __init__(self, algebra, c_in, c_out, width=8):
        ...         super().__init__()
        >>> "mine" in names()
        True
    """

    def add(network: NetworkClass) -> NetworkClass:
        registered = _entries.get(name)
        if registered is not None and _title(registered.network) != _title(network):
            raise ValueError(f"there is a network named {name!r} already: {registered.network}")
        _entries[name] = Entry(network, interface, sizes or Sizes())
        return network

    return add


def _title(network: Any) -> str:
    return str(getattr(network, "__qualname__", network))


def _register_own() -> None:
    from cscnn.networks import baselines, pointnet, resnet, unet
    from cscnn.networks.baselines.gfno import HIDDEN

    # A small budget asks for small kernel networks, or for another number of blocks.
    kernels = tuple({"hidden_dim": h} for h in (8, 6, 4, 3, 2, 1))
    blocks = tuple({"blocks": b} for b in (9, 7, 10, 6, 11, 5, 12, 4))
    modes = tuple(sorted(range(2, 25), key=lambda m: abs(m - 12)))
    cubes: tuple[dict[str, Any], ...] = tuple({"modes": m} for m in (4, 3, 5, 2, 6, 1, 7, 8))
    layers: tuple[dict[str, Any], ...] = tuple({"layers": n} for n in (3, 5, 2, 6))
    deep = tuple({**n, **m} for n in layers for m in ({}, *cubes))
    steerable = Sizes(pairs=True, fallbacks=tuple({"kernel": k} for k in kernels))
    residual = Sizes(pairs=True, fallbacks=blocks)
    operator = Sizes(second="modes", values=modes, step=2)  # it has layers of half the width
    group = Sizes(second="hidden", ratio=HIDDEN, fallbacks=cubes + deep)
    own = {
        "cs_resnet": Entry(resnet.CSResNet, sizes=steerable),
        "cs_unet": Entry(unet.CSUNet, sizes=steerable),
        "steerable_resnet": Entry(resnet.SteerableResNet, sizes=Sizes(pairs=True)),
        "resnet": Entry(baselines.ResNet, "components", residual, on_meta=True),
        "clifford_resnet": Entry(baselines.CliffordResNet, sizes=residual),
        "fno": Entry(baselines.FNO, "components", operator),
        "gfno": Entry(baselines.GFNO, "metric components", group, on_meta=True),
        "cs_pointnet": Entry(pointnet.CSPointNet, "points", steerable),
    }
    for name, entry in own.items():
        _entries.setdefault(name, entry)


def names() -> tuple[str, ...]:
    """All networks, our own first: those of grids, then that of point sets and curved spaces."""
    _register_own()
    for point in entry_points(group=ENTRY_POINTS):
        if point.name not in _entries:
            register(point.name)(point.load())
    return tuple(_entries)


def entry(name: str) -> Entry:
    """What is known of a network, or an error that lists the names."""
    if name not in names():
        raise ValueError(f"unknown network {name!r}: choose from {', '.join(names())}")
    return _entries[name]


def build(
    name: str,
    input_type: FieldType,
    output_type: FieldType,
    space: Grid | Neighbourhood | None = None,
    **options: Any,
) -> nn.Module:
    """A network by name, with fresh weights, as a map between multivectors.

    Networks of components are wrapped in `OnComponents`.

    Args:
        name: one of `names`.
        input_type, output_type: what the channels hold.
        space: the `Grid`, or the `Neighbourhood` of networks along edges.
        options: of the network, e.g. ``width``; kernels may be given by their names or as in JSON.

    Example:
        >>> import torch
        >>> from cscnn import CliffordAlgebra
        >>> plane = CliffordAlgebra((1, 1))
        >>> flow = FieldType(plane, ((0, 1),) * 2)  # two frames of a scalar and a vector
        >>> net = build("resnet", flow, FieldType(plane, ((0, 1),)), width=8, blocks=2)
        >>> net(torch.randn(1, 2, 16, 16, 4)).shape
        torch.Size([1, 1, 16, 16, 4])
    """
    registered = entry(name)
    check_options(name, options)
    algebra = input_type.algebra
    parameters = option_names(registered.network)
    if space is not None:
        key = "neighbourhood" if registered.interface == "points" else "grid"
        if isinstance(space, Grid) != (key == "grid"):
            spaces = "point sets and curved spaces" if key == "neighbourhood" else "grids"
            raise ValueError(f"{name} serves {spaces}, got {space}")
        if key in parameters:
            options = {**options, key: space}
    first: Any = {"components": algebra.dim, "metric components": algebra.metric}.get(
        registered.interface, algebra
    )
    if first is algebra:
        return registered.network(algebra, input_type.channels, output_type.channels, **options)
    network = registered.network(first, input_type.components, output_type.components, **options)
    return OnComponents(network, input_type, output_type)


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Raise for options that a network does not have."""
    valid = option_names(entry(name).network) - {"grid", "neighbourhood"}
    if unknown := [o for o in options if o not in valid]:
        raise TypeError(f"{name} has the options {', '.join(sorted(valid))}; got {unknown}")


def option_names(network: Any) -> set[str]:
    """Names of all options, also of those that a class passes on to its parents."""
    options: set[str] = set()
    for cls in network.__mro__ if isinstance(network, type) else (network,):
        signature = vars(cls).get("__init__") if isinstance(cls, type) else cls
        if signature is None:
            continue
        parameters = inspect.signature(signature).parameters.values()
        keywords = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        options |= {p.name for p in parameters if p.kind in keywords}
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return options - {"self", "algebra", "dim", "metric", "c_in", "c_out"}


def json_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as JSON knows them: typed kernels as objects, tuples as lists."""

    def to_json(value: Any) -> Any:
        if isinstance(value, KernelChoice):
            return value.to_dict()
        if isinstance(value, Mapping):
            return {key: to_json(item) for key, item in value.items()}
        return [to_json(item) for item in value] if isinstance(value, list | tuple) else value

    return {name: to_json(value) for name, value in options.items()}
