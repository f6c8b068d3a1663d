"""Every network on every space it serves: runs, parts, files, registry."""

import copy
import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.interop import load_flax_params
from cscnn.kernels import Complete, Implicit
from cscnn.networks import (
    CSResNet,
    FieldType,
    OnComponents,
    ProductGate,
    build,
    calibrate_,
    names,
    plain_convolutions,
    recompute_blocks,
    register,
)
from cscnn.networks.blocks import ResidualBlock
from cscnn.nn import MVGELU
from cscnn.testing import assert_equivariant, relative_error
from tests.networks.tiny import OWN, SERVED, SPACES, UNSUPPORTED, sample, tiny

GOLDEN = Path(__file__).parents[3] / "shared" / "golden" / "csresnet_e2.npz"
PLANE = SPACES["plane"]


def in_plane(name, **options):
    return build(name, PLANE.input_type, PLANE.output_type, PLANE.grid, **options)


def test_names():
    assert names() == tuple(sorted((*OWN, "cs_pointnet")))
    with pytest.raises(ValueError, match=r"unknown network 'vit': choose from clifford_resnet"):
        in_plane("vit")
    with pytest.raises(TypeError, match=r"resnet has the options .*width.*; got \['depth'\]"):
        in_plane("resnet", depth=3)
    with pytest.raises(
        TypeError, match=r"fno has the options .*operator_options.*; got \['norm'\]"
    ):
        in_plane("fno", norm="instance_norm")


@pytest.mark.parametrize(("name", "where"), SERVED)
def test_runs_trains_and_copies(name, where):
    network = tiny(name, SPACES[where])
    x = sample(SPACES[where])
    network(x).square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())
    y = network.eval()(x)
    assert y.shape == (1, SPACES[where].output_type.channels, *x.shape[2:])
    if where != "spacetime4d":
        assert torch.equal(copy.deepcopy(network)(x), y)
        assert torch.equal(pickle.loads(pickle.dumps(network))(x), y)


@pytest.mark.parametrize(("name", "where"), UNSUPPORTED)
def test_says_what_it_cannot_do(name, where):
    with pytest.raises(ValueError, match=UNSUPPORTED[name, where]):
        tiny(name, SPACES[where])


def test_constructors_draw_and_nothing_else():
    """Building twice from one seed gives the same weights, and calibration is a call."""
    networks = []
    for _ in range(2):
        torch.manual_seed(0)
        networks.append(CSResNet(PLANE.algebra, 2, 1, width=2, blocks=1, kernel_size=3))
    states = [network.state_dict() for network in networks]
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())
    calibrate_(networks[0], torch.randn(2, 2, 8, 8, 4))
    changed = networks[0].state_dict()
    assert any(not torch.equal(value, changed[name]) for name, value in states[1].items())
    with pytest.raises(TypeError, match="needs a network that has the methods entries and last"):
        calibrate_(torch.nn.Linear(2, 2), torch.randn(2, 2))


# --- what carries data ----------------------------------------------------------------------------


def test_field_types():
    algebra = CliffordAlgebra((1, 1))
    mixed = FieldType(algebra, ((0, 1), (0,), (2,)))
    assert (mixed.channels, mixed.components) == (3, 5)
    assert mixed.mask.int().tolist() == [[1, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1]]
    x = mixed.noise((2, 3, 5))
    assert torch.equal(mixed.insert(mixed.extract(x)), x)
    assert mixed.extract(x).shape == (2, 5, 3, 5)
    assert torch.equal(mixed.extract(x)[:, 3], x[:, 1, ..., 0])
    assert (x.square().mean((0, 2, 3)) > 0).int().tolist() == mixed.mask.int().tolist()
    assert FieldType.full(algebra, 2).components == 8
    both = mixed + FieldType(algebra, ((1,),))
    assert both.components == 7
    with pytest.raises(TypeError, match=r"one tuple of grades for each channel.* got \(0, 1\)"):
        FieldType(CliffordAlgebra((1, 1)), (0, 1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="channel 1 has grade 3"):
        FieldType(algebra, ((0,), (3,)))
    with pytest.raises(ValueError, match="cannot join"):
        _ = mixed + FieldType(CliffordAlgebra((1,)), ((0,),))


def test_networks_of_components_see_what_carries_data_only():
    line = SPACES["line"]
    network = tiny("resnet", line)
    assert isinstance(network, OnComponents)
    first, last = network.network.embedding[0].conv, network.network.output[-1].conv
    assert first.in_channels == line.input_type.components == 6
    assert last.out_channels == line.output_type.components == 4
    x = sample(line)
    y = network(x)
    assert (y[:, ~line.output_type.mask.any(-1)] == 0).all()
    assert y[:, 1, ..., 1:].abs().max() == 0  # the second channel holds a scalar
    dirty = x + (~line.input_type.mask).float().reshape(3, 1, 1, 4)
    assert torch.equal(network(dirty), y)


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [(1, 1), (1, -1), (1, -1, -1)])
def test_product_gate(metric):
    algebra = CliffordAlgebra(metric)
    gate = ProductGate(algebra, 3)
    x = torch.randn(4, 3, algebra.n_blades)
    plain = MVGELU(algebra)(x)
    assert relative_error(gate(x), plain) < 1e-6  # weights of products start at zero
    torch.nn.init.normal_(gate.weight)
    assert relative_error(gate(x), plain) > 0.1
    assert_equivariant(gate, algebra, shape=(4, 3))


