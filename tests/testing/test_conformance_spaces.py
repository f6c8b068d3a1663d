"""The kit for spaces: those that are right, and others."""

import re

import pytest
import torch
from torch import nn

from cscnn.geometry import (
    ConstantCurvature,
    anti_de_sitter,
    fibonacci_sphere,
    sphere,
    torus_of_revolution,
)
from cscnn.testing import conformance
from cscnn.testing.conformance import failures
from tests.testing.reports import failed_tests, message_of


class TiltedSphere(ConstantCurvature):
    """Forgets to transport: frames are taken as if they were parallel."""

    def transport(self, x, y, w):
        return w


class ShortSphere(ConstantCurvature):
    """A logarithm that is the chord."""

    def log(self, x, y):
        v, joined = super().log(x, y)
        return v * (1 - 0.1 * v.square().sum(-1, keepdim=True)), joined


class DirectedSphere(ConstantCurvature):
    """Points hear only those before them."""

    def edges(self, points, **options):
        edges = super().edges(points, **options)
        return edges.select(edges.sender <= edges.receiver)


POINTS = fibonacci_sphere(8)[0]
TURNS = conformance.linear_isometries((1, 1, 1))
EVENTS = anti_de_sitter(2).project(
    torch.tensor([[1.0, 0.2, 0.1], [1.0, -0.3, 0.4], [0.9, 0.1, -0.5], [1.0, 0.5, 0.3]]).double()
)

TestSphere = conformance.space(lambda: sphere(2), points=POINTS, isometries=TURNS)
TestAntiDeSitter = conformance.space(
    lambda: anti_de_sitter(2),
    points=EVENTS,
    isometries=conformance.linear_isometries((1, 1, -1)),
)
TestTorus = conformance.space(
    torus_of_revolution,
    points=torch.rand(5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64),
    isometries={"rotation": lambda x: x + torch.tensor([0.0, 0.7]).to(x)},
    edges=lambda space, points, frames: space.edges(points, 0.9, frames=frames),
    tol=1e-8,
)


@pytest.mark.parametrize(
    ("build", "failed", "message"),
    [
        (TiltedSphere, {"test_transport_is_an_isometry"}, "transport changes inner products"),
        (ShortSphere, {"test_log_inverts_exp"}, r"log\(x, exp\(x, u\)\) is not u"),
        (DirectedSphere, {"test_transport_back_is_the_inverse"}, "without one in the other direct"),
    ],
)
def test_broken_spaces(build, failed, message):
    suite = conformance.space(lambda: build((1, 1, 1), 1), points=POINTS, isometries=TURNS)
    messages = failures(suite)
    assert failed <= failed_tests(messages)
    assert re.search(message, message_of(messages, failed))


def test_a_map_that_is_no_isometry():
    stretch = {"stretch": lambda x: nn.functional.normalize(x * torch.tensor([1, 2, 1]).to(x))}
    suite = conformance.space(lambda: sphere(2), points=POINTS, isometries=stretch)
    assert failures(suite).keys() == {"test_isometry[stretch]"}
    with pytest.raises(ValueError, match=r"at least 3, D\), got torch.int64 of shape \(2, 3\)"):
        conformance.space(lambda: sphere(2), points=torch.ones(2, 3, dtype=torch.int64))
