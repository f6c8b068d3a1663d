"""Kernels that are kept between calls: never stale, whoever writes into their tensors."""

import sys
import threading

import pytest
import torch
from torch.nn.utils import parametrize

from cscnn.conv import cache, use_backend
from tests.conv.builders import FIELD, build


@pytest.fixture(params=["implicit", "complete"])
def conv(request):
    return build((1, -1), kernel=request.param).eval()


def output(conv, x):
    with torch.no_grad():
        return conv(x)


def fresh_output(conv, x):
    """What the convolution gives without a kept kernel."""
    conv.train().eval()
    return output(conv, x)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_fused_optimisers(conv, name):
    """They write into parameters without raising their versions."""
    x = torch.randn(FIELD)
    optimiser = getattr(torch.optim, name)(conv.parameters(), lr=0.1, fused=True)
    before = output(conv, x)
    conv(x).square().mean().backward()
    optimiser.step()
    after = output(conv, x)
    assert not torch.allclose(after, before)
    assert torch.equal(after, fresh_output(conv, x))


def edit_data(parameter):
    parameter.data[0] += 1


def edit_numpy(parameter):
    parameter.detach().numpy()[-1] += 1


def edit_dlpack(parameter):
    torch.from_dlpack(parameter.detach())[0] += 1


def transpose(parameter):
    parameter.data = parameter.data.transpose(0, 1)


@pytest.mark.parametrize("edit", [edit_data, edit_numpy, edit_dlpack, transpose])
def test_edits_that_torch_does_not_record(edit):
    conv = build((1, -1), c_in=3, c_out=3).eval()
    x = torch.randn(2, 3, 6, 5, 4)
    before = output(conv, x)
    edit(conv.kernel.head)
    after = output(conv, x)
    assert not torch.allclose(after, before)
    assert torch.equal(after, fresh_output(conv, x))


def test_a_single_bit_is_noticed(conv):
    output(conv, torch.randn(FIELD))
    state = conv._cache.state
    for tensor in (*conv.parameters(), *conv.buffers()):
        numbers = tensor.detach().view(-1)
        if numbers.dtype == torch.float32:
            bits = numbers.view(torch.int32)
            for index in (0, len(bits) // 2, len(bits) - 1):
                assert state.unchanged()
                bits[index] ^= 1
                assert not state.unchanged()
                bits[index] ^= 1


class Switch(torch.nn.Module):
    """A parametrisation that depends on something that is no tensor."""

    factor = 1.0

    def forward(self, weight):
        return self.factor * weight


def test_hooks_and_parametrisations_are_never_missed(conv):
    x = torch.randn(FIELD)
    before = output(conv, x)
    assert conv._cache is not None
    factor = [1.0]
    for register in ("register_forward_hook", "register_forward_pre_hook"):

        def hook(module, inputs, y=None):
            return inputs if y is None else factor[0] * y

        handle = getattr(conv.kernel, register)(hook)
        assert torch.equal(output(conv, x), before)
        assert conv._cache is None
        handle.remove()
    handle = conv.kernel.register_forward_hook(hook)
    output(conv, x)
    factor[0] = 3.0
    assert not torch.allclose(output(conv, x), before)
    handle.remove()
    assert torch.equal(output(conv, x), before)

    name = "head" if hasattr(conv.kernel, "head") else "radial.weight"
    module = conv.kernel.get_submodule(name.rpartition(".")[0])
    switch = Switch()
    parametrize.register_parametrization(module, name.rpartition(".")[2], switch)
    assert torch.equal(output(conv, x), before)
    switch.factor = 3.0
    assert not torch.allclose(output(conv, x), before)


def test_parts_in_training_mode_are_not_kept(conv):
    output(conv, torch.randn(FIELD))
    assert conv._cache is not None
    conv.kernel.train()
    output(conv, torch.randn(FIELD))
    assert conv._cache is None


def test_threads_with_many_grids(monkeypatch):
    """They share one kernel, and throw spectra out of its cache while others look for them."""
    monkeypatch.setattr(cache, "MAX_TILINGS", 1)
    monkeypatch.setattr(cache, "kernel_matrices", lambda kernel, tiling: {"of": tiling})
    shared = cache.KernelCache(None, None, None)
    errors, interval = [], sys.getswitchinterval()

    def work(seed):
        try:
            for call in range(50000):
                tiling = (seed * call) % 5
                assert shared.matrices(tiling) == {"of": tiling}
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 9)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors
    assert len(shared._matrices) == 1


def test_made_in_inference_mode():
    """Its tensors count no versions; edits are noticed all the same."""
    with torch.inference_mode():
        conv = use_backend(build((1, 1)), "spectral").eval()
        x = torch.randn(1, 2, 6, 6, 4)
        first = conv(x)
        assert conv._cache is not None
        conv.kernel.head.mul_(2)
        second = conv(x)
        assert not torch.allclose(second, first)
        assert torch.equal(second, fresh_output(conv, x))


def test_any_memory_order_of_parameters():
    """Memory without gaps can be compared, e.g. after ``to(memory_format=torch.channels_last)``."""
    conv = build((1, -1), kernel="complete").eval().to(memory_format=torch.channels_last)
    assert not conv.kernel.radial.weight.is_contiguous()
    x = torch.randn(FIELD)
    before = output(conv, x)
    assert conv._cache is not None
    conv.kernel.radial.weight.data[0, 0, 0] += 1
    assert not torch.allclose(output(conv, x), before)
    conv.kernel.radial.weight.data = torch.zeros(1).expand_as(conv.kernel.radial.weight)
    output(conv, x)
    assert conv._cache is None  # numbers that share memory are not worth it


def test_parameters_that_are_views_of_one_vector():
    """As ``vector_to_parameters`` makes them: they may begin at any number of a storage."""
    conv = build((1, -1), c_in=32, c_out=32).eval()
    vector = torch.nn.utils.parameters_to_vector(conv.parameters()).detach()
    large = max(conv.parameters(), key=torch.Tensor.numel)
    assert large.numel() * large.element_size() > cache.LARGE
    for offset in (1, 2):
        shifted = torch.cat([torch.zeros(offset), vector])[offset:]
        torch.nn.utils.vector_to_parameters(shifted, conv.parameters())
        x = torch.randn(1, 32, 6, 5, 4)
        before = output(conv, x)
        assert conv._cache is not None
        shifted += 1
        assert not torch.allclose(output(conv, x), before)


def test_a_parametrised_bias_is_never_missed(conv):
    x, switch = torch.randn(FIELD), Switch()
    with torch.no_grad():
        conv.bias.add_(1)
    parametrize.register_parametrization(conv, "bias", switch)
    conv.eval()
    before = output(conv, x)
    switch.factor = 3.0
    assert not torch.allclose(output(conv, x), before)
