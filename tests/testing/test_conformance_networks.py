"""The kit for networks on grids and on points: those that are right, and others."""

import re

import pytest
import torch
from torch import nn

from cscnn.conv import CliffordSteerableConv, CliffordSteerablePointConv
from cscnn.nn import MVGELU, MVLinear
from cscnn.testing import conformance
from cscnn.testing.conformance import failures
from tests.testing.reports import failed_tests, message_of

# --- networks on grids ----------------------------------------------------------------------------


class UserNet(nn.Module):
    """Two convolutions with an activation between them."""

    padding_mode = "circular"

    def __init__(self, algebra, c_in, c_out):
        super().__init__()
        options = {"kernel_size": 3, "padding_mode": self.padding_mode}
        self.first = CliffordSteerableConv(algebra, c_in, 2, **options)
        self.act = MVGELU(algebra)
        self.last = CliffordSteerableConv(algebra, 2, c_out, **options)

    def forward(self, x):
        return self.last(self.act(self.first(x)))


class WalledNet(UserNet):
    padding_mode = "zeros"


class TransposedNet(UserNet):
    """Works on square grids only, and knows up from down there."""

    def forward(self, x):
        return super().forward(x) + super().forward(x.transpose(2, 3))


class BatchNet(UserNet):
    """Elements of a batch see each other."""

    def forward(self, x):
        return super().forward(x - x.mean(0, keepdim=True))


class StretchedNet(UserNet):
    """A factor that depends on the coordinate."""

    def forward(self, x):
        size = x.shape[2]
        return super().forward(x) * torch.arange(size).to(x).reshape(size, *(1,) * (x.dim() - 3))


class CroppedNet(UserNet):
    """Loses the border."""

    def forward(self, x):
        return super().forward(x)[:, :, 1:-1]


TestUserNet = conformance.network(UserNet, metrics=[(1, 1), (1, -1)])


def network_suite(build, **options):
    return conformance.network(build, **{"metrics": [(1, 1)], "compiles": False, **options})


@pytest.mark.parametrize(
    ("build", "failed", "message"),
    [
        (WalledNet, {"test_symmetries_of_the_grid"}, "not commute with the translation of a grid"),
        (StretchedNet, {"test_symmetries_of_the_grid"}, "not commute with the translation"),
        (BatchNet, {"test_batch"}, "an element of a batch depends on the others"),
        (TransposedNet, {"test_keeps_any_grid"}, "must match the size of tensor"),
        (CroppedNet, {"test_keeps_any_grid"}, r"is \(1, 3, 4, 6, 4\), not \(1, 3, 6, 6, 4\)"),
    ],
)
def test_broken_networks(build, failed, message):
    messages = failures(network_suite(build))
    assert failed <= failed_tests(messages)
    assert re.search(message, message_of(messages, failed))


def test_networks_with_walls_and_coarse_grids():
    assert not failures(network_suite(WalledNet, translations=False))
    coarse = network_suite(CoarseNet, multiple=2)
    assert not failures(coarse)
    assert coarse().oblong(coarse.algebra) == (6, 8)
    assert failed_tests(failures(network_suite(CoarseNet, size=6), "symmetries"))
    with pytest.raises(ValueError, match="has nothing to test"):
        network_suite(UserNet, group=None, translations=False)


class CoarseNet(UserNet):
    """Works on every second point, means of 2 x 2."""

    def forward(self, x):
        x = x.unflatten(3, (-1, 2)).mean(4).unflatten(2, (-1, 2)).mean(3)
        return super().forward(x).repeat_interleave(2, 2).repeat_interleave(2, 3)


class PlainConv(nn.Module):
    """An ordinary convolution of components: translations are its only symmetries."""

    def __init__(self, algebra, c_in, c_out):
        super().__init__()
        blades, self.blades = algebra.n_blades, algebra.n_blades
        self.conv = nn.Conv2d(c_in * blades, c_out * blades, 3, padding=1, padding_mode="circular")

    def forward(self, x):
        y = self.conv(x.movedim(-1, 2).flatten(1, 2))
        return y.unflatten(1, (-1, self.blades)).movedim(2, -1)


def test_networks_without_a_point_group():
    assert not failures(network_suite(PlainConv, group=None))
    (message,) = failures(network_suite(PlainConv), "symmetries").values()
    assert "commute with the point group of a grid in ++" in message


# --- networks on points ---------------------------------------------------------------------------


class UserPointNet(nn.Module):
    """Two convolutions with an activation between them."""

    def __init__(self, algebra, c_in, c_out):
        super().__init__()
        self.first = CliffordSteerablePointConv(algebra, c_in, 2, aggregation="mean")
        self.act = MVGELU(algebra)
        self.last = CliffordSteerablePointConv(algebra, 2, c_out, aggregation="mean")

    def forward(self, x, edges):
        return self.last(self.act(self.first(x, edges)), edges)


class OrderedNet(UserPointNet):
    """Knows the numbers of the points."""

    def forward(self, x, edges):
        return super().forward(x, edges) * torch.arange(len(x)).to(x)[:, None, None]


class FramedNet(UserPointNet):
    """Adds positions as if all frames were the same."""

    def forward(self, x, edges):
        y = super().forward(x, edges)
        vectors = torch.zeros(len(x), edges.dim).to(x)
        vectors = vectors.index_add(0, edges.sender, edges.position.to(x))
        return y + nn.functional.pad(vectors, (1, y.shape[-1] - edges.dim - 1)).unsqueeze(1)


class DeafNet(nn.Module):
    """Does not look at the edges."""

    def __init__(self, algebra, c_in, c_out):
        super().__init__()
        self.linear = MVLinear(algebra, c_in, c_out)

    def forward(self, x, edges):
        return self.linear(x)


class EuclideanNet(UserPointNet):
    """Invariant to rotations and reflections of space and of time, not to boosts."""

    def forward(self, x, edges):
        y = super().forward(x, edges)
        lengths = edges.position.to(x).square().sum(-1)
        return y * x.new_zeros(len(x)).index_add(0, edges.receiver, lengths)[:, None, None]


TestUserPointNet = conformance.point_network(UserPointNet, metrics=[(1, 1), (1, -1, -1)])


@pytest.mark.parametrize(
    ("build", "failed", "message"),
    [
        (OrderedNet, {"test_permutation", "test_batch"}, "depends on the order of the points"),
        (FramedNet, {"test_gauge"}, "it depends on the frames"),
        (DeafNet, {"test_control", "test_gauge"}, "a copy that is not symmetric passes"),
        (EuclideanNet, {"test_isometry", "test_gauge"}, r"does not commute with \+-- "),
    ],
)
def test_broken_point_networks(build, failed, message):
    suite = conformance.point_network(build, metrics=[(1, -1, -1)], compiles=False)
    messages = failures(suite)
    assert failed_tests(messages) == failed
    assert any(re.search(message, text) for text in messages.values())
