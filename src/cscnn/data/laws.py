"""Equations that fields obey, and by how much they miss them.

A simulator lists its laws. The residual of a law is measured relative to the derivatives in it, so
it has no units: 0 is perfect, and numbers that have nothing to do with each other give about one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cscnn._util.checks import check_choice, check_int
from cscnn.algebra import CliffordAlgebra
from cscnn.calculus import Differences, partial_derivative
from cscnn.data.header import Header
from cscnn.data.source import Source

#: Where a solver has the numbers of a field. Those on faces or edges are stored as means at the
#: centres of cells; then there are differences that keep the zeros of the solver, to rounding.
PLACES = ("points", "faces", "edges")

FACTOR = 5.0  #: residuals of good data are up to three times the estimated error of differences
EXACT = 1e-4  #: residuals of what is exact but for rounding are below 1e-6 in float32
UNRESOLVED = 0.3  #: a law that fails so badly cannot be excused by the error of differences


@dataclass(frozen=True)
class Law:
    """The equation operator(field) + source = 0, up to the error of finite differences.

    Attributes:
        name: short, for tables of results.
        equation: as a formula.
        meaning: in words.
        field: name of the differentiated field.
        operator: one of `cscnn.calculus`.
        source: name of the field that is added, if any.
        place: one of `PLACES`.
        physical: makes the field of what is stored, if it is stored in another form.
        factor: name of a static scalar that multiplies the field before it is differentiated, such
            as a permittivity. Where the data are not given it, it is uniform and does not matter.
        order: of the derivatives.
    """

    name: str
    equation: str
    meaning: str
    field: str
    operator: Callable[[Tensor, CliffordAlgebra, Differences], Tensor]
    source: str | None = None
    place: str = "points"
    physical: Callable[[Tensor, Header], Tensor] | None = None
    factor: str | None = None
    order: int = 1

    def __post_init__(self) -> None:
        check_choice("place", self.place, PLACES)
        check_int("order", self.order, low=1)

    @property
    def radius(self) -> int:
        """Points at the ends of an axis where the law is not measured, unless it is periodic."""
        return self.order * (2 if self.place == "points" else 1)


@dataclass(frozen=True)
class Residual:
    """By how much fields miss a law: sums of squares over points, which can be added.

    Attributes:
        law: the law.
        squares: of the residual.
        scale: of the derivatives of the field along each axis, and of the source.
        error: of the estimated error of the differences in the residual; 0 if they are exact.
        rounding: of the rounding of the field, divided by powers of the spacing.
    """

    law: Law
    squares: float
    scale: float
    error: float
    rounding: float

    @property
    def relative(self) -> float:
        """|operator(field) + source| / |∂ field, source|."""
        return _ratio(self.squares, self.scale)

    @property
    def discretisation(self) -> float:
        """Change of the residual from differences of accuracy 2 to accuracy 4, as relative."""
        return _ratio(self.error, self.scale)

    @property
    def violated(self) -> bool:
        """Whether the residual is far above the error of the differences, or is not finite."""
        if self.squares <= FACTOR**2 * self.rounding:  # a constant field has no other derivatives
            return False
        limit = min(max(FACTOR * self.discretisation, EXACT), UNRESOLVED)
        return not self.relative <= limit

    def sentence(self) -> str:
        """What the numbers say."""
        text = f"{self.law.meaning}, {self.law.equation}: residual {self.relative:.1e}"
        expected = "rounding"
        if self.discretisation:
            expected = f"the error of the differences, about {self.discretisation:.1e}"
            text += f"; {expected}" if not self.violated else ""
        if not self.violated:
            return text
        return (
            f"{text}, far above {expected}: are fields, signs, units and spacing what the header "
            "says, and is the grid fine enough?"
        )


def _ratio(squares: float, scale: float) -> float:
    if scale == 0:  # a constant field obeys laws without a source
        return 0.0 if squares == 0 else math.inf
    return math.sqrt(squares / scale)


class Sums(NamedTuple):
    """What `Residual` adds up, for each trajectory and frame: (batch, frames)."""

    squares: Tensor
    scale: Tensor
    error: Tensor
    rounding: Tensor

    @property
    def relative(self) -> Tensor:
        """`Residual.relative` of each trajectory and frame, (batch, frames)."""
        known = (self.scale > 0) | (self.squares > 0)
        return torch.where(known, self.squares / self.scale, 0.0).sqrt()

    def residual(self, law: Law) -> Residual:
        """Of all trajectories and frames together."""
        return Residual(law, *(float(x.sum()) for x in self))


def measure(law: Law, fields: Mapping[str, Tensor], header: Header) -> Residual | None:
    """The residual of a law, summed over trajectories, frames and space, see `frame_sums`."""
    sums = frame_sums(law, fields, header)
    return None if sums is None else sums.residual(law)


def frame_sums(law: Law, fields: Mapping[str, Tensor], header: Header) -> Sums | None:
    """The residual of a law for each trajectory and frame, summed over space.

    Args:
        law: what the fields should obey.
        fields: field name -> (batch, frames, *space, components), in the units of the header; what
            is static has no frames.
        header: metric, spacing and boundaries. Other numbers of frames or points are welcome.

    Returns:
        (batch, frames). If time is an axis of the grid that is not periodic, there are no numbers
        of its first and last frames, `Law.radius` of each. None if there are no points from which
        the differences do not reach beyond the ends of the grid.
    """
    algebra = header.algebra
    stored = fields[law.field]
    field = stored if law.physical is None else law.physical(stored, header)
    if law.factor is not None and law.factor in fields:
        field = field * fields[law.factor].unsqueeze(1)
    f = algebra.embed(field, header.grade(law.field))
    source = None
    if law.source is not None:
        source = algebra.embed(fields[law.source], header.grade(law.source))
    inside = _interior(f, header, law.radius)
    if inside is None:
        return None
    modes = tuple("circular" if b == "periodic" else "zeros" for b in header.boundary)
    accuracy = 4 if law.place == "points" else 2
    scheme = Differences(header.spacing, accuracy, modes, staggered=law.place == "faces")
    derivative = law.operator(f, algebra, scheme)
    residual = derivative if source is None else derivative + source
    squares = _squares(residual[inside])
    error = torch.zeros_like(squares)
    if law.place == "points":
        coarse = law.operator(f, algebra, replace(scheme, accuracy=2))
        error = _squares((derivative - coarse)[inside])
    scale = torch.zeros_like(squares) if source is None else _squares(source[inside])
    for axis in range(algebra.dim):
        scale = scale + _squares(partial_derivative(f, axis, algebra, scheme, law.order)[inside])
    relative = torch.finfo(f.dtype).eps / min(header.spacing) ** law.order
    rounding = relative**2 * _squares(f[inside])
    return Sums(squares, scale, error, rounding)


def total(residuals: Iterable[Residual | None]) -> Residual | None:
    """The residual of one law over several batches; None if it could not be measured on any."""
    measured = [residual for residual in residuals if residual is not None]
    if not measured:
        return None
    squares, scale, error, rounding = (
        sum(getattr(residual, name) for residual in measured)
        for name in ("squares", "scale", "error", "rounding")
    )
    return Residual(measured[0].law, squares, scale, error, rounding)


def residuals(
    laws: Iterable[Law],
    source: Source,
    trajectories: int = 8,
    progress: Callable[[Sequence[int]], Iterable[int]] = lambda numbers: numbers,
) -> list[Residual]:
    """Residuals of data, over a few trajectories from all of the file.

    Args:
        laws: those that the data obey, see `cscnn.data.simulators.laws_of`.
        source: the data.
        trajectories: how many to use.
        progress: wraps the numbers of these, for a progress bar.
    """
    chosen = sorted({i * len(source) // trajectories for i in range(trajectories)})
    parts: dict[Law, list[Residual | None]] = {law: [] for law in laws}
    for number in progress(chosen) if parts and len(source) else ():
        fields = {n: torch.as_tensor(x)[None] for n, x in source.read(number).items()}
        for law, measured in parts.items():
            measured.append(measure(law, fields, source.header))
    sums = (total(measured) for measured in parts.values())
    return [residual for residual in sums if residual is not None]


def _interior(f: Tensor, header: Header, radius: int) -> tuple[Any, ...] | None:
    """Index of the points that differences of a radius can be taken at; None if there are none."""
    index: list[Any] = [...]
    first = f.dim() - 1 - len(header.metric)
    for axis, boundary in enumerate(header.boundary):
        margin = 0 if boundary == "periodic" else radius
        size = f.shape[first + axis]
        if size <= 2 * radius:
            return None
        index.append(slice(margin, size - margin))
    return (*index, slice(None))


def _squares(x: Tensor) -> Tensor:
    """Sums over space and components, (batch, frames)."""
    return x.square().flatten(2).sum(2)
