"""The kit passes a layer that is right, and says what is wrong with others."""

import re
import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch
from torch import nn

from cscnn.nn import MVGELU
from cscnn.testing import conformance
from cscnn.testing.conformance import failures
from tests.testing.reports import failed_tests, message_of

needs_files = pytest.mark.skipif(find_spec("safetensors") is None, reason="needs safetensors")


class Scale(nn.Module):
    """A layer as a user might write it: each grade of each channel times a weight."""

    def __init__(self, algebra, channels):
        super().__init__()
        self.sizes = torch.tensor(algebra.grade_sizes)
        self.weight = nn.Parameter(torch.ones(channels, algebra.n_grades))

    def forward(self, x):
        factor = self.weight.repeat_interleave(self.sizes, dim=-1)
        return x * factor.reshape(len(factor), *(1,) * (x.dim() - 3), -1)


class ScaleBlades(Scale):
    """Not equivariant: one weight for each blade."""

    def __init__(self, algebra, channels):
        super().__init__(algebra, channels)
        self.weight = nn.Parameter(torch.ones(channels, algebra.n_blades))

    def forward(self, x):
        return x * self.weight.reshape(len(self.weight), *(1,) * (x.dim() - 3), -1)


class SinglePrecision(Scale):
    """The wrong dtype."""

    def forward(self, x):
        return super().forward(x).float()


class InnermostBlades(Scale):
    """Ignores the memory order."""

    def forward(self, x):
        return super().forward(x).contiguous()


class Square(Scale):
    """A product of the algebra as a layer."""

    def __init__(self, algebra, channels):
        super().__init__(algebra, channels)
        self.algebra = algebra

    def forward(self, x):
        return self.algebra.geometric_product(x, super().forward(x))


class HiddenState(Scale):
    """State that is not in the state_dict."""

    def __init__(self, algebra, channels):
        super().__init__(algebra, channels)
        self.size = torch.rand(()).item()

    def forward(self, x):
        return super().forward(x) * self.size


class IdleWeight(Scale):
    """A weight without effect."""

    def __init__(self, algebra, channels):
        super().__init__(algebra, channels)
        self.bias = nn.Parameter(torch.zeros(channels))


class Neighbours(Scale):
    """Not pointwise."""

    def forward(self, x):
        return super().forward(x) + (x.roll(1, 2) if x.dim() > 3 else 0)


class GraphBreak(Scale):
    """Cannot be compiled, nor can it take an empty batch."""

    def forward(self, x):
        return super().forward(x) * (2 if x.abs().max().item() > 1 else 3)


class BatchMean(Scale):
    """Of an empty batch there is no mean."""

    def forward(self, x):
        return super().forward(x) * (self.weight.mean() * x.square().mean())


class Overflow(Scale):
    """Its first derivatives are right; the second ones overflow single precision."""

    def forward(self, x):
        square = 2.0**-96 * (x[..., :1].square() + 1)
        return super().forward(x) / (square.sqrt() * 2.0**48)


class Nothing(Scale):
    """Equivariant for the wrong reason."""

    def forward(self, x):
        return 0 * super().forward(x)


def layer_suite(build, **options):
    return conformance.layer(lambda algebra: build(algebra, 2), channels=2, **options)


TestScale = layer_suite(Scale, gradcheck=True)
TestSquare = layer_suite(Square, gradcheck=True)


@pytest.mark.parametrize(
    ("build", "failed", "message"),
    [
        (ScaleBlades, {"test_equivariant"}, r"does not commute with \w+ of O"),
        (SinglePrecision, {"test_dtype"}, r"the output for torch.float64 is torch.float32"),
        (InnermostBlades, {"test_memory_order"}, "comes back in another order"),
        pytest.param(
            HiddenState,
            {"test_files"},
            "state_dict .* computes something else: the relative error",
            marks=needs_files,
        ),
        (IdleWeight, {"test_gradients_reach_every_parameter"}, "no gradient reaches bias"),
        (Neighbours, {"test_pointwise"}, "points of a space .* are not treated one by one"),
        (Overflow, {"test_double_backward"}, "second derivatives in float32 have NaN"),
        (Nothing, {"test_control"}, "a copy that is not symmetric passes"),
    ],
)
def test_broken_layers(build, failed, message):
    messages = failures(layer_suite(build, metrics=[(1, -1)], compiles=False))
    assert failed <= failed_tests(messages)
    assert re.search(message, message_of(messages, failed))


