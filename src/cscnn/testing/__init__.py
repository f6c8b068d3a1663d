"""Equivariance asserts and the conformance kit, for this library and for the modules of its users.

`assert_equivariant` and `assert_steerable` test one property of one object. The suites of
`cscnn.testing.conformance` test everything that this library promises of its own layers, kernels,
networks and spaces, one line for each.
"""

from cscnn.testing import conformance
from cscnn.testing.errors import random_element, relative_error
from cscnn.testing.grids import grid_equivariance_errors
from cscnn.testing.steerability import assert_steerable, steerability_errors
from cscnn.testing.values import assert_equivariant, equivariance_errors

__all__ = [
    "assert_equivariant",
    "assert_steerable",
    "conformance",
    "equivariance_errors",
    "grid_equivariance_errors",
    "random_element",
    "relative_error",
    "steerability_errors",
]
