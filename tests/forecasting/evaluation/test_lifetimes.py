"""Frames until a curve crosses a limit, by hand."""

import math

import pytest

from cscnn.forecasting.evaluation.lifetimes import (
    correlation_frames,
    crossing,
    persistence_frames,
    quantile,
)


def test_crossings_are_interpolated_linearly():
    assert crossing([-1.0, 1.0, 5.0], start=-2.0) == pytest.approx(1.5)
    assert crossing([3.0], start=-1.0) == pytest.approx(0.25)
    assert crossing([-1.0, 0.0], start=-1.0) is None  # it touches the limit, and goes no further
    assert crossing([-1.0, math.nan, 1.0], start=-1.0) == pytest.approx(2.0)
    assert crossing([-1.0, math.inf], start=-1.0) == 1.0
    assert crossing([], start=-1.0) is None


def test_correlation():
    assert correlation_frames([0.95, 0.9, 0.6, 0.9], stable=4) == pytest.approx(2 + 1 / 3)
    assert correlation_frames([0.6], stable=1) == pytest.approx(0.5)
    assert correlation_frames([0.99, 0.8], stable=2) is None
    # a truth without structure has no correlation, which is nobody's fault
    assert correlation_frames([math.nan, math.nan], stable=2) is None
    # a forecast that was given up has lost it
    assert correlation_frames([1.0, math.nan], stable=1) == pytest.approx(1.2)
    assert correlation_frames([0.9, 0.5], stable=2, threshold=0.7) == pytest.approx(1.5)


def test_persistence():
    assert persistence_frames([1, 2, 5], [2, 3, 4], stable=3) == pytest.approx(2.5)
    assert persistence_frames([1, 3], [1, 3], stable=2) is None  # never worse
    assert persistence_frames([2.0], [1.0], stable=1) == 0.0  # never better
    assert persistence_frames([1.0, math.nan], [2.0, 2.0], stable=1) == 1.0
    assert persistence_frames([math.nan], [math.nan], stable=0) == 0.0


def test_quantiles_of_lifetimes():
    """Those that outlast the rollout are the longest, however long they are."""
    ten = [float(i) for i in range(10)]
    assert [quantile(ten, share) for share in (0.1, 0.5, 0.9, 1.0)] == [0.0, 4.0, 8.0, 9.0]
    assert quantile([None, 5.0, None], 0.1) == 5.0
    assert quantile([None, 5.0, None], 0.5) is None
    assert quantile([2.5], 0.1) == quantile([2.5], 0.9) == 2.5
