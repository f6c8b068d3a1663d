"""The JavaScript of the explorer computes what the library computes."""

import base64
import json
import math
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.algebra.group import boost, rotation
from cscnn.kernels import Differential
from cscnn.kernels.base import SteerableKernel
from cscnn.kernels.basis import SteerableBasis
from cscnn.testing import relative_error
from tests.test_examples import load
from tests.viz.browser import Browser, find_browser

FOLDER = Path(__file__).parents[2] / "docs" / "assets" / "explorer"
NUMERICS = ("algebra", "kernels", "fields", "convolve")  # the files that do not draw
METRICS = ((1, 1), (1, -1))
#: (input grade, output grade) of all steerable kernels of a plane
PAIRS = ((0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2))
SHARE = 0.3
FACTORS = {"project": (1 - SHARE), "stretch": SHARE}  # from vectors to vectors


class Node:
    """JavaScript in Node."""

    def eval(self, script):
        sources = "\n".join((FOLDER / f"{name}.js").read_text("utf-8") for name in NUMERICS)
        program = f"{sources}\nconsole.log(JSON.stringify({script}));"
        result = subprocess.run(["node", "-"], input=program, capture_output=True, encoding="utf-8")
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)


@pytest.fixture(scope="module")
def javascript(tmp_path_factory):
    """What evaluates an expression with the files of the explorer: Node, or a browser."""
    if shutil.which("node"):
        yield Node()
    elif find_browser() is not None and os.name == "posix":
        browser = Browser(tmp_path_factory.mktemp("profile"))
        for name in NUMERICS:
            browser.eval((FOLDER / f"{name}.js").read_text("utf-8"))
        yield browser
        browser.close()
    else:
        pytest.skip("needs node or chromium")


pytestmark = pytest.mark.external


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def close(actual, expected):
    actual = torch.tensor(actual, dtype=torch.float64)
    torch.testing.assert_close(actual, expected.reshape(actual.shape), atol=1e-9, rtol=1e-9)


def element(algebra, amount):
    """What the explorer calls the element of an amount."""
    mixed = algebra.metric == (1, -1)
    return boost(algebra, amount, [1.0]) if mixed else rotation(amount)


def factor(kind, pair):
    return FACTORS[kind] if pair == (1, 1) else 1.0


def options(pair, **others):
    return json.dumps({"input": pair[0], "output": pair[1], "share": SHARE, **others})


@pytest.mark.parametrize("metric", METRICS)
def test_product_and_action(javascript, rng, metric):
    algebra = CliffordAlgebra(metric)
    x, y = rng.standard_normal((2, 4))
    made = javascript.eval(f"""(({{ algebra: a }}) => ({{
      product: a.product({list(metric)}, {x.tolist()}, {y.tolist()}),
      element: a.element({list(metric)}, 0.7),
      action: [...a.action(a.element({list(metric)}, 0.7))],
      reflected: [...a.action([0.6, 0.8, 0.8, -0.6])],
      inverse: a.inverse(a.element({list(metric)}, 0.7)),
    }}))(explorer)""")
    g = element(algebra, 0.7)
    close(made["product"], algebra.geometric_product(torch.tensor(x), torch.tensor(y)))
    close(made["element"], g)
    close(made["action"], algebra.action(g))
    close(made["inverse"], torch.linalg.inv(g))
    reflection = torch.tensor([[0.6, 0.8], [0.8, -0.6]], dtype=torch.float64)
    expected = torch.block_diag(torch.ones(1, 1), reflection, -torch.ones(1, 1)).double()
    close(made["reflected"], expected)


