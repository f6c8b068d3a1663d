"""Networks in files: one file rebuilds the network, or says in one line why it cannot."""

import json

import pytest
import torch

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
    save,
)
from cscnn.networks.files import KEY
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
    with pytest.raises(ValueError, match=r"net: cannot build cs_resnet from it: .*Missing key"):
        load(path)
    write(path, {KEY: json.dumps({**described, "name": "vgg"})})
    with pytest.raises(ValueError, match=r"cannot build vgg from it: unknown network 'vgg'"):
        load(path)
