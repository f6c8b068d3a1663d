"""Pictures of symmetric tensors: trace, traceless part, and principal axes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from cscnn.data import Field, Header
from cscnn.forecasting import Task
from cscnn.forecasting.evaluation.results import Samples
from cscnn.viz import animate, plot_comparison, plot_fields
from cscnn.viz.fields import arrow_components
from cscnn.viz.panels import split
from cscnn.viz.report.viewer import components
from tests.data.tensors import rotated, solid, trajectory
from tests.viz.test_plot_fields import Memory, images

STRESS = Field("stress", "symmetric", "Pa")


def header(dim: int, size: int, frames: int = 2) -> Header:
    return solid(dim, size).replace(fields=(STRESS,), frames=frames)


@pytest.mark.parametrize("dim", [2, 3])
def test_panels_by_loops(dim: int) -> None:
    space = header(dim, 4)
    stored = trajectory(0, space)["stress"]
    figure = plot_fields(Memory(space, stress=stored[None]))
    labels = [ax.get_ylabel() for ax in figure.axes[-2:]]
    assert labels == ["tr stress\n[Pa]", "|traceless stress|\n[Pa]"]
    shown = images(figure)
    for frame, x, y in np.ndindex(2, 4, 4):
        at = (frame, x, y) if dim == 2 else (frame, x, y, 2)
        tensor = stored[at].reshape(dim, dim)
        trace = np.trace(tensor)
        traceless = tensor - trace / dim * np.eye(dim)
        assert shown[frame].get_array()[y, x] == pytest.approx(trace)
        assert shown[2 + frame].get_array()[y, x] == pytest.approx(np.linalg.norm(traceless))


def test_lines_are_principal_axes() -> None:
    """Along the eigenvector of the largest eigenvalue, as long as the traceless part is large."""
    space = header(2, 4)
    stored = trajectory(0, space)["stress"]
    _, panel = split(space, STRESS, stored)
    assert not panel.heads
    lines = np.stack(arrow_components(panel, 0), -1)
    assert np.allclose(np.linalg.norm(lines, axis=-1), panel.image[0])
    for x, y in np.ndindex(4, 4):
        tensor, line = stored[0, x, y].reshape(2, 2), lines[x, y]
        largest = np.linalg.eigvalsh(tensor)[-1]
        assert np.allclose(tensor @ line, largest * line)
    g = np.array([[0.8, -0.6], [0.6, 0.8]])
    _, turned = split(space, STRESS, rotated(g, stored))
    moved = np.stack(arrow_components(turned, 0), -1)
    cosines = np.abs((moved * (lines @ g.T)).sum(-1)) / panel.image[0] ** 2  # they have no sign
    assert np.allclose(cosines, 1)
    assert np.allclose(turned.image, panel.image)


def test_spacetime_has_components() -> None:
    plane = solid(2).replace(
        fields=(STRESS,), metric=(1, -1), axes=("t", "x"), grid=(8,), time_axis=0
    )
    labels = [p.label for p in split(plane, STRESS, trajectory(0, plane)["stress"])]
    assert labels == [f"stress {name}\n[Pa]" for name in ("tt", "tx", "xt", "xx")]


def test_errors_are_tensors_too() -> None:
    """The traceless part of the difference, not the difference of two sizes."""
    space = header(2, 4, frames=3)
    target, forecast = (trajectory(seed, space)["stress"] for seed in (0, 1))
    times = np.arange(1, 4, dtype=np.float32)
    samples = Samples({}, {"stress": target}, {"stress": forecast}, times)
    figure = plot_comparison({"one": samples}, space, frame=1)
    errors = [im.get_array() for ax in figure.axes for im in ax.images]
    difference = (forecast - target)[1].reshape(4, 4, 2, 2)
    trace = np.trace(difference, axis1=2, axis2=3)
    sizes = np.linalg.norm(difference - trace[..., None, None] / 2 * np.eye(2), axis=(2, 3))
    assert any(a.shape == (4, 4) and np.allclose(a, sizes.T) for a in errors)
    assert any(a.shape == (4, 4) and np.allclose(a, trace.T) for a in errors)
    labels = {ax.get_ylabel() for ax in figure.axes}
    assert {"error of\ntr stress\n[Pa]", "|error of\ntraceless stress|\n[Pa]"} <= labels


def test_forecasts_that_blew_up_have_a_picture() -> None:
    space = header(2, 4)
    stored = trajectory(0, space)["stress"]
    stored[1, 2] = np.nan
    stored[1, 3] = np.inf
    with np.errstate(all="ignore"):
        trace, size = split(space, STRESS, stored)
    assert np.isnan(trace.image[1, 2]).all()
    assert not np.isfinite(size.image[1, 3]).any()
    assert np.isfinite(size.image[0]).all()


def test_films(tmp_path) -> None:
    space = header(2, 4)
    source = Memory(space, stress=trajectory(0, space)["stress"][None])
    assert animate(source, tmp_path / "a.gif").stat().st_size > 1000


def test_the_viewer_of_reports_has_each_component_once() -> None:
    names = [label for *_, label in components(Task.from_header(solid(3)))]
    assert names[:4] == ["pressure", "stress xx", "stress xy", "stress xz"]
    places = [
        place for name, place, _ in components(Task.from_header(solid(3))) if name == "stress"
    ]
    assert places == [0, 1, 2, 4, 5, 8]
    assert names[-3:] == ["velocity x", "velocity y", "velocity z"]
