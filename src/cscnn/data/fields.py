"""What a data set holds: fields, what is given beside them, and where: on a grid or on points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from cscnn._util.checks import check_choice
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.clifford import SYMMETRIC

#: Boundaries and the padding mode that suits them.
BOUNDARIES = {"periodic": "circular", "wall": "wall", "open": "zeros"}


@dataclass(frozen=True)
class Quantity:
    """What has a name and a grade: a scalar 0, a vector 1, a magnetic field (bivector) 2.

    A symmetric tensor T^ij such as a stress has the grade ``"symmetric"``. Its components are those
    of the matrix, row by row: dim² numbers.
    """

    name: str
    grade: int | str


@dataclass(frozen=True)
class Field(Quantity):
    """One stored quantity that is predicted."""

    units: str = ""


#: Name of the given constant that is the time between frames, where it is not the same for all.
FRAME_SPACING = "frame_spacing"

#: Kinds of what is given, and the axes that it has: of time, of space.
KINDS = {"forcing": (True, True), "static": (False, True), "constant": (False, False)}


@dataclass(frozen=True)
class Given(Quantity):
    """A quantity of each trajectory that is known and need not be predicted.

    It transforms like a field of its grade: a forecast that is told it commutes with symmetries
    that move field and given quantity together.

    Attributes:
        name: differs from those of all fields.
        grade: as of a `Field`.
        kind: ``"forcing"`` has frames like a field, and is known for future times too: a heater, a
            stirring force. ``"static"`` has one value per point: an obstacle mask, a permittivity,
            a topography, the normals of a wall. ``"constant"`` has one value: a viscosity.
        units: for people.

    Example:
        >>> Given("normals", 1, "static").kind
        'static'
    """

    kind: str
    units: str = ""

    def __post_init__(self) -> None:
        check_choice(f"the kind of {self.name}", self.kind, tuple(KINDS))


@dataclass(frozen=True)
class Background(Quantity):
    """A constant that is the same in all trajectories: gravity, a wall normal, a mean stress.

    Given to the model as an input channel it transforms with the data, and the map is equivariant
    again. One that differs between trajectories is a `Given` of kind ``"constant"``.
    """

    components: tuple[float, ...]


#: Arrays of a trajectory on points that say where these are.
PLACE = ("positions", "weights")


@dataclass(frozen=True)
class Cloud:
    """Data on points instead of a grid: every trajectory has its own, which do not move.

    Attributes:
        period: for each axis its period, or None where it has none.
        weights: whether each point has a weight, its share of the volume (quadrature).
    """

    period: tuple[float | None, ...]
    weights: bool = False

    def __post_init__(self) -> None:
        if any(p is not None and not 0 < p < math.inf for p in self.period):
            raise ValueError(f"periods must be positive, or None, got {self.period}")

    @property
    def boundary(self) -> tuple[str, ...]:
        """What is at the ends of each axis, see `BOUNDARIES`."""
        return tuple("open" if p is None else "periodic" for p in self.period)

    def check(self, dim: int, names: Sequence[str]) -> None:
        """Raise unless there is a period for each axis, and no quantity has the name of a place."""
        check_axes("period", self.period, dim)
        if taken := [name for name in names if name in PLACE]:
            raise ValueError(
                f"on points {' and '.join(PLACE)} say where the points are: they cannot be names "
                f"of fields, got {taken[0]!r}"
            )


def algebra_of(metric: Sequence[int], quantities: Iterable[Quantity]) -> CliffordAlgebra:
    """The Clifford algebra of a metric, with symmetric tensors if one of the quantities is one."""
    tensors = [q.name for q in quantities if q.grade == SYMMETRIC]
    if tensors and len(metric) == 1:
        raise ValueError(
            f"{tensors[0]} is a symmetric tensor on one axis, metric {tuple(metric)}: there it has "
            "one component and is a scalar, give it grade 0"
        )
    return CliffordAlgebra(metric, symmetric=bool(tensors))


def grade_folder(grade: int | str) -> str:
    """The name of a grade in files, e.g. ``grade1`` or ``symmetric``."""
    return grade if isinstance(grade, str) else f"grade{grade}"


def grade_text(grade: int | str) -> str:
    """The name of a grade for people."""
    return f"{grade} tensor" if isinstance(grade, str) else f"grade {grade}"


def matrix_names(axes: Sequence[str]) -> tuple[str, ...]:
    """Names of the components of a matrix, row by row, e.g. ``("xx", "xy", "yx", "yy")``."""
    between = "" if all(len(axis) == 1 for axis in axes) else "_"
    return tuple(between.join((row, column)) for row in axes for column in axes)


def check_fields(
    owner: str,
    metric: Sequence[int],
    fields: Sequence[Field],
    backgrounds: Sequence[Background] = (),
    given: Sequence[Given] = (),
) -> None:
    """Raise unless names differ, grades exist in the algebra and components are complete.

    Args:
        owner: what needs the fields, for the error message, e.g. ``"a header"``.
        metric: one sign per axis.
        fields, backgrounds, given: of the owner.
    """
    for title, entries, kind in (
        ("fields", fields, Field),
        ("backgrounds", backgrounds, Background),
        ("given", given, Given),
    ):
        if not isinstance(entries, list | tuple) or any(not isinstance(e, kind) for e in entries):
            raise TypeError(
                f"{title} of {owner} must be a tuple of {kind.__name__}, got {entries!r}"
            )
    names = [f.name for f in fields]
    quantities: tuple[Field | Background | Given, ...] = (*fields, *backgrounds, *given)
    for quantity in quantities:
        check_name(quantity.name)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"{owner} needs fields of different names, got {names}")
    everything = [q.name for q in quantities]
    if twice := [name for name in everything if everything.count(name) > 1]:
        raise ValueError(
            f"{owner} needs fields, backgrounds and given quantities of different names, got "
            f"{twice[0]!r} twice: fields {names}, backgrounds {[b.name for b in backgrounds]}, "
            f"given {[g.name for g in given]}"
        )
    algebra = algebra_of(metric, quantities)
    for name, grade in ((q.name, q.grade) for q in quantities if q.grade != SYMMETRIC):
        if isinstance(grade, bool) or not isinstance(grade, int):
            raise TypeError(f"the grade of {name} must be an integer or 'symmetric', got {grade!r}")
        if not 0 <= grade <= algebra.dim:
            hint = f"; a symmetric tensor has {SYMMETRIC!r}" if grade == algebra.dim + 1 else ""
            raise ValueError(f"{name} has grade {grade}, {algebra} has 0..{algebra.dim}{hint}")
    for background in backgrounds:
        _check_background(background, algebra)


def _check_background(background: Background, algebra: CliffordAlgebra) -> None:
    """Raise unless components are complete, and those of a symmetric tensor symmetric."""
    size = algebra.size(background.grade)
    if len(background.components) != size:
        raise ValueError(
            f"background {background.name} of grade {background.grade} has {size} components, "
            f"got {background.components}"
        )
    try:
        algebra.embed(torch.tensor(background.components, dtype=torch.float64), background.grade)
    except ValueError as error:
        raise ValueError(f"background {background.name}: {error}") from error


def check_name(name: object) -> None:
    """Raise unless a name of a field serves as a name in files and in programs.

    A slash would make groups of HDF5 of it, a dot in front is a path or a hidden name, and ``$``
    belongs to shells and to names that torch makes.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a field must be text, got {name!r}")
    if not name.strip() or not name.isprintable() or name[0] == "." or {*name} & {*"/$"}:
        raise ValueError(
            f"{name!r} cannot be the name of a field: it needs letters, without / and $, without "
            "control characters, and with no dot in front"
        )


def check_boundary(boundary: Sequence[str]) -> None:
    """Raise unless every boundary is one of `BOUNDARIES`."""
    for value in boundary:
        check_choice("boundary", value, tuple(BOUNDARIES))


def check_axes(name: str, values: Sequence[object], dim: int) -> None:
    """Raise unless there is one value for each axis."""
    if not isinstance(values, Sequence):
        raise TypeError(f"{name} needs one value per axis, {dim} in all, got {values!r}")
    if len(values) != dim:
        raise ValueError(f"{name} needs one value per axis, {dim} in all, got {values}")
