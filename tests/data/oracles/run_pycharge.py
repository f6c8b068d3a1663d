"""Fields of moving charges by PyCharge: argv = charges and points (npz), result (npz).

Lengths are metres here and times metres too (c t); fields come back in units of e / (4πε₀ m²).
"""

import sys

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from pycharge import Charge, SolverConfig, potentials_and_fields  # noqa: E402
from scipy.constants import c, e, epsilon_0, pi  # noqa: E402

data = np.load(sys.argv[1])
config = SolverConfig(root_find_atol=1e-24, fixed_point_atol=1e-24, root_find_throw=False)


def path(n):
    o, v, a, b = (jnp.asarray(data[k][n, 1:]) for k in ("origin", "drift", "cosine", "sine"))
    w = float(data["frequency"][n])

    def position(t):
        s = c * t
        x = o + v * s + a * jnp.cos(w * s) + b * jnp.sin(w * s)
        return (x[0], x[1], x[2] if len(x) == 3 else 0.0)

    return position


charges = [
    Charge(path(n), q=float(q) * e, solver_config=config) for n, q in enumerate(data["charge"])
]
points = data["points"]
z = points[:, 3] if points.shape[1] == 4 else np.full(len(points), float(data["height"]))
fields = jax.jit(potentials_and_fields(charges))(points[:, 1], points[:, 2], z, points[:, 0] / c)
unit = e / (4 * pi * epsilon_0)
np.savez(
    sys.argv[2],
    electric=np.asarray(fields.electric) / unit,
    magnetic=np.asarray(fields.magnetic) * c / unit,
)
