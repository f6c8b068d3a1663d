"""Simulators beside the packages that made the published data, and reading of windows."""

from __future__ import annotations

import importlib.util
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.registry import Case, Work, benchmark
from cscnn.data import FieldFile, Header
from cscnn.data.files import write
from cscnn.data.simulators import (
    Maxwell3D,
    MaxwellSpacetime,
    MaxwellSpacetime4D,
    NavierStokes,
    Simulator,
)
from cscnn.data.simulators.lienard_wiechert import Charges, faraday
from cscnn.data.simulators.maxwell3d import YeeGrid
from cscnn.forecasting import Windows

#: (simulator, longest time of one trajectory at the paper's size on one thread, in seconds)
TRAJECTORIES: tuple[tuple[str, Simulator, float | None], ...] = (
    ("navier_stokes", NavierStokes(), 0.25),
    ("maxwell3d", Maxwell3D(), 4.0),
    ("maxwell3d, float32", Maxwell3D(dtype="float32"), 2.0),
    ("maxwell_spacetime", MaxwellSpacetime(), 5.0),
    ("maxwell_spacetime4d", MaxwellSpacetime4D(), None),
)


def _one_thread(function: Callable[[], Sequence[Tensor]]) -> Work:
    """The same work on one thread."""

    def work() -> Sequence[Tensor]:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return function()
        finally:
            torch.set_num_threads(threads)

    return work


@benchmark(
    "trajectory",
    "One trajectory at the paper's size, on one thread",
    "These are times to plan with; nothing is compared, so all ratios are 1.",
)
def trajectories() -> Iterator[Case]:
    for label, simulator, limit in TRAJECTORIES:

        def simulate(simulator: Simulator = simulator) -> Sequence[Tensor]:
            rows = simulator.simulate([np.random.default_rng(0)])
            return [row for trajectories in rows.values() for row in trajectories]

        yield Case(label, {"cscnn": _one_thread(simulate)}, reference="cscnn", seconds=limit)


@benchmark(
    "simulator",
    "Simulators beside the packages of the published data, on one thread",
    "Ratios are relative to the package that made the published data, for the same equations.",
    packages=("phi", "fdtd", "pycharge"),
)
def simulators() -> Iterator[Case]:
    builders = {"phi": _phiflow, "fdtd": _fdtd, "pycharge": _pycharge}
    for package, build in builders.items():
        if importlib.util.find_spec(package) is not None:
            yield build()


def _phiflow() -> Case:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from phi import flow

    steps = 2
    simulator = NavierStokes()
    start = simulator.noise(np.random.default_rng(0))
    box = flow.Box(x=32, y=32)

    def ours() -> Sequence[Tensor]:
        smoke = torch.as_tensor(start)[None]
        state = simulator.at_rest(smoke)
        for _ in range(steps):
            smoke, state = simulator.step(smoke, state)
        return [smoke]

    def theirs() -> Sequence[Tensor]:
        math, zero = flow.math, flow.extrapolation.ZERO
        with math.precision(64), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = math.tensor(start, math.spatial("x,y"))
            smoke = flow.CenteredGrid(values, flow.extrapolation.BOUNDARY, bounds=box)
            velocity = flow.StaggeredGrid(0, zero, x=128, y=128, bounds=box)
            for _ in range(steps):
                smoke = flow.advect.semi_lagrangian(smoke, velocity, 1.5)
                force = flow.resample(smoke * (0, 0.5), to=velocity)
                velocity = flow.advect.semi_lagrangian(velocity, velocity, 1.5) + 1.5 * force
                velocity = flow.diffuse.explicit(velocity, 0.01, 1.5)
                velocity, _ = flow.fluid.make_incompressible(velocity)
            return [torch.as_tensor(np.array(smoke.values.numpy("x,y")))]

    return Case(
        f"smoke 128², {steps} steps",
        {"cscnn": _one_thread(ours), "PhiFlow": _one_thread(theirs)},
        reference="PhiFlow",
        speedup=200,
    )


