"""The kit for kernels: one that is right, and others."""

import re

import pytest

from cscnn.kernels import Complete, CompleteKernel, Implicit, ImplicitKernel
from cscnn.nn import MVLinear
from cscnn.testing import conformance
from cscnn.testing.conformance import failures
from tests.testing.reports import failed_tests, message_of


class UserKernel(CompleteKernel):
    """A kernel of a user's own, by the library's basis."""


class BentKernel(CompleteKernel):
    """Steerable but for a factor that depends on a coordinate."""

    def expand(self, points, orbits=None, extra=None):
        return super().expand(points, orbits, extra) * (1 + points[:, 0])


class StiffKernel(CompleteKernel):
    """Its scale cannot be set."""

    def scale_output_(self, factors):
        pass


class UnevenKernel(CompleteKernel):
    """Values by orbits differ from those at points."""

    def expand(self, points, orbits=None, extra=None):
        return super().expand(points, orbits, extra) * (1 if orbits is None else 2)


TestUserKernel = conformance.kernel(
    lambda algebra, c_in, c_out: UserKernel(algebra, c_in, c_out, Complete(hidden_dim=4)),
    metrics=[(1, 1), (1, -1, -1)],
)


def kernel_suite(build, **options):
    options = {"metrics": [(1, -1)], "compiles": False, **options}
    return conformance.kernel(build, **options)


@pytest.mark.parametrize(
    ("build", "failed", "message"),
    [
        (BentKernel, {"test_steerable", "test_parity"}, "is not steerable under"),
        (StiffKernel, {"test_unit_variance"}, "noise of variance 1 has variance .* in grade 0"),
        (UnevenKernel, {"test_unit_variance", "test_orbits"}, "variance 1 has variance"),
    ],
)
def test_broken_kernels(build, failed, message):
    messages = failures(kernel_suite(build))
    assert failed_tests(messages) == failed
    assert re.search(message, message_of(messages, {max(failed)}))


def test_kernels_of_groups():
    suite = kernel_suite(CompleteKernel, groups=("O", "SO+"), metrics=[(1, 1), (1, -1)])
    assert [str(setting) for setting in suite.cases["setting"]] == ["++", "+-", "+- SO+"]
    assert not failures(suite, "steerable")

    def proper(algebra, c_in, c_out):
        return CompleteKernel(algebra, c_in, c_out, Complete(group="SO"))

    messages = failures(kernel_suite(proper), "steerable")  # it claims reflections that it lacks
    assert "test_steerable[+- reflection]" in messages
    assert "test_steerable[+- boost]" not in messages


def test_kernels_with_extra_multivectors():
    def build(algebra, c_in, c_out):
        return ImplicitKernel(
            algebra, c_in, c_out, Implicit(extra_channels=2, hidden_dim=4, num_layers=2)
        )

    assert not failures(kernel_suite(build, rapidity=1.0))


def test_what_is_no_kernel():
    messages = failures(kernel_suite(lambda algebra, a, b: MVLinear(algebra, a, b)), "shape")
    assert "expected a SteerableKernel, got MVLinear" in messages["test_shape[+-]"]
