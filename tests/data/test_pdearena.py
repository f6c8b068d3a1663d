"""Files of PDEArena: values, positions, rotations, and what is wrong with a file."""

import itertools

import numpy as np
import pytest
import torch

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.grids import grid_symmetries, transform_on_grid
from cscnn.data import open_fields
from cscnn.data.readers import MaxwellFile, NavierStokesFile
from cscnn.data.simulators.maxwell3d import Maxwell3D, YeeGrid
from tests.data.layouts import change, maxwell_file, random_flow, replace, smoke_file


@pytest.fixture
def smoke(tmp_path):
    return smoke_file(tmp_path / "NavierStokes2D_train_42_0.50000_2.h5", *random_flow())


def multivectors(source, number):
    """All fields of a trajectory, of different grades, together: (1, frames, *grid, blades)."""
    algebra, header = source.header.algebra, source.header
    fields = source.read(number).items()
    return sum(algebra.embed(torch.tensor(x), header.grade(name)) for name, x in fields)[None]


# --- PDEArena: Navier-Stokes -------------------------------------------------------------------


def test_smoke_values_by_naive_loops(tmp_path):
    u, vx, vy = random_flow(nx=6, ny=4)
    source = open_fields(smoke_file(tmp_path / "s.h5", u, vx, vy, split="test"))
    assert isinstance(source, NavierStokesFile)
    assert len(source) == 2
    assert (source.dtype, source.staggering) == ("float64", "")
    for number, (start, stop) in itertools.product(range(2), ((0, 4), (1, 3))):
        got = source.read(number, start, stop)
        assert got["smoke"].shape == (stop - start, 6, 4, 1)
        assert got["velocity"].shape == (stop - start, 6, 4, 2)
        for t, i, j in itertools.product(range(stop - start), range(6), range(4)):
            at = (number, start + t)
            x = (vx[at][i, j] + vx[at][i + 1, j]) / 2
            y = (vy[at][i, j] + vy[at][i, j + 1]) / 2
            assert got["smoke"][t, i, j, 0] == u[at][i, j]
            assert got["velocity"][t, i, j].tolist() == [x, y]


def test_smoke_header(smoke):
    header = open_fields(smoke).header
    assert (header.metric, header.boundary, header.split) == ((1, 1), ("wall", "wall"), "train")
    assert [(f.name, f.grade) for f in header.fields] == [("smoke", 0), ("velocity", 1)]
    # cells are size / n, whatever dx and t say
    assert header.spacing == pytest.approx((32 / 6, 32 / 6), rel=1e-14)
    assert header.frame_spacing == 6.0
    assert header.backgrounds[0].components == (0.0, 0.5)
    assert "opposite faces" in header.parameters["centring"]
    assert type(header).from_dict(header.to_dict()) == header


def test_raw_smoke_says_that_it_is_staggered(tmp_path):
    u, vx, vy = random_flow()
    source = open_fields(smoke_file(tmp_path / "s.h5", u, vx, vy), centre=False)
    assert "half a cell" in source.staggering
    assert source.header.parameters["centring"] == ""
    np.testing.assert_array_equal(source.read(1)["velocity"][..., 0], vx[1, :, :-1])
    np.testing.assert_array_equal(source.read(1)["velocity"][..., 1], vy[1, :, :, :-1])


def test_no_net_flow_through_a_closed_box(smoke):
    velocity = open_fields(smoke).read(0)["velocity"]
    assert np.abs(velocity[..., 0].sum(2)).max() < 1e-14
    assert np.abs(velocity[..., 1].sum(1)).max() < 1e-14


@pytest.mark.parametrize(("centre", "rate"), [(True, 4.0), (False, 2.0)])
def test_centred_velocity_converges_at_second_order(tmp_path, centre, rate):
    errors = []
    for n in (16, 32):
        nodes, middle = np.arange(n + 1) / n, (np.arange(n) + 0.5) / n
        x, y = np.meshgrid(nodes, nodes, indexing="ij")
        psi = (np.sin(np.pi * x) * np.sin(np.pi * y)) ** 2
        flow = (np.diff(psi, axis=1) * n)[None, None], -(np.diff(psi, axis=0) * n)[None, None]
        path = smoke_file(tmp_path / f"{n}.h5", np.zeros((1, 1, n, n)), *flow, size=1.0)
        a, b = np.meshgrid(middle, middle, indexing="ij")
        true = np.pi * np.sin(np.pi * a) ** 2 * np.sin(2 * np.pi * b)
        got = open_fields(path, centre=centre).read(0)["velocity"][0, ..., 0]
        errors.append(np.abs(got - true).max())
    assert errors[0] / errors[1] == pytest.approx(rate, rel=0.1)


def rotated_flow(u, vx, vy):
    """A quarter turn that maps axis x to axis y, of smoke and of the flow through all faces."""
    turn = lambda a: np.rot90(a, 1, axes=(2, 3))  # noqa: E731
    return turn(u), -turn(vy), turn(vx)


