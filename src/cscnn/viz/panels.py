"""What pictures of fields show: planes of numbers, cut from trajectories of any dimension."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cscnn.algebra.clifford import SYMMETRIC
from cscnn.data import Field, Header, Source
from cscnn.data.trajectories import as_matrices

MAPS = {"signed": "RdBu_r", "positive": "viridis", "error": "PuOr_r"}  #: of colours
#: of the largest number: a scalar that goes no further below 0 counts as positive
NEGLIGIBLE = 0.05
PREFIXES = {0: "", -3: "m", -6: "µ", -9: "n", -12: "p", -15: "f", -18: "a"}


@dataclass(frozen=True)
class Panel:
    """One quantity in a plane, by frame.

    Attributes:
        label: its name, with units.
        image: (frames, x, y), or (frames, x) on a line.
        arrows: (frames, x, y, 2), or None. Then the image is their length in space.
        limits: smallest and largest colour; symmetric about 0 for components, and for a scalar
            with negative numbers that matter.
        extend: which end of the colours stands for larger numbers, as in matplotlib's colour bars.
        error: whether it is the difference of two fields, which has colours of its own.
        heads: whether arrows point; else they are axes, without heads.
    """

    label: str
    image: np.ndarray
    arrows: np.ndarray | None
    limits: tuple[float, float]
    extend: str
    error: bool = False
    heads: bool = True

    @property
    def signed(self) -> bool:
        """Whether colours need two directions."""
        return self.limits[0] < 0

    @property
    def colours(self) -> str:
        """The name of the colour map."""
        if self.error:
            return MAPS["error"] if self.signed else "Purples"
        return MAPS["signed" if self.signed else "positive"]


def panels(
    source: Source, trajectory: int, frames: Iterable[int], fields: Sequence[Field]
) -> list[Panel]:
    """The panels of fields: one for a scalar or a vector, else one for each component.

    A vector of space is its length and arrows, except on a line. A symmetric tensor is its trace,
    and the size of its traceless part with principal axes. Of three axes of space the last is cut
    in the middle. Frames are read one at a time.
    """
    planes: dict[str, list[np.ndarray]] = {field.name: [] for field in fields}
    for frame in frames:
        stored = source.read(trajectory, frame, frame + 1)
        for name, stack in planes.items():
            stack.append(plane(stored[name][0]))
    return [p for f in fields for p in split(source.header, f, np.stack(planes[f.name]))]


def plane(values: np.ndarray) -> np.ndarray:
    """The middle plane (x, y, components) of a frame (*space, components), or all of a line."""
    values = np.asarray(values, np.float64)
    while values.ndim > 3:
        values = values[:, :, values.shape[2] // 2]
    return values


def split(header: Header, field: Field, values: np.ndarray) -> Iterator[Panel]:
    """The panels of a field (frames, *plane, components)."""
    units = "" if field.units in ("", "1") else f"\n[{field.units}]"
    if header.time_axis is None and len(header.grid) > 1:
        if field.grade == 1:
            length = np.linalg.norm(values, axis=-1)
            limits = colour_limits(length, False)
            yield Panel(f"|{field.name}|{units}", length, values[..., :2], *limits)
            return
        if field.grade == SYMMETRIC:
            yield from _tensor_panels(field.name, units, as_matrices(values))
            return
    for i, component in enumerate(header.components(field.grade)):
        label = component if isinstance(field.grade, str) else blade_label(header, component)
        image = values[..., i]
        signed = field.grade != 0 or has_negative(image)
        name = f"{field.name} {label}" if field.grade else field.name
        yield Panel(name + units, image, None, *colour_limits(image, signed))


def _tensor_panels(name: str, units: str, tensors: np.ndarray) -> Iterator[Panel]:
    """The trace, and the size of the traceless part with the principal axis of largest value.

    Args:
        name, units: of the field.
        tensors: (frames, *plane, dim, dim) of space.
    """
    trace = np.trace(tensors, axis1=-2, axis2=-1)
    limits = colour_limits(trace, has_negative(trace))
    yield Panel(f"tr {name}{units}", trace, None, *limits)
    dim = tensors.shape[-1]
    traceless = tensors - trace[..., None, None] / dim * np.eye(dim)
    size = np.linalg.norm(traceless, axis=(-2, -1))
    _, axes = np.linalg.eigh(np.where(np.isfinite(size)[..., None, None], traceless, 0.0))
    lines = size[..., None] * axes[..., :2, -1]  # the last has the largest value
    limits = colour_limits(size, False)
    yield Panel(f"|traceless {name}|{units}", size, lines, *limits, heads=False)


def blade_label(header: Header, blade: str) -> str:
    """A blade and its axes, e.g. ``e12 = t∧x``."""
    return f"{blade} = {'∧'.join(header.axes[int(i) - 1] for i in blade[1:])}"


def has_negative(image: np.ndarray) -> bool:
    """Whether a scalar needs colours of two directions.

    Forecasts of a density are a little below zero where there is none: these few per cent do not
    halve the colours of the rest.
    """
    finite = image[np.isfinite(image)]
    top = max(float(finite.max(initial=0.0)), 0.0)
    return bool(finite.min(initial=0.0) < -NEGLIGIBLE * top)


def colour_limits(image: np.ndarray, signed: bool) -> tuple[tuple[float, float], str]:
    """Colours for all but the few largest numbers, which would hide the rest."""
    values = image[np.isfinite(image)]
    sizes = np.abs(values) if signed else values.clip(min=0)
    largest = float(sizes.max(initial=0.0))
    if largest == 0:
        return (-1.0 if signed else 0.0, 1.0), "neither"
    usual = float(np.quantile(sizes, 0.99))
    clipped = largest > 1.5 * usual > 0
    top = usual if clipped else largest
    if signed:
        return (-top, top), "both" if clipped else "neither"
    low = float(sizes.min())
    return (low if 0.25 * top < low < top else 0.0, top), "max" if clipped else "neither"


def relative_size(error: np.ndarray, target: np.ndarray) -> float | None:
    """Size of the error / size of the target; None if that is no number."""
    size = float(np.linalg.norm(target))
    with np.errstate(all="ignore"):  # forecasts may have blown up
        ratio = float(np.linalg.norm(error)) / size if size else np.nan
    return ratio if np.isfinite(ratio) else None


def cut(header: Header) -> str:
    """Which plane is shown, e.g. ``z = 8.25 µm``; nothing if it is all there is."""
    space = header.axes[-len(header.grid) :]
    names = []
    for i in range(2, len(header.grid)):
        size, spacing = header.grid[i], header.spacing[len(header.axes) - len(header.grid) + i]
        factor, unit = scale(size * spacing, header.units.get("length", ""))
        names.append(
            f"{space[i]} = {(size // 2 + 0.5) * spacing * factor:.4g}{unit and ' ' + unit}"
        )
    return ", ".join(names)


def time_label(header: Header, frame: int) -> str:
    """When a frame is, e.g. ``t = 12 s``."""
    axis = header.time_axis
    step = header.frame_spacing if axis is None else header.spacing[axis]
    before = header.start_time / header.frame_spacing  # frames, as a spacetime counts in lengths
    factor, unit = scale((abs(before) + header.frames) * step, header.time_unit)
    return f"t = {(before + frame) * step * factor:.4g}{unit and ' ' + unit}"


def scale(largest: float, unit: str) -> tuple[float, str]:
    """The factor and the unit in which metres or seconds up to the largest read well."""
    if unit in ("", "1"):
        return 1.0, ""
    if unit not in ("m", "s"):
        return 1.0, unit
    power = int(np.clip(3 * np.floor(np.log10(largest) / 3), min(PREFIXES), 0))
    return 10.0**-power, PREFIXES[power] + unit


def with_unit(name: str, unit: str) -> str:
    """The label of an axis."""
    return f"{name} [{unit}]" if unit else name


def describe(header: Header, trajectory: int) -> str:
    """A title: data, split, trajectory and plane."""
    parts = [header.generator or "data", f"{header.split} trajectory {trajectory}".strip()]
    if position := cut(header):
        parts.append(f"plane {position}")
    return ", ".join(parts)


def frame_title(header: Header, trajectory: int, frame: int) -> str:
    """A title of one frame of a film."""
    return f"{describe(header, trajectory)}, {time_label(header, frame)}"
