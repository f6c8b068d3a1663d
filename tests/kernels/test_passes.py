"""Kernels on small grids: derivatives by hand, by numpy or torch, and assembly by tables."""

import gc
import weakref

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.kernels import Complete, Implicit, ImplicitKernel, passes
from cscnn.kernels.collapse import run, weights_of
from cscnn.kernels.passes import can_fuse, collapsed
from cscnn.testing import relative_error

ALGEBRAS = [
    CliffordAlgebra((1, 1)),
    CliffordAlgebra((1, -1, -1)),
    CliffordAlgebra((1, 1), symmetric=True),
    CliffordAlgebra((1, -1, -1), symmetric=True),
]


def inputs_of(algebra, generator, **options):
    """Some values of η, and all tensors that the kernel network has, drawn anew."""
    kernel = ImplicitKernel(algebra, 2, 1, Implicit(hidden_dim=3, **options)).double()
    tensors = [kernel.position_width, kernel.mask_width, *weights_of(kernel.network)]
    drawn = [
        None if t is None else torch.randn(t.shape, generator=generator, dtype=t.dtype)
        for t in tensors
    ]
    eta = torch.tensor([-1.3, -0.2, 0.0, 0.4, 1.0], dtype=torch.float64)
    return eta, kernel._span, [None if t is None else t.requires_grad_() for t in drawn]


@pytest.mark.parametrize("limit", [0, 1 << 16], ids=["torch", "numpy"])
@pytest.mark.parametrize("options", [{}, {"mask": False}, {"num_layers": 1}])
@pytest.mark.parametrize("algebra", ALGEBRAS, ids=repr)
def test_derivatives_by_hand(algebra, options, limit, generator, monkeypatch):
    """Those of the reference, whose derivatives are torch's."""
    monkeypatch.setattr(passes, "LARGEST_FOR_NUMPY", limit)
    eta, parts, tensors = inputs_of(algebra, generator, **options)
    leaves = [t for t in tensors if t is not None]
    assert can_fuse(eta)
    results = []
    for function in (collapsed, run):
        y = function(eta, parts, tensors[0], tensors[1], tensors[2:])
        weight = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).reshape(y.shape)
        results.append([y, *torch.autograd.grad(y, leaves, weight)])
    for mine, other in zip(*results, strict=True):
        assert relative_error(mine, other) < 1e-11


@pytest.mark.parametrize("mask", [True, False])
def test_derivatives_of_derivatives(mask, generator):
    eta, parts, tensors = inputs_of(ALGEBRAS[1], generator, num_layers=2, mask=mask)
    leaves = tuple(t for t in tensors if t is not None)

    def function(*given):
        rest = iter(given)
        x = [None if t is None else next(rest) for t in tensors]
        return collapsed(eta, parts, x[0], x[1], x[2:])

    assert gradcheck(function, leaves, fast_mode=True)
    assert gradgradcheck(function, leaves, fast_mode=True)


def test_derivatives_by_points_and_transforms_take_the_reference(generator):
    eta, parts, tensors = inputs_of(ALGEBRAS[0], generator)
    assert not can_fuse(eta.clone().requires_grad_())

    def total(width):
        assert not can_fuse(eta)
        return collapsed(eta, parts, width, tensors[1], tensors[2:]).sum()

    mine = torch.func.grad(total)(tensors[0].detach())
    y = collapsed(eta, parts, tensors[0], tensors[1], tensors[2:])
    assert torch.allclose(mine, torch.autograd.grad(y.sum(), tensors[0])[0])


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=repr)
def test_transforms_give_the_same_numbers(algebra, generator):
    eta, parts, tensors = inputs_of(algebra, generator, num_layers=2)
    values = tuple(t.detach() for t in tensors)

    def function(*given):
        return collapsed(eta, parts, given[0], given[1], given[2:])

    y = function(*tensors)
    expected = torch.autograd.grad(y.square().sum(), tensors)
    tangents = tuple(torch.randn(t.shape, generator=generator, dtype=t.dtype) for t in values)
    _, slope = torch.func.jvp(lambda *given: function(*given).square().sum(), values, tangents)
    along = sum((a * b).sum() for a, b in zip(tangents, expected, strict=True))
    assert relative_error(slope, along) < 1e-11
    many = torch.vmap(function)(*(torch.stack([t, 2 * t]) for t in values))
    assert relative_error(many[0], y) < 1e-12


@pytest.mark.parametrize("mask", [True, False])
@pytest.mark.parametrize("limit", [0, 1 << 16], ids=["torch", "numpy"])
def test_graphs_are_freed_at_once(limit, mask, generator, monkeypatch):
    """They do not hold their own result, which only a collector of garbage would find."""
    monkeypatch.setattr(passes, "LARGEST_FOR_NUMPY", limit)
    eta, parts, tensors = inputs_of(ALGEBRAS[2], generator, mask=mask)
    gc.disable()
    try:
        y = collapsed(eta, parts, tensors[0], tensors[1], tensors[2:])
        kept = weakref.ref(y.grad_fn.passes)
        del y
        assert kept() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("kernel", [Implicit(), Complete(), Complete(group="SO"), "conditional"])
@pytest.mark.parametrize(("metric", "size"), [((1, 1), 5), ((1, -1), 3)], ids=str)
def test_assembly_by_a_table(metric, size, kernel):
    """By the table and by basis kernels one by one: the same values and derivatives."""
    conditional = kernel == "conditional"
    choice = Complete(condition=2) if conditional else kernel
    algebra = CliffordAlgebra(metric)
    conv = CliffordSteerableConv(algebra, 2, 3, size, kernel=choice).double()
    extra = torch.randn(4, 2, algebra.n_blades, dtype=torch.float64) if conditional else None
    leaves = [p for n, p in conv.kernel.named_parameters() if not n.startswith("mix")]
    assert conv.orbit_table is not None
    results = []
    for _ in range(2):
        y = conv.expanded_kernel(extra)
        weight = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).reshape(y.shape)
        results.append([y, *torch.autograd.grad(y, leaves, weight)])
        conv.orbit_table = None
    for mine, other in zip(*results, strict=True):
        assert mine.shape == other.shape
        assert relative_error(mine, other) < 1e-12


def test_tables_move_with_their_convolution_and_are_bounded():
    conv = CliffordSteerableConv(CliffordAlgebra((1, 1)), 2, 2, 3, kernel="complete")
    assert "orbit_table" not in conv.state_dict()
    exact = conv.double().orbit_table
    assert exact.dtype == torch.float64
    assert torch.equal(exact, conv.float().double().orbit_table)  # nothing was lost on the way
    for metric, width, size in (((1, 1, 1), 1, 5), ((1, 1), 32, 7)):
        algebra = CliffordAlgebra(metric)
        assert CliffordSteerableConv(algebra, width, width, size).orbit_table is None
    for kernel in ("differential", Complete(radial="free")):
        assert CliffordSteerableConv(conv.algebra, 1, 1, 5, kernel=kernel).orbit_table is None


def test_weights_that_have_diverged_give_no_warning(generator):
    """Training finds out by its loss."""
    eta, parts, tensors = inputs_of(ALGEBRAS[0], generator)
    huge = [(1e30 * t.detach().float()).requires_grad_() for t in tensors]
    y = collapsed(eta.float(), parts, huge[0], huge[1], huge[2:])
    assert not y.isfinite().all()
    y.sum().backward()
