"""Measures the rates by which convolutions choose their backend, on the user's machine."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from cscnn._util.files import write_text
from cscnn.algebra import CliffordAlgebra
from cscnn.conv.direct import conv_nd
from cscnn.conv.sizes import ConvSizes
from cscnn.conv.spectral.cost import (
    Rates,
    Work,
    candidate_cuts,
    direct_operations,
    rates_to_json,
    reload_rates,
    spectral_work,
    tuning_file,
)
from cscnn.conv.spectral.engine import convolve, gradients, kernel_matrices
from cscnn.conv.spectral.overlap import Tiling, make_tiling

# (dimensions, batch, channels, grid points per axis, kernel size)
SHAPES = (
    (1, 8, 32, 512, 7),
    (2, 2, 16, 64, 7),
    (2, 1, 4, 64, 7),
    (2, 4, 16, 32, 3),
    (2, 8, 48, 32, 7),
    (3, 1, 6, 32, 7),
    (3, 1, 2, 32, 5),
    (3, 1, 12, 16, 7),
    (4, 1, 2, 8, 5),
)


@dataclass(frozen=True)
class Tuning:
    """Measured rates and how well they predict what they were fitted to.

    Attributes:
        rates: the rates.
        deviation: median relative error of the predicted times.
    """

    rates: Rates
    deviation: float


def measure_rates(
    device: str, progress: Callable[[str, int, int], None] = lambda *_: None
) -> Tuning:
    """Measure direct and spectral convolution on a device and fit the rates.

    Args:
        device: to measure.
        progress: told what is measured, how many convolutions are done, and of how many.
    """
    direct: dict[int, list[float]] = {d: [] for d in (1, 2, 3, 4)}
    samples: list[tuple[Work, float]] = []
    for done, (dim, batch, channels, n, k) in enumerate(SHAPES):
        progress("measuring", done, len(SHAPES))
        algebra = CliffordAlgebra((1,) * dim)
        flat, grid, kernel = channels * algebra.n_blades, (n,) * dim, (k,) * dim
        x, g = (torch.randn(batch, flat, *grid, device=device) for _ in range(2))
        weight = torch.randn(flat, flat, *kernel, device=device)
        seconds = _seconds(lambda x=x, w=weight, g=g: _direct_step(x, w, g), x.device)  # type: ignore[misc]
        sizes = ConvSizes(
            grid, kernel, (0,) * dim, (False,) * dim, batch, flat, flat, True, 4, x.device.type
        )
        direct[dim].append(direct_operations(sizes) / seconds)
        cuts = sorted({a.count for a in candidate_cuts(n, 0, False, k // 2)})
        for count in cuts[:: max(1, len(cuts) // 3)]:
            tiling = make_tiling(
                grid, kernel, sizes.shift, sizes.circular, (count,) * dim, algebra.grade_sizes, True
            )
            if math.prod(a.tile for a in tiling.axes) > 30_000:
                continue
            seconds = _seconds(
                lambda x=x, w=weight, g=g, s=tiling: _spectral_step(x, w, g, s),  # type: ignore[misc]
                x.device,
            )
            samples.append((spectral_work(tiling.axes, sizes), seconds))
    progress("measuring", len(SHAPES), len(SHAPES))
    call, per_operation, per_byte = _fit(samples)
    rates = Rates(
        direct=tuple(statistics.median(direct[d]) for d in (1, 2, 3, 4)),  # type: ignore[arg-type]
        matmul=1 / per_operation,
        memory=1 / per_byte,
        call=call,
    )
    deviation = statistics.median(abs(w.seconds(rates) / s - 1) for w, s in samples)
    return Tuning(rates, deviation)


def save_rates(device: str, rates: Rates) -> None:
    """Keep the rates of a device beside those of others, and use them from now on."""
    path = tuning_file()
    try:
        rates_by_device = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        rates_by_device = {}
    rates_by_device = {
        **(rates_by_device if isinstance(rates_by_device, dict) else {}),
        torch.device(device).type: rates_to_json(rates),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(rates_by_device, indent=2) + "\n")
    reload_rates()


def _direct_step(x: Tensor, weight: Tensor, g: Tensor) -> None:
    x, weight = x.requires_grad_(), weight.requires_grad_()
    kernel = weight.shape[2:]
    y = conv_nd(x, weight, None, (1,) * len(kernel), tuple(k // 2 for k in kernel))
    torch.autograd.grad(y, (x, weight), g)


def _spectral_step(x: Tensor, weight: Tensor, g: Tensor, tiling: Tiling) -> None:
    with torch.no_grad():
        convolve(x, kernel_matrices(weight, tiling), None, tiling)
        gradients(g, x, weight, tiling, True, True)


def _seconds(work: Callable[[], None], device: torch.device, repeats: int = 5) -> float:
    times = []
    for _ in range(repeats + 1):
        _synchronize(device)
        start = time.perf_counter()
        work()
        _synchronize(device)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def _synchronize(device: torch.device) -> None:
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def _fit(samples: list[tuple[Work, float]]) -> tuple[float, float, float]:
    """Seconds per call, operation and byte by least squares of relative errors, all positive."""
    rows = [(w.calls / s, w.operations / s, w.moved / s) for w, s in samples]
    matrix = torch.tensor(rows, dtype=torch.float64)
    scale = matrix.mean(0)
    matrix = matrix / scale
    solution = torch.full((3,), 1 / 3, dtype=torch.float64)
    gram, right = matrix.T @ matrix, matrix.sum(0)
    for _ in range(2000):  # multiplicative updates keep every rate positive
        solution = solution * right / (gram @ solution)
    call, operation, byte = (solution / scale).clamp(min=1e-15).tolist()
    return call, operation, byte
