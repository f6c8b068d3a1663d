"""Files of ParaView and other programs on VTK: XML with numbers in base64, and their times.

Written without the package vtk. A grid is an ImageData (.vti), points are a PolyData (.vtp); each
frame is a file, and a collection (.pvd) of each trajectory tells their times.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar
from xml.sax.saxutils import quoteattr

import numpy as np

from cscnn._util.files import write_text
from cscnn.algebra.clifford import SYMMETRIC
from cscnn.data.fields import matrix_names
from cscnn.data.files import Progress
from cscnn.data.header import Header
from cscnn.data.source import FieldSource, Trajectory
from cscnn.data.trajectories import as_matrices
from cscnn.data.writers.base import Writer, axial, frame_spacing

#: VTK's names of types.
TYPES = {"float32": "Float32", "float64": "Float64", "int64": "Int64"}


class VTK(Writer):
    """Files for ParaView in the folder OUT: open its .pvd files, one for each trajectory.

    Vectors of two or three dimensions are vectors there, and symmetric tensors are tensors of nine
    components. A bivector of space is its axial vector, and its name ends with ``_axial``. Other
    grades, and fields on spacetime, keep their components, with the names of the blades. What is
    static is in every frame; constants are field data.
    """

    name: ClassVar[str] = "vtk"

    def check(self, source: FieldSource) -> None:
        header = source.header
        dim = header.algebra.dim - (header.time_axis is not None)
        if not 1 <= dim <= 3:
            raise ValueError(f"VTK has one to three dimensions of space, got {dim}")

    def outputs(self, source: FieldSource, out: Path, numbers: Sequence[int]) -> list[Path]:
        width = len(str(max(source.indices[number] for number in numbers)))
        return [out / f"trajectory_{source.indices[number]:0{width}d}.pvd" for number in numbers]

    def write(
        self, source: FieldSource, paths: list[Path], numbers: Sequence[int], progress: Progress
    ) -> None:
        header = source.header
        suffix = "vti" if header.cloud is None else "vtp"
        width = len(str(header.frames - 1))
        for done, (path, number) in enumerate(zip(paths, numbers, strict=True)):
            progress("writing", done, len(numbers))
            folder = path.with_suffix("")
            folder.mkdir(exist_ok=True)
            step = frame_spacing(source, number)
            place = source.place(number)
            times = {}
            for frame in range(header.frames):
                arrays = source.read(number, frame, frame + 1)
                file = folder / f"frame_{frame:0{width}d}.{suffix}"
                write_text(file, frame_text(header, arrays, place))
                times[f"{folder.name}/{file.name}"] = header.start_time + frame * step
            write_text(path, _collection(times))
        progress("writing", len(numbers), len(numbers))


def frame_text(header: Header, arrays: Trajectory, place: Trajectory) -> str:
    """The file of one frame.

    Args:
        header: of the data.
        arrays: one frame of all quantities.
        place: positions of points, and weights if there are any; nothing on a grid.
    """
    data, constants = [], []
    for quantity in header.quantities:
        time, space = header.axes_of(quantity.name)
        values = arrays[quantity.name][0] if time else arrays[quantity.name]
        if space:
            data.append(_field(header, quantity.name, quantity.grade, values))
        else:
            components = header.components(quantity.grade)
            constants.append(_array(quantity.name, values[None], components))
    for background in header.backgrounds:
        values = np.array([background.components])
        constants.append(_array(background.name, values, header.components(background.grade)))
    if "weights" in place:
        data.append(_array("weights", place["weights"][:, None]))
    inside = [
        *(["<FieldData>", *constants, "</FieldData>"] if constants else []),
        *(_piece_of_grid(header, data) if not place else _piece_of_points(place, data)),
    ]
    if place:
        return _document("PolyData", "", inside)
    return _document("ImageData", _extent(header, whole=True), inside)


def _document(kind: str, attributes: str, inside: Sequence[str]) -> str:
    order = "LittleEndian" if sys.byteorder == "little" else "BigEndian"
    lines = [
        '<?xml version="1.0"?>',
        f'<VTKFile type="{kind}" version="1.0" byte_order="{order}" header_type="UInt64">',
        f"<{kind}{attributes}>",
        *inside,
        f"</{kind}>",
        "</VTKFile>",
    ]
    return "\n".join(lines) + "\n"


def _extent(header: Header, whole: bool) -> str:
    """Attributes of a grid, which always has three axes."""
    sizes = [*header.grid, 1, 1][:3]
    extent = " ".join(f"0 {size - 1}" for size in sizes)
    if not whole:
        return f' Extent="{extent}"'
    spacing = [*header.spacing[-len(header.grid) :], 1.0, 1.0][:3]
    steps = " ".join(repr(float(step)) for step in spacing)
    # points are centres of cells, so that means over cells lie amid the points that they join
    origin = [float(step) / 2 for step in spacing[: len(header.grid)]] + [0.0] * 3
    start = " ".join(map(repr, origin[:3]))
    return f' WholeExtent="{extent}" Origin="{start}" Spacing="{steps}"'


def _piece_of_grid(header: Header, data: Sequence[str]) -> Iterator[str]:
    yield f"<Piece{_extent(header, whole=False)}>"
    yield from ("<PointData>", *data, "</PointData>", "</Piece>")


def _piece_of_points(place: Trajectory, data: Sequence[str]) -> Iterator[str]:
    """Points, and a vertex at each, without which nothing is drawn."""
    count = len(place["positions"])
    yield f'<Piece NumberOfPoints="{count}" NumberOfVerts="{count}">'
    yield from ("<PointData>", *data, "</PointData>")
    yield from ("<Points>", _array("Points", _in_space(place["positions"])), "</Points>")
    numbers = np.arange(count, dtype=np.int64)[:, None]
    yield from ("<Verts>", _array("connectivity", numbers), _array("offsets", numbers + 1))
    yield from ("</Verts>", "</Piece>")


def _field(header: Header, name: str, grade: int | str, values: np.ndarray) -> str:
    """A field as VTK knows it: a value, a vector, a tensor, or components by name."""
    flat = _flat(values)
    if header.time_axis is None and header.algebra.dim in (2, 3):
        if grade == 1:
            return _array(name, _in_space(flat))
        if grade == 2 and header.algebra.dim == 3:
            return _array(f"{name}_axial", axial(flat))
        if grade == SYMMETRIC:
            rows = _in_space(as_matrices(flat))
            tensors = _in_space(rows.swapaxes(1, 2)).reshape(-1, 9)
            return _array(name, tensors, matrix_names("xyz"))
    return _array(name, flat, header.components(grade))


def _flat(values: np.ndarray) -> np.ndarray:
    """(*grid, components) -> (points, components), the first axis of the grid fastest."""
    axes = [*reversed(range(values.ndim - 1)), values.ndim - 1]
    return values.transpose(axes).reshape(-1, values.shape[-1])


def _in_space(vectors: np.ndarray) -> np.ndarray:
    """Vectors with zeros for the axes that are missing: (..., d) -> (..., 3)."""
    missing = ((0, 0),) * (vectors.ndim - 1) + ((0, 3 - vectors.shape[-1]),)
    return np.pad(vectors, missing)


def _array(name: str, values: np.ndarray, components: Sequence[str] = ()) -> str:
    """Numbers (tuples, components) in base64, after the number of their bytes."""
    content = np.ascontiguousarray(values)
    size = np.array([content.nbytes], np.uint64)
    text = base64.b64encode(size.tobytes() + content.tobytes()).decode()
    names = "".join(
        f" ComponentName{i}={quoteattr(blade)}"
        for i, blade in enumerate(components)
        if len(components) > 1
    )
    return (
        f'<DataArray type="{TYPES[str(content.dtype)]}" Name={quoteattr(name)} '
        f'NumberOfComponents="{content.shape[-1]}" NumberOfTuples="{len(content)}"{names} '
        f'format="binary">{text}</DataArray>'
    )


def _collection(times: dict[str, float]) -> str:
    """Files of frames and their times."""
    lines = [
        f'<DataSet timestep="{time!r}" part="0" file={quoteattr(file)}/>'
        for file, time in times.items()
    ]
    return _document("Collection", "", lines)
