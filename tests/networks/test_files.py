"""Networks in files: one file rebuilds the network, or says in one line why it cannot."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from cscnn import CliffordAlgebra
from cscnn.geometry import all_pairs
from cscnn.kernels import Complete
from cscnn.networks import (
    CSResNet,
    FieldType,
    Grid,
    Neighbourhood,
    Recipe,
    build,
    load,
    plain_convolutions,
    register,
    save,
)
from cscnn.networks.files import CHECKSUM, KEY
from cscnn.testing import relative_error
from tests.networks.tiny import SERVED, SPACES, sample, tiny

safetensors = pytest.importorskip("safetensors.torch")

PLANE = SPACES["plane"]


@pytest.mark.parametrize(("name", "where"), SERVED)
def test_one_file_is_enough(name, where, tmp_path):
    on = SPACES[where]
    network = tiny(name, on).eval()
    path = tmp_path / "net.safetensors"
    save(path, network)
    again = load(path)
    assert list(tmp_path.iterdir()) == [path]
    assert type(again) is type(network)
    assert not again.training
    assert again.recipe == network.recipe
    assert again.recipe.space == on.grid
    x = sample(on)
    assert torch.equal(again(x), network(x))


def test_networks_along_edges(tmp_path):
    full, near = FieldType.full(CliffordAlgebra((1, -1)), 2), Neighbourhood(2.0, 9, "sum", True)
    network = build("cs_pointnet", full, full, near, width=(2, 3), blocks=1, kernel=Complete("O+"))
    save(tmp_path / "net", network.double())
    again = load(tmp_path / "net")
    assert again.recipe.space == near
    assert again.recipe.options["kernel"]["group"] == "O+"
    edges, x = all_pairs(torch.randn(5, 2).double()), torch.randn(5, 2, 4).double()
    assert all(torch.equal(t, again.state_dict()[name]) for name, t in network.state_dict().items())
    assert relative_error(again(x, edges), network(x, edges)) < 1e-14  # memory may lie otherwise


@pytest.mark.parametrize("kernel", ["implicit", "complete"])
@pytest.mark.parametrize("name", ["cs_resnet", "cs_unet"])
def test_conditional_kernels(name, kernel, tmp_path):
    options = {"name": kernel, "hidden_dim": 3, "condition": 2}
    network = tiny(name, PLANE, kernel=options).eval()
    save(tmp_path / "net", network)
    again = load(tmp_path / "net")
    assert again.recipe.options["kernel"] == options
    x = sample(PLANE, batch=2)
    assert torch.equal(again(x), network(x))
    network, x = network.double(), x.double()
    assert relative_error(network(x[1:]), network(x)[1:]) < 1e-11


def test_precision_and_random_numbers_stay(tmp_path):
    save(tmp_path / "net", tiny("cs_resnet", PLANE).double())
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    again = load(tmp_path / "net", device="cpu")
    assert torch.equal(torch.rand(1), expected)
    assert {p.dtype for p in again.parameters()} == {torch.float64}


def test_networks_made_by_hand_are_given_a_recipe(tmp_path):
    wind = FieldType(CliffordAlgebra((1, 1)), ((1,),))
    grid, options = Grid((0.5, 0.25), "circular"), {"width": 2, "blocks": 1, "kernel_size": 3}
    kernel = Complete(hidden_dim=4)
    network = CSResNet(wind.algebra, 1, 1, kernel=kernel, grid=grid, **options).eval()
    with pytest.raises(
        ValueError, match=r"this CSResNet does not know how it was made: make it by"
    ):
        save(tmp_path / "net", network)
    network.recipe = Recipe("cs_resnet", wind, wind, grid, {**options, "kernel": kernel})
    save(tmp_path / "net", network)
    x = wind.noise((1, 6, 6))
    torch.testing.assert_close(load(tmp_path / "net")(x), network(x))


def test_options_can_be_written_or_are_refused(tmp_path):
    network = tiny("cs_resnet", PLANE, width=np.int64(2), blocks=torch.tensor(1))
    assert network.recipe.options["width"] == 2
    save(tmp_path / "net", network)
    assert load(tmp_path / "net").recipe == network.recipe
    with pytest.raises(TypeError, match=r"option width cannot be written .*\{2\} \(set\)"):
        Recipe("cs_resnet", network.recipe.input_type, network.recipe.output_type, None,
               {"width": {2}})  # fmt: skip


def test_what_is_no_longer_the_network_has_no_recipe(tmp_path):
    with pytest.raises(ValueError, match="does not know how it was made"):
        save(tmp_path / "net", plain_convolutions(tiny("cs_resnet", PLANE)))


def write(path, metadata):
    safetensors.save_file({"a": torch.ones(1)}, path, metadata)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (None, "does not describe a network of cscnn, its metadata have: nothing"),
        ({"cscnn_model": "{}"}, "does not describe a network of cscnn.*: cscnn_model"),
        ({KEY: "{"}, "its description is damaged"),
        ({KEY: '{"format": 99}'}, "has format 99 of cscnn_network, this cscnn reads 1"),
        ({KEY: '{"format": 1, "name": 3}'}, r"net\.name: expected str, got 3"),
    ],
)
def test_bad_descriptions(metadata, message, tmp_path):
    write(tmp_path / "net", metadata)
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "net")


def test_bad_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none"):
        load(tmp_path / "none")
    path = tmp_path / "net"
    path.write_bytes(b"hello")
    with pytest.raises(ValueError, match="is not a readable safetensors file"):
        load(path)
    save(path, tiny("cs_resnet", PLANE))
    with safetensors.safe_open(path, "pt") as file:
        described = json.loads(file.metadata()[KEY])
    write(path, {KEY: json.dumps(described)})
    with pytest.raises(
        ValueError,
        match=r"net: cannot build cs_resnet from it: its weights are not those of this network: "
        r"\d+ absent, the first blocks\..*; 1 unknown, the first a\. .* train it again",
    ):
        load(path)
    write(path, {KEY: json.dumps({**described, "name": "vgg"})})
    with pytest.raises(ValueError, match=r"cannot build vgg from it: unknown network 'vgg'"):
        load(path)


@pytest.mark.parametrize("reserved", [KEY, CHECKSUM])
def test_metadata_do_not_replace_the_description(reserved, tmp_path):
    with pytest.raises(ValueError, match=f"{reserved} are written by save itself"):
        save(tmp_path / "net", tiny("cs_resnet", PLANE), metadata={reserved: "{}"})


def test_a_loaded_network_does_not_depend_on_its_file(tmp_path):
    save(tmp_path / "net", tiny("cs_resnet", PLANE))
    network = load(tmp_path / "net")
    x = sample(PLANE)
    before = network(x)
    content = (tmp_path / "net").read_bytes()
    with (tmp_path / "net").open("r+b") as file:  # in place, as copies of files are made
        file.write(b"\0" * len(content))
    assert torch.equal(network(x), before)


class Unusual(nn.Module):
    """Complex, shared and mixed tensors."""

    def __init__(self, algebra, c_in, c_out):
        super().__init__()
        self.register_buffer("mean", torch.zeros(1, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(1), persistent=False)
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.phase = nn.Parameter(torch.randn(3, dtype=torch.complex64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_complex_shared_and_mixed_tensors(dtype, tmp_path, fresh_registry):
    register("unusual")(Unusual)
    full = FieldType.full(CliffordAlgebra((1, 1)), 1)
    network = build("unusual", full, full)
    if dtype == torch.float64:
        network.first.double()
        network.phase = nn.Parameter(network.phase.detach().to(torch.complex128))
    save(tmp_path / "net", network)
    again = load(tmp_path / "net")
    for name, tensor in network.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor)
        assert again.state_dict()[name].dtype == tensor.dtype
    assert again.second.weight is again.first.weight
    assert again.scale.dtype == dtype
    assert again.phase.dtype.is_complex


@pytest.mark.filterwarnings("ignore:.*spectral_norm.*:FutureWarning")
def test_spectral_norms_are_saved_as_what_they_compute(tmp_path):
    network = tiny("resnet", PLANE)
    conv = next(m for m in network.modules() if isinstance(m, nn.Conv2d))
    nn.utils.spectral_norm(conv)
    x = sample(PLANE)
    network.train()(x)  # a step of the power iteration
    save(tmp_path / "net", network)
    torch.testing.assert_close(load(tmp_path / "net")(x), network.eval()(x))
