"""`CSUNet`: grids of any size, axes that are halved less often, and translations by one point."""

import math

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.conv import CliffordSteerableConv
from cscnn.kernels import Complete
from cscnn.networks import CSUNet, Grid, ProductGate, calibrate_, plain_convolutions, unet
from cscnn.nn import MVLayerNorm
from cscnn.testing import grid_equivariance_errors, relative_error
from tests.networks.tiny import SPACES

PLANE, SPACETIME = CliffordAlgebra((1, 1)), CliffordAlgebra((1, -1, -1))
KERNEL = Complete(hidden_dim=4)
F64 = torch.float64


def make(algebra=PLANE, c_in=2, c_out=1, mode="circular", spacing=1.0, **options):
    """A small U-Net with initial scales."""
    options = {"width": (2, 3), "levels": 1, "kernel_size": 3, "kernel": KERNEL, **options}
    torch.manual_seed(0)
    network = CSUNet(algebra, c_in, c_out, grid=Grid(spacing, mode), **options)
    calibrate_(network, torch.randn(2, c_in, *(8,) * algebra.dim, algebra.n_blades))
    return network


def nearest(x, grid, modes):
    for axis, n in enumerate(grid, start=2):
        x = x.repeat_interleave(n // x.shape[axis], axis)
    return x


def first_points(x, factors):
    """Striding: it keeps one point of each cell."""
    return x[:, :, ::2, ::2]


# --- symmetry -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["circular", "zeros", "symmetric", "extrapolate"])
@pytest.mark.parametrize("size", [8, 11, 14, 15])
def test_any_size_keeps_the_symmetries_of_the_box(size, mode):
    """Reflections and quarter turns always, translations by 4 points where 4 divides the size."""
    network = make(mode=mode, levels=2)
    errors = grid_equivariance_errors(network, PLANE, (1, 2, size, size), step=4)
    assert errors["point group"] < 1e-9
    if mode == "circular":
        assert (errors["translation"] < 1e-9) == (size == 8)


def test_striding_has_no_such_symmetry(monkeypatch):
    """The control: the same network, with one point of each cell instead of their mean."""
    monkeypatch.setattr(unet, "downsample", first_points)
    assert grid_equivariance_errors(make(), PLANE, (1, 2, 8, 8))["point group"] > 0.01


def waves(n):
    """Random waves on a torus of n² points, up to three periods along each axis."""
    generator = torch.Generator().manual_seed(0)
    t = 2 * math.pi * torch.arange(n, dtype=F64) / n
    x = torch.zeros(1, 2, n, n, 4, dtype=F64)
    for i in range(-3, 4):
        for j in range(-3, 4):
            size, phase = torch.randn(2, 1, 2, 1, 1, 4, generator=generator, dtype=F64)
            x += size * torch.cos((i * t[:, None] + j * t).reshape(n, n, 1) + phase)
    return x / x.std()


def test_translations_by_one_point_improve_with_the_resolution(monkeypatch):
    """Nearest neighbours leave errors several times as large."""
    network = make(width=(4, 8), levels=2, kernel_size=5).double()

    def error(n):
        x = waves(n)
        with torch.no_grad():
            y = network(x)
            return float((network(x.roll(1, 2)) - y.roll(1, 2)).norm() / y.norm())

    linear = [error(n) for n in (16, 64)]
    assert linear[1] < 0.06
    assert linear[1] < linear[0] / 4
    monkeypatch.setattr(unet, "upsample", nearest)
    assert error(64) > 6 * linear[1]


# --- grids ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algebra", "levels", "shape"),
    [
        (CliffordAlgebra((1,)), 3, (21,)),
        (PLANE, (1, 3), (3, 20)),
        (SPACETIME, (0, 2, 2), (1, 9, 8)),
        (CliffordAlgebra((1, -1, -1, -1)), (0, 1, 1, 1), (2, 4, 3, 5)),
    ],
)
def test_axes_are_halved_as_often_as_asked(algebra, levels, shape):
    network = make(algebra, mode="zeros", levels=levels)
    seen = []
    for module in network.down:
        module.register_forward_hook(lambda *call: seen.append(tuple(call[2].shape[2:-1])))
    x = torch.randn(1, 2, *shape, algebra.n_blades)
    assert network(x).shape == (1, 1, *shape, algebra.n_blades)
    halvings = levels if isinstance(levels, tuple) else (levels,)
    expected = [
        tuple(math.ceil(n / 2 ** min(i, k)) for n, k in zip(shape, halvings, strict=True))
        for i in range(max(halvings) + 1)
    ]
    assert seen == expected


def test_kernels_know_the_distances_of_coarse_points():
    network = make(SPACETIME, spacing=(0.5, 1.0, 1.0), levels=(0, 1, 2))
    spacings = [blocks[0].convs[0].spacing for blocks in network.down]
    assert spacings == [(0.5, 1.0, 1.0), (0.5, 2.0, 2.0), (0.5, 2.0, 4.0)]
    assert [blocks[0].convs[0].spacing for blocks in network.up] == spacings[:2]


