"""Fields with known derivatives, and the definitions of ∇ as loops."""

import itertools

import numpy as np
import torch

from cscnn import CliffordAlgebra


def times_basis_vector(axis: int, blade: tuple[int, ...], metric: tuple[int, ...]):
    """e_axis e_blade as (blade, sign), by sorting the factors one swap at a time."""
    factors, sign = [axis, *blade], 1
    while factors != sorted(factors):
        for i in range(len(factors) - 1):
            if factors[i] > factors[i + 1]:
                factors[i], factors[i + 1] = factors[i + 1], factors[i]
                sign = -sign
    if factors.count(axis) == 2:
        factors = [a for a in factors if a != axis]
        sign *= metric[axis]
    return tuple(factors), sign


def naive_nabla(f: np.ndarray, metric: tuple[int, ...], derivative, raise_by: tuple[int, ...]):
    """sum_i η_i e_i ∂_i f, blade by blade, of the terms that change the grade by ``raise_by``.

    Args:
        f: (*grid, blades).
        derivative: of an array (*grid) along an axis.
    """
    dim = len(metric)
    blades = [axes for k in range(dim + 1) for axes in itertools.combinations(range(dim), k)]
    result = np.zeros_like(f)
    for axis in range(dim):
        for number, blade in enumerate(blades):
            image, sign = times_basis_vector(axis, blade, metric)
            if len(image) - len(blade) in raise_by:
                term = metric[axis] * sign * derivative(f[..., number], axis)
                result[..., blades.index(image)] += term
    return result


def positions(sizes, spacing):
    """Coordinates of the points of a grid, (*grid, dim)."""
    axes = [h * torch.arange(n, dtype=torch.float64) for n, h in zip(sizes, spacing, strict=True)]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)


def smooth_field(algebra: CliffordAlgebra, at: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """Some Gaussian bumps at points (..., dim) -> (4, ..., blades), one sample per row."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(4, algebra.dim, generator=generator).double() * 0.5
    amplitudes = torch.randn(4, 4, algebra.n_blades, generator=generator).double()
    squares = (at.unsqueeze(-2) - centres).square().sum(-1)
    return torch.einsum("...k,skb->s...b", torch.exp(-squares / 2), amplitudes)