def test_weights_without_effect_can_be_declared():
    assert not failures(layer_suite(IdleWeight, idle=("b*",)), "gradients")


@needs_files
def test_a_broken_layer_fails_where_it_is_broken_only():
    messages = failures(layer_suite(InnermostBlades, metrics=[(1, -1)], compiles=False))
    assert sorted(messages) == [f"test_memory_order[{s}]" for s in ((2, 3, 2), (4, 3), (5,))]
    assert failed_tests(failures(layer_suite(HiddenState), "files")) == {"test_files"}


def test_what_cannot_be_compiled():
    suite = layer_suite(GraphBreak)
    assert failures(suite, "compile").keys() == {"test_compile"}
    assert failures(suite, "empty").keys() == {"test_empty_input"}
    assert not failures(layer_suite(GraphBreak, compiles=False), "compile")


def test_gradients_of_empty_batches_are_finite():
    messages = failures(layer_suite(BatchMean), "empty")
    assert "gradients with NaN or infinities: weight" in messages["test_empty_input"]


def test_wrong_gradients_are_found_by_gradcheck():
    suite = layer_suite(WrongGradient, gradcheck=True)
    assert "Jacobian mismatch" in failures(suite, "gradcheck")["test_gradcheck"]


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


class WrongGradient(Scale):
    def forward(self, x):
        return _Doubled.apply(super().forward(x))


def test_layers_of_fewer_symmetries_say_so():
    """Blades and their duals mixed: reflections change the sign of one of them only."""
    suite = conformance.layer(DualSum, channels=2, metrics=[(1, 1, 1)])
    assert {name for name in failures(suite, "equivariant") if "reflection" in name}
    few = conformance.layer(DualSum, channels=2, metrics=[(1, 1, 1)], kinds=("rotation",))
    assert not failures(few)


class DualSum(nn.Module):
    def __init__(self, algebra):
        super().__init__()
        self.algebra = algebra

    def forward(self, x):
        return x + self.algebra.dual(x)


# --- the kit itself -------------------------------------------------------------------------------


def test_pytest_collects_and_reports(tmp_path):
    """A file of one line for each layer, run by pytest itself."""
    (tmp_path / "test_user.py").write_text(
        "from cscnn.testing import conformance\n"
        "from cscnn.nn import MVGELU\n"
        "import torch\n"
        "class Clip(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return x.clamp(-1, 1)\n"
        "TestGate = conformance.layer(MVGELU, channels=2, metrics=[(1, -1)], compiles=False)\n"
        "TestClip = conformance.layer(lambda algebra: Clip(), channels=2, metrics=[(1, -1)])\n"
    )
    outcomes = {}

    class Recorder:
        def pytest_runtest_logreport(self, report):
            if report.when == "call":
                outcomes[report.nodeid.partition("::")[2]] = report

    options = ["-p", "no:cacheprovider", "-p", "no:terminal", "-c", "/dev/null"]
    chosen = ["-k", "equivariant or compile and Gate", "--rootdir", str(tmp_path)]
    pytest.main([str(tmp_path), *options, *chosen], plugins=[Recorder()])
    passed = {name for name, report in outcomes.items() if report.passed}
    kinds = ("boost", "reflection", "any")
    assert passed == {f"TestGate::test_equivariant[+- {kind}]" for kind in kinds}
    assert "TestGate::test_compile" not in outcomes
    report = outcomes["TestClip::test_equivariant[+- boost]"]
    assert report.failed
    assert "Clip does not commute with boost of O(1, 1)" in report.longreprtext


def test_pytest_is_not_needed():
    code = (
        "import sys; sys.modules['pytest'] = None\n"
        "from cscnn.nn import MVGELU\n"
        "from cscnn.testing import conformance\n"
        "suite = conformance.layer(MVGELU, channels=2, compiles=False)\n"
        "assert not conformance.failures(suite)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_to_test_is_an_error():
    for options in ({"kinds": ("boost",), "metrics": [(1, 1)]}, {"metrics": []}):
        with pytest.raises(ValueError, match="nothing to test"):
            conformance.layer(MVGELU, channels=2, **options)
    with pytest.raises(ValueError, match="group must be one of O, SO, O\\+, SO\\+, got 'U'"):
        conformance.point_network(Scale, group="U")


def test_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    failures(layer_suite(HiddenState), "files")
    assert torch.equal(torch.get_rng_state(), before)