def test_reading_commutes_with_rotation_if_centred_only(tmp_path):
    flow = random_flow()
    paths = [smoke_file(tmp_path / "a.h5", *flow)]
    paths.append(smoke_file(tmp_path / "b.h5", *rotated_flow(*flow)))
    algebra = CliffordAlgebra((1, 1))
    quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    assert any(torch.equal(g.to(quarter), quarter) for g in grid_symmetries(algebra, (6, 6)))
    for centre in (True, False):
        before, after = (multivectors(open_fields(path, centre=centre), 1) for path in paths)
        assert torch.equal(transform_on_grid(algebra, quarter, before), after) == centre


def test_smoke_that_is_not_on_faces_is_noticed(smoke):
    change(smoke, lambda f: f["train/vy"].__setitem__((0, 3, 2, 0), 0.25))
    with pytest.raises(ValueError, match=r"NavierStokes2D.*train/vy must be 0 .* axis y.*0\.25"):
        open_fields(smoke)
    assert open_fields(smoke, centre=False).read(0)["velocity"][3, 2, 0, 1] == 0.25


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("train/buo_y", [0.5, np.nan], r"train/buo_y must have finite values, got \[0\.5, nan\]"),
        ("train/dt", [6.0, -3.0], r"train/dt must be positive, got -3\.0"),
        ("train/dx", [1.0, 2.0], r"train/dx must have one .* got 1\.0 to 2\.0: a kernel needs one"),
        ("train/dx", [np.nan, np.nan], r"train/dx must have one .* got nan to nan"),
        ("train/dy", [-1.0, -1.0], r"spacing must be positive, got .*-0\.8"),
        ("train/dt", [6.0], r"train/dt has shape \(1,\), expected \(2,\)"),
        ("train/vx", np.zeros((2, 4, 6, 5)), r"train/vx has shape \(2, 4, 6, 5\), expected \(2, 4"),
        ("train/vy", np.zeros((2, 4, 6, 6), complex), r"train/vy must hold real .* complex128"),
    ],
)
def test_bad_numbers_of_smoke(smoke, name, values, message):
    replace(smoke, name, values)
    with pytest.raises(ValueError, match=rf"NavierStokes2D_train_42_0\.50000_2\.h5: .*{message}"):
        open_fields(smoke)


def test_constants_that_differ_between_trajectories_are_given(smoke):
    assert not open_fields(smoke).header.given
    replace(smoke, "train/buo_y", [0.5, 0.4])
    replace(smoke, "train/dt", [6.0, 3.0])
    source = open_fields(smoke)
    header = source.header
    assert [(g.name, g.grade, g.kind) for g in header.given] == [
        ("buoyancy", 1, "constant"), ("frame_spacing", 0, "constant"),
    ]  # fmt: skip
    assert not header.backgrounds
    assert header.frame_spacing == 4.5
    got = source.read(1, 0, 2)
    assert (got["buoyancy"].tolist(), got["frame_spacing"].tolist()) == ([0.0, 0.4], [3.0])


@pytest.mark.parametrize("name", ["vx", "dt", "buo_y"])
def test_missing_dataset_of_smoke(smoke, name):
    change(smoke, lambda f: f["train"].__delitem__(name))
    with pytest.raises(ValueError, match=rf"0_2\.h5: dataset /train/{name} is missing"):
        open_fields(smoke)


def test_two_splits_in_a_file(smoke):
    smoke_file(smoke, *random_flow(), split="valid")
    with pytest.raises(ValueError, match=r"expected one group .* got \['train', 'valid'\]"):
        open_fields(smoke)


def test_nan_is_found_where_it_is_read(smoke):
    change(smoke, lambda f: f["train/vx"].__setitem__((1, 2, 3, 4), np.nan))
    source = open_fields(smoke)
    source.read(0)
    source.read(1, 0, 2)
    message = r"0_2\.h5: trajectory 1, field vx: 1 of 72 .* is nan in frame 2 at \(3, 4\)"
    with pytest.raises(ValueError, match=message):
        source.read(1, 1, 3)


def test_shallow_water_is_not_flat(tmp_path):
    path = change(tmp_path / "sw.h5", lambda f: f.create_dataset("train/pres", data=np.zeros(3)))
    with pytest.raises(ValueError, match=r"sw\.h5 looks like shallow water .* not supported"):
        open_fields(path)


# --- PDEArena: Maxwell -------------------------------------------------------------------------


