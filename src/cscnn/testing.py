"""Equivariance asserts, for this library's tests and for the modules of its users."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from cscnn.algebra import CliffordAlgebra

Field = Callable[[Tensor], Tensor]


def equivariance_errors(
    module: Field,
    algebra: CliffordAlgebra,
    shape: Sequence[int],
    *,
    kinds: Sequence[str] | None = None,
    samples: int = 3,
    rapidity: float = 2.0,
    gradients: bool = True,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """Largest relative violation of f(ρ(g) x) = ρ(g) f(x) for each kind of g in O(p, q).

    The points stay where they are: g acts on the values only, which is the symmetry of pointwise
    layers and of networks on sets. ``gradients`` also compares the derivatives, with respect to the
    input (which must transform with ρ(g)^-T) and to the parameters (which must not change).

    Args:
        module: a callable from (..., blades) to (..., blades). An ``nn.Module`` is copied and cast
            to ``dtype``; the original stays untouched.
        algebra: its Clifford algebra.
        shape: shape of the random input without the blades, e.g. ``(batch, channels)``.
        kinds: see `CliffordAlgebra.random_orthogonal`; by default all that exist.
        samples: number of random (x, g) for each kind.
        rapidity: largest rapidity of boosts.
        seed: of the inputs and the group elements.

    Returns:
        kind -> max |f(gx) - g f(x)| / max |g f(x)|, the largest over samples and gradients.
    """
    if isinstance(module, nn.Module):
        module = copy.deepcopy(module).to(dtype=dtype, device=device)
    generator = torch.Generator().manual_seed(seed)
    errors = {}
    for kind in algebra.kinds() if kinds is None else kinds:
        worst = 0.0
        for _ in range(samples):
            g = algebra.random_orthogonal(kind, rapidity=rapidity, generator=generator, dtype=dtype)
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
    expected = y @ rho.mT
    error = relative_error(moved_y, expected)
    if gradients:
        contragredient = torch.linalg.inv(rho)  # rho^-T acts on cotangent rows as @ rho^-1
        cotangent = torch.randn(y.shape, generator=generator, dtype=y.dtype).to(y.device)
        live = [p for p in parameters if p.requires_grad]
        here = torch.autograd.grad(y, [x, *live], cotangent, allow_unused=True)
        there = torch.autograd.grad(
            moved_y, [moved_x, *live], cotangent @ contragredient, allow_unused=True
        )
        if here[0] is not None and there[0] is not None:
            error = max(error, relative_error(there[0], here[0] @ contragredient))
        for a, b in zip(here[1:], there[1:], strict=True):
            if a is not None and b is not None:
                error = max(error, relative_error(b, a, floor=_scale(here[1:])))
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


def _scale(tensors: Sequence[Tensor | None]) -> float:
    """Largest entry of all parameter gradients: the scale on which a vanishing one is rounding."""
    return max((t.abs().max().item() for t in tensors if t is not None and t.numel()), default=0.0)


def assert_equivariant(
    module: Field,
    algebra: CliffordAlgebra,
    shape: Sequence[int],
    *,
    tol: float = 1e-9,
    kinds: Sequence[str] | None = None,
    samples: int = 3,
    rapidity: float = 2.0,
    gradients: bool = True,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """Raise ``AssertionError`` unless `equivariance_errors` are all at most ``tol``; return them.

    Example:
        >>> from cscnn.nn import MVLinear
        >>> alg = CliffordAlgebra((1, -1))
        >>> errors = assert_equivariant(MVLinear(alg, 2, 3), alg, shape=(5, 2))
        >>> sorted(errors)
        ['any', 'boost', 'reflection']
    """
    errors = equivariance_errors(
        module,
        algebra,
        shape,
        kinds=kinds,
        samples=samples,
        rapidity=rapidity,
        gradients=gradients,
        dtype=dtype,
        device=device,
        seed=seed,
    )
    failed = {kind: error for kind, error in errors.items() if not error <= tol}
    if failed:
        table = "\n".join(f"  {kind:<12} {error:.3e}" for kind, error in errors.items())
        raise AssertionError(
            f"{module!r} does not commute with {', '.join(failed)} of O{algebra.signature}: "
            f"relative errors, tolerance {tol:.1e}:\n{table}"
        )
    return errors
