import math

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.kernels import CompleteKernel, ImplicitKernel
from cscnn.viz.kernel_numbers import (
    angular_content,
    compose,
    frequency_contents,
    radial_functions,
    random_kernels,
    random_pair,
    ring,
)

pytest.importorskip("matplotlib")

from cscnn.viz import draw_kernel_story


def test_angular_content():
    """Of matrices whose frequencies are known."""
    angle = torch.arange(16, dtype=torch.float64) * (2 * math.pi / 16)
    turn = torch.stack([angle.cos(), angle.sin(), angle.sin(), -angle.cos()], -1).view(-1, 2, 2)
    twice = torch.stack([(2 * angle).cos(), (2 * angle).sin()], -1)[..., None]
    eye = torch.eye(2, dtype=torch.float64).expand(16, 2, 2)
    for block, frequency in ((eye, 0), (turn, 1), (twice, 2)):
        content = angular_content(block)
        assert content[frequency] == pytest.approx(1)
        assert content.square().sum() == pytest.approx(1)
    both = angular_content(3 * eye + 4 * turn)
    assert both[:3].tolist() == pytest.approx([0.6, 0.8, 0], abs=1e-12)
    v = ring(0.7)
    assert angular_content(v[:, :, None] * v[:, None])[2] == pytest.approx(math.sqrt(0.5))


def test_only_implicit_kernels_lack_frequency_two():
    contents = frequency_contents(count=3, seed=10)
    for name, content in contents.items():
        assert content.shape == (3, 5), name
        assert content.square().sum(1).tolist() == pytest.approx([1] * 3), name
        assert content[:, [1, 3, 4]].max() < 1e-12, name  # no steerable kernel has these
    assert contents["implicit"][:, 2].max() < 1e-12
    assert contents["two through vectors"][:, 2].max() < 1e-12
    for name in ("complete", "two", "two through others"):
        assert contents[name][:, 2].min() > 1e-4, name


def test_composition_is_one_convolution_after_another():
    """Against a sum over a fine grid, and with a kernel that is no function of the other."""
    second, first = random_pair(0)
    points = torch.tensor([[0.5, 0.0], [0.2, -0.6]], dtype=torch.float64)
    parts = compose(second, first, points)
    assert parts.shape == (3, 2, 4, 4)
    axis = torch.linspace(-2.5, 2.5, 81, dtype=torch.float64)
    w = torch.cartesian_prod(axis, axis)
    with torch.no_grad():
        inner = first(w)[:, 0, :, 0]
        naive = (
            torch.stack(
                [torch.einsum("nab,nbc->ac", second(v - w)[:, 0, :, 0], inner) for v in points]
            )
            * (axis[1] - axis[0]).square()
        )
    assert (parts.sum(0) - naive).abs().max() < 1e-2 * naive.abs().max()
    swapped = compose(first, second, points).sum(0)
    assert (swapped - naive).abs().max() > 1e-2 * naive.abs().max()


@pytest.mark.parametrize("metric", [(1, 1), (1, -1), (1, 1, 1)])
def test_radial_functions(metric):
    dim = len(metric)
    kernels = random_kernels(metric)
    implicit, complete = (radial_functions(kernels[k]) for k in ("implicit", "complete"))
    assert (len(implicit.names), implicit.rank) == (4 * dim - (dim - 1), 2)
    assert (len(complete.names), complete.rank) == (4 * dim, 4 * dim)
    assert "β1" in complete.names
    assert "β1" not in implicit.names
    assert bool((complete.at < 0).any()) == (-1 in metric)
    assert complete.values.shape == (4 * dim, len(complete.at))
    with torch.no_grad():  # α of the scalar is the scalar's own entry of the kernel
        at = float(complete.at[-1]) * torch.eye(dim, dtype=torch.float64)[:1]
        assert torch.allclose(kernels["complete"](at)[0, 0, 0, 0, 0], complete.values[0, -1])


def test_random_kernels_leave_random_numbers_alone():
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    one, other = random_kernels((1, 1)), random_kernels((1, 1))
    assert torch.equal(torch.rand(4), expected)
    assert isinstance(one["implicit"], ImplicitKernel)
    assert isinstance(one["complete"], CompleteKernel)
    point = ring()[:1]
    assert all(torch.equal(one[k](point), other[k](point)) for k in one)
    assert one["implicit"].algebra == CliffordAlgebra((1, 1))


@pytest.mark.slow
def test_pictures(tmp_path):
    made = draw_kernel_story(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(name for name, _ in made)
    for name, caption in made:
        assert name.startswith("results_kernels_")
        assert 10_000 < (tmp_path / name).stat().st_size < 200_000
        assert len(caption) > 100
    captions = dict(made)
    assert "implicit O(2) 2 of 7, complete O(2) 8 of 8" in captions["results_kernels_radial.png"]
    assert "Frequency 2 is zero" in captions["results_kernels_frequency2.png"]