def test_maxwell_values_by_naive_loops(tmp_path):
    d, h = np.random.default_rng(0).integers(-8, 8, (2, 1, 3, 4, 5, 3, 3)).astype(float)
    source = open_fields(maxwell_file(tmp_path / "m.h5", d, h))
    assert isinstance(source, MaxwellFile)
    assert (source.header.grid, source.header.split, len(source)) == ((3, 4, 2), "valid", 1)
    assert source.header.spacing == (5e-7,) * 3
    assert "half a solver step" in source.staggering
    assert "Yee" not in source.staggering
    got = source.read(0, 1, 3)
    for t, i, j, k in itertools.product(range(2), range(3), range(4), range(2)):
        e, m = d[0, t + 1], h[0, t + 1]
        pair = (slice(i, i + 2), slice(j, j + 2), slice(k, k + 2))
        electric = [
            e[i, pair[1], pair[2], 0].mean(),
            e[pair[0], j, pair[2], 1].mean(),
            e[pair[0], pair[1], k, 2].mean(),
        ]
        magnetic = [m[i, j, pair[2], 2].mean(), -m[i, pair[1], k, 1].mean(), 0.0]
        magnetic[2] = m[pair[0], j, k, 0].mean()
        assert got["electric"][t, i, j, k].tolist() == electric
        assert got["magnetic"][t, i, j, k].tolist() == magnetic
    raw = open_fields(source.path, centre=False)
    assert "Yee" in raw.staggering
    np.testing.assert_array_equal(raw.read(0)["electric"], d[0])
    np.testing.assert_array_equal(raw.read(0)["magnetic"][..., 1], -h[0, ..., 1])


def test_maxwell_centres_are_those_of_our_simulator(tmp_path):
    box = Maxwell3D(cells=20, keep=5, warmup=12, every=2, frames=2)
    sources = box.draw(np.random.default_rng(1))
    yee = YeeGrid(box, sources)
    yee.run(box.warmup)
    d, h = [], []
    crop = slice(box.margin, box.margin + box.keep + 1)
    for _ in range(box.frames):
        yee.run(box.every)
        d.append(yee.electric[:, crop, crop, crop].movedim(0, -1).numpy().copy())
        h.append(yee.magnetic[:, crop, crop, crop].movedim(0, -1).numpy().copy())
    source = open_fields(maxwell_file(tmp_path / "m.h5", np.stack(d)[None], np.stack(h)[None]))
    own = box.simulate([np.random.default_rng(1)])
    assert np.abs(own["electric"][0].numpy()).max() > 0
    np.testing.assert_array_equal(source.read(0)["electric"], own["electric"][0])
    yee_centres = box._centred(yee.magnetic, edges=False)  # without the mean over half a step
    np.testing.assert_array_equal(source.read(0)["magnetic"][-1, ..., 2], yee_centres[..., 0])


def test_maxwell_commutes_with_rotations_if_centred_only(tmp_path):
    """Edges and faces of 3³ cells are mapped to each other by every symmetry of the cube."""
    algebra, n = CliffordAlgebra((1, 1, 1)), 3
    rng = np.random.default_rng(2)
    shapes = {
        edges: [tuple(n + ((b != a) == edges) for b in range(3)) for a in range(3)]
        for edges in (True, False)
    }
    e, h = (
        [rng.integers(-8, 8, shape).astype(float) for shape in shapes[k]] for k in (True, False)
    )

    def stored(components):
        """Cropped as stored: points outside of the cells hold other numbers."""
        array = rng.integers(-8, 8, (1, 1, n + 1, n + 1, n + 1, 3)).astype(float)
        for axis, values in enumerate(components):
            array[(0, 0, *(slice(0, size) for size in values.shape), axis)] = values
        return array

    def turned(components, sign):
        """g applied to a vector (or, with a sign for reflections, an axial vector) on the grid."""
        result = [None] * 3
        for axis, values in enumerate(components):
            new = int(np.flatnonzero(matrix[:, axis])[0])
            moved = np.transpose(values, [int(np.flatnonzero(row)[0]) for row in matrix])
            flips = [a for a in range(3) if matrix[a].sum() < 0]
            result[new] = np.flip(moved, flips) * matrix[new, axis] * sign
        return result

    before = maxwell_file(tmp_path / "before.h5", stored(e), stored(h))
    raw_differs = 0
    for number, g in enumerate(grid_symmetries(algebra, (n, n, n))):
        matrix = g.numpy()
        sign = round(np.linalg.det(matrix))
        path = tmp_path / f"{number}.h5"
        maxwell_file(path, stored(turned(e, 1)), stored(turned(h, sign)))
        for centre in (True, False):
            x, y = (multivectors(open_fields(p, centre=centre), 0) for p in (before, path))
            same = torch.equal(transform_on_grid(algebra, g.to(x), x), y)
            if centre:
                assert same, matrix
            else:
                raw_differs += not same
    assert number >= 23
    assert raw_differs >= number


@pytest.mark.parametrize("shape", [(1, 2, 4, 4, 4, 2), (1, 2, 4, 4, 3), (1, 2, 1, 4, 4, 3)])
def test_bad_shapes_of_maxwell(tmp_path, shape):
    path = maxwell_file(tmp_path / "m.h5", np.zeros(shape), np.zeros(shape))
    with pytest.raises(ValueError, match=rf"m\.h5: .*valid/d_field must be .*{shape[-1]}\)$"):
        open_fields(path)
