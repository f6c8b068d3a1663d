"""Norm, shortcut and gate as one operation, and as compilers see them, against the layers."""

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.networks.blocks import ProductGate, normed_activation
from cscnn.nn import MVGELU, MVLayerNorm, fused
from cscnn.nn.compiled import normed_gate_by_planes
from cscnn.nn.functional import LARGE
from cscnn.nn.scratch import Scratch
from cscnn.testing import assert_equivariant, relative_error

ALGEBRAS = [
    CliffordAlgebra((1,)),
    CliffordAlgebra((1, 1)),
    CliffordAlgebra((1, -1, -1)),
    CliffordAlgebra((1, 1), symmetric=True),
]
CHANNELS = 3


def layers(algebra, gate="product", group="O"):
    torch.manual_seed(0)
    act = MVGELU(algebra) if gate == "plain" else ProductGate(algebra, CHANNELS, group)
    act = act.double()
    with torch.no_grad():
        for parameter in act.parameters():
            parameter.copy_(torch.randn(parameter.shape))
    return MVLayerNorm(algebra, absolute=True), act


def fields(algebra, layout="planes", dtype=torch.float64):
    """A field and a shortcut; in the first sample norms are below their bound."""
    torch.manual_seed(1)
    n = algebra.n_blades
    if layout == "points":
        both = [torch.randn(7, CHANNELS, n, dtype=dtype) for _ in range(2)]
    else:
        shape = (3, CHANNELS, n, *(5,) * algebra.dim)
        both = [torch.randn(shape, dtype=dtype).movedim(2, -1) for _ in range(2)]
    both[0][0] *= 1e-3
    if layout == "blades":
        both = [x.contiguous() for x in both]
    return [x.requires_grad_() for x in both]


def by_layers(x, norm, act, shortcut=None):
    y = norm(x)
    return act(y if shortcut is None else shortcut + y)


def derivatives(y, leaves):
    grad = torch.randn(y.shape, generator=torch.Generator().manual_seed(2), dtype=y.dtype)
    return torch.autograd.grad(y, leaves, grad)


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=str)
@pytest.mark.parametrize(
    ("gate", "group", "layout", "part"),
    [
        ("product", "O", "planes", fused.PART),
        ("product", "O", "planes", 40),  # samples in turn, and in space in parts
        ("product", "SO", "blades", fused.PART),
        ("product", "O", "points", 10),
        ("plain", "O", "planes", 40),
        ("plain", "O", "blades", fused.PART),
    ],
)
@pytest.mark.parametrize("with_shortcut", [False, True])
def test_it_is_what_the_layers_do(algebra, gate, group, layout, part, with_shortcut, monkeypatch):
    monkeypatch.setattr(fused, "PART", part)
    norm, act = layers(algebra, gate, group)
    x, z = fields(algebra, layout)
    leaves = [x, *([z] if with_shortcut else []), *act.parameters()]
    shortcut = z if with_shortcut else None
    mine = normed_activation(x, norm, act, shortcut)
    assert type(mine.grad_fn).__name__ == "_FusedBackward"  # one operation
    plain = by_layers(x, norm, act, shortcut)
    assert relative_error(mine, plain) < 1e-13
    assert mine.stride() == x.stride()
    for a, b in zip(derivatives(mine, leaves), derivatives(plain, leaves), strict=True):
        assert relative_error(a, b) < 1e-12


@pytest.mark.parametrize("algebra", ALGEBRAS[1:3], ids=str)
@pytest.mark.parametrize("gate", ["product", "plain"])
def test_it_is_twice_differentiable(algebra, gate):
    norm, act = layers(algebra, gate)
    x, z = fields(algebra)

    def second(function):
        y = function(x, norm, act, z)
        first = torch.autograd.grad(y.square().sum(), (x, z), create_graph=True)
        return torch.autograd.grad(sum(t.square().sum() for t in first), (x, z))

    for mine, plain in zip(second(normed_activation), second(by_layers), strict=True):
        assert relative_error(mine, plain) < 1e-11


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=str)
@pytest.mark.parametrize("group", ["O", "SO"])
@pytest.mark.parametrize("normed", [True, False])
def test_compilers_see_the_same_function(algebra, group, normed):
    norm, act = layers(algebra, group=group)
    x, z = fields(algebra)
    leaves = [x, z, *act.parameters()]
    mine = normed_gate_by_planes(x, z, act.mix.weight, act.weight, algebra, normed)
    plain = by_layers(x, norm if normed else torch.nn.Identity(), act, z)
    assert relative_error(mine, plain) < 1e-13
    assert mine.stride() == x.stride()
    for a, b in zip(derivatives(mine, leaves), derivatives(plain, leaves), strict=True):
        assert relative_error(a, b) < 1e-12


def test_hooks_see_what_is_between_layers():
    norm, act = layers(ALGEBRAS[1])
    x, _ = fields(ALGEBRAS[1])
    seen = []
    handle = norm.register_forward_hook(lambda *args: seen.append(args[2]))
    normed_activation(x, norm, act)
    handle.remove()
    assert len(seen) == 1
    assert relative_error(seen[0], norm(x)) == 0


def test_huge_numbers_take_the_plain_form():
    algebra = ALGEBRAS[1]
    norm, act = (layer.float() for layer in layers(algebra))
    x = fields(algebra, dtype=torch.float32)[0].detach()
    huge = x * (1e3 * LARGE)
    assert relative_error(normed_activation(huge, norm, act), by_layers(huge, norm, act)) < 1e-5
    assert normed_activation(x, norm, act, huge).isfinite().all()


def test_inference_mode_leaves_room_for_training():
    norm, act = layers(ALGEBRAS[1])
    x, _ = fields(ALGEBRAS[1])
    with torch.inference_mode():
        expected = normed_activation(x.detach(), norm, act)
    y = normed_activation(x, norm, act)
    y.sum().backward()
    assert relative_error(y, expected) == 0


def test_scratch_that_grows_keeps_what_it_gave():
    scratch = Scratch()
    first = scratch.empty((3, 5), torch.float32).fill_(7)
    second = scratch.empty((1000,), torch.float32).zero_()
    assert (first == 7).all()
    assert not second.any()
    scratch.clear()
    again = scratch.empty((3, 5), torch.float32)
    scratch.clear()
    assert scratch.empty((4,), torch.float32).data_ptr() == again.data_ptr()


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=str)
def test_it_commutes_with_the_group(algebra):
    norm, act = layers(algebra)
    assert_equivariant(lambda x: normed_activation(x, norm, act), algebra, shape=(2, CHANNELS, 4))
