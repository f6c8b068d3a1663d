from pathlib import Path

import pytest

from experiments.paper import PARTS
from experiments.paper.results import Results
from experiments.paper.runner import Runner
from tests.experiments.tiny import TINY


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The tiny study, run to its end."""
    results = Results(TINY, tmp_path_factory.mktemp("study"))
    runner = Runner(results, quiet=True)
    runner.run("sine_gordon", PARTS)
    runner.measure_seconds("sine_gordon")
    return results


@pytest.fixture
def finished_file(finished: Results, tmp_path: Path) -> Path:
    """Its results in one file."""
    path = tmp_path / "results.json"
    finished.archive().save(path)
    return path


@pytest.fixture
def no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without real pictures of kernels: they take a while, and have tests of their own."""
    story = [("kernels.png", "What kernels lack")]
    monkeypatch.setattr("experiments.paper.page.draw_kernel_story", lambda folder: story)


@pytest.fixture
def no_trainings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise if data were to be made for a training."""

    def prepare_data(*_: object) -> None:
        raise AssertionError("must not be called")

    monkeypatch.setattr("experiments.paper.runner.prepare_data", prepare_data)
