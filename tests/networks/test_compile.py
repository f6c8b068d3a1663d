"""Every network compiles, for every space it serves."""

import copy

import pytest
import torch

from cscnn.networks import OnComponents, compile_blocks
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


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # dynamo looks at inputs of blocks
def test_equal_blocks_share_a_graph():
    """One for the first size, and when another comes, one for any."""
    network = tiny("cs_resnet", SPACES["plane"], kernel=COMPLETE, blocks=3)
    plain, found = copy.deepcopy(network), []

    def compiler(graph, inputs):
        found.append(graph)
        return graph.forward

    compile_blocks(network, backend=compiler, fullgraph=True)
    x = sample(SPACES["plane"])
    network(x).sum().backward()
    assert len(found) == 1
    more = x.repeat_interleave(3, 0)
    assert relative_error(network(more), plain(more)) < 1e-5
    assert len(found) <= 2  # any batches from now on


def test_what_is_no_network_cannot_be_compiled():
    with pytest.raises(TypeError, match="network must be of type Module, got 'cs_resnet'"):
        compile_blocks("cs_resnet")


def test_networks_without_blocks_are_compiled_whole():
    network = tiny("resnet", SPACES["plane"])
    x = sample(SPACES["plane"])
    expected = network(x)
    compile_blocks(network, backend="eager")
    assert relative_error(network(x), expected) < 1e-6


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # dynamo looks at inputs of blocks
@pytest.mark.slow
@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize(("name", "depth"), [("cs_resnet", {"blocks": 2}), ("cs_unet", {})])
def test_other_batches_and_grids_compile_once_more(name, depth, train):
    """Product gates, and no graph breaks. In the first call each kind of block has its graph."""
    options = {**SMALL[name], **depth, "kernel": COMPLETE, "activation": "product"}
    network = tiny(name, SPACES["plane"], **options).train(train)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))  # products begin with weights 0
    plain, found = copy.deepcopy(network), []

    def compiler(graph, inputs):
        found.append(graph)
        return graph.forward

    compile_blocks(network, backend=compiler, fullgraph=True)
    first, sizes = sample(SPACES["plane"]), [(3, 10, 14), (4, 14, 10), (5, 16, 12)]
    with torch.set_grad_enabled(train):
        network(first)
        graphs = len(found)
        for batch, *grid in sizes:
            x = torch.randn(batch, first.shape[1], *grid, first.shape[-1])
            assert relative_error(network(x), plain(x)) < 1e-4
    assert len(found) <= 2 * graphs
