from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from cscnn.data import Field, Header
from cscnn.data.simulators import ON_GRIDS, create
from cscnn.forecasting.evaluation.results import Samples
from cscnn.forecasting.task import Task
from cscnn.viz import plot_comparison, plot_rollouts
from tests.viz.report_runs import make_samples

STEPS, POINTS = 5, 8
QUANTITIES = {"navier_stokes": 2, "maxwell3d": 4, "maxwell_spacetime": 3, "maxwell_spacetime4d": 6,
              "sine_gordon": 4, "elastodynamics": 3, "viscoelastic": 3}  # fmt: skip


def make(name, points=POINTS):
    """Samples of two forecasters, and the header of their data."""
    header = create(name, "small").header()
    header = header.replace(grid=(points,) * len(header.grid), generator=name)
    task = Task.from_header(header)
    qualities = {"good": 0.5, "bad": 3.0}
    return {k: make_samples(task, q, points, STEPS, seed=1) for k, q in qualities.items()}, header


def images(figure):
    """Arrays of the images, row by row, and their colour limits."""
    shown = [ax.images[0] for ax in figure.axes if ax.images]
    return [np.asarray(i.get_array()) for i in shown], [i.get_clim() for i in shown]


def title(figure):
    """On one line."""
    return figure.get_suptitle().replace("\n", " ")


def notes(figure):
    return [text.get_text() for ax in figure.axes for text in ax.texts]


@pytest.mark.parametrize("name", ON_GRIDS)
def test_every_task_has_a_comparison(name):
    samples, header = make(name)
    figure = plot_comparison(samples, header, frame=2)
    arrays, limits = images(figure)
    assert len(arrays) == 2 * QUANTITIES[name] * 3
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    assert titles == ["target", "good", "bad"]
    for row in range(2 * QUANTITIES[name]):
        target, good, bad = arrays[3 * row : 3 * row + 3]
        assert len(set(limits[3 * row : 3 * row + 3])) == 1
        if row % 2:  # errors
            assert 0 < np.linalg.norm(good) < np.linalg.norm(bad)
        else:
            assert np.linalg.norm(good - target) < np.linalg.norm(bad - target)
    bars = [ax.get_ylabel() for ax in figure.axes if ax.get_label() == "<colorbar>"]
    assert len(bars) == 2 * QUANTITIES[name]
    assert all("error of" in bar for bar in bars[1::2])
    assert title(figure).startswith(f"{name}, forecasts")
    assert ("plane z = " in title(figure)) == (len(header.grid) == 3)


def test_points_are_compared_by_the_nearest():
    pytest.importorskip("scipy")
    header = create("acoustic_points", "small").header()
    rng = np.random.default_rng(0)
    target = {f.name: rng.random((STEPS, 30, header.shape(f.name)[-1])) for f in header.fields}
    known = {name: x[:2] for name, x in target.items()}
    guess = {name: x + 0.1 for name, x in target.items()}
    positions = rng.random((30, 2))
    samples = Samples(known, target, guess, np.arange(STEPS) + 1.0, positions)
    figure = plot_comparison({"guess": samples}, header, frame=1)
    arrays, _ = images(figure)
    pixel = ((np.array([20.5, 60.5]) / 96 - positions + 0.5) % 1 - 0.5) ** 2  # in a periodic box
    nearest = pixel.sum(1).argmin()
    assert arrays[0].shape == (96, 96)
    assert np.isclose(arrays[0][60, 20], target["pressure"][1, nearest, 0])
    with pytest.raises(ValueError, match="need positions, got guess"):
        plot_comparison({"guess": replace(samples, positions=None)}, header)


def test_the_panels_are_the_numbers():
    samples, header = make("navier_stokes")
    figure = plot_comparison(samples, header, frame=-1)
    arrays, limits = images(figure)
    good = samples["good"]
    target, prediction = good.target["smoke"][-1, ..., 0], good.prediction["smoke"][-1, ..., 0]
    persistence = good.known["smoke"][-1, ..., 0]
    assert np.allclose(arrays[0], target.T)
    assert np.allclose(arrays[1], prediction.T)
    assert np.allclose(arrays[3], (persistence - target).T)
    assert np.allclose(arrays[4], (prediction - target).T, atol=1e-7)
    difference = good.prediction["velocity"][-1] - good.target["velocity"][-1]
    assert np.allclose(arrays[10], np.linalg.norm(difference, axis=-1).T, atol=1e-7)
    assert limits[10][0] == 0
    relative = np.linalg.norm(prediction - target) / np.linalg.norm(target)
    assert notes(figure)[2] == f"{100 * relative:#.3g} %"
    assert notes(figure)[1] == "persistence"
    assert "t = 30 s after" in title(figure)  # five frames of 6 s


def test_a_line_shows_all_frames(tmp_path):
    samples, header = make("sine_gordon")
    figure = plot_comparison(samples, header, fields="sine")
    arrays, _ = images(figure)
    assert len(arrays) == 6
    figure.savefig(tmp_path / "comparison.png", dpi=50)
    good = samples["good"]
    assert np.allclose(arrays[0], good.target["sine"][..., 0])  # (time up, space right)
    assert np.allclose(arrays[4], good.prediction["sine"][..., 0] - arrays[0], atol=1e-7)
    assert np.allclose(arrays[3], good.known["sine"][-1:, :, 0] - arrays[0])


