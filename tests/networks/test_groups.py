"""Networks of one group throughout: kernels, products, biases; and their files."""

import json

import pytest
import torch

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.conv import CliffordSteerablePointConv
from cscnn.geometry import all_pairs
from cscnn.kernels import Complete, Differential, Implicit
from cscnn.networks import (
    CSPointNet,
    CSResNet,
    CSUNet,
    FieldType,
    Grid,
    Neighbourhood,
    Recipe,
    build,
    calibrate_,
    load,
    save,
)
from cscnn.networks.files import KEY
from cscnn.nn import MVLinear
from cscnn.testing import conformance, grid_equivariance_errors, random_element, relative_error

PLANE, SPACETIME = CliffordAlgebra((1, 1)), CliffordAlgebra((1, -1))
TORUS = Grid(padding_mode="circular")
SPECIAL = Complete(group="SO", hidden_dim=4)
SMALL = {"kernel_size": 3, "grid": TORUS, "activation": "product"}


def resnet(algebra, c_in, c_out, kernel=SPECIAL, **options):
    return CSResNet(algebra, c_in, c_out, 2, 1, kernel=kernel, **{**SMALL, **options})


def unet(algebra, c_in, c_out):
    kernel = Complete(group="SO+", hidden_dim=4)
    return CSUNet(algebra, c_in, c_out, (2, 3), 1, 1, kernel=kernel, **SMALL)


def pointnet(algebra, c_in, c_out, kernel=SPECIAL, **options):
    near = Neighbourhood(neighbours=9)
    options = {"activation": "product", **options}
    return CSPointNet(algebra, c_in, c_out, 2, 1, neighbourhood=near, kernel=kernel, **options)


METRICS = ((1, 1), (1, -1))
# compiled in test_compile.py
TestCSResNet = conformance.network(resnet, metrics=METRICS, group="SO", compiles=False)
TestCSUNet = conformance.network(
    unet, metrics=[(1, -1, -1)], group="SO+", multiple=2, compiles=False
)
TestCSPointNet = conformance.point_network(
    pointnet, metrics=METRICS, group="SO", edges=all_pairs, compiles=False
)


def randomised(network):
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return network.double().eval()


@pytest.mark.parametrize("kernel", [Implicit(2, 4), SPECIAL, Differential(order=2, group="SO")])
@pytest.mark.parametrize("layers", ["O", "SO"])
def test_a_network_commutes_with_what_its_parts_have_in_common(kernel, layers):
    """Reflections are lost by the layers alone, or by the kernels alone."""
    network = randomised(resnet(PLANE, 2, 2, kernel, group=layers))
    assert network.group == layers
    errors = {
        group: grid_equivariance_errors(network, PLANE, (1, 2, 6, 6), group=group)["point group"]
        for group in ("O", "SO")
    }
    assert errors["SO"] < 1e-9
    assert (errors["O"] < 1e-9) == (layers == kernel.group == "O")
    assert errors["O"] < 1e-9 or errors["O"] > 1e-3


@pytest.mark.parametrize("layers", ["O", "SO"])
def test_reflections_of_points(layers):
    network = randomised(pointnet(SPACETIME, 2, 2, Complete(hidden_dim=4), group=layers))
    generator = torch.Generator().manual_seed(0)
    x, points = torch.randn(9, 2, 4, dtype=torch.float64), torch.randn(9, 2, dtype=torch.float64)
    for kind in ("reflection", "boost"):
        g = random_element(SPACETIME, "O", kind, 0.5, generator)
        moved = network(SPACETIME.transform(g, x), all_pairs(points @ g.mT))
        error = relative_error(moved, SPACETIME.transform(g, network(x, all_pairs(points))))
        assert error > 1e-3 if (kind, layers) == ("reflection", "SO") else error < 1e-9