@pytest.mark.parametrize("metric", METRICS)
def test_basis_kernels_are_those_of_the_library(javascript, rng, metric):
    """All of them, and no others."""
    basis = SteerableBasis(CliffordAlgebra(metric))
    v = rng.standard_normal(2)
    one_by_one = torch.eye(len(basis), dtype=torch.float64)[:, None, :, None]
    expected = basis.assemble(one_by_one, torch.tensor(v)[None])[:, :, 0, :, 0]
    names = json.dumps([(kind, grade) for kind, grade, _ in basis.elements])
    made = javascript.eval(f"""{names}.map(([kind, grade]) =>
      [...explorer.kernels.basis({list(metric)}, kind, grade, {v.tolist()})])""")
    close(made, expected)
    joined = javascript.eval("""[0, 1, 2].flatMap((a) => [0, 1, 2].flatMap((b) =>
      explorer.kernels.families(a, b).map((kind) => [kind, a, b])))""")
    theirs = {
        (kind, grade, output)
        for (kind, grade, _), output in zip(basis.elements, basis.output_grades, strict=True)
    }
    assert {tuple(row) for row in joined} == theirs
    assert len(joined) == len(basis) == 8


class Shell(SteerableKernel):
    """The explorer's steerable kernel, made of the library's basis."""

    def __init__(self, algebra, pair, shell, radius):
        super().__init__(algebra, 1, 1, SteerableBasis(algebra), "O")
        self.pair, self.shell, self.radius = pair, shell, radius
        self.one = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))

    def coefficients(self, orbits):
        # points of the library are in [-1, 1], those of the explorer are numbers of grid points
        eta = orbits.eta * self.radius**2
        profile = torch.exp(-((eta - self.shell * abs(self.shell)) ** 2) / 32)
        rows = []
        for (kind, grade, _), output in zip(
            self.basis.elements, self.basis.output_grades, strict=True
        ):
            degree = {"project": 0, "stretch": 2}.get(kind, 1)
            size = factor(kind, self.pair) if (grade, output) == self.pair else 0.0
            rows.append(size * (self.radius / 2) ** degree * profile * self.one)
        return torch.stack(rows)[None, None]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("metric", METRICS)
def test_steerable_convolution(javascript, rng, metric, pair):
    """Of random numbers, by the library's convolution."""
    algebra, radius, size, shell = CliffordAlgebra(metric), 3, 12, -1.2 if pair[0] else 1.2
    field = torch.tensor(rng.standard_normal((1, 1, size, size, 4)))
    kernel = Shell(algebra, pair, shell, radius)
    conv = CliffordSteerableConv(
        algebra, 1, 1, 2 * radius + 1, kernel=kernel, padding=0, bias=False
    )
    with torch.no_grad():
        expected = conv(field)
        weights = conv.expanded_kernel().flatten(2).permute(2, 0, 1)
    made = javascript.eval(f"""(({{ kernels, convolve }}) => {{
      const kernel = kernels.steerable({list(metric)}, {options(pair, shell=shell)});
      const taps = kernels.sample(kernel, {radius});
      const values = Float64Array.from({field.flatten().tolist()});
      return {{
        taps: taps.map((tap) => [...tap.matrix]),
        convolved: [...convolve.onGrid(values, {size}, taps)],
      }};
    }})(explorer)""")
    close(made["taps"], weights)
    close(made["convolved"], expected)
    assert expected.abs().max() > 0.1


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("metric", METRICS)
def test_differential_taps(javascript, metric, pair):
    algebra, radius = CliffordAlgebra(metric), 4
    conv = CliffordSteerableConv(
        algebra, 1, 1, 2 * radius + 1, kernel=Differential(order=2), bias=False
    ).double()
    kernel, step = conv.kernel, 1 / radius
    wanted = torch.zeros(len(kernel.operators), dtype=torch.float64)
    for number, (index, power) in enumerate(kernel.operators):
        kind, grade, _ = kernel.basis.elements[index]
        order = {"project": 2, "stretch": 2}.get(kind, 1)
        if (grade, kernel.basis.output_grades[index]) == pair and power == (kind == "project"):
            wanted[number] = factor(kind, pair) * step**order
    with torch.no_grad():
        kernel.weight.copy_(wanted * kernel.norms / kernel.element_scale)
        expected = conv.expanded_kernel().flatten(2).permute(2, 0, 1)
    made = javascript.eval(f"""explorer.kernels.differential({list(metric)},
      {options(pair, radius=radius)}).map((tap) => [...tap.matrix])""")
    close(made, expected)
    assert expected.abs().max() > 0.01


