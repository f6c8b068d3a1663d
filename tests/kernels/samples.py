"""Groups and points to test kernels with."""

import torch

from cscnn.algebra.group import GROUPS


def groups(metric):
    spacetime = len(metric) > 1 and 1 in (metric.count(1), metric.count(-1))
    return GROUPS if spacetime and len(set(metric)) == 2 else GROUPS[:2]


def grid(size, dim):
    axis = torch.linspace(-1, 1, size, dtype=torch.float64)
    return torch.cartesian_prod(*[axis] * dim).reshape(-1, dim)
