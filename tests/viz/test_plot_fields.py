import itertools
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("h5py")

import matplotlib as mpl
from matplotlib import animation
from PIL import Image

from cscnn.data import Field, FieldFile, Header
from cscnn.data.generate import generate, plans
from cscnn.data.simulators import SIMULATORS, create
from cscnn.viz import animate, plot_fields

ONE_CHARGE = {"oscillating": (1, 1), "orbiting": (0, 0)}
TINY = {
    "navier_stokes": {"grid": (12, 8), "frames": 3, "warmup": 2, "every": 1},
    "maxwell3d": {"cells": 20, "keep": 6, "warmup": 20, "every": 2, "frames": 3},
    "maxwell_spacetime": {"grid": (8, 6), "frames": 5, **ONE_CHARGE},
    "maxwell_spacetime4d": {"grid": (4, 5, 6), "frames": 2, **ONE_CHARGE},
    "sine_gordon": {"grid": (12,), "frames": 8},
    "elastodynamics": {"cells": 8, "frames": 3, "smoothness": 0.2},
    "viscoelastic": {"cells": 8, "frames": 3, "warmup": 2, "every": 1, "smoothness": 0.2},
    "acoustic_points": {"points": (9, 20), "frames": 3},
}
LABELS = {
    "navier_stokes": ["smoke", "|velocity|\n[m/s]"],
    "maxwell3d": ["|electric|\n[E/E0]"]
    + [f"magnetic {b}\n[H/H0]" for b in ("e12 = x∧y", "e13 = x∧z", "e23 = y∧z")],
    "maxwell_spacetime": [
        f"faraday {b}\n[e/length²]" for b in ("e12 = t∧x", "e13 = t∧y", "e23 = x∧y")
    ],
    "maxwell_spacetime4d": [
        f"faraday {b}\n[e/length²]"
        for b in ("e12 = t∧x", "e13 = t∧y", "e14 = t∧z", "e23 = x∧y", "e24 = x∧z", "e34 = y∧z")
    ],
    "elastodynamics": ["|velocity|\n[m/s]", "tr stress\n[Pa]", "|traceless stress|\n[Pa]"],
    "viscoelastic": ["|velocity|\n[m/s]", "tr conformation", "|traceless conformation|"],
    "acoustic_points": ["pressure\n[m²/s²]", "|velocity|\n[m/s]"],
    "sine_gordon": ["sine", "cosine"] + [f"gradient {b}\n[1/length]" for b in ("e1 = t", "e2 = x")],
}


class Memory:
    """A source that is no file."""

    def __init__(self, header, **arrays):
        self.header, self.arrays = header, arrays

    def read(self, number, start=0, stop=None):
        return {name: a[number, start:stop] for name, a in self.arrays.items()}


def header(fields, grid, metric=None, **options):
    metric = metric or (1,) * len(grid)
    axes = ("t", "x", "y", "z") if "time_axis" in options else ("x", "y", "z")
    dim = len(metric)
    return Header(metric, axes[:dim], (1.0,) * dim, ("open",) * dim, fields,
                  options.pop("frames", 1), grid, **options)  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    opened = {}
    for name in SIMULATORS:
        (plan,) = plans(create(name, **TINY[name]), folder / name, {"train": 2})
        generate([plan])
        opened[name] = FieldFile(plan.path)
    yield opened
    for file in opened.values():
        file.close()


def images(figure):
    return [ax.images[0] for ax in figure.axes if ax.images]


def title(figure):
    """On one line."""
    return figure.get_suptitle().replace("\n", " ")


def bars(figure):
    return [ax for ax in figure.axes if ax.get_label() == "<colorbar>"]


