"""Every network compiles, for every space it serves."""

import pytest
import torch

from cscnn.networks import OnComponents
from cscnn.testing import relative_error
from tests.networks.tiny import COMPLETE, SERVED, SPACES, sample, tiny

SMALL = {
    "cs_resnet": {"kernel": COMPLETE, "blocks": 1},
    "cs_unet": {"kernel": COMPLETE, "levels": 1},
    "steerable_resnet": {"blocks": 1},
}
#: It works too, and takes a minute.
LONG = ("cs_unet", "spacetime4d")


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.filterwarnings("ignore")  # compiling neuralop warns of graph breaks and caches
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "where", "options"),
    [
        *((*p, {}) for p in SERVED if p != LONG and p[1] != "line"),
        ("cs_resnet", "plane", {"kernel": {**COMPLETE, "group": "SO"}, "activation": "product"}),
    ],
)
def test_compiles(name, where, options):
    network = tiny(name, SPACES[where], **{**SMALL.get(name, {}), **options}).eval()
    x = sample(SPACES[where])
    own = not isinstance(network, OnComponents) and name != "clifford_resnet"
    compiled = torch.compile(network, backend="aot_eager", fullgraph=own)
    assert relative_error(compiled(x), network(x)) < 1e-4
