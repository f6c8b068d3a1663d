"""`Recipe`: how a network was made, so that a file can say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from cscnn.kernels import KernelChoice
from cscnn.networks.fieldtype import FieldType
from cscnn.networks.grid import Grid
from cscnn.networks.pointnet import Neighbourhood

#: Attribute by which a network remembers its recipe.
ATTRIBUTE = "recipe"


@dataclass(frozen=True)
class Recipe:
    """The arguments of `cscnn.networks.build`.

    Args:
        name: of the network.
        input_type, output_type: what the channels hold.
        space: the `Grid`, or the `Neighbourhood` of networks along edges.
        options: of the network, as JSON knows them: kernels as objects, tuples as lists.

    Example:
        >>> from cscnn import CliffordAlgebra
        >>> from cscnn.networks import CSResNet
        >>> wind = FieldType(CliffordAlgebra((1, 1)), ((1,),))
        >>> net = CSResNet(wind.algebra, 1, 1, width=4, blocks=2)  # made without `build`
        >>> net.recipe = Recipe("cs_resnet", wind, wind, options={"width": 4, "blocks": 2})
    """

    name: str
    input_type: FieldType
    output_type: FieldType
    space: Grid | Neighbourhood | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", json_options(self.options))


def recipe_of(network: nn.Module) -> Recipe | None:
    """How a network was made, if it remembers."""
    recipe = getattr(network, ATTRIBUTE, None)
    return recipe if isinstance(recipe, Recipe) else None


def json_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as JSON knows them: typed kernels as objects, tuples as lists, numpy's as numbers."""
    return {name: _json_form(name, value) for name, value in options.items()}


def _json_form(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, KernelChoice):
        return json_options(value.to_dict())
    if isinstance(value, Mapping):
        return json_options(value)
    if isinstance(value, list | tuple):
        return [_json_form(name, item) for item in value]
    if getattr(value, "ndim", None) == 0:  # numbers of numpy and torch
        return _json_form(name, value.item())
    raise TypeError(
        f"the option {name} cannot be written into a file: expected numbers, texts, lists, "
        f"mappings or a kernel, got {value!r} ({type(value).__name__})"
    )
