"""Numbers of the published JAX code, where its golden files are at hand."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.interop import load_flax_params
from cscnn.kernels import CompleteKernel, Implicit
from cscnn.testing import relative_error

FOLDER = Path(__file__).parents[3] / "shared" / "golden"
FILES = sorted(FOLDER.glob("conv_*.npz"))


@pytest.mark.external
@pytest.mark.skipif(not FILES, reason=f"no golden files in {FOLDER}")
@pytest.mark.parametrize("path", FILES, ids=lambda p: getattr(p, "stem", "none"))
def test_golden(path):
    with np.load(path) as data:
        arrays = {name: data[name] for name in data.files}
    config = json.loads(str(arrays["config"]))
    conv = CliffordSteerableConv(
        CliffordAlgebra(config["metric"]),
        config["c_in"],
        config["c_out"],
        config["kernel_size"],
        kernel=Implicit(config["num_layers"], config["hidden_dim"]),
        padding_mode="zeros" if config["padding_mode"] == "SAME" else config["padding_mode"],
        stride=config["stride"],
    ).double()
    params = {name[6:]: v for name, v in arrays.items() if name.startswith("param/")}
    load_flax_params(conv, params)
    assert relative_error(conv.expanded_kernel(), torch.tensor(arrays["kernel"])) < 1e-9
    assert relative_error(conv(torch.tensor(arrays["x"])), torch.tensor(arrays["y"])) < 1e-9


def flax_params(conv):
    """The published names and shapes, with random values."""
    rng = np.random.default_rng(0)
    net = "CliffordSteerableKernel_0/KernelNetwork_0"
    layer = f"{net}/FullyConnectedSteerableGeometricProductLayer"
    shapes = {
        "bias": (1, 2, 1, 1, 1),
        "CliffordSteerableKernel_0/rel_pos_sigma": (1, 1, 1),
        "CliffordSteerableKernel_0/ScalarShell_0/kernel_width": (2, 1, 3),
        "CliffordSteerableKernel_0/WeightedCayley_0/weight": (2, 1, 10),
        f"{net}/GradeNorm_0/factor": (1, 3, 3),
    }
    for i, (a, b) in enumerate([(1, 3), (3, 2)]):
        shapes |= {
            f"{layer}_{i}/GradeNorm_0/factor": (1, a, 3),
            f"{layer}_{i}/MVLinear_0/weight": (a, a, 3),
            f"{layer}_{i}/MVLinear_1/weight": (b, a, 3),
            f"{layer}_{i}/MVLinear_1/bias": (1, b, 1),
            f"{layer}_{i}/WeightedCayley_0/weight": (b, a, 10),
        }
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def small_conv(unit_variance):
    kernel = Implicit(num_layers=2, hidden_dim=3, unit_variance=unit_variance)
    return CliffordSteerableConv(CliffordAlgebra((1, 1)), 1, 2, 3, kernel=kernel)


@pytest.fixture
def conv():
    return small_conv(unit_variance=False)


def test_flat_and_nested_names(conv):
    flat = flax_params(conv)
    nested = {}
    for name, value in flat.items():
        *folders, leaf = name.split("/")
        place = nested
        for folder in folders:
            place = place.setdefault(folder, {})
        place[leaf] = value
    load_flax_params(conv, flat)
    from_flat = conv.expanded_kernel()
    assert conv.bias.detach().numpy() == pytest.approx(flat["bias"].ravel(), rel=1e-6)
    conv.kernel.reset_parameters()
    for params in ({"params": nested}, {f"params/{name}": value for name, value in flat.items()}):
        conv.kernel.reset_parameters()
        load_flax_params(conv, params)
        assert torch.equal(conv.expanded_kernel(), from_flat)


def test_published_weights_bring_their_size(conv):
    """Whatever size the kernel was given before."""
    scaled = small_conv(unit_variance=True)
    assert scaled.kernel.gain.unique().numel() > 1
    params = flax_params(conv)
    for module in (conv, scaled):
        load_flax_params(module, params)
    assert torch.equal(conv.expanded_kernel(), scaled.expanded_kernel())


def test_names_and_shapes_that_do_not_fit(conv):
    before = {name: value.clone() for name, value in conv.state_dict().items()}
    params = flax_params(conv)
    del params["bias"]
    params["surplus/weight"] = np.zeros(3)
    with pytest.raises(ValueError, match=r"missing \['bias'\], unknown \['surplus/weight'\]"):
        load_flax_params(conv, params)
    params = flax_params(conv)
    params["CliffordSteerableKernel_0/WeightedCayley_0/weight"] = np.zeros((2, 1, 9))
    with pytest.raises(ValueError, match=r"shape \(2, 1, 9\), the module expects \(2, 1, 10\)"):
        load_flax_params(conv, params)
    for name, value in conv.state_dict().items():
        assert torch.equal(value, before[name])
    swapped = flax_params(conv)
    swapped["CliffordSteerableKernel_0/WeightedCayley_0/weight"] = np.zeros((1, 2, 10))
    with pytest.raises(ValueError, match=r"shape \(1, 2, 10\), the module expects \(2, 1, 10\)"):
        load_flax_params(conv, swapped)
    with pytest.raises(TypeError, match="no published counterpart is known for CompleteKernel"):
        load_flax_params(CompleteKernel(conv.algebra, 1, 1), {})