def test_product_gates_are_bounded_where_grades_cancel():
    """1 + e2 has square zero in R^{1,1}, but neither part is null; 1 + e1 + e2 has a null one."""
    algebra = CliffordAlgebra((1, -1))
    gate = ProductGate(algebra, 1)
    torch.nn.init.ones_(gate.mix.weight)
    torch.nn.init.ones_(gate.weight)
    x = 1000 * torch.tensor([1.0, 0.0, 1.0, 0.0]).expand(1, 1, 4)
    assert algebra.norm_squared(x).item() == 0
    assert gate(x).abs().max() < 4 * x.abs().max()
    large = 1e25 * torch.tensor([1.0, 0.0, 1.0, 0.0]).expand(1, 1, 4)
    assert relative_error(gate(large) / 1e22, gate(x)) < 1e-2  # squares overflow float32
    null = 1000 * torch.tensor([1e-3, 1.0, 1.0, 0.0]).expand(1, 1, 4)
    assert gate(null).abs().max() > null.abs().max()  # no invariant sees how large it is


def test_operators_of_neuralop_take_its_options():
    network = tiny("fno", PLANE, operator_options={"norm": "instance_norm"})
    assert any("InstanceNorm" in type(m).__name__ for m in network.modules())


def test_plain_convolutions_are_the_same_map():
    for name in ("cs_resnet", "cs_unet"):
        network = tiny(name, PLANE).eval()
        x = sample(PLANE)
        exported = plain_convolutions(network)
        assert not any(hasattr(m, "expanded_kernel") for m in exported.modules())
        assert relative_error(exported(x), network(x)) < 1e-4


@pytest.mark.parametrize("name", ["cs_resnet", "cs_unet"])
def test_recomputing_changes_nothing(name):
    network = tiny(name, PLANE)
    x = sample(PLANE)
    grads = []
    for recompute in (False, True):
        recompute_blocks(network, recompute)
        network.zero_grad()
        network(x).square().sum().backward()
        grads.append([p.grad.clone() for p in network.parameters()])
    blocks = [m for m in network.modules() if isinstance(m, ResidualBlock)]
    assert blocks
    assert all(block.recompute for block in blocks)
    assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(*grads, strict=True))


def test_kernels_are_typed_named_or_json():
    for kernel in (Complete(group="SO"), {"name": "complete", "group": "SO"}):
        network = CSResNet(PLANE.algebra, 1, 1, width=2, blocks=1, kernel_size=3, kernel=kernel)
        assert network.kernel == Complete(group="SO")
        assert network.blocks[0].convs[0].kernel.group == "SO"
    assert CSResNet(PLANE.algebra, 1, 1, width=1, blocks=1, kernel="implicit").kernel == Implicit()
    with pytest.raises(ValueError, match="activation must be one of gate, product, got 'relu'"):
        CSResNet(PLANE.algebra, 1, 1, activation="relu")
    with pytest.raises(ValueError, match=r"width is a number of channels.*got \[1, 2, 3\]"):
        CSResNet(PLANE.algebra, 1, 1, width=[1, 2, 3])


@pytest.mark.external
@pytest.mark.skipif(not GOLDEN.is_file(), reason=f"there is no {GOLDEN.name}")
def test_published_network():
    data = np.load(GOLDEN, allow_pickle=False)
    config = json.loads(str(data["config"]))
    network = CSResNet(
        CliffordAlgebra(config["metric"]),
        c_in=data["x"].shape[1],
        c_out=data["y"].shape[1],
        width=config["hidden_channels"],
        blocks=sum(config["blocks"]),
        kernel_size=config["kernel_size"],
        kernel=Implicit(config["kernel_num_layers"], config["kernel_hidden_dim"]),
    ).double()
    load_flax_params(network, {k[6:]: data[k] for k in data.files if k.startswith("param/")})
    y = network(torch.from_numpy(np.array(data["x"])))
    assert relative_error(y, torch.from_numpy(np.array(data["y"]))) < 1e-9


