"""Pure functions behind the layers. Fields are (batch, channels, *space, blades)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cscnn._util.torch_private import tracing
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.bilinear import BilinearTable, bilinear
from cscnn.algebra.checks import same_device
from cscnn.algebra.constants import constant


def check_field(
    x: Tensor,
    algebra: CliffordAlgebra,
    channels: int | None = None,
    weight: Tensor | None = None,
) -> None:
    """Raise unless x is a field (batch, channels, *space, blades) that fits these weights."""
    algebra.check(x)
    layout = f"(batch, channels, *space, {algebra.n_blades})"
    if x.dim() < 3:
        raise ValueError(f"a field has shape {layout}, got {tuple(x.shape)}")
    if channels is not None and x.shape[1] != channels:
        raise ValueError(
            f"expected {channels} channel(s) on axis 1 of {layout}, got shape {tuple(x.shape)}"
        )
    if weight is not None:
        same_device(x, weight, "the field", "the layer")
        if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
            raise TypeError(
                f"the field is {x.dtype} but the layer's weights are {weight.dtype}: cast one of "
                f"them, e.g. x.to({weight.dtype})"
            )
        if torch.is_grad_enabled() and not tracing() and weight.is_inference():
            raise ValueError(
                "the layer was made in inference mode and cannot have gradients: make it outside "
                "of torch.inference_mode(), or call it inside of torch.no_grad()"
            )


def to_planes(x: Tensor) -> Tensor:
    """Field -> (batch, channels, blades, points), a view where the memory order allows it.

    Without space axes the batch plays the part of the points, so that channel mixing is one large
    matrix product rather than many small ones.
    """
    if x.dim() == 3:
        return x.permute(1, 2, 0).unsqueeze(0)
    return x.movedim(-1, 2).flatten(3)


def from_planes(planes: Tensor, like: Tensor) -> Tensor:
    """Inverse of `to_planes`, with the space axes and the memory order of ``like``."""
    if like.dim() == 3:
        x = planes.squeeze(0).permute(2, 0, 1)
    else:
        x = planes.reshape(*planes.shape[:3], *like.shape[2:-1]).movedim(2, -1)
    return x.contiguous() if like.stride(-1) == 1 else x


def mix_channels(x: Tensor, weight: Tensor, algebra: CliffordAlgebra) -> Tensor:
    """Channel mixing with one matrix per grade, on planes: y_k = W_k x_k.

    Weights with twice as many columns, [W V], mix x I too: y_k = W_k x_k + V_k (x I)_k.

    Args:
        x: (batch, c_in, blades, points).
        weight: (c_out, c_in, grades) or (c_out, 2 c_in, grades).

    Returns:
        (batch, c_out, blades, points)
    """
    if weight.shape[1] > x.shape[1]:
        x = torch.cat([x, algebra.undual(x.movedim(2, -1)).movedim(-1, 2)], 1)
    batch, c_in, _, points = x.shape
    mixed = [
        weight[..., k] @ x[:, :, algebra.grade_slice(k)].reshape(batch, c_in, size * points)
        for k, size in enumerate(algebra.grade_sizes)
    ]
    return torch.cat(mixed, -1).reshape(batch, weight.shape[0], algebra.n_blades, points)


def weighted_product(
    x: Tensor,
    y: Tensor,
    weight: Tensor,
    paths_by_grade: tuple[list[int], ...],
    tables: tuple[BilinearTable, ...],
) -> Tensor:
    """Fully connected geometric product with one weight per grade path, on planes.

    out[o, C] = sum_i sum_paths weight[o, i, path] (x_i y_i restricted to the path)[C]. The path
    products need n^2 multiplications per channel and no weights; the weights then enter as one
    matrix product per output grade.

    Args:
        x, y: (batch, c_in, blades, points).
        weight: (c_out, c_in, paths).
        paths_by_grade: per output grade, the indices of its paths.
        tables: per output grade, the product with one output slot for each (path, blade).
    """
    batch, c_in, blades, points = x.shape
    x, y = x.movedim(2, -1), y.movedim(2, -1)
    mixed = []
    for table, paths in zip(tables, paths_by_grade, strict=True):
        products = bilinear(x, y, table).movedim(-1, 2)  # (batch, c_in, paths * blades, points)
        size = products.shape[2] // len(paths)  # blades of this grade
        products = products.reshape(batch, c_in * len(paths), size * points)
        mixed.append(weight[..., paths].flatten(1) @ products)
    return torch.cat(mixed, -1).reshape(batch, weight.shape[0], blades, points)


#: Fields with numbers above this are multiplied by `SHRINK` before they are squared: in float32 the
#: squares of numbers above 1e19 overflow. A power of two changes no digit. With it numbers up to
#: 1e33 have norms. Other fields are left alone, since it makes second derivatives overflow.
LARGE = 2.0**40
SHRINK = 2.0**-48
SMALLEST_SQUARE = 0.01  #: norms of multivectors are bounded below by its root

#: Φ(x) ≈ sigmoid(x (GELU_SCALE + GELU_CUBE x²)), which is torch's GELU with ``"tanh"``.
GELU_SCALE = math.sqrt(8 / math.pi)
GELU_CUBE = 0.044715 * GELU_SCALE


def scale_of(x: Tensor) -> Tensor:
    """1, or SHRINK for a field with large numbers or NaN."""
    bound = torch.linalg.vector_norm(x.detach())  # unlike the maximum, known for empty fields
    return torch.where(bound <= LARGE, 1.0, SHRINK).to(x.dtype)


def _square_terms(x: Tensor, algebra: CliffordAlgebra, scale: Tensor) -> Tensor:
    """scale² η_A x_A² for each blade A."""
    return x * (scale.square() * constant(algebra.form, x.dtype, x.device)) * x


def _grade_squares(x: Tensor, algebra: CliffordAlgebra, scale: Tensor) -> Tensor:
    """scale² <x_k, x_k> for each grade k: (..., blades) -> (grades, ...)."""
    terms = _square_terms(x, algebra, scale).split(algebra.grade_sizes, -1)
    return torch.stack([grade.sum(-1) for grade in terms])


def smooth_root(squares: Tensor, scale: Tensor) -> Tensor:
    """sqrt(max(q, 0.01)) for q given times scale²; the largest number there is for infinite q.

    The published code takes (max(q, 0.01)^2 + 1e-16)^(1/4), the same to within 3e-13.
    """
    largest = scale.new_full((), torch.finfo(squares.dtype).max)
    return squares.clamp(SMALLEST_SQUARE * scale.square(), largest).sqrt() / scale


def smooth_norm(x: Tensor, algebra: CliffordAlgebra, absolute: bool = False) -> Tensor:
    """sqrt(max(<x, x>, 0.01)), bounded below where <x, x> is small or negative.

    With ``absolute`` <x, x> is a sum over grades of the absolute values of their squares: without
    the cancellation of time-like and space-like grades it is small only for multivectors that are
    small or have null grades.

    Shape:
        (..., blades) -> (...)
    """
    scale = scale_of(x)
    if absolute and any(sign < 0 for sign in algebra.metric):
        return smooth_root(_grade_squares(x, algebra, scale).abs().sum(0), scale)
    return smooth_root(_square_terms(x, algebra, scale).sum(-1), scale)


def widened(x: Tensor) -> Tensor:
    """x in a dtype whose squares and cubes do not overflow: half precision becomes float32."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def grade_norm(x: Tensor, factor: Tensor, algebra: CliffordAlgebra) -> Tensor:
    """x_k / (sigmoid(factor) (|x_k| - 1) + 1 + 1e-6) for each channel and grade k.

    Args:
        x: field (batch, channels, *space, blades).
        factor: (channels, grades); large values normalise fully, small ones not at all.
    """
    dtype, x = x.dtype, widened(x)
    scale = scale_of(x)
    # (grades, batch, channels, *space)
    sizes = smooth_root(_grade_squares(x, algebra, scale), scale)
    strength = factor.sigmoid().T.reshape(algebra.n_grades, 1, -1, *(1,) * (x.dim() - 3))
    divisor = strength * (sizes - 1) + (1 + 1e-6)
    y = x / divisor[constant(algebra.grades, torch.int64, x.device)].movedim(0, -1)
    return y.to(dtype)


def layer_norm(x: Tensor, algebra: CliffordAlgebra, absolute: bool = False) -> Tensor:
    """x / (m + 1e-6), m the mean of |x| over the channels at each point; see `smooth_norm`."""
    mean = smooth_norm(widened(x), algebra, absolute).mean(1, keepdim=True)
    return (x / (mean + 1e-6).unsqueeze(-1)).to(x.dtype)


def gate(x: Tensor, approximate: str = "tanh") -> Tensor:
    """x Φ(x^(0)): each multivector scaled by the Gaussian CDF of its scalar part."""
    return x * normal_cdf(widened(x[..., :1]), approximate).to(x.dtype)


def normal_cdf(x: Tensor, approximate: str = "tanh") -> Tensor:
    """The Gaussian CDF: ``"none"`` is exact, ``"tanh"`` that of torch's GELU of this name."""
    if approximate == "none":
        return torch.special.ndtr(x)
    return torch.sigmoid(x * (x.square() * GELU_CUBE + GELU_SCALE))
