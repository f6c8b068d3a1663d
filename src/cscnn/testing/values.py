"""Equivariance of maps that leave the points where they are: layers, and networks on sets."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from cscnn._util.checks import check_int
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.clifford import check_algebra
from cscnn.algebra.group import check_group
from cscnn.testing.errors import chosen_kinds, demand, random_element, relative_error

Field = Callable[[Tensor], Tensor]


def equivariance_errors(
    module: Field,
    algebra: CliffordAlgebra,
    shape: Sequence[int],
    *,
    group: str = "O",
    kinds: str | Sequence[str] | None = None,
    samples: int = 3,
    rapidity: float | tuple[float, float] = 1.0,
    gradients: bool = True,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """Largest relative violation of f(ρ(g) x) = ρ(g) f(x) for each kind of g in a group.

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
        group: ``"O"``, ``"SO"``, ``"O+"`` or ``"SO+"``.
        kinds: see `CliffordAlgebra.random_orthogonal`; by default all that exist in the group.
        samples: number of random (x, g) for each kind.
        rapidity: largest rapidity of boosts, or smallest and largest. Rounding errors grow
            exponentially with it.
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
    chosen = chosen_kinds(algebra, kinds, check_group(algebra, group))
    if isinstance(module, nn.Module):
        state = [*module.parameters(), *module.buffers()]
        device = device or (state[0].device if state else None)
        module = copy.deepcopy(module).to(dtype=dtype, device=device)
    generator = torch.Generator().manual_seed(seed)
    errors = {}
    for kind in chosen:
        worst = 0.0
        for _ in range(samples):
            g = random_element(algebra, group, kind, rapidity, generator).to(dtype)
            x = torch.randn(*shape, algebra.n_blades, generator=generator, dtype=dtype)
            rho = algebra.action(g).to(device)
            worst = max(worst, _violation(module, x.to(device), rho, gradients, generator))
        errors[kind] = worst
    return errors


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


def assert_equivariant(
    module: Field,
    algebra: CliffordAlgebra,
    shape: Sequence[int],
    *,
    group: str = "O",
    tol: float | None = None,
    dtype: torch.dtype = torch.float64,
    **options: Any,
) -> dict[str, float]:
    """Raise ``AssertionError`` unless `equivariance_errors` are all at most ``tol``; return them.

    Args:
        group: ``"O"``, ``"SO"``, ``"O+"`` or ``"SO+"``.
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
    errors = equivariance_errors(module, algebra, shape, group=group, dtype=dtype, **options)
    if tol is None:
        tol = {torch.float64: 1e-9, torch.float32: 1e-3}.get(dtype, 0.1)
    demand(errors, tol, f"{type(module).__name__} does not commute with", algebra, group)
    return errors