@pytest.mark.parametrize("make", [resnet, pointnet])
def test_the_group_is_that_of_the_kernel_unless_given(make):
    special = make(PLANE, 2, 2)
    assert special.group == "SO"
    assert {m.group for m in special.modules() if isinstance(m, MVLinear)} == {"SO"}
    convolutions = (CliffordSteerableConv, CliffordSteerablePointConv)
    biases = [m.bias for m in special.modules() if isinstance(m, convolutions)]
    assert {bias.dim() for bias in biases} == {2}
    plain, arrow, of_kernels = (
        make(SPACETIME, 2, 2, Complete(group=group, hidden_dim=4), **options)
        for group, options in (("O", {}), ("O+", {}), ("SO", {"group": "O"}))
    )
    assert (plain.group, arrow.group, of_kernels.group) == ("O", "O+", "O")
    for network in (arrow, of_kernels):
        linear = [m.weight.shape for m in network.modules() if isinstance(m, MVLinear)]
        assert linear == [m.weight.shape for m in plain.modules() if isinstance(m, MVLinear)]
        assert all(m.bias.dim() == 1 for m in network.modules() if isinstance(m, convolutions))
    with pytest.raises(ValueError, match="there is no group 'SO\\+' here"):
        make(PLANE, 2, 2, group="SO+")
    with pytest.raises(ValueError, match=r"blades \[3\] .* not invariant under O\(2, 0\)"):
        CliffordSteerableConv(PLANE, 1, 1, 3, kernel=Complete(), bias=(0, 3))


def test_calibration_centres_pseudoscalars():
    network = resnet(PLANE, 2, 2, activation="gate")
    noise = torch.randn(4, 2, 16, 16, 4)
    calibrate_(network, noise)
    means = []

    def record(layer, _, y):
        means.append(y[..., 3].mean((0, 2, 3)).abs().max().item())

    for module in network.modules():
        if isinstance(module, CliffordSteerableConv):
            module.register_forward_hook(record)
    network(noise)
    assert len(means) == 6
    assert max(means) < 1e-4
    biases = [m.bias for m in network.modules() if isinstance(m, CliffordSteerableConv)]
    assert any(bias[:, 1].abs().max() > 1e-3 for bias in biases)


# --- files ----------------------------------------------------------------------------------------

safetensors = pytest.importorskip("safetensors.torch")
FLOW = FieldType.full(PLANE, 2)
OPTIONS = {"width": 2, "blocks": 1, "kernel_size": 3, "kernel": SPECIAL, "activation": "product"}


def test_files_say_the_group_of_layers(tmp_path):
    network = randomised(build("cs_resnet", FLOW, FLOW, TORUS, **OPTIONS))
    assert network.recipe.options["group"] == "SO"
    save(tmp_path / "net", network)
    again = load(tmp_path / "net")
    assert (again.group, again.recipe) == ("SO", network.recipe)
    x = FLOW.noise((1, 6, 6)).double()
    assert torch.equal(again(x), network(x))
    by_hand = resnet(PLANE, 2, 2)
    by_hand.recipe = Recipe("cs_resnet", FLOW, FLOW, TORUS, OPTIONS)
    save(tmp_path / "by hand", by_hand)
    assert load(tmp_path / "by hand").group == "SO"


@pytest.mark.parametrize("kernel", [Complete(hidden_dim=4), Complete("O+", hidden_dim=4)])
def test_files_of_other_groups_say_nothing(kernel, tmp_path):
    """They are as they were before layers had groups."""
    flow = FieldType.full(SPACETIME, 2)
    network = build("cs_resnet", flow, flow, TORUS, **{**OPTIONS, "kernel": kernel})
    assert "group" not in network.recipe.options
    save(tmp_path / "net", network)
    assert load(tmp_path / "net").group == kernel.group


def test_files_that_say_nothing_have_layers_of_o(tmp_path):
    """Files with kernels of SO from before layers had groups."""
    network = build("cs_resnet", FLOW, FLOW, TORUS, **OPTIONS, group="O").eval()
    save(tmp_path / "new", network)
    with safetensors.safe_open(tmp_path / "new", "pt") as file:
        described = json.loads(file.metadata()[KEY])
    assert described["options"].pop("group") == "O"
    tensors = safetensors.load_file(tmp_path / "new")
    safetensors.save_file(tensors, tmp_path / "old", {KEY: json.dumps(described)})
    old, x = load(tmp_path / "old"), FLOW.noise((1, 6, 6))
    assert old.group == "O"
    assert torch.equal(old(x), network(x))
    save(tmp_path / "again", old)
    assert load(tmp_path / "again").group == "O"