# --- input, registry ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["resnet", "cs_resnet", "clifford_resnet", "gfno"])
def test_wrong_input_is_refused(name):
    network = tiny(name, PLANE)
    with pytest.raises(ValueError, match=r"shape \(batch, 5, \*, \*, 4\), got \(1, 3, 8, 8, 4\)"):
        network(torch.randn(1, 3, 8, 8, 4))
    x = sample(PLANE)
    with pytest.raises(TypeError, match=r"float64 but the network's weights are torch\.float32"):
        network(x.double())
    with pytest.raises(TypeError, match="must be a dense tensor"):
        network(x.to_sparse())
    with pytest.raises(TypeError, match=r"real floating dtype .*, got torch\.complex64"):
        network(x.to(torch.complex64))


def test_fields_that_clifford_norms_cannot_take():
    """Their covariances overflow, and cliffordlayers does not say so."""
    x = sample(PLANE)
    with pytest.raises(ValueError, match=r"largest number is \d.*e\+2\d: bring them to a size"):
        tiny("clifford_resnet", PLANE)(1e20 * x)
    assert tiny("clifford_resnet", PLANE, norm=False)(1e20 * x).isfinite().all()


def test_users_register_networks(fresh_registry):
    @register("zero")
    class Zero(torch.nn.Module):
        def __init__(self, algebra, c_in, c_out, width=1):
            super().__init__()
            self.c_out = c_out
            self.scale = torch.nn.Parameter(torch.zeros(width))

        def forward(self, x):
            return x[:, : self.c_out] * self.scale.sum()

    network = in_plane("zero", width=3)
    assert network(sample(PLANE)).abs().sum() == 0
    with pytest.raises(ValueError, match="there is a network named 'resnet' already"):
        register("resnet")(Zero)
    register("zero")(Zero)  # again, as when a module is reloaded
    double = type("Zero", (Zero,), {"__module__": "elsewhere", "__qualname__": Zero.__qualname__})
    with pytest.raises(ValueError, match=r"there is a network named 'zero' already, .*Zero"):
        register("zero")(double)


PLUGIN = """
from torch import nn

class First(nn.Module):
    def __init__(self, algebra, c_in, c_out, width=1):
        super().__init__()
        self.c_out = c_out

    def forward(self, x):
        return x[:, : self.c_out]
"""


def install(folder, package, source, entry_point):
    """A package as pip leaves it, with an entry point for networks."""
    (folder / f"{package}.py").write_text(source)
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[cscnn.networks]\n{entry_point}\n")


def test_other_packages_offer_networks(tmp_path, monkeypatch, fresh_registry):
    install(tmp_path, "plugin", PLUGIN, "first = plugin:First")
    assert "first" not in names()
    monkeypatch.syspath_prepend(tmp_path)
    assert "first" in names()
    x = sample(PLANE)
    assert torch.equal(in_plane("first")(x), x[:, :1])


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("import no_such_package\n", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
        ("", "AttributeError: .*has no attribute 'Net'"),
    ],
)
def test_a_broken_package_breaks_only_its_own_network(
    source, cause, tmp_path, monkeypatch, fresh_registry
):
    install(tmp_path, "broken_plugin", source, "second = broken_plugin:Net")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_plugin", raising=False)
    assert "second" in names()
    in_plane("resnet")
    with pytest.raises(ImportError, match=rf"'second' .*the package broken_plugin .*: {cause}"):
        in_plane("second")


@pytest.mark.parametrize(
    ("package", "name", "title"),
    [("neuralop", "fno", "FNO"), ("cliffordlayers", "clifford_resnet", "CliffordResNet")],
)
def test_missing_packages_name_their_extra(package, name, title, monkeypatch):
    for module in [m for m in sys.modules if m.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{title} needs the package {package}.*\[baselines\]"):
        in_plane(name)


def small_network(algebra, c_in, c_out):
    network = CSResNet(algebra, c_in, c_out, 2, 1, kernel_size=3, kernel=Complete(hidden_dim=4))
    calibrate_(network, torch.randn(2, c_in, *(6,) * algebra.dim, algebra.n_blades))
    return network
