"""What a training step holds in memory: kernels are made again, and bands come one by one."""

import math

import pytest
import torch
from torch import nn
from torch.autograd import gradgradcheck
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn._util.machine import peak_memory
from cscnn.conv import memory, reuse_kernels, use_backend
from cscnn.conv.spectral import engine
from cscnn.kernels import Complete
from cscnn.testing import relative_error


def build(metric=(1, 1), size=5, **options):
    conv = CliffordSteerableConv(CliffordAlgebra(metric), 2, 2, size, **options)
    return use_backend(conv.double(), "spectral")


def field(dim=2):
    generator = torch.Generator().manual_seed(0)
    shape = (1, 2, *(9, 8, 7)[:dim], 2**dim)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


def count_expansions(conv, monkeypatch):
    """A list that grows with each expansion of the kernel."""
    calls, expand = [], conv.expanded_kernel
    monkeypatch.setattr(conv, "expanded_kernel", lambda *a: calls.append(1) or expand(*a))
    return calls


def gradients(y, conv, x):
    weight = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view_as(y)
    return torch.autograd.grad(y, [x, *conv.parameters()], weight)


@pytest.mark.parametrize("kernel", ["implicit", "complete", Complete(radial="free")])
def test_kernels_are_made_again(kernel, monkeypatch):
    """With the gradients of those that are stored, to the last bit."""
    conv, x = build(kernel=kernel), field()
    calls = count_expansions(conv, monkeypatch)
    mine = gradients(conv(x), conv, x)
    assert len(calls) == 2
    monkeypatch.setattr(memory, "LEAST_PART", math.inf)
    other = gradients(conv(x), conv, x)
    assert len(calls) == 3
    assert all(map(torch.equal, mine, other))


def test_memory_of_a_network(monkeypatch):
    """What is saved are the kernels of all convolutions but one."""
    net = nn.Sequential(*(build(size=7) for _ in range(6)))
    x = field()

    def step():
        return torch.autograd.grad(net(x).sum(), [x, *net.parameters()])

    step()
    mine = peak_memory(step)
    monkeypatch.setattr(memory, "LEAST_PART", math.inf)
    kernel = net[0].expanded_kernel().nbytes
    assert peak_memory(step) - mine >= 4 * kernel


def test_derivatives_of_derivatives(monkeypatch):
    conv, x = build(size=3, kernel=Complete(radial="free")), field()
    assert gradgradcheck(conv, x, fast_mode=True)
    results = []
    for part in (memory.LEAST_PART, math.inf):
        monkeypatch.setattr(memory, "LEAST_PART", part)
        (slope,) = torch.autograd.grad(conv(x).square().sum(), x, create_graph=True)
        results.append(torch.autograd.grad(slope.square().sum(), conv.kernel.radial.weight)[0])
    assert torch.equal(*results)


def test_what_is_stored_as_before(monkeypatch):
    """Kernels that are held anyway, in checkpoints, and those that may change with each call."""
    conv, x = build(), field()
    expected = gradients(conv(x), conv, x)
    calls = count_expansions(conv, monkeypatch)
    mine = gradients(checkpoint(conv, x, use_reentrant=False), conv, x)
    assert len(calls) == 2  # one of the forward pass, one of that which the checkpoint repeats
    assert all(map(torch.equal, mine, expected))
    calls.clear()
    with reuse_kernels(conv):
        for _ in range(2):
            conv(x).sum().backward()
    assert len(calls) == 1
    calls.clear()
    parametrizations.weight_norm(conv.kernel, "mask_width")
    conv(x).sum().backward()
    assert len(calls) == 1


def test_parameters_must_not_change_between_the_passes():
    conv, x = build(kernel=Complete(radial="free")), field()
    y = conv(x)
    with torch.no_grad():
        conv.kernel.radial.weight.add_(1)
    with pytest.raises(RuntimeError, match="modified in place between"):
        y.sum().backward()


@pytest.mark.parametrize("kernel", [Complete(), Complete(group="SO")], ids=["parity", "none"])
@pytest.mark.parametrize("mode", ["zeros", "circular"])
@pytest.mark.parametrize("metric", [(1,), (1, 1), (1, 1, 1)], ids=len)
def test_bands_change_nothing(metric, mode, kernel, monkeypatch):
    conv = build(metric, 3, kernel=kernel, padding_mode=mode)
    x = field(len(metric))
    results, counts, bands_of = [], [], engine._bands

    def bands(*args):
        result = bands_of(*args)
        counts.append(len(result))
        assert [f for band in result for f in band] == list(range(args[0].axes[0].frequencies))
        return result

    monkeypatch.setattr(engine, "_bands", bands)
    monkeypatch.setattr(engine, "LARGE_MATRICES", 0.1)
    for limit in (1, 2, 3):
        monkeypatch.setattr(engine, "MAX_BANDS", limit)
        results.append(gradients(conv(x), conv, x))
    assert counts[:2] == [1, 2]
    monkeypatch.setattr(engine, "LARGE_MATRICES", 1e9)
    conv(x).sum().backward()
    assert counts[3] == 1
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert relative_error(a, b) < 1e-12
