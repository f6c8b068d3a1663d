"""Where differential kernels lose: exact targets, and the table of the docs."""

import math
from pathlib import Path

import pytest
import torch

from cscnn.kernels import Complete, Differential
from experiments import differential_limits as limits

THEORY = Path(__file__).parents[2] / "docs" / "explanation" / "theory.md"
POINTS = limits.POINTS


def on_circle(function, x, y, radius):
    """Mean over a circle by quadrature."""
    angle = torch.arange(20_000, dtype=torch.float64) * (2 * math.pi / 20_000)
    return function(x + radius * angle.cos(), y + radius * angle.sin()).mean()


def test_discs_are_averaged_over_circles():
    fields, targets = limits.discs(2.0, seed=3)
    centre = POINTS / 2 + torch.rand(
        limits.FIELDS, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64
    )
    for column in (30, 41, 42, 43, 44, 60):

        def inside(x, y):
            return (torch.hypot(x - centre[5, 0], y - centre[5, 1]) < limits.RADIUS).double()

        assert abs(on_circle(inside, 31.0, float(column), 2.0) - targets[5, 31, column]) < 1e-3
        assert inside(torch.tensor(31.0), torch.tensor(column)) == fields[5, 31, column]


def test_waves_are_averaged_over_circles():
    """The fields are band-limited: their Fourier series gives them anywhere."""
    fields, targets = limits.smooth_fields(16, 1.5, seed=0)
    coefficients = torch.fft.fft2(fields[0]) / POINTS**2
    k = 2 * math.pi * torch.fft.fftfreq(POINTS, dtype=torch.float64)

    def series(x, y):
        waves = torch.exp(1j * k * x[:, None]), torch.exp(1j * k * y[:, None])
        return torch.einsum("pi,ij,pj->p", waves[0], coefficients, waves[1]).real

    assert abs(on_circle(series, 7.0, 50.0, 1.5) - targets[0, 7, 50]) < 1e-10
    size = torch.fft.fft2(fields).abs().amax(0)
    assert size[4, 0] > 1  # 16 points long
    assert size[5, 0] < 1e-9


@pytest.mark.parametrize(("choice", "rank"), [(Differential(order=2), 2), (Differential(), 3),
                                              (Complete(radial="free"), 6)])  # fmt: skip
def test_kernels_have_the_freedom_of_their_family(choice, rank):
    """1, Δ, Δ²; or a value on each of the six circles."""
    assert limits.tap_basis(choice).shape == (25, rank)


def test_the_docs_have_the_numbers_of_the_command(capsys):
    assert limits.main([]) == 0
    printed = capsys.readouterr().out.splitlines()
    text = THEORY.read_text(encoding="utf-8").splitlines()
    start = text.index(printed[0])
    for line, documented in zip(printed, text[start:], strict=False):
        cells, known = line.split("|")[1:-1], documented.split("|")[1:-1]
        assert cells[:2] == known[:2]
        if cells[0].strip().endswith("points"):
            numbers = [[float(cell) for cell in row[2:]] for row in (cells, known)]
            assert numbers[0] == pytest.approx(numbers[1], rel=0.1)
