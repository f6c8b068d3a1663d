"""Steerability of kernels: K(gv) = ρ(g) K(v) ρ(g)^-1."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.kernels import SteerableKernel
from cscnn.kernels.radial import FreeValues
from cscnn.testing.errors import chosen_kinds, demand, random_element, relative_error


def steerability_errors(
    kernel: SteerableKernel,
    *,
    points: Tensor | None = None,
    extra: Tensor | None = None,
    group: str | None = None,
    kinds: str | Sequence[str] | None = None,
    samples: int = 3,
    rapidity: float | tuple[float, float] = 2.0,
    seed: int = 0,
) -> dict[str, float]:
    """Largest relative violation of K(gv) = ρ(g) K(v) ρ(g)^-1 for each kind of g, in float64.

    Of differential kernels it is the symbol that satisfies this, see `SteerableKernel.law`.

    Args:
        kernel: any kernel; it is copied and cast.
        points: (N, dim) where to compare; by default 16 random ones, a null vector if there is one,
            and the origin, or the grid of a kernel of free values.
        extra: known multivectors (extra_channels, blades) of the kernel, transformed along.
        group: the group g is drawn from; by default the kernel's own.
        kinds: see `CliffordAlgebra.random_orthogonal`; by default all that exist in the group.
    """
    if not isinstance(kernel, SteerableKernel):
        raise TypeError(f"expected a kernel, e.g. conv.kernel, got {type(kernel).__name__}")
    algebra, group = kernel.algebra, group or kernel.group
    kernel = copy.deepcopy(kernel).to("cpu", torch.float64)
    generator = torch.Generator().manual_seed(seed)
    if points is None and isinstance(getattr(kernel, "radial", None), FreeValues):
        points = getattr(kernel, "init_points", None)
    if points is None:
        points = torch.randn(16, algebra.dim, generator=generator, dtype=torch.float64)
        points = torch.cat([points, _special_points(algebra)])
    points = points.to("cpu", torch.float64)
    extra = None if extra is None else extra.to("cpu", torch.float64)
    here = kernel.law(points, extra)
    errors = {}
    for kind in chosen_kinds(algebra, kinds, group):
        worst = 0.0
        for _ in range(samples):
            g = random_element(algebra, group, kind, rapidity, generator)
            rho = algebra.action(g)
            expected = torch.einsum("xc,nocib,by->noxiy", rho, here, torch.linalg.inv(rho))
            moved = None if extra is None else algebra.transform(g, extra)
            worst = max(worst, relative_error(kernel.law(points @ g.T, moved), expected))
        errors[kind] = worst
    return errors


def assert_steerable(
    kernel: SteerableKernel, *, tol: float = 1e-10, **options: Any
) -> dict[str, float]:
    """Raise ``AssertionError`` unless `steerability_errors` are all at most ``tol``; return them.

    Example:
        >>> from cscnn.kernels import CompleteKernel
        >>> errors = assert_steerable(CompleteKernel(CliffordAlgebra((1, -1, -1)), 2, 2))
        >>> sorted(errors)
        ['any', 'boost', 'reflection', 'rotation']
    """
    errors = steerability_errors(kernel, **options)
    demand(errors, tol, f"{type(kernel).__name__} is not steerable under", kernel.algebra)
    return errors


def _special_points(algebra: CliffordAlgebra) -> Tensor:
    """The origin, and a vector on the light cone in mixed signature: (1 or 2, dim)."""
    points = torch.zeros(2, algebra.dim, dtype=torch.float64)
    if len(set(algebra.metric)) == 1:
        return points[:1]
    points[1, algebra.metric.index(1)] = points[1, algebra.metric.index(-1)] = 0.7
    return points
