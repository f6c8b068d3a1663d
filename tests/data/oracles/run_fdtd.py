"""Plane sources by fdtd: argv = sources (json), cells, steps, result (npz)."""

import json
import sys
from pathlib import Path

import fdtd
import numpy as np

fdtd.set_backend("numpy")
cells = int(sys.argv[2])
grid = fdtd.Grid((cells,) * 3, grid_spacing=5e-7, permittivity=10.0, permeability=1.0)
grid[0, :, :] = fdtd.PeriodicBoundary(name="x_border")
grid[:, 0, :] = fdtd.PeriodicBoundary(name="y_border")
grid[:, :, 0] = fdtd.PeriodicBoundary(name="z_border")
for number, s in enumerate(json.loads(Path(sys.argv[1]).read_text())):
    where = tuple(
        slice(a, b) if b - a > 1 else a for a, b in zip(s["start"], s["stop"], strict=True)
    )
    source = fdtd.PlaneSource(
        period=s["period"],
        amplitude=s["amplitude"],
        phase_shift=s["phase"],
        polarization="xyz"[s["electric"]],
        name=f"source{number}",
    )
    grid[where] = source
    assert source._Hpol == s["magnetic"], "fdtd places H on another axis"
grid.run(int(sys.argv[3]), progress_bar=False)
np.savez(sys.argv[4], electric=np.moveaxis(grid.E, -1, 0), magnetic=np.moveaxis(grid.H, -1, 0))
