"""Training, evaluation, forecasts and export of data with something given, as a user does it."""

from pathlib import Path

import numpy as np
import pytest
import torch

from cscnn.cli import main
from cscnn.data import FieldFile, Given
from cscnn.data.files import find_damage
from cscnn.data.generate import generate, plans
from cscnn.data.simulators import Maxwell3D
from cscnn.forecasting import Forecaster, Run, Task, Units, train
from cscnn.forecasting.evaluation import Evaluation, Evaluator
from cscnn.forecasting.export import export
from cscnn.forecasting.predict import predict
from cscnn.viz.report.contents import load_runs
from cscnn.viz.report.summary import heading
from tests.forecasting.given_data import HEADER, TASK, batch, forecaster, make_files
from tests.forecasting.training.runs import QUIET, command, config

pytestmark = QUIET


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    options = config(
        data, tmp_path_factory.mktemp("runs") / "told", data__frames_in=2, data__augment=True,
        trainer__epochs=1, training__unroll=2,
    )  # fmt: skip
    train(options)
    return Run(Path(options.out))


def test_a_run_is_told_what_is_given(run):
    task = run.forecaster().task
    assert task.given == HEADER.given
    assert set(run.forecaster().units.scale) == {q.name for q in HEADER.quantities}


def test_dry_runs_and_reports_list_what_is_given(run, data, tmp_path, capsys):
    options = config(data, tmp_path / "run", data__frames_in=2)
    assert main(command(options, tmp_path, "--dry-run")) == 0
    listed = ", ".join(f"{g.name} ({g.kind})" for g in HEADER.given)
    shown = capsys.readouterr().out
    assert f"{'given':<20}{listed}" in shown
    assert f"{HEADER.fields[0].name} (grade {HEADER.fields[0].grade})" in shown
    assert main(command(options, tmp_path, "--dry-run", "--data.constants", "false")) == 0
    assert f"{'given':<20}nothing" in capsys.readouterr().out
    assert main(["evaluate", str(run.path), "--windows", "2", "--trajectories", "1"]) == 0
    assert heading(load_runs([run.path])).facts[0]["given"].startswith(listed)


def test_a_run_that_is_not_told(data, tmp_path):
    options = config(
        data, tmp_path / "run", data__frames_in=2, data__constants=False, trainer__epochs=1
    )
    train(options)
    model = Run(tmp_path / "run").forecaster()
    assert not model.task.given
    with FieldFile(data / "test.h5") as source:
        evaluator = Evaluator(model, source)
        assert evaluator.one_step([0, 1]).scaled_mse > 0
        assert len(evaluator.rollouts(2)[0].steps) == 7


def test_it_is_evaluated(run, capsys):
    assert main(["evaluate", str(run.path), "--split", "test", "--windows", "4"]) == 0
    evaluation = Evaluation.load(run.path / "evaluation.json")
    assert evaluation.symmetry.point_group < 1e-9
    assert evaluation.symmetry.translation < 1e-9
    errors = evaluation.symmetry.observers.relative_l2
    assert len(errors) == 8
    assert max(errors) == pytest.approx(min(errors), rel=1e-4)
    assert len(evaluation.rollout.steps) == 7


def test_forecasts_are_written_with_what_is_given(run, data, tmp_path):
    out = tmp_path / "out.h5"
    assert main(["predict", str(run.path), str(data / "test.h5"), "--steps", "5", "--start", "1",
                 "--out", str(out)]) == 0  # fmt: skip
    assert list(find_damage(out)) == []
    model = run.forecaster()
    with FieldFile(out) as forecasts, FieldFile(data / "test.h5") as source:
        assert forecasts.header.given == HEADER.given
        got, stored = forecasts.read(1), source.read(1)
        np.testing.assert_array_equal(got["mask"], stored["mask"])
        np.testing.assert_allclose(got["wind"], stored["wind"], rtol=1e-6)
        np.testing.assert_array_equal(got["stirring"], stored["stirring"][3:8])
    tensors = {name: torch.as_tensor(x).float()[None] for name, x in stored.items()}
    known = {name: tensors[name][:, 1:3] for name in ("smoke", "velocity")}
    given = {g.name: tensors[g.name] for g in HEADER.given}
    given["stirring"] = given["stirring"][:, 1:]
    expected = model(known, 5, given=given)["velocity"].detach()
    np.testing.assert_allclose(got["velocity"], expected[0], atol=1e-5)
    with pytest.raises(ValueError, match=r"forcing stirring .* 8 steps from frame 0 .* need 10 fr"):
        predict(model, data / "test.h5", tmp_path / "far.h5", steps=8)