def test_of_three_axes_the_middle_is_shown():
    samples, header = make("maxwell3d")
    arrays, _ = images(plot_comparison(samples, header, frame=1, fields="magnetic"))
    assert len(arrays) == 3 * 2 * 3
    assert np.allclose(arrays[0], samples["good"].target["magnetic"][1, :, :, POINTS // 2, 0].T)


def test_coarser_samples_cover_the_same_space():
    fine, _ = images_extent("navier_stokes", POINTS, POINTS)
    coarse, heading = images_extent("navier_stokes", POINTS, 2 * POINTS)
    assert coarse == pytest.approx([2 * side for side in fine])
    assert "t = 6 s" in heading  # time is no axis
    _, heading = images_extent("maxwell_spacetime", POINTS, 2 * POINTS)
    assert "t = 2 after" in heading  # time is coarser too


def images_extent(name, points, grid):
    samples, header = make(name, points)
    header = header.replace(grid=(grid,) * len(header.grid))
    figure = plot_comparison(samples, header, fields=header.fields[0].name)
    return figure.axes[0].images[0].get_extent(), title(figure)


def test_forecasts_that_blew_up(tmp_path):
    samples, header = make("navier_stokes")
    calm = images(plot_comparison(samples, header, fields="smoke"))[1][0]
    bad = samples["bad"].prediction
    bad["smoke"] = 1e6 * bad["smoke"]
    bad["velocity"] = np.full_like(bad["velocity"], np.nan)
    for sample in samples.values():
        del sample.known["smoke"]
    figure = plot_comparison(samples, header)
    arrays, limits = images(figure)
    assert limits[0] == calm  # colours are those of the target
    assert limits[4][1] <= calm[1] - calm[0]
    assert len(arrays) == 11  # without a known frame there is no persistence forecast
    assert notes(figure)[-1] == "–"
    figure.savefig(tmp_path / "comparison.png", dpi=50)


def test_errors_of_comparisons():
    samples, header = make("navier_stokes")
    with pytest.raises(ValueError, match="at least one forecaster, got none"):
        plot_comparison({}, header)
    with pytest.raises(ValueError, match="frame must be from -5 to 4, got 5"):
        plot_comparison(samples, header, frame=5)
    with pytest.raises(ValueError, match="fields must be of smoke, velocity, got 'pressure'"):
        plot_comparison(samples, header, fields="pressure")
    with pytest.raises(ValueError, match=r"'frames', 9, 8, 1\) or on a coarser grid, got .* 8, 8"):
        plot_comparison(samples, header.replace(grid=(9, 8)))
    bad = samples["bad"]
    other = replace(bad, target={**bad.target, "smoke": 2 * bad.target["smoke"]})
    with pytest.raises(ValueError, match=r"smoke of 'good' and of 'other' have different targets"):
        plot_comparison({**samples, "other": other}, header)
    short = replace(bad, prediction={**bad.prediction, "smoke": bad.prediction["smoke"][:2]})
    with pytest.raises(ValueError, match=r"'short' has target .* and prediction \(2, 8, 8, 1\)"):
        plot_comparison({**samples, "short": short}, header)
    del short.prediction["smoke"]
    with pytest.raises(ValueError, match="'short' has no prediction of smoke, only of velocity"):
        plot_comparison({"short": short}, header)
    header = Header((1, 1), ("x", "y"), (1, 1), ("open",) * 2, (Field("a", 0), Field("b", 0)), 4,
                    (3, 3))  # fmt: skip
    arrays = {"a": np.zeros((2, 3, 3, 1)), "b": np.zeros((1, 3, 3, 1))}
    uneven = Samples({}, arrays, arrays, np.arange(2))
    with pytest.raises(ValueError, match="all fields must have the same frames and grid"):
        plot_comparison({"model": uneven}, header)


def test_rollouts(tmp_path):
    times = [1.0, 2.0, 3.0]
    figure = plot_rollouts(
        {"a": (times, [0.1, 0.2, 0.4]), "b": (times, [0.1, None, float("inf")])},
        persistence=(times, [0.5, 0.6, 0.7]),
        x_label="time [s]",
        title="smoke",
    )
    (ax,) = figure.axes
    a, b, persistence = ax.lines
    assert a.get_xydata().tolist() == [[1, 0.1], [2, 0.2], [3, 0.4]]
    assert np.isnan(b.get_ydata()).tolist() == [False, True, True]
    assert persistence.get_linestyle() == "--"
    assert a.get_color() != b.get_color()
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["a", "b", "persistence"]
    assert (ax.get_yscale(), ax.get_xlabel(), ax.get_title()) == ("log", "time [s]", "smoke")
    figure.savefig(tmp_path / "rollouts.png", dpi=50)
    with pytest.raises(ValueError, match=r"'a' must have as many errors as times, got \(2,\) and"):
        plot_rollouts({"a": (times, [1.0, 2.0])})
