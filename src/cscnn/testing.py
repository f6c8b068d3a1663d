"""Equivariance asserts, for this library's tests and for the modules of its users."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.blades import check_int
from cscnn.algebra.clifford import check_algebra
from cscnn.conv.symmetry import grid_symmetries, transform_on_grid
from cscnn.kernels import SteerableKernel
from cscnn.kernels.orbits import time_axis
from cscnn.kernels.radial import FreeValues

Field = Callable[[Tensor], Tensor]


def equivariance_errors(
    module: Field,
    algebra: CliffordAlgebra,
    shape: Sequence[int],
    *,
    kinds: str | Sequence[str] | None = None,
    samples: int = 3,
    rapidity: float = 1.0,
    gradients: bool = True,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """Largest relative violation of f(ρ(g) x) = ρ(g) f(x) for each kind of g in O(p, q).

    The points stay where they are: g acts on the values only, which is the symmetry of pointwise
    layers and of networks on sets (for grids see `grid_equivariance_errors`). ``gradients`` also
    compares the derivatives, with respect to the input (which must transform with ρ(g)^-T) and to
    the parameters (which must not change).

    Args:
        module: a callable from (..., blades) to (..., blades). An ``nn.Module`` is copied and cast
            to ``dtype``; the original stays untouched. Put modules with dropout in eval mode. For
            an output that is not a multivector, embed it: ``lambda x: alg.embed(f(x), 0)``.
        algebra: its Clifford algebra.
        shape: shape of the random input without the blades, e.g. ``(batch, channels)``.
        kinds: see `CliffordAlgebra.random_orthogonal`; by default all that exist.
        samples: number of random (x, g) for each kind.
        rapidity: largest rapidity of boosts. Rounding errors grow exponentially with it.
        gradients: compare gradients too.
        device: by default that of the module.
        seed: of the inputs and the group elements.

    Returns:
        kind -> max |f(gx) - g f(x)| / max |g f(x)|, the largest over samples and gradients.
    """
    check_algebra(algebra)
    check_int("samples", samples, low=1)
    if not isinstance(shape, Sequence) or any(not isinstance(n, int) or n < 1 for n in shape):
        raise ValueError(f"shape must be a sequence of positive integers, got {shape!r}")
    chosen = _kinds(algebra, kinds)
    if isinstance(module, nn.Module):
        state = [*module.parameters(), *module.buffers()]
        device = device or (state[0].device if state else None)
        module = copy.deepcopy(module).to(dtype=dtype, device=device)
    generator = torch.Generator().manual_seed(seed)
    errors = {}
    for kind in chosen:
        worst = 0.0
        for _ in range(samples):
            g = algebra.random_orthogonal(kind, rapidity=rapidity, generator=generator, dtype=dtype)
            x = torch.randn(*shape, algebra.n_blades, generator=generator, dtype=dtype)
            rho = algebra.action(g).to(device)
            worst = max(worst, _violation(module, x.to(device), rho, gradients, generator))
        errors[kind] = worst
    return errors


def _kinds(algebra: CliffordAlgebra, kinds: str | Sequence[str] | None) -> Sequence[str]:
    if kinds is None:
        return algebra.kinds()
    chosen = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if not chosen:
        raise ValueError(f"kinds must name at least one of {algebra.kinds()}, got {kinds!r}")
    return chosen


def _violation(
    module: Field, x: Tensor, rho: Tensor, gradients: bool, generator: torch.Generator
) -> float:
    parameters = list(module.parameters()) if isinstance(module, nn.Module) else []
    x = x.requires_grad_(gradients)
    moved_x = (x.detach() @ rho.mT).requires_grad_(gradients)
    with torch.set_grad_enabled(gradients):
        y, moved_y = module(x), module(moved_x)
    if not isinstance(y, Tensor) or y.dim() == 0 or y.shape[-1] != len(rho):
        got = f"shape {tuple(y.shape)}" if isinstance(y, Tensor) else type(y).__name__
        raise ValueError(
            f"the module must return multivectors, a tensor (..., {len(rho)}), got {got}; embed "
            "other outputs first, e.g. lambda x: alg.embed(f(x), 0)"
        )
    error = relative_error(moved_y, y @ rho.mT)
    if gradients:
        if not (y.requires_grad and moved_y.requires_grad):
            raise ValueError("the output has no gradient: pass gradients=False")
        contragredient = torch.linalg.inv(rho)  # rho^-T acts on cotangent rows as @ rho^-1
        cotangent = torch.randn(y.shape, generator=generator, dtype=y.dtype).to(y.device)
        live = [p for p in parameters if p.requires_grad]
        here = torch.autograd.grad(y, [x, *live], cotangent, materialize_grads=True)
        there = torch.autograd.grad(
            moved_y, [moved_x, *live], cotangent @ contragredient, materialize_grads=True
        )
        error = max(error, relative_error(there[0], here[0] @ contragredient))
        # The scale on which a vanishing parameter gradient is rounding.
        floor = max((g.abs().max().item() for g in here[1:] if g.numel()), default=0.0)
        for a, b in zip(here[1:], there[1:], strict=True):
            error = max(error, relative_error(b, a, floor))
    return error


def relative_error(actual: Tensor, expected: Tensor, floor: float = 0.0) -> float:
    """max |actual - expected| / max |expected|; NaN and shape mismatches count as infinite."""
    if actual.shape != expected.shape:
        return float("inf")
    if actual.numel() == 0:
        return 0.0
    scale = max(expected.detach().abs().max().item(), floor)
    difference = (actual - expected).detach().abs().max().item()
    if not difference < float("inf"):  # NaN or infinite
        return float("inf")
    return difference / scale if scale > 0 else (float("inf") if difference else 0.0)


def assert_equivariant(
    module: Field,
    algebra: CliffordAlgebra,
    shape: Sequence[int],
    *,
    tol: float | None = None,
    dtype: torch.dtype = torch.float64,
    **options: Any,
) -> dict[str, float]:
    """Raise ``AssertionError`` unless `equivariance_errors` are all at most ``tol``; return them.

    Args:
        tol: by default 1e-9 in float64 and 1e-3 in float32.
        options: ``kinds``, ``samples``, ``rapidity``, ``gradients``, ``device``, ``seed``, as for
            `equivariance_errors`.

    Example:
        >>> from cscnn.nn import MVLinear
        >>> alg = CliffordAlgebra((1, -1))
        >>> errors = assert_equivariant(MVLinear(alg, 2, 3), alg, shape=(5, 2))
        >>> sorted(errors)
        ['any', 'boost', 'reflection']
    """
    errors = equivariance_errors(module, algebra, shape, dtype=dtype, **options)
    if tol is None:
        tol = {torch.float64: 1e-9, torch.float32: 1e-3}.get(dtype, 0.1)
    _demand(errors, tol, f"{type(module).__name__} does not commute with", algebra)
    return errors


def _demand(errors: dict[str, float], tol: float, claim: str, algebra: CliffordAlgebra) -> None:
    failed = [kind for kind, error in errors.items() if not error <= tol]
    if failed:
        table = "\n".join(f"  {kind:<12} {error:.3e}" for kind, error in errors.items())
        raise AssertionError(
            f"{claim} {', '.join(failed)} of O{algebra.signature} to {tol:.1e}. Near the tolerance "
            "it is rounding, which large boosts amplify; of order one it is broken, or it moves "
            f"points too (see grid_equivariance_errors). Relative errors:\n{table}"
        )


# --- kernels --------------------------------------------------------------------------------------


def steerability_errors(
    kernel: SteerableKernel,
    *,
    points: Tensor | None = None,
    extra: Tensor | None = None,
    group: str | None = None,
    kinds: str | Sequence[str] | None = None,
    samples: int = 3,
    rapidity: float = 2.0,
    seed: int = 0,
) -> dict[str, float]:
    """Largest relative violation of K(gv) = ρ(g) K(v) ρ(g)^-1 for each kind of g, in float64.

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
    here = kernel(points, extra=extra)
    errors = {}
    for kind in _kinds(algebra, kinds):
        if kinds is None and kind == "reflection" and group.startswith("SO"):
            continue
        worst = 0.0
        for _ in range(samples):
            g = random_element(algebra, group, kind, rapidity, generator)
            rho = algebra.action(g)
            expected = torch.einsum("xc,nocib,by->noxiy", rho, here, torch.linalg.inv(rho))
            moved = None if extra is None else algebra.transform(g, extra)
            worst = max(worst, relative_error(kernel(points @ g.T, extra=moved), expected))
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
    _demand(errors, tol, f"{type(kernel).__name__} is not steerable under", kernel.algebra)
    return errors


