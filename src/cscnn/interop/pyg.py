"""Point sets as graphs of PyTorch Geometric, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from cscnn._util.optional import require
from cscnn.algebra import CliffordAlgebra
from cscnn.geometry import Edges
from cscnn.networks import FieldType

#: Attributes of a graph for what `Edges` know beside its pairs.
EDGES = {"position": "edge_position", "weight": "edge_weight", "transport": "edge_transport"}


def to_pyg(
    x: Tensor,
    points: Tensor,
    edges: Edges | None = None,
    *,
    fields: FieldType | None = None,
    **others: Any,
) -> Any:
    """A field on points as a ``torch_geometric.data.Data``.

    Args:
        x: (points, channels, blades).
        points: (points, d).
        edges: between these points.
        fields: which components carry data; by default all.
        others: further attributes of the graph, e.g. ``y``.

    Returns:
        The graph: ``x`` (points, components), channel by channel; ``pos``; and with edges
        ``edge_index`` from senders to receivers, ``edge_position`` (E, d), where the target sees
        the source, ``edge_weight`` and ``edge_transport`` if there are any.
    """
    pyg = require("torch_geometric.data", "to_pyg", "pyg")
    if x.dim() != 3 or points.dim() != 2 or len(x) != len(points):
        raise ValueError(
            "x must be (points, channels, blades) and points (points, dimension), got shapes "
            f"{tuple(x.shape)} and {tuple(points.shape)}"
        )
    if fields is not None and x.shape[1:] != (fields.channels, fields.algebra.n_blades):
        raise ValueError(
            f"fields has {fields.channels} channels of {fields.algebra}, x has shape "
            f"{tuple(x.shape)}"
        )
    flat = x.flatten(1) if fields is None else fields.extract(x)
    graph = pyg.Data(x=flat, pos=points, **others)
    if edges is not None:
        if {edges.n_senders, edges.n_receivers} != {len(points)}:
            raise ValueError(f"edges must join the {len(points)} points, got {edges}")
        graph.edge_index = edges.edge_index
        for name, attribute in EDGES.items():
            if (value := getattr(edges, name)) is not None:
                graph[attribute] = value
    return graph


def from_pyg(graph: Any, fields: FieldType | CliffordAlgebra) -> tuple[Tensor, Edges]:
    """Multivectors and edges of a graph, or of a batch of graphs: the inverse of `to_pyg`.

    Args:
        graph: a ``torch_geometric.data.Data`` or ``Batch`` with ``x``, ``pos`` and ``edge_index``.
            ``edge_position`` is used if it is there, else the difference of positions;
            ``edge_shift`` (E, d) is the shift of `Edges.from_edge_index`.
        fields: what the columns of ``x`` are, e.g. ``FieldType(space, ((0, 1),))`` for a scalar and
            a vector; an algebra if they are complete multivectors.

    Returns:
        (points, channels, blades), and the edges. Clouds of a batch have no edges between them.
    """
    for name in ("x", "pos", "edge_index"):
        if getattr(graph, name, None) is None:
            hint = ": geometry.radius_edges makes edges" if name == "edge_index" else ""
            raise ValueError(f"the graph has no {name}{hint}; it is {graph}")
    flat = graph.x
    if isinstance(fields, CliffordAlgebra):
        if flat.dim() != 2 or not flat.shape[1] or flat.shape[1] % fields.n_blades:
            raise ValueError(
                f"x must have {fields.n_blades} columns for each multivector of {fields}, got "
                f"shape {tuple(flat.shape)}"
            )
        x = flat.unflatten(1, (-1, fields.n_blades))
    else:
        if flat.dim() != 2 or flat.shape[1] != fields.components:
            raise ValueError(
                f"x must have {fields.components} columns for {fields}, got {tuple(flat.shape)}"
            )
        x = fields.insert(flat)
    edges = Edges.from_edge_index(
        graph.edge_index, graph.pos, shift=getattr(graph, "edge_shift", None)
    )
    known = {name: getattr(graph, attribute, None) for name, attribute in EDGES.items()}
    return x, replace(edges, **{name: v for name, v in known.items() if v is not None})
