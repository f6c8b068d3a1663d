"""Networks of multivectors with symmetric tensors pass the conformance kit, and fit into files."""

import pytest
import torch

from cscnn import CliffordAlgebra, networks
from cscnn.geometry import all_pairs
from cscnn.kernels import Complete, Differential, Implicit
from cscnn.networks import CSPointNet, CSResNet, CSUNet, FieldType, Grid, Neighbourhood, build
from cscnn.testing import conformance
from tests.networks.tiny import OPTIONS, need

PLANE, SPACETIME = (CliffordAlgebra(metric, symmetric=True) for metric in ((1, 1), (1, -1)))
TORUS = Grid(padding_mode="circular")


def resnet(algebra, c_in, c_out):
    kernel = Complete(hidden_dim=4)
    return CSResNet(
        algebra, c_in, c_out, 2, 1, kernel_size=3, kernel=kernel, activation="product", grid=TORUS
    )


def paper_resnet(algebra, c_in, c_out):
    kernel = Implicit(num_layers=2, hidden_dim=4)
    return CSResNet(algebra, c_in, c_out, 2, 1, kernel_size=3, kernel=kernel, grid=TORUS)


def unet(algebra, c_in, c_out):
    kernel = Differential(order=2)
    return CSUNet(algebra, c_in, c_out, (2, 3), 1, 1, kernel_size=3, kernel=kernel, grid=TORUS)


def pointnet(algebra, c_in, c_out):
    near = Neighbourhood(neighbours=9)
    kernel = Complete(hidden_dim=4)
    return CSPointNet(
        algebra, c_in, c_out, 2, 1, neighbourhood=near, kernel=kernel, activation="product"
    )


def paper_pointnet(algebra, c_in, c_out):
    near = Neighbourhood(neighbours=9)
    kernel = Implicit(num_layers=2, hidden_dim=4)
    return CSPointNet(algebra, c_in, c_out, 2, 1, neighbourhood=near, kernel=kernel)


TestResNet = conformance.network(resnet, metrics=(PLANE, SPACETIME), compiles=False)
TestResNetOfThePaper = conformance.network(
    paper_resnet, metrics=(PLANE,), compiles=False, idle=("*.position_width", "*.mask_width")
)
TestUNet = conformance.network(unet, metrics=(PLANE,), multiple=2, compiles=False)
TestPointNet = conformance.point_network(
    pointnet, metrics=(PLANE, SPACETIME), edges=all_pairs, compiles=False
)
TestPointNetOfThePaper = conformance.point_network(
    paper_pointnet, metrics=(PLANE, SPACETIME), edges=all_pairs, compiles=False
)


def stress_and_velocity():
    """Velocity and the trace of the stress share a channel with its traceless part."""
    return FieldType(PLANE, ((0, 1, 3),))


@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "clifford_resnet"])
def test_every_network_takes_tensors(name, tmp_path):
    """Those of components see five of them; files bring back the same numbers."""
    need(name)
    types = stress_and_velocity(), stress_and_velocity()
    assert types[0].components == 5
    net = build(name, *types, TORUS, width=2, **OPTIONS[name])
    x = types[0].noise((2, 8, 8))
    y = net.eval()(x)
    assert y.shape == x.shape
    networks.save(tmp_path / "net.safetensors", net)
    again = networks.load(tmp_path / "net.safetensors")
    assert again.recipe.input_type.algebra == PLANE
    assert torch.equal(again(x), y)


def test_clifford_layers_have_no_tensors():
    need("clifford_resnet")
    full = FieldType.full(PLANE, 1)
    with pytest.raises(ValueError, match=r"multivectors only, got .*symmetric=True"):
        build("clifford_resnet", full, full, TORUS, width=2)


def test_files_without_tensors_do_not_speak_of_them(tmp_path):
    plain = FieldType.full(PLANE.multivectors, 1)
    net = build("cs_resnet", plain, plain, TORUS, **{**OPTIONS["cs_resnet"], "width": 2})
    networks.save(tmp_path / "net.safetensors", net)
    assert b"symmetric" not in (tmp_path / "net.safetensors").read_bytes()
    with pytest.raises(ValueError, match=r"channel 0 has grade 3, .* has 0\.\.2"):
        FieldType(PLANE.multivectors, ((3,),))
