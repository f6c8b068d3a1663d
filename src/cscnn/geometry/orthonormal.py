"""Orthonormal frames in spaces of any signature."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import torch
from torch import Tensor

#: A direction counts as null if the terms of its square cancel down to this part.
NULL = 1e-10
#: Vectors whose squared length falls below this part in Gram-Schmidt were dependent.
SMALL = 1e-8


def orthonormal_frames(span: Tensor, form: Tensor, metric: Sequence[int]) -> Tensor:
    """Orthonormal frames of the spaces spanned by vectors: Gram-Schmidt in any signature.

    At each step the direction with the largest square, in absolute value, is taken: one of the
    vectors that are left, or of their sums and differences, since all vectors of a basis may be
    null without the space being degenerate.

    Args:
        span: (N, m, D), vectors that span a space of dimension d = len(metric).
        form: (N, D, D) or (D, D), the symmetric form.
        metric: wanted signs.

    Returns:
        (N, D, d): frame vectors as columns, with squares equal to the signs of ``metric``.
    """
    d = len(metric)
    form = form.expand(len(span), *form.shape[-2:])
    pairs = list(combinations(range(span.shape[1]), 2))
    first, second = (
        torch.tensor([p[i] for p in pairs], dtype=torch.int64, device=span.device) for i in (0, 1)
    )
    left = span
    units: list[Tensor] = []
    signs: list[Tensor] = []
    scale = span.square().sum(-1).amax(-1).clamp(min=torch.finfo(span.dtype).tiny)
    for _ in range(d):
        a, b = left[:, first], left[:, second]
        choices = torch.cat([left, a + b, a - b], 1)
        squares = torch.einsum("nid,nde,nie->ni", choices, form, choices)
        sizes = choices.square().sum(-1)
        quality = squares.abs() / torch.maximum(sizes, SMALL * scale[:, None])
        best = quality.argmax(-1)
        rows = torch.arange(len(span), device=span.device)
        square, chosen = squares[rows, best], choices[rows, best]
        _raise_if_degenerate(square, chosen, scale, form, len(units))
        unit = chosen / square.abs().sqrt()[:, None]
        for old, sign in zip(units, signs, strict=True):  # once more, against rounding
            unit = unit - _along(unit, old, sign, form)
        unit = unit / torch.einsum("nd,nde,ne->n", unit, form, unit).abs().sqrt()[:, None]
        units.append(unit)
        signs.append(square.sign())
        left = left - _along(left, unit.unsqueeze(1), square.sign()[:, None], form)
    return _ordered(torch.stack(units, -1), torch.stack(signs, -1), metric)


def _along(x: Tensor, unit: Tensor, sign: Tensor, form: Tensor) -> Tensor:
    """The part of x (N, ..., D) along a unit vector of a sign."""
    product = torch.einsum("n...d,nde,n...e->n...", x, form, unit.expand_as(x))
    return (sign * product).unsqueeze(-1) * unit


def _raise_if_degenerate(
    square: Tensor, chosen: Tensor, scale: Tensor, form: Tensor, taken: int
) -> None:
    """Raise if squares are rounding errors: of their own terms, or beside the rest of the form.

    Units of the coordinates do not matter, nor does the size of the form.
    """
    square, lengths, most = square.abs(), chosen.abs(), form.abs().amax((-2, -1))
    terms = torch.einsum("nd,nde,ne->n", lengths, form.abs(), lengths)
    size = lengths.square().sum(-1)
    independent = (size / (SMALL * scale)).clamp(max=1.0)
    rounding = torch.finfo(form.dtype).eps ** 2 * size * most
    bad = ~((square * independent > NULL * terms) & (square > rounding))
    if bad.any():
        index = int(bad.nonzero()[0, 0])
        raise ValueError(
            f"there is no orthonormal frame at point {index}: after {taken} directions only "
            f"null ones are left, the form is degenerate there: {form[index].tolist()}"
        )


def _ordered(frames: Tensor, signs: Tensor, metric: Sequence[int]) -> Tensor:
    """Frame vectors in the order of the signs of the metric."""
    target_signs = torch.tensor(tuple(metric), dtype=signs.dtype, device=signs.device)
    counts = (signs > 0).sum(-1)
    if (counts != int((target_signs > 0).sum())).any():
        index = int((counts != int((target_signs > 0).sum())).nonzero()[0, 0])
        raise ValueError(
            f"the form at point {index} has the signs {signs[index].int().tolist()}, not those of "
            f"the metric {tuple(metric)}"
        )
    order = torch.argsort(signs, dim=-1, descending=True, stable=True)
    position = torch.argsort(torch.argsort(target_signs, descending=True, stable=True))
    order = order[:, position]
    return torch.gather(frames, -1, order.unsqueeze(1).expand_as(frames))


def time_index(metric: Sequence[int]) -> int | None:
    """The axis whose sign occurs once, if there is one: in R^{1,1} the first."""
    once = [axis for axis, sign in enumerate(metric) if list(metric).count(sign) == 1]
    return once[0] if once and len(metric) > 1 else None


def flip(frames: Tensor, axis: int, mask: Tensor) -> Tensor:
    """Frames with one vector reversed at the points of a mask (N,)."""
    signs = torch.ones_like(frames[:, :1])
    signs[:, 0, axis] = 1 - 2 * mask.to(frames.dtype)
    return frames * signs


def components(frames: Tensor, vectors: Tensor, form: Tensor, metric: Sequence[int]) -> Tensor:
    """Components of vectors (N, ..., D) in orthonormal frames (N, D, d): (N, ..., d)."""
    signs = torch.tensor(tuple(metric), dtype=frames.dtype, device=frames.device)
    lowered = form.expand(len(frames), *form.shape[-2:]) @ frames
    if vectors.dim() == 2:
        return (vectors.unsqueeze(1) @ lowered).squeeze(1) * signs
    return (vectors @ lowered) * signs


def check_frames(frames: Tensor, form: Tensor, metric: Sequence[int], count: int) -> None:
    """Raise unless frames (N, D, d) are orthonormal."""
    size = (count, form.shape[-1], len(metric))
    if tuple(frames.shape) != size:
        raise ValueError(f"frames must have shape {size}, got {tuple(frames.shape)}")
    signs = torch.diag(torch.tensor(tuple(metric), dtype=frames.dtype, device=frames.device))
    gram = frames.mT @ form @ frames
    deviation = (gram - signs).abs().amax((-2, -1))
    limit = 1e4 * torch.finfo(frames.dtype).eps * frames.square().sum((-2, -1)).clamp(min=1.0)
    bad = ~(deviation <= limit)
    if bad.any():
        index = int(bad.nonzero()[0, 0])
        raise ValueError(
            f"the frame at point {index} is not orthonormal for metric {tuple(metric)}: its inner "
            f"products are {gram[index].tolist()}"
        )
