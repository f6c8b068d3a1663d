"""netCDF, which xarray writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from cscnn._util.files import replacing
from cscnn._util.optional import require
from cscnn.data.files import Progress
from cscnn.data.source import FieldSource
from cscnn.data.writers.base import Writer


class NetCDF(Writer):
    """A netCDF file OUT, as xarray writes it."""

    name: ClassVar[str] = "netcdf"

    def outputs(self, source: FieldSource, out: Path, numbers: Sequence[int]) -> list[Path]:
        return [out]

    def write(
        self, source: FieldSource, paths: list[Path], numbers: Sequence[int], progress: Progress
    ) -> None:
        require("h5netcdf", "netCDF", "xarray")
        progress(paths[0].name, 0, len(numbers))
        data = source.to_xarray(numbers)
        with replacing(paths[0]) as temporary:
            data.to_netcdf(temporary, engine="h5netcdf")
        progress(paths[0].name, len(numbers), len(numbers))
