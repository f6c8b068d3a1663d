"""Networks in files: weights as safetensors, and in the metadata how the network was made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from cscnn._util.files import write_bytes
from cscnn._util.jsonform import from_json, to_json
from cscnn._util.optional import require
from cscnn.algebra import CliffordAlgebra
from cscnn.networks.fieldtype import FieldType
from cscnn.networks.grid import Grid
from cscnn.networks.pointnet import Neighbourhood
from cscnn.networks.recipe import Recipe, recipe_of
from cscnn.networks.registry import build, with_group, with_group_of_files
from cscnn.networks.weights import check_weights, checksum, load_, plain_weights, to_file

FORMAT = 1  #: of the description of a network; raised when its entries change their meaning
KEY = "cscnn_network"  #: of that description in the metadata of a file
CHECKSUM = "cscnn_checksum"  #: of the hash of metadata and weights


class Versioned(Protocol):
    """A description that says its format."""

    @property
    def format(self) -> int:
        """Of its entries."""


D = TypeVar("D", bound=Versioned)


@dataclass(frozen=True)
class Description:
    """What a file says of its network: a `Recipe` as JSON knows it."""

    format: int
    name: str
    metric: tuple[int, ...]
    input_grades: tuple[tuple[int, ...], ...]
    output_grades: tuple[tuple[int, ...], ...]
    grid: Grid | None = None
    neighbourhood: Neighbourhood | None = None
    options: dict[str, Any] = field(default_factory=dict)
    symmetric: bool = False

    @classmethod
    def of(cls, recipe: Recipe) -> Self:
        """The description of a recipe."""
        space = recipe.space
        return cls(
            FORMAT,
            recipe.name,
            recipe.input_type.algebra.metric,
            recipe.input_type.grades,
            recipe.output_type.grades,
            space if isinstance(space, Grid) else None,
            space if isinstance(space, Neighbourhood) else None,
            recipe.options,
            recipe.input_type.algebra.symmetric,
        )

    def to_json(self) -> dict[str, Any]:
        """As JSON. Files of networks without tensors do not speak of them."""
        entries: dict[str, Any] = to_json(self)
        if not self.symmetric:
            del entries["symmetric"]
        return entries

    def recipe(self) -> Recipe:
        """Inverse of `of`."""
        algebra = CliffordAlgebra(self.metric, self.symmetric)
        input_type = FieldType(algebra, self.input_grades)
        output_type = FieldType(algebra, self.output_grades)
        space = self.grid or self.neighbourhood
        return Recipe(self.name, input_type, output_type, space, self.options)


def save(
    path: str | Path,
    network: nn.Module,
    *,
    weights: Mapping[str, Tensor] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a network into one safetensors file, whole or not at all.

    Args:
        path: the file.
        network: made by `build` or `load`; others need an attribute ``recipe``, see `Recipe`.
        weights: instead of those of the network, e.g. gathered from several devices.
        metadata: further texts for the file.

    Example::

        net = networks.build("cs_resnet", frames, frame, Grid(padding_mode="circular"), width=8)
        networks.save("net.safetensors", net)
        net = networks.load("net.safetensors")
    """
    to_bytes = require("safetensors.torch", "saving a network", "train").save
    recipe = recipe_of(network)
    if recipe is None:
        raise ValueError(
            f"this {type(network).__name__} does not know how it was made: make it by "
            "cscnn.networks.build, or give it an attribute recipe, a cscnn.networks.Recipe"
        )
    if reserved := sorted({KEY, CHECKSUM} & {*(metadata or {})}):
        raise ValueError(
            f"the metadata {', '.join(reserved)} are written by save itself: choose another name"
        )
    tensors = to_file(plain_weights(network) if weights is None else weights)
    description = Description.of(with_group(recipe, network))
    texts = {KEY: json.dumps(description.to_json()), **(metadata or {})}
    write_bytes(Path(path), to_bytes(tensors, {**texts, CHECKSUM: checksum(texts, tensors)}))


def load(path: str | Path, device: torch.device | str = "cpu") -> nn.Module:
    """Read a network that `save` has written, or that of a forecaster's file, in eval mode.

    Args:
        path: the file.
        device: where to put it.
    """
    path = Path(path)
    metadata, tensors = read(path)
    return restore(path, metadata, tensors).to(device).eval()


def read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata and tensors of a safetensors file."""
    safetensors = require("safetensors", "loading a network", "train")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path} with a network")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            # copies, since safetensors maps the file, which may change, into memory
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            metadata = file.metadata() or {}
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is not a readable safetensors file: {error}") from error
    written = metadata.pop(CHECKSUM, None)
    if metadata and written is not None and written != checksum(metadata, tensors):
        raise ValueError(f"{path} is damaged: its checksum is wrong. Copy it again")
    return metadata, tensors


def described(path: Path, metadata: Mapping[str, str], key: str, cls: type[D], version: int) -> D:
    """A description from the metadata of a file.

    Args:
        path: of the file, for messages.
        metadata: of the file.
        key: under which the description is.
        cls: dataclass that it is read as.
        version: the format that is understood.
    """
    if key not in metadata:
        thing = key.removeprefix("cscnn_")
        holds = ", ".join(metadata) or "nothing"
        raise ValueError(f"{path} does not describe a {thing} of cscnn, its metadata have: {holds}")
    try:
        data = json.loads(metadata[key])
    except ValueError as error:
        raise ValueError(f"{path}: its description is damaged: {error}") from error
    written = data.get("format") if isinstance(data, dict) else None
    if written != version:
        raise ValueError(f"{path} has format {written} of {key}, this cscnn reads {version}")
    return from_json(cls, data, str(path))


def restore(path: Path, metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> nn.Module:
    """The network of a file, from what `read` gave."""
    recipe = described(path, metadata, KEY, Description, FORMAT).recipe()
    types = (recipe.input_type, recipe.output_type)
    try:
        recipe = with_group_of_files(recipe)
        with torch.random.fork_rng(devices=[]):  # the weights that are drawn are overwritten
            network = build(recipe.name, *types, recipe.space, **recipe.options)
        check_weights(network, tensors)
        load_(network, tensors)
    except (ValueError, TypeError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: cannot build {recipe.name} from it: {reason}") from error
    return network
