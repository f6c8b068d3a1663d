"""What a data set holds: its fields, known constants, and what happens at the ends of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cscnn._util.checks import check_choice
from cscnn.algebra import CliffordAlgebra

#: Boundaries and the padding mode that suits them.
BOUNDARIES = {"periodic": "circular", "wall": "symmetric", "open": "zeros"}


@dataclass(frozen=True)
class Field:
    """One stored quantity: a scalar has grade 0, a vector 1, a magnetic field (bivector) 2."""

    name: str
    grade: int
    units: str = ""


@dataclass(frozen=True)
class Background:
    """A known constant multivector that breaks a symmetry: gravity, a wall normal, a time step.

    Given to the model as an input channel it transforms with the data, and the map is equivariant
    again.
    """

    name: str
    grade: int
    components: tuple[float, ...]


def check_fields(
    owner: str,
    algebra: CliffordAlgebra,
    fields: Sequence[Field],
    backgrounds: Sequence[Background] = (),
) -> None:
    """Raise unless names differ, grades exist in the algebra and components are complete.

    Args:
        owner: what needs the fields, for the error message, e.g. ``"a header"``.
    """
    names = [f.name for f in fields]
    for name in (*names, *(b.name for b in backgrounds)):
        check_name(name)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"{owner} needs fields of different names, got {names}")
    grades = [(f.name, f.grade) for f in fields] + [(b.name, b.grade) for b in backgrounds]
    for name, grade in grades:
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
    if len(values) != dim:
        raise ValueError(f"{name} needs one value per axis, {dim} in all, got {values}")
