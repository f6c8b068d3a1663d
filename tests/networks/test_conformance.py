"""Our networks pass the suites that `cscnn.testing.conformance` offers for those of others."""

import pytest

from cscnn.geometry import all_pairs
from cscnn.kernels import Complete
from cscnn.networks import (
    CSPointNet,
    CSResNet,
    CSUNet,
    FieldType,
    Grid,
    Neighbourhood,
    SteerableResNet,
    build,
)
from cscnn.testing import conformance
from tests.networks.tiny import OPTIONS, need

KERNEL = Complete(hidden_dim=4)
TORUS = Grid(padding_mode="circular")


def resnet(algebra, c_in, c_out):
    return CSResNet(algebra, c_in, c_out, 2, 1, kernel_size=3, kernel=KERNEL, grid=TORUS)


def product_resnet(algebra, c_in, c_out):
    return CSResNet(
        algebra, c_in, c_out, (2, 3), 1, kernel_size=3, kernel=KERNEL, activation="product",
        grid=TORUS,
    )  # fmt: skip


def paper_resnet(algebra, c_in, c_out):
    return CSResNet(algebra, c_in, c_out, 2, 1, kernel_size=3, grid=TORUS)


def unet(algebra, c_in, c_out):
    return CSUNet(algebra, c_in, c_out, (2, 3), 1, 1, kernel_size=3, kernel=KERNEL, grid=TORUS)


def steerable_resnet(algebra, c_in, c_out):
    return SteerableResNet(algebra, c_in, c_out, 2, 1, kernel_size=3, grid=TORUS)


def pointnet(algebra, c_in, c_out):
    near = Neighbourhood(neighbours=9)
    return CSPointNet(
        algebra, c_in, c_out, 2, 1, neighbourhood=near, kernel=KERNEL, activation="product"
    )


# compiled in test_compile.py
TestCSResNet = conformance.network(resnet, metrics=((1, 1), (1, -1)), compiles=False)
TestCSResNetWithProducts = conformance.network(product_resnet, metrics=((1, -1),), compiles=False)
TestCSResNetOfThePaper = conformance.network(
    paper_resnet,
    metrics=((1, 1),),
    compiles=False,
    idle=("*.position_width", "*.mask_width"),  # of 1-point kernels
)
TestCSUNet = conformance.network(unet, metrics=((1, 1), (1, -1)), multiple=2, compiles=False)
TestSteerableResNet = conformance.network(steerable_resnet, metrics=((1, 1),), compiles=False)


@pytest.mark.parametrize("name", OPTIONS)
def test_every_network_takes_empty_batches(name):
    """Those of other packages too, whose layers do not."""
    need(name)

    def build_by_name(algebra, c_in, c_out):
        types = (FieldType.full(algebra, c) for c in (c_in, c_out))
        return build(name, *types, TORUS, width=2, **OPTIONS[name])

    suite = conformance.network(build_by_name, metrics=[(1, 1)], multiple=4, compiles=False)
    assert not conformance.failures(suite, "empty")


TestCSPointNet = conformance.point_network(pointnet, metrics=((1, 1), (1, -1)), edges=all_pairs)