@pytest.mark.parametrize("name", SIMULATORS)
def test_every_data_set_has_a_picture(files, name, tmp_path):
    figure = plot_fields(files[name], trajectory=1)
    columns = 1 if name == "sine_gordon" else min(4, TINY[name]["frames"])
    assert [bar.get_ylabel() for bar in bars(figure)] == LABELS[name]
    panels = images(figure)
    assert len(panels) == columns * len(LABELS[name])
    assert title(figure).startswith(f"{name}, train trajectory 1")
    assert ("plane z = " in title(figure)) == (name in ("maxwell3d", "maxwell_spacetime4d"))
    for row in range(len(LABELS[name])):
        limits = {panel.get_clim() for panel in panels[row * columns : (row + 1) * columns]}
        assert len(limits) == 1
        low, high = limits.pop()
        unsigned = "|" in LABELS[name][row] or LABELS[name][row] in (
            "smoke",
            "cosine",
            "tr conformation",
        )
        assert low >= 0 if unsigned else low == -high
    figure.savefig(tmp_path / "fields.png")
    assert (tmp_path / "fields.png").stat().st_size > 5000


def test_the_picture_shows_the_numbers(files):
    file = files["navier_stokes"]
    stored = file.read(0)
    smoke, speed = images(plot_fields(file, frame=2))
    assert np.array_equal(smoke.get_array(), stored["smoke"][2, ..., 0].T)
    length = np.linalg.norm(stored["velocity"][2].astype(float), axis=-1)
    assert np.allclose(speed.get_array(), length.T)
    file = files["maxwell_spacetime4d"]
    panels = images(plot_fields(file, frame=[1, 0]))
    stored = file.read(0)["faraday"]
    for i, panel in enumerate(panels):
        assert np.array_equal(panel.get_array(), stored[1 - i % 2, :, :, 3, i // 2].T)


def test_x_points_right_and_y_up():
    smoke = np.zeros((1, 1, 6, 4, 1))
    smoke[0, 0, 5, :] = 1  # large x
    velocity = np.zeros((1, 1, 6, 4, 2))
    velocity[..., 1] = 2  # along y
    fields = (Field("smoke", 0), Field("velocity", 1))
    figure = plot_fields(Memory(header(fields, (6, 4)), smoke=smoke, velocity=velocity))
    figure.set_dpi(100)
    canvas = mpl.backends.backend_agg.FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba()).astype(float)
    box = figure.axes[0].get_window_extent()
    middle = int(pixels.shape[0] - (box.y0 + box.y1) / 2)
    left, right = pixels[middle, int(box.x0) + 4], pixels[middle, int(box.x1) - 4]
    assert right[:3].sum() > 1.5 * left[:3].sum()  # the drawn pixels, not only the array
    assert np.array_equal(images(figure)[0].get_array()[:, -1], np.ones(4))
    ax = next(ax for ax in figure.axes if ax.collections)
    assert not ax.yaxis_inverted()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "y")
    quiver = next(c for c in ax.collections if isinstance(c, mpl.quiver.Quiver))
    assert np.all(quiver.U == 0)
    assert np.all(quiver.V == 2)


def test_colours():
    fields = (Field("charge", 0, "C"),)
    values = np.linspace(-1, 3, 24).reshape(1, 1, 6, 4, 1)
    (panel,) = images(plot_fields(Memory(header(fields, (6, 4)), charge=values)))
    assert panel.get_clim() == (-3, 3)
    assert panel.get_cmap().name == "RdBu_r"
    figure = plot_fields(Memory(header(fields, (6, 4)), charge=values + 9))
    assert images(figure)[0].get_clim() == (8, 12)
    assert images(figure)[0].get_cmap().name == "viridis"
    spike = np.ones((1, 1, 20, 20, 1))
    spike[0, 0, 3, 3] = 1000
    figure = plot_fields(Memory(header(fields, (20, 20)), charge=spike))
    assert images(figure)[0].get_clim() == (0, 1)  # one number does not hide the others
    spike[...] = np.nan
    for empty in (spike, np.zeros_like(spike)):
        figure = plot_fields(Memory(header(fields, (20, 20)), charge=empty))
        assert images(figure)[0].get_clim() == (0, 1)