def test_forecasts_without_forcing_go_as_far_as_wanted(tmp_path):
    header = HEADER.replace(given=(Given("mask", 0, "static"),))
    make_files(tmp_path, header, splits=("train",))
    task = Task.from_header(header, frames_in=2)
    model = Forecaster.build("cs_resnet", task, width=2, blocks=1, kernel_size=3).eval()
    predict(model, tmp_path / "train.h5", tmp_path / "out.h5", steps=12)
    with FieldFile(tmp_path / "out.h5") as forecasts:
        assert forecasts.header.frames == 12


def test_rollouts_are_whole_forecasts_if_there_is_a_forcing(data):
    task = Task.from_header(HEADER, frames_in=2, frames_out=3)
    model = forecaster(task, units=Units.physical_units(q.name for q in HEADER.quantities))
    with FieldFile(data / "test.h5") as source:
        evaluator = Evaluator(model.float(), source)
        assert evaluator.steps(None) == 6  # of seven frames that follow
        errors, _ = evaluator.rollouts(2)
        assert errors.steps == [1, 2, 3, 4, 5, 6]
        assert evaluator.rollouts(2, 4)[0].steps == [1, 2, 3, 4]
        with pytest.raises(ValueError, match="can have 1 to 6 steps, got 7"):
            evaluator.steps(7)


def test_a_broken_given_field_is_named(data, tmp_path):
    class Broken(FieldFile):
        def read(self, number, start=0, stop=None):
            return {**super().read(number, start, stop), "viscosity": np.array([np.nan])}

    with Broken(data / "test.h5") as source:
        evaluator = Evaluator(forecaster().float(), source)
        with pytest.raises(ValueError, match="trajectory 0 has values that are not finite"):
            evaluator.read([0])
        with pytest.raises(ValueError, match="values of viscosity that are not finite"):
            evaluator.trajectories([0], 3)


@pytest.mark.parametrize("told", [True, False])
def test_laws_of_forecasts_know_the_medium(tmp_path, told):
    """Among dielectric bodies the truth has no charge, for whoever forecasts it."""
    box = Maxwell3D(cells=22, keep=6, warmup=40, every=3, frames=4, bodies=2)
    (plan,) = plans(box, tmp_path, {"train": 1})
    generate([plan])
    with FieldFile(plan.path) as source:
        task = Task.from_header(source.header, frames_in=2, constants=told)
        assert bool(task.given) == told
        model = Forecaster.build("cs_resnet", task, Units.fit(source), width=1, blocks=1,
                                 kernel_size=3).eval()  # fmt: skip
        laws = Evaluator(model, source).rollouts(1)[0].laws
    assert laws["no_charge"].target < 1e-5
    assert laws["no_charge"].prediction > 1e-2


def test_export(tmp_path):
    model = forecaster().float()
    assert export(model, tmp_path / "model.pt2", grid=(6, 6), batch=2) < 1e-4
    program = torch.export.load(tmp_path / "model.pt2").module()
    fields, given = batch(dtype=torch.float32)
    known = {name: x[:, :2] for name, x in fields.items()}
    told = at_first_step(given)
    torch.testing.assert_close(dict(program(known, given=told)), model(known, given=told),
                               rtol=1e-4, atol=1e-4)  # fmt: skip


def at_first_step(given):
    return {**given, "stirring": given["stirring"][:, : TASK.frames_in + TASK.frames_out]}
