"""Data with a symmetric tensor, trained on, measured, reported and shared as a user does it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cscnn.cli import main
from cscnn.data import FieldFile
from cscnn.data.files import find_damage
from cscnn.forecasting import Run, train
from cscnn.forecasting.evaluation import Evaluation
from cscnn.forecasting.training import ModelConfig
from tests.data.tensors import SOLID, solid_file, transposed_mean
from tests.forecasting.training.runs import QUIET, config

pytestmark = QUIET


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for i, split in enumerate(("train", "valid", "test")):
        solid_file(folder / f"{split}.h5", SOLID.replace(split=split), "float32", first=2 * i)
    return folder


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    kernel = {"name": "complete", "hidden_dim": 4}
    options = config(
        data, tmp_path_factory.mktemp("runs") / "solid", data__frames_in=2, data__augment=True,
        trainer__epochs=1, training__noise=0.01, training__unroll=2,
        model=ModelConfig(width=2, options={"blocks": 1, "kernel_size": 3, "kernel": kernel}),
    )  # fmt: skip
    train(options)
    return Run(Path(options.out))


def test_it_is_evaluated_and_reported(run: Run, tmp_path: Path) -> None:
    assert main(["evaluate", str(run.path), "--split", "test", "--windows", "4"]) == 0
    evaluation = Evaluation.load(run.path / "evaluation.json")
    assert evaluation.symmetry.point_group < 1e-9
    assert evaluation.symmetry.translation < 1e-9
    errors = evaluation.symmetry.observers.relative_l2
    assert max(errors) == pytest.approx(min(errors), rel=1e-4)
    assert set(evaluation.one_step.fields) == {"pressure", "stress", "velocity"}
    assert "mean_square(stress)" in evaluation.rollout.quantities
    assert main(["report", str(run.path), "--out", str(tmp_path / "report.html")]) == 0
    page = (tmp_path / "report.html").read_text()
    for label in ("stress xx", "stress xy", "stress yy"):
        assert label in page
    assert "stress yx" not in page


def test_forecasts_are_symmetric_files(run: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.h5"
    words = ["predict", str(run.path), str(data / "test.h5"), "--steps", "3", "--out", str(out)]
    assert main(words) == 0
    assert not list(find_damage(out))
    with FieldFile(out) as forecasts:
        stress = forecasts.read(1)["stress"]
        assert np.array_equal(stress, transposed_mean(stress))


def test_cards_say_it_and_their_example_runs(run: Run) -> None:
    pytest.importorskip("huggingface_hub")
    from cscnn.forecasting.hub.card import About, example, model_card

    forecaster = run.forecaster()
    text = str(model_card(forecaster, "folder", About.of_run(run)))
    assert "| stress | symmetric | 4 | Pa |" in text
    program = "\n".join(["import torch", *example(forecaster)])
    names: dict[str, object] = {"forecaster": forecaster}
    exec(program, names)
    later = names["later"]
    assert isinstance(later, dict)
    assert later["stress"].shape[-1] == 4
