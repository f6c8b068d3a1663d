"""Writing trajectories for other tools: The Well, ParaView, xarray.

A format is a file of this folder with a `Writer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cscnn._util.files import check_folder, check_output
from cscnn._util.modules import named_classes
from cscnn.data.files import Progress, silent
from cscnn.data.source import FieldSource
from cscnn.data.writers.base import Writer


def formats() -> dict[str, type[Writer]]:
    """The formats by name."""
    return named_classes(__name__, Writer)  # type: ignore[type-abstract]


def export(
    source: FieldSource,
    out: str | Path,
    format: str,
    *,
    trajectories: Sequence[int] | None = None,
    overwrite: bool = False,
    progress: Progress = silent,
) -> list[Path]:
    """Write trajectories in the format of another tool.

    Args:
        source: open files.
        out: the folder or file to write, see the format.
        format: ``the_well``, ``vtk`` or ``netcdf``.
        trajectories: places in the source; by default all.
        overwrite: replace files that exist, which are an error otherwise.
        progress: called with what is done, and how many trajectories of how many.

    Returns:
        The files to open with the other tool.

    Example::

        export(open_fields("data/test.h5"), "paraview", "vtk")
    """
    known = formats()
    if format not in known:
        told = (f"{name} ({_first_line(writer)})" for name, writer in known.items())
        raise ValueError(f"format must be one of {', '.join(told)}, got {format!r}")
    writer = known[format]()
    numbers = list(range(len(source)) if trajectories is None else trajectories)
    for number in numbers:
        if not 0 <= number < len(source):
            raise IndexError(f"{source.path} has {len(source)} trajectories, got {number}")
    if not numbers:
        raise ValueError(f"there are no trajectories to export from {source.path}")
    writer.check(source)
    paths = writer.outputs(source, Path(out), numbers)
    inputs = [file.path for file in source.files]
    for folder in sorted({path.parent for path in paths}):
        check_folder(folder, "for the files of the export", create=True)
        folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        check_output(path, inputs=inputs, overwrite=overwrite)
    writer.write(source, paths, numbers, progress)
    return paths


def _first_line(writer: type[Writer]) -> str:
    """What a format is, in the middle of a sentence."""
    line = (writer.__doc__ or "").partition("\n")[0].rstrip(".")
    return line[:1].lower() + line[1:]


__all__ = ["Writer", "export", "formats"]
