"""Networks by name: those of this library, and those that other packages offer."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from torch import nn

from cscnn._util.modules import import_modules
from cscnn._util.suggest import check_known, did_you_mean
from cscnn.algebra.group import keeps_orientation
from cscnn.kernels import kernel_choice
from cscnn.networks.components import OnComponents
from cscnn.networks.entries import ENTRIES, Entry, register
from cscnn.networks.fieldtype import FieldType
from cscnn.networks.grid import Grid
from cscnn.networks.pointnet import Neighbourhood
from cscnn.networks.recipe import ATTRIBUTE, Recipe

#: Group of entry points by which other packages offer networks: name = "package.module:Class".
ENTRY_POINTS = "cscnn.networks"


def names() -> tuple[str, ...]:
    """All networks, in alphabetical order.

    Those of other packages are imported when they are asked for, see `entry`.
    """
    import_modules("cscnn.networks")  # each registers its own
    return tuple(sorted({*ENTRIES, *(point.name for point in entry_points(group=ENTRY_POINTS))}))


def entry(name: str) -> Entry:
    """What is known of a network, or an error that lists the names."""
    if name not in ENTRIES:
        check_known("network", name, names())
        (point, *_) = entry_points(group=ENTRY_POINTS, name=name)
        network = _load(point)
        if name not in ENTRIES:  # else its module has registered it, with an interface and sizes
            register(name)(network)
    return ENTRIES[name]


def _load(point: EntryPoint) -> Any:
    """The network that another package offers."""
    try:
        return point.load()
    except Exception as error:  # whatever the other package does when it is imported
        package = point.dist.name if point.dist else "another package"
        raise ImportError(
            f"network {point.name!r} ({point.value}) of the package {package} cannot be imported: "
            f"{type(error).__name__}: {error}"
        ) from error


def build(
    name: str,
    input_type: FieldType,
    output_type: FieldType,
    space: Grid | Neighbourhood | None = None,
    **options: Any,
) -> nn.Module:
    """A network by name, with fresh weights, as a map between multivectors.

    Networks of components are wrapped in `OnComponents`. A network remembers how it was made, for
    `cscnn.networks.save`: its attribute ``recipe`` is a `Recipe`.

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
    network = _build(name, input_type, output_type, space, options)
    recipe = Recipe(name, input_type, output_type, space, options)
    setattr(network, ATTRIBUTE, with_group(recipe, network))
    return network


def with_group(recipe: Recipe, network: nn.Module) -> Recipe:
    """A recipe that says the group of a network's layers, if it is SO or SO+.

    Files need it: a group that they do not say is O, see `with_group_of_files`.
    """
    group = getattr(network, "group", None)
    special = isinstance(group, str) and keeps_orientation(group)
    return _with_option(recipe, "group", group) if special else recipe


def with_group_of_files(recipe: Recipe) -> Recipe:
    """The recipe of a file, whose layers are of O if it does not say their group.

    Kernels of SO are older than layers that follow them.
    """
    kernel = recipe.options.get("kernel")
    special = kernel is not None and keeps_orientation(kernel_choice(kernel).group)
    return _with_option(recipe, "group", "O") if special else recipe


def _with_option(recipe: Recipe, name: str, value: Any) -> Recipe:
    """A recipe with an option, if the network has it and it is not given."""
    if name in recipe.options or name not in option_names(entry(recipe.name).network):
        return recipe
    return replace(recipe, options={**recipe.options, name: value})


def _build(
    name: str,
    input_type: FieldType,
    output_type: FieldType,
    space: Grid | Neighbourhood | None,
    options: Mapping[str, Any],
) -> nn.Module:
    known = entry(name)
    check_options(name, options)
    algebra = input_type.algebra
    parameters = option_names(known.network)
    if space is not None:
        key = "neighbourhood" if known.interface == "points" else "grid"
        if isinstance(space, Grid) != (key == "grid"):
            served = "point sets and curved spaces" if key == "neighbourhood" else "grids"
            raise ValueError(f"{name} serves {served}, got {space}")
        if key in parameters:
            options = {**options, key: space}
    first: Any = {"components": algebra.dim, "metric components": algebra.metric}.get(
        known.interface, algebra
    )
    if first is algebra:
        return known.network(algebra, input_type.channels, output_type.channels, **options)
    network = known.network(first, input_type.components, output_type.components, **options)
    return OnComponents(network, input_type, output_type)


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Raise for options that a network does not have."""
    known = option_names(entry(name).network) - {"grid", "neighbourhood"}
    if unknown := [o for o in options if o not in known]:
        hint = did_you_mean(unknown[0], sorted(known), otherwise="")
        raise TypeError(f"{name} has the options {', '.join(sorted(known))}; got {unknown}{hint}")


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
