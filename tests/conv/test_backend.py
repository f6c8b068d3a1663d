"""The choice between direct and spectral convolution, and the measured rates behind it."""

import json

import pytest
import torch
from builders import build

from cscnn.conv import backend
from cscnn.conv.backend import Rates, choose, spectral_work
from cscnn.conv.tiling import cut


@pytest.fixture
def tuning(tmp_path, monkeypatch):
    """A file of measured rates of our own."""
    path = tmp_path / "tuning.json"
    monkeypatch.setenv("CSCNN_TUNING", str(path))
    backend.forget()
    yield path
    backend.forget()


def pick(grid, kernel=7, *, batch=1, channels=48, chosen="auto"):
    d = len(grid)
    return choose(
        grid,
        (kernel,) * d,
        (0,) * d,
        (False,) * d,
        batch,
        channels,
        channels,
        True,
        4,
        "cpu",
        chosen,
    )


def test_large_kernels_are_spectral_and_small_ones_direct(tuning):
    assert pick((32, 32, 32)) is not None
    assert pick((64, 64), batch=8, channels=192) is not None
    assert pick((12, 12, 12, 12), kernel=5, channels=32) is not None
    assert pick((64, 64), kernel=1) is None
    assert pick((64, 64), kernel=3, channels=4) is None
    assert pick((64, 64), kernel=3, channels=4, chosen="spectral") is not None
    assert pick((32, 32, 32)) == pick((32, 32, 32))


def test_tiles_grow_with_the_batch(tuning):
    """A kernel's transform is shared by the batch: large tiles pay off once it is large."""
    volumes = []
    for batch in (1, 64):
        counts = pick((64, 64, 64), batch=batch, channels=96)
        axes = [cut(64, 0, False, 3, q) for q in counts]
        volumes.append(torch.tensor([a.tile for a in axes]).prod())
    assert volumes[1] > volumes[0]


def test_measured_rates_decide(tuning):
    assert pick((32, 32, 32)) is not None
    slow_memory = Rates(direct=(1e12,) * 4, matmul=1e9, memory=1e8, call=1e-5)
    tuning.write_text(json.dumps({"cpu": backend.dump_rates(slow_memory)}))
    assert pick((32, 32, 32)) is not None  # the same choice as long as the process lives
    backend.forget()
    assert pick((32, 32, 32)) is None
    assert backend.current_rates("cpu") == slow_memory
    assert backend.current_rates("cuda") == backend.ACCELERATOR_RATES


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"cpu": 3}', '{"cpu": {"direct": [1, 1, 1, 1], "matmul": 1, "memory": 1}}']
    + [json.dumps({"cpu": {"direct": d, "matmul": m, "memory": 1, "call": 1}}) for d, m in
       (([1, 1, 1], 1), (1, 1), ([1, 1, 1, 1], -1), ([1, 1, 1, 1], "fast"))],
)  # fmt: skip
def test_damaged_rates_are_reported_and_ignored(tuning, text):
    tuning.write_text(text)
    with pytest.warns(UserWarning, match=r"ignoring the measured rates in .*tuning\.json"):
        assert backend.current_rates("cpu") == backend.DEFAULT_RATES


def test_work_is_linear_in_tiles_and_batch():
    def operations(count, batch):
        axis = cut(16 * count, 0, False, 3, count)
        return spectral_work([axis], batch, 64, 64, parity=True, itemsize=4).operations

    kernel = operations(4, 0)
    assert kernel > 0
    assert operations(4, 6) - kernel == 6 * (operations(4, 1) - kernel)
    assert operations(12, 1) - kernel == 3 * (operations(4, 1) - kernel)


def test_unknown_backend_is_refused():
    with pytest.raises(ValueError, match="one of auto, direct, spectral, got 'fft'"):
        build((1, 1), backend="fft")