def test_vectors_of_spacetime_are_shown_by_components():
    flat = header((Field("current", 1, "A"),), (4, 3), (1, -1, -1), time_axis=0, frames=2)
    source = Memory(flat, current=np.random.default_rng(0).normal(size=(1, 2, 4, 3, 3)))
    figure = plot_fields(source)
    assert [bar.get_ylabel() for bar in bars(figure)] == [
        f"current {b}\n[A]" for b in ("e1 = t", "e2 = x", "e3 = y")
    ]
    assert [ax.get_title() for ax in figure.axes[:2]] == ["t = 0", "t = 1"]


def test_a_line_and_time_are_a_diagram(files):
    file = files["sine_gordon"]
    stored = file.read(0)
    figure = plot_fields(file)
    shown = images(figure)
    assert np.array_equal(shown[0].get_array(), stored["sine"][..., 0])  # time up, space right
    assert np.array_equal(shown[3].get_array(), stored["gradient"][..., 1])
    for image in shown:
        assert image.origin == "lower"
        assert image.get_extent() == pytest.approx((0, 4.8, 0, 3.2))
        right, left = (line.get_xydata() for line in image.axes.lines)
        assert np.allclose(right, [[2.4, 0], [5.6, 3.2]])
        assert np.allclose(left, [[2.4, 0], [-0.8, 3.2]])
        assert image.axes.get_xlim() == pytest.approx((0, 4.8))  # the lines change nothing
        assert image.axes.get_aspect() == 1
    assert [shown[2].axes.get_xlabel(), shown[2].axes.get_ylabel()] == ["x", "t"]
    assert [ax.get_ylabel() for ax in bars(plot_fields(file, fields="cosine"))] == ["cosine"]


def test_a_line_with_frames_is_a_diagram_without_light():
    fields = (Field("height", 0, "m"), Field("velocity", 1, "m/s"))
    line = header(fields, (16,), frames=5, frame_spacing=0.5, units={"length": "m", "time": "s"})
    rng = np.random.default_rng(0)
    values = {name: rng.normal(size=(1, 5, 16, 1)) for name in ("height", "velocity")}
    figure = plot_fields(Memory(line, **values), title="waves")
    height, velocity = images(figure)
    assert np.array_equal(height.get_array(), values["height"][0, ..., 0])
    assert np.array_equal(velocity.get_array(), values["velocity"][0, ..., 0])
    assert height.get_extent() == [0, 16, 0, 2.5]
    assert not height.axes.lines
    assert (height.axes.get_xlabel(), height.axes.get_ylabel()) == ("x [m]", "t [s]")
    assert [bar.get_ylabel() for bar in bars(figure)] == ["height\n[m]", "velocity e1 = x\n[m/s]"]
    assert title(figure) == "waves"


def test_titles_are_not_cut_off(files):
    """Also above a single narrow panel."""
    figure = plot_fields(files["maxwell3d"], frame=0, fields="electric")
    assert "\n" in figure.get_suptitle()
    figure.draw_without_rendering()
    (text,) = figure.texts
    box = text.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width
    assert box.y1 <= figure.bbox.height
    assert all(box.y0 >= ax.get_window_extent().y1 for ax in figure.axes)