@pytest.mark.parametrize("kind", ["bumps", "kink"])
@pytest.mark.parametrize("metric", METRICS)
def test_both_ways_around_the_diagram(javascript, metric, kind):
    """The moved field, and what is convolved first and then moved, at the points of the grid."""
    algebra, radius, size, pair = CliffordAlgebra(metric), 2, 5, (1, 1)
    g, kernel = element(algebra, 0.6), Shell(CliffordAlgebra(metric), pair, 1.0, radius)
    ticks = torch.arange(size, dtype=torch.float64) - size // 2
    grid = torch.cartesian_prod(ticks, ticks)
    offsets = torch.cartesian_prod(*[torch.arange(-radius, radius + 1).double()] * 2)
    back = grid @ torch.linalg.inv(g).T
    around = (back[:, None] + offsets).flatten(0, 1)
    made = javascript.eval(f"""(({{ algebra, kernels, fields, convolve }}) => {{
      const field = fields.KINDS.{kind}({list(metric)});
      const at = ([a, b]) => {{ const out = [0, 0, 0, 0]; field(a, b, out); return out; }};
      const g = algebra.element({list(metric)}, 0.6);
      const kernel = kernels.steerable({list(metric)}, {options(pair, shell=1.0)});
      const way = convolve.diagram(field, g, kernels.sample(kernel, {radius}), {size});
      return {{
        moved: [...fields.sample(fields.moved(field, g), {size})],
        at: {back.tolist()}.map(at), around: {around.tolist()}.map(at),
        second: [...way.second], error: way.error,
        first: [...way.first], difference: [...way.difference],
      }};
    }})(explorer)""")
    at = torch.tensor(made["at"], dtype=torch.float64)
    close(made["moved"], algebra.transform(g, at))
    values = torch.tensor(made["around"], dtype=torch.float64).unflatten(0, (size**2, -1))
    with torch.no_grad():
        taps = kernel(offsets / radius)[:, 0, :, 0]
    expected = algebra.transform(g, torch.einsum("vcb,pvb->pc", taps, values))
    close(made["second"], expected)
    first, second = (torch.tensor(made[way], dtype=torch.float64) for way in ("first", "second"))
    close(made["difference"], first - second)
    assert math.isclose(made["error"], relative_error(first, second), rel_tol=1e-9)


# --- the data of the forecasts --------------------------------------------------------------------


@pytest.fixture(scope="module")
def film():
    text = (FOLDER / "forecast_data.js").read_text("utf-8")
    return json.loads(text.removeprefix("globalThis.forecastData = ").removesuffix(";\n"))


def decoded(film, text):
    low, high = film["limits"]
    codes = np.frombuffer(base64.b64decode(text), "<u2").astype(float)
    return torch.tensor(low + (high - low) * codes / 65535).reshape(film["frames"], film["points"])


def test_truth_is_the_closed_form(film, monkeypatch):
    """In every frame, at the times and places that the page says."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    solution = load("explorer_data").collision()
    t, x = (
        (torch.arange(film[n]).double() - (film[n] - 1) / 2) * film["spacing"]
        for n in ("frames", "points")
    )
    for rapidity, text in zip(film["rapidities"], film["truths"], strict=True):
        seen = solution.transformed(boost(CliffordAlgebra((1, -1)), rapidity, [1.0]))
        phase, _ = seen.field(torch.cartesian_prod(t, x))
        expected = (1 - phase.cos()).reshape(len(t), len(x))
        assert (decoded(film, text) - expected).abs().max() < 1e-4


def test_forecasts_have_the_errors_that_are_told(film):
    told = {}
    for network in film["networks"]:
        rows = zip(network["errors"], network["forecasts"], film["truths"], strict=True)
        for error, forecast, truth in rows:
            a, b = decoded(film, forecast), decoded(film, truth)
            assert abs(float((a - b).norm() / b.norm()) - error) < 2e-3
        told[network["key"]] = dict(zip(film["rapidities"], network["errors"], strict=True))
    assert max(told["differential"][0.0], told["resnet"][0.0]) < 0.1
    assert told["differential"][0.5] < told["resnet"][0.5] / 2
    assert (FOLDER / "forecast_data.js").stat().st_size < 300_000
