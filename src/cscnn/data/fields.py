"""What a data set holds: fields, what is given beside them, and where: on a grid or on points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cscnn._util.checks import check_choice, check_type
from cscnn.algebra import CliffordAlgebra

#: Boundaries and the padding mode that suits them.
BOUNDARIES = {"periodic": "circular", "wall": "wall", "open": "zeros"}


@dataclass(frozen=True)
class Quantity:
    """What has a name and a grade: a scalar 0, a vector 1, a magnetic field (bivector) 2."""

    name: str
    grade: int


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
    """A constant that is the same in all trajectories: gravity, a wall normal.

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


def check_fields(
    owner: str,
    algebra: CliffordAlgebra,
    fields: Sequence[Field],
    backgrounds: Sequence[Background] = (),
    given: Sequence[Given] = (),
) -> None:
    """Raise unless names differ, grades exist in the algebra and components are complete.

    Args:
        owner: what needs the fields, for the error message, e.g. ``"a header"``.
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
    for name, grade in ((q.name, q.grade) for q in quantities):
        check_type(f"the grade of {name}", grade, int)
        if not 0 <= grade <= algebra.dim:
            raise ValueError(f"{name} has grade {grade}, {algebra} has 0..{algebra.dim}")
    for background in backgrounds:
        size = algebra.grade_sizes[background.grade]
        if len(background.components) != size:
            raise ValueError(
                f"background {background.name} of grade {background.grade} has {size} components, "
                f"got {background.components}"
            )


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