def random_element(
    algebra: CliffordAlgebra,
    group: str,
    kind: str = "any",
    rapidity: float = 2.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """A random element (dim, dim) of O, SO, O+ or SO+, in float64."""
    for _ in range(1000):
        g = algebra.random_orthogonal(
            kind, rapidity=rapidity, generator=generator, dtype=torch.float64
        )
        special = not group.startswith("SO") or torch.linalg.det(g) > 0
        if special and (not group.endswith("+") or g[(time_axis(algebra),) * 2] > 0):
            return g
    raise ValueError(f"there is no {kind} in the group {group} of {algebra}")


def _special_points(algebra: CliffordAlgebra) -> Tensor:
    """The origin, and a vector on the light cone in mixed signature: (1 or 2, dim)."""
    points = torch.zeros(2, algebra.dim, dtype=torch.float64)
    if len(set(algebra.metric)) == 1:
        return points[:1]
    points[1, algebra.metric.index(1)] = points[1, algebra.metric.index(-1)] = 0.7
    return points


# --- grids ----------------------------------------------------------------------------------------


def grid_equivariance_errors(
    module: Field,
    algebra: CliffordAlgebra,
    shape: Sequence[int],
    *,
    spacing: Sequence[float] | None = None,
    group: str = "O",
    seed: int = 0,
) -> dict[str, float]:
    """Violations of the symmetries that are exact on grids, in float64.

    Args:
        module: maps fields (batch, channels, *grid, blades) to fields on the same grid.
        shape: (batch, channels, *grid).
        spacing: of the grid, if it differs between axes.
        group: ``"O"``, ``"SO"``, ``"O+"`` or ``"SO+"``, for networks of such kernels.

    Returns:
        ``"translation"``: cyclic shifts by a random number of points along each axis (expect it to
        hold for circular padding only); ``"point group"``: the rotations by quarter turns, flips
        and permutations of axes in `grid_symmetries`.
    """
    check_algebra(algebra)
    if not isinstance(shape, Sequence) or len(shape) != 2 + algebra.dim:
        stars = ", *" * algebra.dim
        raise ValueError(f"shape must be (batch, channels{stars}) for {algebra}, got {shape!r}")
    if isinstance(module, nn.Module):
        module = copy.deepcopy(module).to("cpu", torch.float64)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*shape, algebra.n_blades, generator=generator, dtype=torch.float64)
    axes = tuple(range(2, 2 + algebra.dim))
    errors = {}
    with torch.no_grad():
        y = module(x)
        if y.shape[2:-1] != x.shape[2:-1]:
            raise ValueError(
                f"the module must keep the grid, it maps {tuple(x.shape[2:-1])} to "
                f"{tuple(y.shape[2:-1])}"
            )
        shifts = [int(torch.randint(1, max(n, 2), (), generator=generator)) for n in shape[2:]]
        errors["translation"] = relative_error(module(x.roll(shifts, axes)), y.roll(shifts, axes))
        errors["point group"] = max(
            relative_error(
                module(transform_on_grid(algebra, g, x)), transform_on_grid(algebra, g, y)
            )
            for g in grid_symmetries(algebra, shape[2:], spacing, group)
        )
    return errors
