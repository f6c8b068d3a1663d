"""Smoke by PhiFlow: argv = smoke at the start (npy), steps, result (npz)."""

import sys

import numpy as np
from phi.flow import (
    Box,
    CenteredGrid,
    Solve,
    StaggeredGrid,
    advect,
    diffuse,
    extrapolation,
    fluid,
    math,
    resample,
)

math.set_global_precision(64)
start = np.load(sys.argv[1])
nx, ny = start.shape
box = Box(x=32, y=32)
smoke = CenteredGrid(math.tensor(start, math.spatial("x,y")), extrapolation.BOUNDARY, bounds=box)
velocity = StaggeredGrid(0, extrapolation.ZERO, x=nx, y=ny, bounds=box)
for _ in range(int(sys.argv[2])):
    smoke = advect.semi_lagrangian(smoke, velocity, 1.5)
    force = resample(smoke * (0, 0.5), to=velocity)
    velocity = advect.semi_lagrangian(velocity, velocity, 1.5) + 1.5 * force
    velocity = diffuse.explicit(velocity, 0.01, 1.5)
    solve = Solve("CG", 1e-14, 1e-14, max_iterations=5000)
    velocity, _ = fluid.make_incompressible(velocity, (), solve)
np.savez(
    sys.argv[3],
    smoke=smoke.values.numpy("x,y"),
    u=velocity.vector["x"].values.numpy("x,y"),
    v=velocity.vector["y"].values.numpy("x,y"),
)
