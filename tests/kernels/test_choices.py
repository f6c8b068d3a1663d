"""Typed choices of kernels: what they build, and their form in files."""

import json
import pickle
from dataclasses import FrozenInstanceError, dataclass
from typing import ClassVar

import pytest
import torch

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.conv import CliffordSteerablePointConv
from cscnn.kernels import (
    Complete,
    CompleteKernel,
    Differential,
    Implicit,
    ImplicitKernel,
    KernelChoice,
    kernel_choice,
)
from cscnn.kernels.choices import CHOICES
from cscnn.testing import assert_steerable
from tests.kernels.samples import grid

CASES = [
    Implicit(),
    Implicit(num_layers=2, hidden_dim=3, mask=False, learn_head=False, unit_variance=False),
    Implicit(extra_channels=2),
    Complete(),
    Complete(group="SO+", radial="rings", causal=True, hidden_dim=5),
    Complete(condition=3),
    Implicit(extra_channels=1, condition=2),
    Differential(order=2, accuracy=4, group="SO"),
]


def state_of(build, seed=3):
    """The state of what is built with a seed."""
    torch.manual_seed(seed)
    return build().state_dict()


def assert_same(a, b):
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("choice", CASES, ids=repr)
def test_round_trips(choice):
    text = json.dumps(choice.to_dict())
    assert kernel_choice(json.loads(text)) == choice
    assert pickle.loads(pickle.dumps(choice)) == choice
    assert kernel_choice(choice) is choice
    assert len({choice, kernel_choice(choice.to_dict())}) == 1  # hashable


@pytest.mark.parametrize("name", CHOICES)
def test_a_name_is_the_choice_with_its_defaults(name):
    assert kernel_choice(name) == kernel_choice({"name": name}) == CHOICES[name]()
    assert CHOICES[name]().to_dict()["name"] == name


def test_choices_do_not_change():
    with pytest.raises(FrozenInstanceError):
        Complete().group = "SO"
    assert Complete() != Complete(group="SO")
    assert Implicit() != Complete()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("spline", "one of the names complete, differential, implicit, got {'name': 'spline'}"),
        ({"group": "O"}, "one of the names complete, differential, implicit, got {'group': 'O'}"),
        ({"name": "implicit", "hiden": 3}, ".*condition; got hiden: did you mean hidden_dim"),
        (
            {"name": "implicit", "group": "SO"},
            "options of the implicit kernel are .*; got group; the complete kernel knows group",
        ),
        ({"name": "complete", "group": "U"}, r"group must be one of O, SO, O\+, SO\+, got 'U'"),
        ({"name": "complete", "radial": "fourier"}, "network, free, rings, got 'fourier'"),
        ({"name": "complete", "causal": True}, r"need group 'O\+' or 'SO\+', got 'O'"),
        ({"name": "complete", "hidden_dim": 0}, "hidden_dim must be at least 1, got 0"),
        ({"name": "implicit", "num_layers": 0}, "num_layers must be at least 1, got 0"),
        ({"name": "implicit", "extra_channels": -1}, "must be at least 0, got -1"),
        ({"name": "implicit", "mask": "no"}, "mask of the implicit kernel must be of type bool"),
        ({"name": "implicit", "hidden_dim": 2.5}, "must be of type int, got 2.5"),
        ({"name": "implicit", "num_layers": True}, "must be of type int, got True"),
        (Complete, r"a KernelChoice such as Complete\(\), got .*: write Complete\(\)"),
        (3, "kernel must be a name .*, got 3"),
        (None, "kernel must be a name .*, got None"),
    ],
)
def test_mistakes_are_explained(value, message):
    with pytest.raises((ValueError, TypeError), match=message):
        kernel_choice(value)