def test_widths_and_blocks():
    network = make(width=(2, 3, 4), blocks=2, levels=3)
    assert [blocks[-1].convs[1].c_out for blocks in network.down] == [2, 3, 4, 4]
    assert [len(blocks) for blocks in (*network.down, *network.up)] == [2] * 7
    assert {blocks[0].convs[0].c_in for blocks in make(width=5, levels=2).down} == {5}


def test_coarse_grids_carry_what_is_far_away():
    """A change at one point is seen farther away than the fine convolutions reach."""
    network = make(levels=2, mode="zeros").eval()
    x = torch.randn(1, 2, 32, 32, 4)
    moved = x.clone()
    moved[:, :, 0] += 1
    seen = (network(moved) - network(x)).detach().abs().amax((0, 1, 3, 4)).nonzero().max()
    assert seen >= 20  # ten 3-tap convolutions on the finest grid would reach 10


# --- options --------------------------------------------------------------------------------------


def test_bad_options():
    with pytest.raises(ValueError, match=r"halves at least one axis, got levels=0: use cs_resnet"):
        make(levels=0)
    with pytest.raises(ValueError, match=r"levels needs one value per axis, 2 in all, got \(1,\)"):
        make(levels=(1,))
    with pytest.raises(ValueError, match=r"or up to 2, one for each grid, got \(1, 2, 3\)"):
        make(width=(1, 2, 3))
    with pytest.raises(ValueError, match="blocks must be at least 1, got 0"):
        make(blocks=0)
    with pytest.raises(
        ValueError,
        match=r"circular padding by 2 needs at least 2 points, grid axis 1 has 1, after 2 halvings "
        r"of 4 points: halve it less often, by levels=\(2, 1\), or take a smaller kernel_size",
    ):
        make(levels=2, kernel_size=5)(torch.randn(1, 2, 8, 4, 4))


def test_coarse_times_would_show_the_future():
    causal = Complete(group="O+", hidden_dim=4, causal=True)
    modes = ("zeros", "circular", "circular")
    with pytest.raises(ValueError, match=r"levels=\(1, 1, 1\) halves the time axis 0.*\(0, 1, 1\)"):
        make(SPACETIME, kernel=causal, mode=modes)
    network = make(SPACETIME, kernel=causal, mode=modes, levels=(0, 1, 1))
    x = torch.randn(1, 2, 6, 4, 4, 8)
    later = x.clone()
    later[:, :, 3:] += 1
    assert relative_error(network(later)[:, :, :3], network(x)[:, :, :3]) < 1e-6
    assert relative_error(network(later), network(x)) > 0.01


# --- signals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["plane", "space", "spacetime"])
@pytest.mark.parametrize("activation", ["gate", "product"])
def test_calibrated_outputs_and_gradients_are_of_order_one(where, activation):
    """Variance times squared gradients is 1, so that neither is 1, but both are near."""
    on = SPACES[where]
    torch.manual_seed(0)
    network = CSUNet(
        on.algebra, on.input_type.channels, on.output_type.channels, (4, 8), 2, 2, 3, KERNEL,
        activation=activation, grid=on.grid,
    )  # fmt: skip
    size = (4, *(16 if on.algebra.dim == 2 else 8,) * on.algebra.dim)
    x, other, unseen = (on.input_type.noise(size) for _ in range(3))
    calibrate_(network, x, other=other, counted=on.output_type.mask)
    with torch.no_grad():
        y, moved, new = (
            on.output_type.extract(network(field)) for field in (x, x + 1e-3 * other, unseen)
        )
    assert y.var() * (moved - y).square().mean() / 1e-6 == pytest.approx(1, rel=0.05)
    assert 0.2 < new.var() < 2


def test_gradients_reach_every_weight():
    """Product gates are closed at first: their weights are opened for this."""
    network = make(activation="product", blocks=2, levels=2)
    for module in network.modules():
        if isinstance(module, ProductGate):
            torch.nn.init.normal_(module.weight)
    network(torch.randn(1, 2, 9, 8, 4)).square().mean().backward()
    without_radius = tuple(
        f"{name}.kernel."
        for name, module in network.named_modules()
        if isinstance(module, CliffordSteerableConv) and max(module.kernel_size) == 1
    )
    dead = [name for name, p in network.named_parameters() if p.grad is None or not p.grad.any()]
    assert not [name for name in dead if not name.startswith(without_radius)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # torch's own
def test_onnx(tmp_path):
    """With a size that is not divisible."""
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    network = plain_convolutions(make(mode="symmetric"))
    x = torch.randn(1, 2, 7, 10, 4)
    torch.onnx.export(network, (x,), tmp_path / "net.onnx", dynamo=True, verbose=False)
    session = runtime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    assert relative_error(torch.from_numpy(y), network(x)) < 1e-5


def test_without_norms():
    """As in the other networks."""
    networks = [CSUNet(PLANE, 1, 1, 2, 1, 1, 3, KERNEL, norm=norm) for norm in (True, False)]
    norms = [sum(isinstance(m, MVLayerNorm) for m in net.modules()) for net in networks]
    assert norms == [3, 0]
