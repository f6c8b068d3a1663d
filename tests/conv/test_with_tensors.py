"""Convolutions of multivectors with symmetric tensors: backends, walls, plain ones, edges."""

import pytest
import torch

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.conv import CliffordSteerablePointConv, upsample, use_backend
from cscnn.conv.padding import pad
from cscnn.geometry import all_pairs, radius_edges, sphere
from cscnn.kernels import Complete, Differential, Implicit
from cscnn.testing import relative_error
from cscnn.testing.grids import grid_equivariance_errors
from tests.conv.point_builders import cloud, features, naive

PLANE, SPACETIME = (CliffordAlgebra(metric, symmetric=True) for metric in ((1, 1), (1, -1)))
SPACE = CliffordAlgebra((1, 1, 1), symmetric=True)
KERNELS = (Complete(hidden_dim=4), Implicit(num_layers=2, hidden_dim=4), Differential())


def conv_and_field(algebra, kernel, **options):
    size = 12 if algebra.dim == 2 else 6
    conv = CliffordSteerableConv(algebra, 2, 3, kernel_size=5, kernel=kernel, **options).double()
    field = torch.randn(2, 2, *(size,) * algebra.dim, algebra.n_blades, dtype=torch.float64)
    return conv, field


@pytest.mark.parametrize("algebra", [PLANE, SPACETIME, SPACE], ids=str)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("mode", ["circular", "wall", "extrapolate"])
def test_backends_agree(algebra, kernel, mode):
    """With their gradients."""
    conv, field = conv_and_field(algebra, kernel, padding_mode=mode)
    backends = ["direct", "spectral"] + ["derivatives"] * (kernel.name == "differential")
    results = []
    for backend in backends:
        use_backend(conv, backend)
        x = field.clone().requires_grad_()
        y = conv(x)
        loss = (y * torch.linspace(0, 1, y.numel(), dtype=y.dtype).view_as(y)).sum()
        results.append([y, *torch.autograd.grad(loss, (x, *conv.parameters()))])
    for other in results[1:]:
        for value, expected in zip(other, results[0], strict=True):
            assert relative_error(value, expected) < 1e-11


@pytest.mark.parametrize("algebra", [PLANE, SPACETIME, SPACE], ids=str)
@pytest.mark.parametrize("mode", ["circular", "wall", "conductor"])
def test_symmetries_of_the_grid(algebra, mode):
    conv = CliffordSteerableConv(
        algebra, 2, 1, kernel_size=3, kernel=Complete(hidden_dim=4), padding_mode=mode
    ).double()
    shape = (1, 2, *(4,) * algebra.dim)
    errors = grid_equivariance_errors(conv, algebra, shape, padding_mode=mode)
    if mode != "circular":
        errors.pop("translation")
    assert max(errors.values()) < 1e-12

    class Leaky(torch.nn.Module):
        def forward(self, x):
            y = conv(x)
            return y + y.roll(1, -1)

    control = grid_equivariance_errors(Leaky(), algebra, shape, padding_mode=mode)
    assert control["point group"] > 0.1


@pytest.mark.parametrize("mode", ["wall", "conductor"])
def test_walls_are_mirrors_of_tensors(mode):
    """What lies beyond a wall is ρ(mirror) of the field in front of it, by matrices."""
    field = torch.randn(1, 1, 4, 5, 6, SPACE.n_blades, dtype=torch.float64)
    flat = field.movedim(-1, 2).flatten(1, 2)
    wide = pad(flat, (0, 2, 0), ("zeros", mode, "zeros"), SPACE.n_blades)
    mirror = torch.diag(torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64))
    sign = 1 if mode == "wall" else -1
    expected = sign * SPACE.transform(mirror, field[:, :, :, :2].flip(3))
    got = wide.unflatten(1, (1, -1)).movedim(2, -1)[:, :, :, :2]
    assert torch.allclose(got, expected, atol=1e-12)
    with pytest.raises(ValueError, match=r"multivectors of 13 components per channel, got 8"):
        pad(flat[:, :8], (0, 1, 0), ("zeros", mode, "zeros"), SPACE.n_blades)


def test_upsampling_sees_walls():
    """A finer field in front of a mirror is the mirror image of that behind it."""
    field = torch.randn(1, 1, 4, 4, PLANE.n_blades, dtype=torch.float64)
    mirror = torch.diag(torch.tensor([-1.0, 1.0], dtype=torch.float64))
    moved = PLANE.transform(mirror, upsample(field, [8, 8], "wall").flip(2))
    image = PLANE.transform(mirror, field.flip(2))
    assert torch.allclose(upsample(image, [8, 8], "wall"), moved, atol=1e-12)


@pytest.mark.parametrize("mode", ["circular", "wall"])
def test_export(mode):
    conv, field = conv_and_field(PLANE, Complete(hidden_dim=4), padding_mode=mode)
    flat = conv.export()(field.movedim(-1, 2).flatten(1, 2))
    exported = flat.unflatten(1, (3, -1)).movedim(2, -1)
    assert relative_error(exported, conv(field)) < 1e-12


@pytest.mark.parametrize("kernel", KERNELS[:2], ids=lambda k: k.name)
@pytest.mark.parametrize("algebra", [PLANE, SPACETIME, SPACE], ids=str)
def test_edges_one_after_the_other(algebra, kernel):
    """Convolution along edges is the sum of matrices times transported features."""
    conv = CliffordSteerablePointConv(algebra, 2, 3, kernel=kernel).double()
    frames = algebra.random_orthogonal("any", batch=9, dtype=torch.float64)
    edges = all_pairs(cloud(algebra.metric)).weighted(torch.rand(9)).change_frames(frames)
    x = features(edges, conv)
    assert relative_error(conv(x, edges), naive(conv, x, edges)) < 1e-12


@pytest.mark.parametrize("kernel", KERNELS[:2], ids=lambda k: k.name)
def test_clouds_and_their_rotations(kernel):
    points = torch.rand(20, 3, dtype=torch.float64)
    conv = CliffordSteerablePointConv(SPACE, 2, 3, radius=0.5, kernel=kernel).double()
    x = torch.randn(20, 2, SPACE.n_blades, dtype=torch.float64)
    g = SPACE.random_orthogonal(dtype=torch.float64)
    moved = conv(SPACE.transform(g, x), radius_edges(points @ g.mT, 0.5))
    expected = SPACE.transform(g, conv(x, radius_edges(points, 0.5)))
    assert relative_error(moved, expected) < 1e-12
    assert relative_error(moved, expected.roll(1, -1)) > 0.1


def test_tensors_are_transported():
    """On the sphere outputs change with the frames as ρ of the change says."""
    space = sphere(2)
    points = torch.nn.functional.normalize(torch.randn(15, 3, dtype=torch.float64), dim=-1)
    frames = space.frames(points)
    conv = CliffordSteerablePointConv(PLANE, 1, 2, radius=1.0).double()
    x = torch.randn(15, 1, PLANE.n_blades, dtype=torch.float64)
    h = PLANE.random_orthogonal(batch=15, dtype=torch.float64)
    rho = PLANE.action(h)
    edges = space.edges(points, frames=frames, radius=1.2)
    turned = space.edges(points, frames=frames @ h.mT, radius=1.2)
    y = conv(x, edges)
    moved = conv(torch.einsum("nij,ncj->nci", rho, x), turned)
    assert relative_error(moved, torch.einsum("nij,ncj->nci", rho, y)) < 1e-11