def _fdtd() -> Case:
    gradients, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    import fdtd  # turns gradients off and the default dtype to float64

    torch.set_grad_enabled(gradients)
    torch.set_default_dtype(dtype)
    steps = 10
    fdtd.set_backend("numpy")
    box = Maxwell3D()
    sources = box.draw(np.random.default_rng(0))
    grid = fdtd.Grid((64,) * 3, grid_spacing=5e-7, permittivity=10.0, permeability=1.0)
    grid[0, :, :] = fdtd.PeriodicBoundary(name="x_border")
    grid[:, 0, :] = fdtd.PeriodicBoundary(name="y_border")
    grid[:, :, 0] = fdtd.PeriodicBoundary(name="z_border")
    for number, s in enumerate(sources):
        place = tuple(slice(a, b) if b - a > 1 else a for a, b in zip(s.start, s.stop, strict=True))
        grid[place] = fdtd.PlaneSource(
            period=s.period, amplitude=s.amplitude, phase_shift=s.phase, name=f"source{number}",
            polarization="xyz"[s.electric],
        )  # fmt: skip
    yee = YeeGrid(box, sources)

    def ours() -> Sequence[Tensor]:
        yee.run(steps)
        return [yee.electric]

    def theirs() -> Sequence[Tensor]:
        grid.run(steps, progress_bar=False)
        return [torch.as_tensor(np.asarray(grid.E))]

    return Case(
        f"light 64³, {steps} steps",
        {"cscnn": _one_thread(ours), "fdtd": _one_thread(theirs)},
        reference="fdtd",
        speedup=3,
    )


def _pycharge() -> Case:
    import jax
    import jax.numpy as jnp
    import pycharge
    from scipy.constants import c

    simulator = MaxwellSpacetime()
    charges = simulator.draw(np.random.default_rng(0))
    axis = torch.arange(128, dtype=torch.float64) - 63.5
    space = torch.cartesian_prod(axis, axis)
    slices = [torch.cat([torch.full_like(space[:, :1], t), space], 1) for t in range(4)]

    def ours() -> Sequence[Tensor]:
        now: Tensor | None = None
        before: Tensor | None = None
        fields = []
        for points in slices:
            guess = now if now is None or before is None else 2 * now - before
            field, parameters = faraday(charges, points, simulator.height, guess)
            fields.append(field)
            now, before = parameters, now
        return [torch.cat(fields)]

    def position(n: int, part: Charges = charges) -> Callable[[Any], Any]:
        o, v, a, b = (t[n, 1:].numpy() for t in (part.origin, part.drift, part.cosine, part.sine))
        w = float(part.frequency[n])

        def path(t: Any) -> tuple[Any, Any, float]:
            s = c * t
            x = o + v * s + a * jnp.cos(w * s) + b * jnp.sin(w * s)
            return x[0], x[1], 0.0

        return path

    points = torch.cat(slices).numpy()
    with jax.enable_x64(True):
        charged = [pycharge.Charge(position(n), q=1.0) for n in range(len(charges.charge))]
        function = jax.jit(pycharge.potentials_and_fields(charged))
        inputs = [
            jnp.asarray(x)
            for x in (*points[:, 1:].T, np.full(len(points), simulator.height), points[:, 0] / c)
        ]

    def theirs() -> Sequence[Tensor]:
        with jax.enable_x64(True):
            jax.block_until_ready(function(*inputs))
        return [torch.empty(0)]

    return Case(
        "charges 4×128²",
        {"cscnn": _one_thread(ours), "PyCharge (compiled)": theirs},
        reference="PyCharge (compiled)",
        speedup=2,
    )


@benchmark(
    "windows",
    "One random window of 4 + 1 frames of 128², from a warm cache",
    "Ratios are relative to reading the whole trajectory and cutting the window out.",
)
def windows() -> Iterator[Case]:
    import h5py

    header = NavierStokes().describe(0, "train")
    rng = np.random.default_rng(0)
    count = 16
    with tempfile.TemporaryDirectory() as folder:
        path, by_component = Path(folder) / "train.h5", Path(folder) / "by_component.h5"
        _write_noise(path, by_component, header, rng, count)
        with FieldFile(path) as source, h5py.File(by_component) as file:
            data, group = Windows(source), file["train"]

            def ours() -> Sequence[Tensor]:
                return list(data[int(rng.integers(len(data)))].known.values())

            def theirs() -> Sequence[Tensor]:
                number = int(rng.integers(count))
                return [torch.tensor(group[name][number])[:5].float() for name in ("u", "vx", "vy")]

            yield Case(
                "navier_stokes 128²",
                {"cscnn": _one_thread(ours), "whole trajectory, then cut": _one_thread(theirs)},
                reference="whole trajectory, then cut",
                seconds=1 / 300,
            )


def _write_noise(
    path: Path, by_component: Path, header: Header, rng: np.random.Generator, count: int
) -> None:
    """The same trajectories as our file, and as one float64 array for each component."""
    import h5py

    rows = [
        {f.name: rng.standard_normal(header.shape(f.name)) for f in header.fields}
        for _ in range(count)
    ]
    write(path, header, rows, range(count))
    with h5py.File(by_component, "w") as file:
        for name, field, component in (
            ("u", "smoke", 0),
            ("vx", "velocity", 0),
            ("vy", "velocity", 1),
        ):
            file[f"train/{name}"] = np.stack([row[field][..., component] for row in rows])
