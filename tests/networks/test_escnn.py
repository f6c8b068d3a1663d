"""Where escnn is installed: the kernels of `steerable_resnet` are those of escnn.

escnn solves for a basis of O(n)-steerable kernels between any fields; ours are written down in
closed form for multivectors. On every sphere both must span the same kernels.
"""

import copy
import warnings

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.kernels import Complete, CompleteKernel
from tests.networks.tiny import PERIODIC, tiny

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("escnn", reason="escnn is not installed")
    import numpy as np
    from escnn import gspaces
    from escnn.group import Representation

pytestmark = [pytest.mark.external, pytest.mark.filterwarnings("ignore")]

SPACES = {2: lambda: gspaces.flipRot2dOnR2(-1), 3: gspaces.flipRot3dOnR3}
#: Irreps of the grades. O(2): (reflections, frequency); O(3): (inversion, frequency).
IRREPS = {2: [(0, 0), (1, 1), (1, 0)], 3: [(0, 0), (1, 1), (0, 1), (1, 0)]}
WRONG = {2: [(0, 0), (1, 1), (0, 0)], 3: [(0, 0), (1, 1), (1, 1), (0, 0)]}  # no pseudo-anything


def multivectors(space, dim, irreps, name):
    """escnn's representation on multivectors, in our order of blades."""
    vectors = space.basespace_action.change_of_basis
    dual = np.fliplr(np.diag([1.0, -1.0, 1.0]))  # axial vector (x, y, z) -> e12, e13, e23
    one = np.eye(1)
    blocks = [one, vectors, one] if dim == 2 else [one, vectors, dual @ vectors, one]
    basis = torch.block_diag(*map(torch.from_numpy, blocks)).numpy()
    return Representation(space.fibergroup, name, irreps, basis, supported_nonlinearities=[])


def theirs(dim, points, rings, irreps=None, name="multivectors"):
    """escnn's basis kernels at the points: (kernels, N · blades · blades)."""
    space = SPACES[dim]()
    field = multivectors(space, dim, irreps or IRREPS[dim], name)
    options = {"maximum_frequency": 2} if dim == 3 else {}
    basis = space.build_kernel_basis(field, field, sigma=0.6, rings=rings, **options)
    basis = copy.deepcopy(basis).double()  # escnn shares them
    return basis.sample(points).transpose(0, 1).flatten(1)


def ours(kernel, points):
    """One kernel for each weight of the last layer, at the points: (weights, N · blades²)."""
    weight = kernel.radial.weight
    rows = []
    with torch.no_grad():
        for index in range(weight.numel()):
            weight.zero_().view(-1)[index] = 1
            rows.append(kernel(points).flatten())
    return torch.stack(rows)


def rank(rows):
    return int(torch.linalg.matrix_rank(rows / rows.norm(dim=1).mean(), rtol=1e-5))


@pytest.mark.parametrize("dim", [2, 3])
def test_multivectors_are_a_field_of_escnn(dim):
    space, algebra = SPACES[dim](), CliffordAlgebra((1,) * dim)
    field = multivectors(space, dim, IRREPS[dim], "multivectors")
    for _ in range(10):
        g = space.fibergroup.sample()
        moved = torch.from_numpy(np.array(space.basespace_action(g)))
        assert np.allclose(field(g), algebra.action(moved), atol=1e-6)


@pytest.mark.parametrize("radius", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("dim", [2, 3])
def test_same_kernels_on_every_sphere(dim, radius):
    directions = torch.randn(8, dim, dtype=torch.float64)
    points = radius * torch.nn.functional.normalize(directions)
    kernel = CompleteKernel(CliffordAlgebra((1,) * dim), 1, 1, Complete(radial="rings")).double()
    mine, other = ours(kernel, points), theirs(dim, points, [radius])
    count = 4 * dim if radius else dim + 1
    assert rank(mine) == rank(other) == rank(torch.cat([mine, other])) == count
    if radius:  # the control
        other = theirs(dim, points, [radius], WRONG[dim], "wrong")
        assert rank(torch.cat([mine, other])) > count


def test_same_kernels_on_a_grid():
    """All of a convolution of the model: 3 kernels at the centre, 8 at either distance."""
    model = tiny("steerable_resnet", PERIODIC["plane"], width=1).double()
    kernel = model.blocks[0].convs[0].kernel
    mine = ours(kernel, kernel.init_points.double())
    other = theirs(2, torch.cartesian_prod(*[torch.arange(-1.0, 2).double()] * 2), [0.0, 1.0, 2.0])
    assert rank(mine) == rank(other) == rank(torch.cat([mine, other])) == 3 + 8 + 8
