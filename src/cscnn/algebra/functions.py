"""Functions of multivectors that are more than products: inverses, exponential, logarithm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cscnn._util.torch_private import tracing

if TYPE_CHECKING:
    from cscnn.algebra.clifford import CliffordAlgebra

#: Square roots are taken until a number is this close to 1. The series then converges like 1/25^n.
CLOSE = 0.4
ROOTS, ITERATIONS, TERMS = 24, 12, 12


def only_multivectors(algebra: CliffordAlgebra, method: str) -> None:
    """Raise if the algebra has tensors, whose products are not associative."""
    if algebra.symmetric:
        raise ValueError(
            f"{method} needs the associative product of {algebra.multivectors}: use that algebra, "
            f"the attribute multivectors of {algebra}"
        )


def reversed_parts(algebra: CliffordAlgebra, x: Tensor) -> Tensor:
    """Blades from the last to the first, which are the complements, and then tensors likewise.

    Unlike a gather it keeps the order of memory.
    """
    if not algebra.symmetric:
        return x.flip(-1)
    return torch.cat([part.flip(-1) for part in x.tensor_split((len(algebra.blades),), -1)], -1)


def versor_inverse(algebra: CliffordAlgebra, v: Tensor) -> Tensor:
    """See `CliffordAlgebra.versor_inverse`."""
    algebra.check(v, "v")
    rev = algebra.reverse(v)
    square = algebra.geometric_product(v, rev)
    if not tracing():
        eps = torch.finfo(v.dtype).eps
        size = v.detach().square().sum(-1)
        rest = square.detach()[..., 1:].abs().amax(-1)
        bad = (rest > 1e3 * eps * size) | (square.detach()[..., 0].abs() <= 10 * eps * size)
        if bad.any():
            raise ValueError(
                f"v is not an invertible versor of {algebra}: v reverse(v) must be a non-zero "
                f"scalar; {_failures(v, bad)}"
            )
    return rev / square[..., :1]


def inverse(algebra: CliffordAlgebra, x: Tensor) -> Tensor:
    """See `CliffordAlgebra.inverse`."""
    algebra.check(x)
    wide = _widened(x)
    matrix = algebra.left_matrix(wide)
    if not tracing():
        sizes = torch.linalg.svdvals(matrix.detach().nan_to_num(0, 0, 0))
        singular = sizes[..., -1] <= 10 * torch.finfo(wide.dtype).eps * sizes[..., 0]
        bad = singular | ~x.detach().isfinite().all(-1)
        if bad.any():
            raise ValueError(f"x has no inverse in {algebra}: {_failures(x, bad)}")
    one = algebra.embed(wide.new_ones(1), 0)
    return torch.linalg.solve(matrix, one.expand_as(wide)).to(x.dtype)


def exp(algebra: CliffordAlgebra, x: Tensor) -> Tensor:
    """See `CliffordAlgebra.exp`."""
    algebra.check(x)
    matrix = torch.nn.functional.pad(algebra.left_matrix(_widened(x)), (0, 1, 0, 1))
    # A block of size 1 beside it: torch's exponential has errors of 2e-10 for norms near 0.05.
    beside = torch.zeros(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    beside[-1] = 1
    return torch.linalg.matrix_exp(matrix + beside.diag())[..., :-1, 0].to(x.dtype)


def log(algebra: CliffordAlgebra, x: Tensor) -> Tensor:
    """See `CliffordAlgebra.log`.

    By square roots until x is close to 1, then log x = 2 artanh((x - 1) / (x + 1)) as a series.
    Left multiplications are matrices, so no case is special: rotations, boosts, null rotations.
    """
    algebra.check(x)
    matrix = algebra.left_matrix(doubled(x))
    one = torch.eye(algebra.n_blades, dtype=matrix.dtype, device=matrix.device)
    root, roots = matrix, 0
    while roots < ROOTS and not _close(root, one):
        root, roots = _square_root(root, one), roots + 1
    ratio = _inverted(root + one) @ (root - one)  # they commute
    square, power, total = ratio @ ratio, ratio, ratio
    for k in range(1, TERMS):
        power = power @ square
        total = total + power / (2 * k + 1)
    result = (2.0 ** (roots + 1) * total)[..., 0]
    if not tracing():
        _check_logarithm(algebra, x, result.detach())
    return result.to(x)


def _close(matrix: Tensor, one: Tensor) -> bool:
    if tracing():  # values are not known: as many roots as any number may need
        return False
    return bool((torch.linalg.matrix_norm(matrix.detach() - one) < CLOSE).all())


def _square_root(matrix: Tensor, one: Tensor) -> Tensor:
    """The principal square root, by the iteration of Denman and Beavers."""
    y, z = matrix, one.expand_as(matrix)
    for _ in range(ITERATIONS):
        y, z = (y + _inverted(z)) / 2, (z + _inverted(y)) / 2
    return y


def _inverted(matrix: Tensor) -> Tensor:
    """Without an error for what has no inverse: the result is checked."""
    return torch.linalg.inv_ex(matrix).inverse


def _check_logarithm(algebra: CliffordAlgebra, x: Tensor, result: Tensor) -> None:
    """Raise unless the exponential is x again."""
    wide = x.detach().to(result)
    error = (exp(algebra, result) - wide).abs().amax(-1)
    bad = ~(error <= 1e4 * torch.finfo(x.dtype).eps * (1 + wide.abs().amax(-1)))
    if bad.any():
        raise ValueError(
            f"x has no principal logarithm in {algebra}: {_failures(wide, bad)}. An odd versor has "
            "none. A rotor near -1 is a rotation by 2π in an unknown plane: take its negative"
        )


def doubled(x: Tensor) -> Tensor:
    """In float64, on the CPU if the device has none."""
    return (x.cpu() if x.device.type == "mps" else x).double()


def _widened(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _failures(x: Tensor, bad: Tensor) -> str:
    example = x.detach().reshape(-1, x.shape[-1])[bad.reshape(-1)][0].tolist()
    return f"{int(bad.sum())} of {bad.numel()} fail, the first is {example}"
