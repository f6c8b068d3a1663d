"""Physical quantities of forecasts and truth, by step.

A quantity is a density: a function of fields (batch, frames, *space, components) in physical units
that returns numbers (batch, frames, *space). What is reported is ⟨ ⟩, its mean over space; times
the volume of the grid it is the total. A new quantity is a function with a `quantity` above it.
Evaluations, tables and reports then have it.

Which data have it is told by a rule on their header. A number is called energy only where the rule
makes sure that it is one: by names and grades of fields, and by the generator of the data where
their units count. All quantities are invariant under translations, rotations and reflections of
space. Energies are those of the observer of the data, and change under boosts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from torch import Tensor

from cscnn._util.registry import Registry
from cscnn.calculus import Differences, curl
from cscnn.data import Header
from cscnn.data.simulators.charges import physical_field
from cscnn.data.simulators.elastodynamics import strain_of

Function = TypeVar("Function", bound=Callable[..., Tensor])
Names = Sequence[tuple[str, ...]]  #: for each time that data have a quantity, the fields it takes


@dataclass(frozen=True)
class Quantity:
    """A registered quantity.

    Attributes:
        function: (*fields, header) -> (batch, frames, *space).
        title: what reports call it; ``{0}`` is the first field.
        formula: of the mean over space.
        applies: header -> the names of the fields to give it, once for each time that it can be
            computed; empty if the data do not have it.
        units: ``{0}`` are those of the first field, ``{length}`` that of the grid.
    """

    function: Callable[..., Tensor]
    title: str
    formula: str
    applies: Callable[[Header], Names]
    units: str = ""


@dataclass(frozen=True)
class DataQuantity:
    """A quantity of some data.

    Attributes:
        name: of the function and its fields, e.g. ``"mean(smoke)"``.
        title, formula, units: for people; no units if those of the data are unknown.
        density: fields -> (batch, frames, *space).
    """

    name: str
    title: str
    formula: str
    units: str
    density: Callable[[dict[str, Tensor]], Tensor]


#: By name, filled by `quantity`.
QUANTITIES: Registry[Quantity] = Registry("quantity", source=lambda entry: entry.function)


def quantity(title: str, formula: str, **options: Any) -> Callable[[Function], Function]:
    """Decorator that registers a function under its name; arguments as of `Quantity`."""

    def add(function: Function) -> Function:
        QUANTITIES.add(function.__name__, Quantity(function, title, formula, **options))
        return function

    return add


def quantities_of(header: Header) -> Iterator[DataQuantity]:
    """All quantities that data have.

    Example:
        >>> from cscnn.data.simulators import create
        >>> header = create("navier_stokes").describe(seed=0, split="test")
        >>> [quantity.name for quantity in quantities_of(header)]
        ['kinetic_energy(velocity)', 'enstrophy(velocity)', 'mean(smoke)']
    """
    for name, entry in QUANTITIES.items():
        for fields in entry.applies(header):
            yield DataQuantity(
                f"{name}({', '.join(fields)})",
                entry.title.format(*fields),
                entry.formula.format(*fields),
                _units(entry, header, fields),
                partial(_density, entry.function, fields, header),
            )


def _density(
    function: Callable[..., Tensor], names: tuple[str, ...], header: Header, x: dict[str, Tensor]
) -> Tensor:
    return function(*(x[name] for name in names), header)


def _units(entry: Quantity, header: Header, names: tuple[str, ...]) -> str:
    """Empty unless all units in it are known, and for numbers without units."""
    known = {f.name: f.units for f in header.fields}
    units = [known[name] for name in names]
    length = header.units.get("length", "")
    complete = not {"", "1"} & {*units} and (length or "{length}" not in entry.units)
    return entry.units.format(*units, length=length) if complete else ""


# --- rules: which data have what ------------------------------------------------------------------


def _grades(header: Header) -> dict[str, int | str]:
    return {f.name: f.grade for f in header.fields}


def _is_space(header: Header) -> bool:
    return header.time_axis is None and len(set(header.metric)) == 1


def _velocity(header: Header) -> Names:
    """A vector field of space that is named velocity."""
    found = _is_space(header) and _grades(header).get("velocity") == 1
    return [("velocity",)] if found else []


def _resolved_velocity(header: Header) -> Names:
    """The same on a grid that is large enough for differences."""
    return _velocity(header) if header.grid and min(header.grid) >= 3 else []


def _light(header: Header) -> Names:
    """E and H in space, in a medium whose constants are known and the same everywhere."""
    fields = _grades(header)
    pair = (fields.get("electric"), fields.get("magnetic")) == (1, 2)
    known = {"permittivity", "permeability"} <= set(header.parameters)
    names = {*fields, *(given.name for given in header.given)}
    varies = "permittivity" in names or "permeability" in names
    found = _is_space(header) and len(header.metric) == 3 and pair and known and not varies
    return [("electric", "magnetic")] if found else []


def _charges(header: Header) -> Names:
    """The whole field of our charges; that of the plane has no E_z, so its energy is unknown."""
    return [("faraday",)] if header.generator == "maxwell_spacetime4d" else []


def _solitons(header: Header) -> Names:
    return [("cosine", "gradient")] if header.generator == "sine_gordon" else []


def _elastic(header: Header) -> Names:
    return [("velocity", "stress")] if header.generator == "elastodynamics" else []


def _polymers(header: Header) -> Names:
    return [("conformation",)] if header.generator == "viscoelastic" else []


def _scalars(header: Header) -> Names:
    return [(name,) for name, grade in _grades(header).items() if grade == 0]


def _others(header: Header) -> Names:
    """Fields with a direction, and tensors, of which no energy is known."""
    rules = (_velocity, _light, _charges, _solitons, _elastic, _polymers)
    taken = {name for rule in rules for names in rule(header) for name in names}
    return [(name,) for name, grade in _grades(header).items() if grade and name not in taken]


# --- quantities -----------------------------------------------------------------------------------


@quantity("kinetic energy per mass", "½⟨v²⟩", applies=_velocity, units="({0})²")
def kinetic_energy(velocity: Tensor, header: Header) -> Tensor:
    """½ v²: the kinetic energy divided by the mass, if the density is constant."""
    return _square(velocity) / 2


@quantity("enstrophy", "½⟨|∇∧v|²⟩", applies=_resolved_velocity, units="({0})²/{length}²")
def enstrophy(velocity: Tensor, header: Header) -> Tensor:
    """½ |∇∧v|², by differences of second order, one-sided at borders that are not periodic."""
    modes = tuple("circular" if b == "periodic" else "extrapolate" for b in header.boundary)
    scheme = Differences(header.spacing, boundary=modes)
    algebra = header.algebra.multivectors
    vorticity = curl(algebra.embed(velocity, 1), algebra, scheme)
    return _square(algebra.grade(vorticity, 2)) / 2


@quantity("electromagnetic energy density", "½⟨εE² + μH²⟩", applies=_light)
def electromagnetic_energy(electric: Tensor, magnetic: Tensor, header: Header) -> Tensor:
    """½ (ε E² + μ H²) with the relative constants of the medium, in units of E0² and H0²."""
    permittivity, permeability = (
        float(header.parameters[name]) for name in ("permittivity", "permeability")
    )
    return (permittivity * _square(electric) + permeability * _square(magnetic)) / 2


@quantity("electromagnetic energy density", "⟨E² + B²⟩/8π", applies=_charges)
def faraday_energy(faraday: Tensor, header: Header) -> Tensor:
    """(E² + B²)/8π in units with c = 1 and 4πε₀ = 1, for the observer of the data."""
    return _square(physical_field(faraday, header)) / (8 * math.pi)


@quantity("energy density", "⟨½(∂ₜφ)² + ½(∂ₓφ)² + 1 − cos φ⟩", applies=_solitons)
def soliton_energy(cosine: Tensor, gradient: Tensor, header: Header) -> Tensor:
    """Of the sine-Gordon equation, which conserves it, but for what crosses the open borders."""
    return _square(gradient) / 2 + 1 - cosine[..., 0]


@quantity("mechanical energy density", "½⟨ρv² + σ:ε⟩", applies=_elastic, units="{1}")
def elastic_energy(velocity: Tensor, stress: Tensor, header: Header) -> Tensor:
    """½ (ρ v² + σ:ε) of a linear solid, with the strain ε that its moduli give; conserved."""
    density = float(header.parameters["density"])
    return (density * _square(velocity) + (stress * strain_of(stress, header)).sum(-1)) / 2


@quantity("elastic energy of polymers per mass", "(ν_p/2τ)⟨tr C - 2⟩", applies=_polymers)
def polymer_energy(conformation: Tensor, header: Header) -> Tensor:
    """(ν_p/2τ)(tr C - 2): with the kinetic energy it only changes by the force and by friction."""
    viscosity, time = (float(header.parameters[n]) for n in ("polymer_viscosity", "relaxation"))
    return viscosity / (2 * time) * (conformation[..., 0] + conformation[..., 3] - 2)


@quantity("mean of {0}", "⟨{0}⟩", applies=_scalars, units="{0}")
def mean(scalar: Tensor, header: Header) -> Tensor:
    """The amount of a scalar, per volume."""
    return scalar[..., 0]


@quantity("mean square of {0}", "⟨|{0}|²⟩", applies=_others, units="({0})²")
def mean_square(field: Tensor, header: Header) -> Tensor:
    """Sum of the squares of the components: no energy, as nothing is known about units."""
    return _square(field)


def _square(x: Tensor) -> Tensor:
    """Sum of squares of components."""
    return x.square().sum(-1)
