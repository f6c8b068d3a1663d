"""What is measured: every benchmark has cases, and competitors compute what they claim."""

import importlib.util
from dataclasses import replace

import pytest
import torch

from benchmarks import competitors, registry
from benchmarks.e3nn_convs import FullyConnected, PerChannel, PerFeature
from cscnn.geometry import nearest_edges


@pytest.mark.external  # one of them: the packages of the published data
@pytest.mark.parametrize("name", registry.names())
def test_every_benchmark_yields_cases(name):
    entry = registry.get(name)
    case = next(entry.cases(), None)
    if case is None:
        pytest.skip(entry.missing())
    assert case.reference in case.variants


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of escnn
def test_other_libraries_are_measured_where_installed(tmp_path, monkeypatch):
    for dim in (3, 2):
        x = torch.randn(1, 2, *(5,) * dim, 2**dim)
        works = competitors.other_libraries((1,) * dim, 2, 3, x)
        installed = {n for n in ("cliffordlayers", "escnn") if importlib.util.find_spec(n)}
        assert set(works) == installed
        for work in works.values():
            assert work()[0].shape[0] == 1
    monkeypatch.setattr(competitors, "jax_checkout", tmp_path)
    with pytest.raises(FileNotFoundError, match="is not a checkout of the published code"):
        competitors.other_libraries((1, 1), 2, 3, x)


@pytest.fixture
def _float64():
    """As the default, in which e3nn keeps its constants."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.mark.external
@pytest.mark.filterwarnings("ignore")  # of e3nn
@pytest.mark.usefixtures("_float64")
@pytest.mark.parametrize("form", [FullyConnected, PerChannel, PerFeature])
def test_all_forms_of_e3nn_are_equivariant(form):
    """Under rotations and reflections of R^3, in float64; and they are not constant."""
    o3 = pytest.importorskip("e3nn.o3")
    edges = nearest_edges(torch.rand(20, 3), 6)
    conv = form(2, radius=1.0)
    assert [(count, str(irrep)) for count, irrep in conv.irreps] == [
        (2, name) for name in ("0e", "1o", "1e", "0o")
    ]
    x = torch.randn(20, 2, 8)
    for sign in (1, -1):
        g = sign * o3.rand_matrix()
        rho = conv.irreps.D_from_matrix(g)
        moved = replace(edges, position=edges.position @ g.mT)
        y = conv(x, edges).flatten(1)
        assert y.std() > 1e-3
        turned = conv((x.flatten(1) @ rho.mT).view_as(x), moved).flatten(1)
        torch.testing.assert_close(turned, y @ rho.mT, atol=1e-9, rtol=1e-9)
