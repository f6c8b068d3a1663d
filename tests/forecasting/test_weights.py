"""Files of forecasters: plain names, all types of numbers, nothing damaged."""

import warnings

import pytest
import torch
from torch.nn.utils import parametrize

from cscnn.forecasting import Forecaster
from cscnn.testing import relative_error
from tests.forecasting.test_forecaster import FLUID, UNITS, frames, tiny
from tests.networks.tiny import OPTIONS


def test_every_bit_of_a_file_is_checked(tmp_path):
    path = tmp_path / "a.safetensors"
    tiny().save(path)
    content = path.read_bytes()
    Forecaster.load(path)
    for position in range(3, len(content), len(content) // 60):
        flipped = bytearray(content)
        flipped[position] ^= 1
        path.write_bytes(flipped)
        with pytest.raises(ValueError, match=r"a\.safetensors"):
            Forecaster.load(path)


class Half(torch.nn.Module):
    def forward(self, x):
        return x / 2


def compiled(forecaster):
    forecaster.network = torch.compile(forecaster.network, backend="eager")


def compiled_block(forecaster):
    blocks = forecaster.network.network.blocks
    blocks[0] = torch.compile(blocks[0], backend="eager")


def parametrised(forecaster):
    parametrize.register_parametrization(layer(forecaster), "weight", Half())
    parametrize.register_parametrization(layer(forecaster), "bias", Half())


def normalised(forecaster):
    torch.nn.utils.parametrizations.weight_norm(layer(forecaster))


def normalised_by_a_hook(forecaster):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # it is an old one
        torch.nn.utils.weight_norm(layer(forecaster))


def layer(forecaster):
    return next(m for m in forecaster.modules() if isinstance(m, torch.nn.Conv2d))


@pytest.mark.parametrize(
    "change", [compiled, compiled_block, parametrised, normalised, normalised_by_a_hook]
)
def test_changed_networks_are_saved_as_plain_ones(change, tmp_path):
    forecaster, known = tiny("resnet").eval(), frames(FLUID)
    names = set(forecaster.network.state_dict())
    change(forecaster)
    assert set(forecaster.network.state_dict()) != names
    with torch.no_grad():
        expected = forecaster(known)["smoke"]
    forecaster.save(tmp_path / "a.safetensors")
    again = Forecaster.load(tmp_path / "a.safetensors")
    assert set(again.network.state_dict()) == names
    torch.testing.assert_close(again(known)["smoke"], expected)


@pytest.mark.parametrize("name", OPTIONS)
def test_an_empty_batch_has_an_empty_forecast(name):
    made = tiny(name).eval()(frames(FLUID, batch=0), steps=2)
    assert made["velocity"].shape == (0, 2, 8, 8, 2)


def test_complex_weights_of_double_precision(tmp_path):
    forecaster = tiny("fno").double().eval()
    forecaster.save(tmp_path / "a.safetensors")
    again, known = Forecaster.load(tmp_path / "a.safetensors"), frames(FLUID)
    assert {p.dtype for p in again.parameters()} == {torch.float64, torch.complex128}
    assert torch.equal(again(known)["smoke"], forecaster(known)["smoke"])


def test_weights_of_16_bits_forecast_in_single_precision(tmp_path):
    forecaster = tiny(units=UNITS).to(torch.bfloat16)
    forecaster.save(tmp_path / "a.safetensors")
    again, known = Forecaster.load(tmp_path / "a.safetensors"), frames(FLUID)
    assert again.dtype == torch.bfloat16
    made = again(known, steps=2)["smoke"]
    assert made.dtype == torch.float32
    expected = again.float()(known, steps=2)["smoke"]
    assert 0 < relative_error(made, expected) < 0.05
