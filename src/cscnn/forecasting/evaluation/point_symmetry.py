"""How far a forecaster on points is from commuting with the isometries of its space.

On points these need no interpolation: positions move with the field. What is left for an
equivariant network is rounding.

- Translations: points are displaced, numbered differently, and their neighbours are found again.
- Reflections, rotations, boosts: edges turn with the field. Euclidean distances and so neighbours
  are the same after rotations and reflections. Boosts change Euclidean distances: here neighbours
  are kept, as those of an observer at rest.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from cscnn.algebra.grids import grid_symmetries
from cscnn.forecasting.evaluation.results import MotionErrors, SymmetryErrors
from cscnn.forecasting.evaluation.symmetry import (
    boosts,
    relative_violation,
    rotations,
    symmetry_group,
    transformed_constants,
)
from cscnn.forecasting.forecaster import Forecaster
from cscnn.forecasting.points import Points, pad_points
from cscnn.geometry.search import NeighbourSearch

LIMIT = 12  #: of reflections and permutations of axes that are tried


@torch.no_grad()
def point_symmetry(
    forecaster: Forecaster, x: Tensor, points: Points, seed: int = 0
) -> SymmetryErrors:
    """Violations of all isometries.

    Args:
        forecaster: in float64.
        x: inputs (batch, in_channels, points, blades), see `Forecaster.pack`.
        points: where they are, in float64.
        seed: of random transformations.
    """
    task, group = forecaster.task, symmetry_group(forecaster)
    cube = ((2,) * task.dim, (1.0,) * task.dim)  # whose symmetries permute and reverse axes
    _, *elements = grid_symmetries(task.algebra, *cube, group)
    chosen = np.random.default_rng(seed).permutation(len(elements))[:LIMIT]
    y = forecaster.predict(x, points=points)

    def error(g: Tensor) -> float:
        return turning_error(forecaster, x, points, g, y)

    motions = [
        MotionErrors(list(values), [error(g) for g in values.values()], [0.0] * len(values))
        if (values := kind(task, seed))
        else None
        for kind in (rotations, boosts)
    ]
    return SymmetryErrors(
        receptive_field=[],
        interior=True,
        group=group,
        translation=translation_error(forecaster, x, points, seed),
        point_group=max((error(elements[number]) for number in chosen), default=0.0),
        rotation=motions[0],
        boost=motions[1],
    )


@torch.no_grad()
def turning_error(
    forecaster: Forecaster, x: Tensor, points: Points, g: Tensor, y: Tensor | None = None
) -> float:
    """Error under g in O(p, q), (dim, dim); y is what the forecaster makes of x, if known."""
    task, g = forecaster.task, g.to(x)
    y = forecaster.predict(x, points=points) if y is None else y
    edges = replace(points.edges, position=points.edges.position @ g.T)
    moved = forecaster.predict(
        task.algebra.transform(g, x),
        transformed_constants(forecaster, g),
        points.changed(points.positions @ g.T, edges),
    )
    return _violation(forecaster, points, moved, task.algebra.transform(g, y))


@torch.no_grad()
def translation_error(forecaster: Forecaster, x: Tensor, points: Points, seed: int = 0) -> float:
    """Error if points are displaced and numbered differently, and neighbours are found again."""
    search = forecaster.task.points
    assert search is not None
    rng = np.random.default_rng(seed)
    order = [torch.from_numpy(rng.permutation(size)) for size in points.sizes]
    as_they_are = [torch.arange(size) for size in points.sizes]
    rows = [pad_points(p[:, None], points.most) for p in order]
    index = torch.stack(rows).to(x.device)[:, None]
    shift = torch.from_numpy(rng.standard_normal(forecaster.task.dim)).to(points.positions)
    moved = _displaced(points, search, order, shift * search.radius)
    still = _displaced(points, search, as_they_are, 0 * shift)  # positions may have been rounded
    y = forecaster.predict(x, points=still)
    found = forecaster.predict(x.gather(2, index.expand_as(x)), points=moved)
    return _violation(forecaster, moved, found, y.gather(2, index.expand_as(y)))


def _displaced(
    points: Points, search: NeighbourSearch, order: list[Tensor], shift: Tensor
) -> Points:
    """The points of each sample in another order, displaced, with neighbours found again."""
    clouds = [
        x[p.to(x.device)] + shift
        for x, p in zip(points.positions.split(points.sizes), order, strict=True)
    ]
    weights = None
    if points.weights is not None:
        parts = points.weights.split(points.sizes)
        weights = [w[p.to(w.device)] for w, p in zip(parts, order, strict=True)]
    return Points.at(clouds, search, weights)


def _violation(forecaster: Forecaster, points: Points, a: Tensor, b: Tensor) -> float:
    """|a - b| / |a + b| of the components that carry data, at points alone."""
    extract = forecaster.task.output_type.extract
    return relative_violation(*(extract(points.counted(x)) for x in (a, b)))
