"""The conformance kit: the tests that our own layers, kernels, networks and spaces pass, for yours.

One line in a test file makes a suite, a class that pytest collects::

    from cscnn.testing import conformance

    TestMine = conformance.layer(lambda algebra: Mine(algebra, channels=2), channels=2)

`layer` is for pointwise layers, `kernel` for steerable kernels, `network` for networks on grids,
`point_network` for networks on sets of points, `space` for geometries. Every suite has a control, a
broken copy of the object that its tests must reject. pytest is not imported; `failures` runs a
suite without it.
"""

from cscnn.testing.conformance.kernels import kernel
from cscnn.testing.conformance.layers import layer
from cscnn.testing.conformance.networks import network
from cscnn.testing.conformance.points import point_network
from cscnn.testing.conformance.spaces import Space, linear_isometries, space
from cscnn.testing.conformance.suite import METRICS, Setting, Symmetry, failures

__all__ = [
    "METRICS",
    "Setting",
    "Space",
    "Symmetry",
    "failures",
    "kernel",
    "layer",
    "linear_isometries",
    "network",
    "point_network",
    "space",
]