@pytest.mark.parametrize("size", [(3, 3), (5, 3)], ids=str)
def test_builds_the_kernel_with_its_options(size):
    algebra, points = CliffordAlgebra((1, -1)), grid(3, 2)
    complete = Complete(group="SO", radial="rings", hidden_dim=5)
    assert_same(
        state_of(lambda: complete.build(algebra, 2, 3, points, size)),
        state_of(
            lambda: CompleteKernel(
                algebra,
                2,
                3,
                Complete(group="SO", radial="rings", hidden_dim=5),
                points=points,
                ring_spacing=2 / (max(size) - 1),
            )
        ),
    )
    implicit = Implicit(num_layers=2, hidden_dim=3, mask=False)
    assert_same(
        state_of(lambda: implicit.build(algebra, 2, 3, points, size)),
        state_of(
            lambda: ImplicitKernel(
                algebra,
                2,
                3,
                Implicit(num_layers=2, hidden_dim=3, mask=False),
                points=points,
                scale=20 / (size[0] * size[1]) ** 0.5,
            )
        ),
    )


def test_for_points_that_are_no_grid():
    algebra, points = CliffordAlgebra((1, -1)), torch.rand(7, 2, dtype=torch.float64)
    assert_same(
        state_of(lambda: Complete().build(algebra, 1, 1, points)),
        state_of(lambda: CompleteKernel(algebra, 1, 1, points=points)),
    )
    assert Implicit().build(algebra, 1, 1, points).scale == 1


@pytest.mark.parametrize("choice", [Implicit(num_layers=2), Complete(group="SO")], ids=repr)
def test_equal_choices_and_seeds_make_equal_convolutions(choice):
    algebra = CliffordAlgebra((1, -1))
    for build in (
        lambda kernel: CliffordSteerableConv(algebra, 2, 3, 3, kernel=kernel),
        lambda kernel: CliffordSteerablePointConv(algebra, 2, 3, kernel=kernel),
    ):
        first = state_of(lambda build=build: build(choice))
        assert_same(first, state_of(lambda build=build: build(kernel_choice(choice.to_dict()))))
        other = state_of(lambda build=build: build(choice), seed=4)
        assert any(not torch.equal(first[name], other[name]) for name in first)


def test_defaults_of_the_convolutions():
    algebra = CliffordAlgebra((1, 1))
    grids = [lambda k=k: CliffordSteerableConv(algebra, 1, 1, 3, **k) for k in
             ({}, {"kernel": Implicit()}, {"kernel": "implicit"})]  # fmt: skip
    points = [lambda k=k: CliffordSteerablePointConv(algebra, 1, 1, **k) for k in
              ({}, {"kernel": Complete()}, {"kernel": "complete"})]  # fmt: skip
    for builds in (grids, points):
        states = [state_of(build) for build in builds]
        assert_same(states[0], states[1])
        assert_same(states[0], states[2])


@pytest.mark.parametrize("extra", [0, 1])
def test_implicit_kernels_have_unit_variance_unless_published(extra):
    algebra, points = CliffordAlgebra((1, -1)), grid(5, 2)
    known = torch.zeros(extra, 4) if extra else None
    for unit_variance in (True, False):
        choice = Implicit(extra_channels=extra, unit_variance=unit_variance)
        kernel = choice.build(algebra, 4, 4, points, (5, 5))
        size = kernel.expand(points.float(), extra=known).square().sum((2, 3, 4)).mean().item()
        assert (size == pytest.approx(1, rel=1e-3)) == unit_variance
        assert bool((kernel.gain == 1).all()) != unit_variance


def test_a_choice_of_your_own():
    """Convolutions build it without an entry in the table; only its name needs one."""

    @dataclass(frozen=True)
    class Rings(KernelChoice):
        name: ClassVar[str] = "my rings"
        spacing: float = 0.5

        def build(self, algebra, c_in, c_out, points, kernel_size=None):
            return CompleteKernel(
                algebra,
                c_in,
                c_out,
                Complete(radial="rings"),
                points=points,
                ring_spacing=self.spacing,
            )

    conv = CliffordSteerableConv(CliffordAlgebra((1, -1)), 2, 3, 3, kernel=Rings(spacing=0.25))
    assert conv.kernel.radial.spacing == 0.25
    assert_steerable(conv.kernel)
    with pytest.raises(ValueError, match="one of the names complete, differential, implicit"):
        kernel_choice(Rings().to_dict())