def test_curves_move(tmp_path):
    line = header((Field("height", 0),), (16,), frames=4)
    wave = np.stack([np.roll(np.eye(16)[3], 3 * i) for i in range(4)])[None, ..., None]
    with Image.open(animate(Memory(line, height=wave), tmp_path / "film.gif", dpi=50)) as film:
        frames = []
        for i in range(film.n_frames):
            film.seek(i)
            frames.append(np.asarray(film.convert("L")).astype(float))
    assert len(frames) == 4
    box = frames[0].shape
    changed = [np.abs(b - a)[box[0] // 4 :].max() for a, b in itertools.pairwise(frames)]
    assert min(changed) > 50


def test_units_read_well(files):
    figure = plot_fields(files["maxwell3d"], frame=(0, 2))
    assert figure.axes[6].get_xlabel() == "x [µm]"
    assert figure.axes[6].get_ylabel() == "y [µm]"
    assert figure.axes[0].get_title() == "t = 0 fs"
    assert "z = 1.75 µm" in title(figure)
    figure = plot_fields(files["navier_stokes"], fields="smoke")
    assert figure.axes[1].get_title() == "t = 1.5 s"
    assert len(images(figure)) == 3


@pytest.mark.parametrize("name", SIMULATORS)
def test_films(files, name, tmp_path):
    progress = []
    path = animate(
        files[name], tmp_path / "film.gif", fps=4, dpi=40, progress=lambda *x: progress.append(x)
    )
    frames = TINY[name]["frames"]
    assert progress == [(i + 1, frames) for i in range(frames)]
    assert list(tmp_path.iterdir()) == [path]
    with Image.open(path) as film:
        assert film.n_frames == frames
        assert film.info["duration"] == 250


def test_a_film_is_written_whole_or_not_at_all(files, tmp_path):
    def stop(done, of):
        raise KeyboardInterrupt

    (tmp_path / "film.gif").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        animate(files["navier_stokes"], tmp_path / "film.gif", dpi=40, progress=stop)
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"old"]


def test_mp4(files, tmp_path, monkeypatch):
    if animation.FFMpegWriter.isAvailable():
        path = animate(files["navier_stokes"], tmp_path / "film.mp4", dpi=40)
        assert path.stat().st_size > 1000
    monkeypatch.setattr(animation.FFMpegWriter, "isAvailable", classmethod(lambda cls: False))
    with pytest.raises(ValueError, match=r"film\.mp4 needs the program ffmpeg.*write film\.gif"):
        animate(files["navier_stokes"], tmp_path / "film.mp4")


def test_errors(files, tmp_path, monkeypatch):
    file = files["navier_stokes"]
    with pytest.raises(IndexError, match="has 2 trajectories, got 7"):
        plot_fields(file, trajectory=7)
    with pytest.raises(IndexError, match="has 2 trajectories, got 7"):
        animate(file, tmp_path / "film.gif", trajectory=7)
    with pytest.raises(ValueError, match="frames must be from 0 to 2, got 3"):
        plot_fields(file, frame=3)
    with pytest.raises(ValueError, match=r"frames must be from 0 to 2, got \[\]"):
        plot_fields(file, frame=[])
    with pytest.raises(ValueError, match="fields must be of smoke, velocity, got 'pressure'"):
        plot_fields(file, fields="pressure")
    with pytest.raises(ValueError, match=r"fields must be of smoke, velocity, got \[\]"):
        animate(file, tmp_path / "film.gif", fields=[])
    with pytest.raises(ValueError, match=r"ends in \.gif or \.mp4, got 'film\.avi'"):
        animate(file, tmp_path / "film.avi")
    with pytest.raises(ValueError, match="fps must be positive, got 0"):
        animate(file, tmp_path / "film.gif", fps=0)
    line = header((Field("wave", 0),), (8,), (1, -1), time_axis=0)
    with pytest.raises(ValueError, match="on a line are drawn with all frames, got frame 0"):
        plot_fields(Memory(line, wave=np.zeros((1, 1, 8, 1))), frame=0)
    point = header((Field("wave", 0),), (), (1,), time_axis=0)
    with pytest.raises(ValueError, match=r"needs an axis of space, got grid \(\)"):
        plot_fields(Memory(point, wave=np.zeros((1, 1, 1))))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'cscnn\[viz\]'"):
        plot_fields(file)
    with pytest.raises(ImportError, match=r"pip install 'cscnn\[viz\]'"):
        animate(file, tmp_path / "film.gif")
