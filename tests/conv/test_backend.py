"""The choice between direct and spectral convolution, and the measured rates behind it."""

import json

import pytest
import torch

from cscnn.conv import use_backend
from cscnn.conv.derivatives.cost import derivatives_are_faster
from cscnn.conv.sizes import ConvSizes
from cscnn.conv.spectral import cost, tune
from cscnn.conv.spectral.cost import Rates, plan_tiles, spectral_work
from cscnn.conv.spectral.overlap import cut_axis
from cscnn.testing import relative_error
from tests.conv.builders import build


@pytest.fixture
def tuning(tmp_path, monkeypatch):
    """A file of measured rates of our own."""
    path = tmp_path / "tuning.json"
    monkeypatch.setenv("CSCNN_TUNING", str(path))
    cost.reload_rates()
    yield path
    cost.reload_rates()


def sizes_of(grid, kernel=7, *, batch=1, channels=48):
    d = len(grid)
    shape = grid, (kernel,) * d, (0,) * d, (False,) * d
    return ConvSizes(*shape, batch, channels, channels, parity=True, itemsize=4)


def pick(*args, chosen="auto", **options):
    return plan_tiles(sizes_of(*args, **options), chosen)


def test_large_kernels_are_spectral_and_small_ones_direct(tuning):
    assert pick((32, 32, 32)) is not None
    assert pick((64, 64), batch=8, channels=192) is not None
    assert pick((12, 12, 12, 12), kernel=5, channels=32) is not None
    assert pick((64, 64), kernel=1) is None
    assert pick((64, 64), kernel=3, channels=4) is None
    assert pick((64, 64), kernel=3, channels=4, chosen="spectral") is not None


# (grid, taps, channels, batch, circular, parity, itemsize), tiles, whether derivatives are faster.
CHOICES = [
    (((512,), 5, 32, 8, False, True, 4), None, True),
    (((512,), 31, 32, 8, True, True, 4), (16,), True),
    (((64, 64), 5, 4, 1, True, True, 4), None, False),
    (((64, 64), 7, 12, 8, True, False, 4), (1, 4), True),
    (((33, 128), 7, 12, 8, False, True, 8), (1, 8), True),
    (((32, 32, 32), 5, 12, 1, True, True, 4), (3, 4, 8), True),
    (((12, 12, 12), 5, 12, 1, False, False, 4), (3, 3, 1), True),
    (((8, 8, 8, 8), 5, 2, 1, False, True, 4), (1, 2, 1, 1), True),
]


@pytest.mark.parametrize(("shape", "tiles", "derivatives"), CHOICES)
def test_choices_stay_as_they_are(tuning, shape, tiles, derivatives):
    """With the default rates; a change of the model is a change of this table."""
    grid, taps, channels, batch, circular, parity, itemsize = shape
    d = len(grid)
    flat, axes = channels << d, (grid, (taps,) * d, (0,) * d, (circular,) * d)
    sizes = ConvSizes(*axes, batch, flat, flat, parity, itemsize)
    assert plan_tiles(sizes, "auto") == tiles
    assert derivatives_are_faster(sizes, ((1,) * d, False, "O", 2)) == derivatives


def test_tiles_grow_with_the_batch(tuning):
    """A kernel's transform is shared by the batch: large tiles pay off once it is large."""
    volumes = []
    for batch in (1, 64):
        counts = pick((64, 64, 64), batch=batch, channels=96)
        axes = [cut_axis(64, 0, False, 3, q) for q in counts]
        volumes.append(torch.tensor([a.tile for a in axes]).prod())
    assert volumes[1] > volumes[0]


