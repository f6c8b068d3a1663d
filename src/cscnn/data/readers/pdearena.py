"""Files of PDEArena: smoke in a box (Navier-Stokes 2D) and electromagnetic waves (Maxwell 3D).

Both solvers keep the components of a vector at different points of a cell. A rotation of the grid
does not map such points to each other, so by default components are averaged to cell centres.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cscnn.data.fields import FRAME_SPACING, Background, Given
from cscnn.data.readers.checks import (
    SPLITS,
    by_trajectory,
    check_finite,
    check_shape,
    constant,
    dataset,
)
from cscnn.data.simulators.maxwell3d import Maxwell3D
from cscnn.data.simulators.navier_stokes import NavierStokes
from cscnn.data.source import HDF5Source, Trajectory


class PDEArenaFile(HDF5Source):
    """What the files of PDEArena share: one group, named like the split, of contiguous datasets.

    Args:
        path: the file.
        centre: average all components to cell centres, or return the numbers as they are stored.
    """

    names: tuple[str, ...]  #: datasets of fields

    def __init__(self, path: str | Path, *, centre: bool = True):
        self.centre = centre
        super().__init__(path)

    def _describe(self, file: Any) -> None:
        groups = [name for name in SPLITS if name in file]
        if len(groups) != 1:
            raise ValueError(f"expected one group of {', '.join(SPLITS)}, got {groups or 'none'}")
        self.split: str = groups[0]
        group = file[self.split]
        first = dataset(group, self.names[0])
        for name in self.names:
            check_shape(dataset(group, name), first.shape)
        if 0 in first.shape:
            raise ValueError(f"dataset {first.name} is empty: its shape is {first.shape}")
        self._length = int(first.shape[0])
        self.dtype = str(np.result_type(np.float32, *(group[name].dtype for name in self.names)))

    def __len__(self) -> int:
        return self._length

    def _stored(self, name: str, number: int, start: int, stop: int) -> np.ndarray:
        """Frames of a dataset, which are neighbours on the disk: nothing else is read."""
        array = self._load(f"{self.split}/{name}", number, np.s_[number, start:stop], name)
        check_finite(self.path, name, number, start, array)
        return array.astype(self.dtype, copy=False)


class NavierStokesFile(PDEArenaFile):
    """Smoke and velocity in a closed box.

    Datasets u, vx, vy (trajectory, time, x, y) become the fields smoke (grade 0) and velocity
    (grade 1). vx[i, j] is stored at (i h, (j + 1/2) h) and vy[i, j] at ((i + 1/2) h, j h), on the
    faces of cell (i, j), whose smoke is in its middle. The mean of opposite faces is the velocity
    in the middle; the faces on the upper walls are not stored, but velocity is zero there.

    If buo_y or dt differ between trajectories, buoyancy (grade 1) or frame_spacing (grade 0) are
    given constants; the header has the mean of dt. Otherwise buoyancy is a background.
    """

    names = ("u", "vx", "vy")

    def _describe(self, file: Any) -> None:
        super()._describe(file)
        group = file[self.split]
        shape = group["u"].shape
        if len(shape) != 4:
            raise ValueError(f"dataset {group['u'].name} must have 4 axes, got shape {shape}")
        grid = shape[2:]
        for name in ("dt", "dx", "dy", "buo_y"):
            check_shape(dataset(group, name), shape[:1])
        # The box has n cells, but PDEArena writes dx = L / (n - 1), and t in the same way.
        spacing = tuple(
            constant(group[name], "a kernel needs one spacing; split the file by this value")
            * (n - 1)
            / n
            for name, n in zip(("dx", "dy"), grid, strict=True)
        )
        steps, buoyancy = by_trajectory(group["dt"]), by_trajectory(group["buo_y"])
        if steps.min() <= 0:
            raise ValueError(f"dataset {group['dt'].name} must be positive, got {steps.min()}")
        known = {
            "buoyancy": np.stack([0 * buoyancy, buoyancy], -1),
            FRAME_SPACING: steps[:, None],
        }
        #: constants that differ between trajectories, (trajectories, components)
        self._constants = {n: values for n, values in known.items() if (values != values[0]).any()}
        given = (Given("buoyancy", 1, "constant"), Given(FRAME_SPACING, 0, "constant", "s"))
        background = Background("buoyancy", 1, (0.0, float(buoyancy[0])))
        if self.centre:
            self._check_walls(group)
            note = "velocity is the mean of opposite faces of a cell"
        else:
            note = ""
            self.staggering = (
                "the x component of velocity is half a cell before the smoke along x, the y "
                "component half a cell before it along y"
            )
        self.header = (
            NavierStokes()
            .header()
            .replace(
                spacing=spacing,
                frames=shape[1],
                grid=grid,
                frame_spacing=float(steps.mean() if FRAME_SPACING in self._constants else steps[0]),
                backgrounds=() if "buoyancy" in self._constants else (background,),
                given=tuple(g for g in given if g.name in self._constants),
                generator="pdearena_navier_stokes",
                parameters={"centring": note},
                split=self.split,
            )
        )

    def _check_walls(self, group: Any) -> None:
        """Raise if the first faces, which are walls, have a velocity: then they are no faces."""
        for axis, name in enumerate(self.names[1:]):
            wall = group[name][0, -1].take(0, axis)
            if wall.any():
                raise ValueError(
                    f"dataset {group[name].name} must be 0 at index 0 of axis {'xy'[axis]}, which "
                    f"is a wall, got up to {np.abs(wall).max()}: its points are not the faces of "
                    "cells, as PDEArena writes them; centre=False reads the numbers as they are"
                )

    def _load_frames(self, number: int, start: int, stop: int) -> Trajectory:
        smoke, *velocity = (self._stored(name, number, start, stop) for name in self.names)
        if self.centre:
            velocity = [_between_walls(v, axis) for axis, v in enumerate(velocity, 1)]
        constants = {name: values[number] for name, values in self._constants.items()}
        return {"smoke": smoke[..., None], "velocity": np.stack(velocity, -1), **constants}


class MaxwellFile(PDEArenaFile):
    """Electric and magnetic fields in the middle of a larger box.

    Datasets d_field and h_field (trajectory, time, x, y, z, 3) become the fields electric (grade
    1; despite its name d_field is E in normalised units) and magnetic (grade 2, the components
    H_z, -H_y, H_x). E_x is stored at (i + 1/2, j, k), H_x at (i, j + 1/2, k + 1/2), and so on
    cyclically. Means of neighbours are the fields in the middle of the cells between the points:
    one cell less than points along each axis, because neighbours beyond the edge are not stored.

    The file states neither cell size nor time step; the header has those of PDEArena's
    configuration of this data set.
    """

    names = ("d_field", "h_field")

    def _describe(self, file: Any) -> None:
        super()._describe(file)
        shape = file[self.split]["d_field"].shape
        points = shape[2:-1]
        if len(points) != 3 or shape[-1] != 3 or min(points) < 1 + self.centre:
            raise ValueError(
                f"dataset /{self.split}/d_field must be (trajectories, frames, x, y, z, 3), got "
                f"shape {shape}"
            )
        own = Maxwell3D()
        times = f"the magnetic field is half a solver step, 1/{2 * own.every} of a frame, later"
        if self.centre:
            note = "components are means of neighbours, at cell centres"
            self.staggering = f"{times} than the electric field"
        else:
            note = ""
            self.staggering = (
                "Yee grid: E_x is at (i + 1/2, j, k), H_x at (i, j + 1/2, k + 1/2), and so on "
                f"cyclically; {times} than the electric field"
            )
        self.header = own.header().replace(
            frames=shape[1],
            grid=tuple(n - self.centre for n in points),
            generator="pdearena_maxwell3d",
            parameters={"centring": note},
            split=self.split,
        )

    def _load_frames(self, number: int, start: int, stop: int) -> Trajectory:
        electric, magnetic = (self._stored(name, number, start, stop) for name in self.names)
        if self.centre:
            electric = _yee_centres(electric, edges=True)
            magnetic = _yee_centres(magnetic, edges=False)
        bivector = np.stack([magnetic[..., 2], -magnetic[..., 1], magnetic[..., 0]], -1)
        return {"electric": electric, "magnetic": bivector}


def _between_walls(faces: np.ndarray, axis: int) -> np.ndarray:
    """Means of each face and the next along an axis; the last is the wall, where nothing moves."""
    x = np.moveaxis(faces, axis, 0)
    return np.moveaxis((x + np.concatenate([x[1:], np.zeros_like(x[:1])])) / 2, 0, axis)


def _yee_centres(x: np.ndarray, *, edges: bool) -> np.ndarray:
    """Components (frames, x, y, z, 3) on edges or faces of cells, at the centres of the cells."""
    components = []
    for own in range(3):
        part = np.moveaxis(x[..., own], 0, -1)
        for axis in range(3):
            ahead, here = np.swapaxes(part, 0, axis)[1:], np.swapaxes(part, 0, axis)[:-1]
            part = np.swapaxes((here + ahead) / 2 if (axis != own) == edges else here, 0, axis)
        components.append(np.moveaxis(part, -1, 0))
    return np.stack(components, -1)
