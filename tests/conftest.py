import itertools
import os
from collections.abc import Iterator

os.environ.setdefault("NUMBA_DISABLE_JIT", "1")  # the clifford oracle computes little: no JIT

import pytest
import torch

torch.set_num_threads(1)  # pytest-xdist uses the cores


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Trainers may have changed the number: forks of a process with several would hang."""
    torch.set_num_threads(1)


collect_ignore = ["data/oracles"]  # programs that tests run, each in a process of its own


def metrics(max_dim: int, min_dim: int = 1) -> list[tuple[int, ...]]:
    """All metrics with entries +1 and -1 in every order."""
    return [
        signs for d in range(min_dim, max_dim + 1) for signs in itertools.product((1, -1), repeat=d)
    ]


def signatures(max_dim: int, min_dim: int = 1) -> list[tuple[int, ...]]:
    """One metric for each signature (p, q), with the time-like axes first."""
    return [(1,) * p + (-1,) * (d - p) for d in range(min_dim, max_dim + 1) for p in range(d + 1)]


def metric_name(metric: object) -> str:
    return "".join("+" if s > 0 else "-" for s in metric) if isinstance(metric, tuple) else ""


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def fresh_registry() -> Iterator[None]:
    """Networks that a test registers are gone after it."""
    from cscnn.networks.entries import ENTRIES

    before = dict(ENTRIES)
    yield
    ENTRIES.clear()
    ENTRIES.update(before)


@pytest.fixture
def fresh_compiler() -> None:
    """Forget what was compiled before: one function compiled for many modules hits a limit."""
    torch.compiler.reset()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """Where extras are absent on purpose (make test-core), tests that need one are skipped."""
    try:
        return (yield)
    except ImportError as error:
        if os.environ.get("CSCNN_WITHOUT_EXTRAS") and "pip install 'cscnn[" in str(error):
            pytest.skip(str(error))
        raise
