"""Writers of small files in the layouts of PDEArena and The Well."""

import h5py
import numpy as np

AXES = {2: (5, 4), 3: (5, 4, 3)}  #: points along the axes of `well_file`
NAMES = [
    "density",
    "mask",
    "profile",
    "forcing",
    "velocity",
    "rotation",
]  #: its multivectors


def smoke_file(path, u, vx, vy, *, size=32.0, dt=6.0, buoyancy=0.5, split="train"):
    """A file as PDEArena writes it; vx (n, t, x + 1, y) and vy (n, t, x, y + 1) with all faces."""
    n, nt, nx, ny = u.shape
    data = {
        "u": u,
        "vx": vx[:, :, :-1],
        "vy": vy[..., :-1],
        "t": np.tile(np.linspace(18.0, 102.0, nt), (n, 1)),
        "dt": np.full(n, dt),
        "x": np.tile(np.linspace(0, size, nx), (n, 1)),
        "dx": np.full(n, size / (nx - 1)),
        "y": np.tile(np.linspace(0, size, ny), (n, 1)),
        "dy": np.full(n, size / (ny - 1)),
        "buo_y": np.broadcast_to(buoyancy, n),
    }
    with h5py.File(path, "a") as file:
        group = file.create_group(split)
        for name, values in data.items():
            group.create_dataset(name, values.shape, dtype=float)[:] = values
    return path


def random_flow(n=2, nt=4, nx=6, ny=6, seed=0):
    """Smoke, and a flow without divergence through all faces, from a random stream function."""
    rng = np.random.default_rng(seed)
    psi = np.zeros((n, nt, nx + 1, ny + 1))
    psi[:, :, 1:-1, 1:-1] = rng.standard_normal((n, nt, nx - 1, ny - 1))
    return rng.random((n, nt, nx, ny)), np.diff(psi, axis=3), -np.diff(psi, axis=2)


def maxwell_file(path, d, h, split="valid"):
    with h5py.File(path, "a") as file:
        group = file.create_group(split)
        for name, values in (("d_field", d), ("h_field", h)):
            group.create_dataset(name, values.shape, dtype=float)[:] = values
    return path


def change(path, action):
    """Do something to a file and return its path."""
    with h5py.File(path, "a") as file:
        action(file)
    return path


def replace(path, name, values):
    def action(file):
        attributes = dict(file[name].attrs)
        del file[name]
        file[name] = values
        file[name].attrs.update(attributes)

    return change(path, action)


def well_file(path, dim=2, boundaries=("periodic", "wall", "open"), n=2, nt=6):
    """A file as the format of The Well prescribes, with every way to leave out an axis."""
    rng = np.random.default_rng(0)
    names, grid = "xyz"[:dim], AXES[dim]

    def add(group, name, order, sample=True, time=True, dims=None, **attributes):
        dims = [True] * dim if dims is None else dims
        shape = (n,) * sample + (nt,) * time
        shape += tuple(s for s, varies in zip(grid, dims, strict=True) if varies)
        values = rng.standard_normal(shape + (dim,) * order).astype(np.float32)
        if order == 2:
            sign = attributes.get("symmetric", 0) - attributes.get("antisymmetric", 0)
            values = values + np.float32(sign) * values.swapaxes(-1, -2)
        found = group.create_dataset(name, data=values)
        found.attrs.update(dim_varying=dims, sample_varying=sample, time_varying=time)
        found.attrs.update(attributes)

    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file.attrs.update(dataset_name="swirl", grid_type="cartesian", n_spatial_dims=dim)
        file.attrs.update(n_trajectories=n, simulation_parameters=["Re"], Re=100.0)
        dimensions = file.create_group("dimensions")
        dimensions.attrs["spatial_dims"] = list(names)
        dimensions["time"] = np.linspace(0, 1, nt, dtype=np.float32)
        dimensions["time"].attrs["sample_varying"] = False
        for number, (name, size) in enumerate(zip(names, grid, strict=True)):
            dimensions[name] = np.float32(0.1) * np.arange(size, dtype=np.float32) + number
            dimensions[name].attrs.update(sample_varying=False, time_varying=False)
        conditions = file.create_group("boundary_conditions")
        for name, size, kind in zip(names, grid, boundaries, strict=False):
            group = conditions.create_group(f"{name}_{kind}")
            group.attrs.update(associated_dims=[name], associated_fields=[], bc_type=kind.upper())
            group.attrs.update(sample_varying=False, time_varying=False)
            group["mask"] = np.isin(np.arange(size), (0, size - 1))
        scalars = file.create_group("scalars")
        scalars.attrs["field_names"] = ["Re"]
        scalars["Re"] = np.float32(100)
        scalars["Re"].attrs.update(sample_varying=False, time_varying=False)
        groups = [file.create_group(f"t{order}_fields") for order in range(3)]
        groups[0].attrs["field_names"] = ["density", "mask", "profile", "forcing"]
        add(groups[0], "density", 0)
        add(groups[0], "mask", 0, sample=False, time=False)
        add(groups[0], "profile", 0, time=False, dims=[False, *[True] * (dim - 1)])
        add(groups[0], "forcing", 0, sample=False, dims=[True, *[False] * (dim - 1)])
        groups[1].attrs["field_names"] = ["velocity"]
        add(groups[1], "velocity", 1)
        groups[2].attrs["field_names"] = ["rotation", "strain"]
        add(groups[2], "rotation", 2, antisymmetric=True, symmetric=False)
        add(groups[2], "strain", 2, antisymmetric=False, symmetric=True)
    return path