def test_measured_rates_decide(tuning):
    assert pick((32, 32, 32)) is not None
    slow_memory = Rates(direct=(1e12,) * 4, matmul=1e9, memory=1e8, call=1e-5)
    tuning.write_text(json.dumps({"cpu": cost.rates_to_json(slow_memory)}))
    assert pick((32, 32, 32)) is not None  # the same choice as long as the process lives
    cost.reload_rates()
    assert pick((32, 32, 32)) is None
    assert cost.device_rates("cpu") == slow_memory
    assert cost.device_rates("cuda") == cost.ACCELERATOR_RATES


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"cpu": 3}', '{"cpu": {"direct": [1, 1, 1, 1], "matmul": 1, "memory": 1}}']
    + [json.dumps({"cpu": {"direct": d, "matmul": m, "memory": 1, "call": 1}}) for d, m in
       (([1, 1, 1], 1), (1, 1), ([1, 1, 1, 1], -1), ([1, 1, 1, 1], "fast"))],
)  # fmt: skip
def test_damaged_rates_are_reported_and_ignored(tuning, text):
    tuning.write_text(text)
    with pytest.warns(UserWarning, match=r"ignoring the measured rates in .*tuning\.json"):
        assert cost.device_rates("cpu") == cost.DEFAULT_RATES


def test_work_is_linear_in_tiles_and_batch():
    def operations(count, batch):
        axis = cut_axis(16 * count, 0, False, 3, count)
        sizes = sizes_of((16 * count,), batch=batch, channels=64)
        return spectral_work([axis], sizes).operations

    kernel = operations(4, 0)
    assert kernel > 0
    assert operations(4, 6) - kernel == 6 * (operations(4, 1) - kernel)
    assert operations(12, 1) - kernel == 3 * (operations(4, 1) - kernel)


# --- the backend of a network ---------------------------------------------------------------------


def test_all_convolutions_of_a_network_change():
    network = torch.nn.Sequential(
        build((1, 1), c_out=2),
        torch.nn.Sequential(build((1, 1), backend="direct")),
        torch.nn.ReLU(),
    ).double()
    x = torch.randn(1, 2, 6, 7, 4, dtype=torch.float64)
    outputs = {}
    for backend in ("direct", "spectral", "auto"):
        assert use_backend(network, backend) is network
        assert [network[0].backend, network[1][0].backend] == [backend] * 2
        outputs[backend] = network(x)
    assert not torch.equal(outputs["direct"], outputs["spectral"])  # different sums
    assert relative_error(outputs["spectral"], outputs["direct"]) < 1e-12


def test_wrong_backends_change_nothing():
    conv = build((1, 1), backend="direct")
    with pytest.raises(ValueError, match="one of auto, direct, spectral, derivatives, got 'fft'"):
        use_backend(conv, "fft")
    assert conv.backend == "direct"
    use_backend(torch.nn.Linear(2, 2), "spectral")  # nothing to change


# --- rates of this machine ------------------------------------------------------------------------


def test_rates_are_measured_and_kept(tuning, monkeypatch):
    monkeypatch.setattr(tune, "SHAPES", [(d, 1, 1, n, 3) for d in (1, 2, 3, 4) for n in (6, 8)])
    shapes = []
    result = tune.measure_rates("cpu", progress=lambda *told: shapes.append(told))
    assert shapes[-1][1:] == (8, 8)
    tuning.write_text(json.dumps({"cuda": cost.rates_to_json(cost.ACCELERATOR_RATES)}))
    tune.save_rates("cpu", result.rates)
    assert cost.device_rates("cpu") == result.rates
    assert cost.device_rates("cuda") == cost.ACCELERATOR_RATES


def test_rates_are_fitted_exactly_where_the_model_holds():
    """Made-up times of a machine that is just what the model says."""
    rates = Rates(direct=(1e11,) * 4, matmul=3e11, memory=2e10, call=1e-5)
    work = [
        cost.Work(calls, operations, moved)
        for calls in (10, 1000)
        for operations in (1e6, 1e10)
        for moved in (1e5, 1e9)
    ]
    call, per_operation, per_byte = tune._fit([(w, w.seconds(rates)) for w in work])
    assert call == pytest.approx(rates.call, rel=1e-3)
    assert 1 / per_operation == pytest.approx(rates.matmul, rel=1e-3)
    assert 1 / per_byte == pytest.approx(rates.memory, rel=1e-3)
