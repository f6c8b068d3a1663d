"""Runs that are probably a mistake begin with a warning that has the number or the files."""

import re
import shutil
import warnings

import pytest

from cscnn.cli import main
from cscnn.data import FieldFile
from cscnn.data.files import write
from cscnn.forecasting.training.plan import plan
from cscnn.forecasting.training.train import train
from tests.forecasting.training.runs import QUIET, command, config, make_data

pytestmark = QUIET


@pytest.fixture(scope="module")
def fluid(tmp_path_factory):
    return make_data(tmp_path_factory.mktemp("fluid"), "navier_stokes")


def run(fluid, out, **changes):
    return config(fluid, out, "navier_stokes", trainer__epochs=1, **changes)


def free_of_divergence(scheme):
    return {"velocity": {"kind": "divergence_free", "scheme": scheme}}


def test_a_constraint_that_the_data_do_not_obey(fluid, tmp_path):
    """The stored velocities obey it in staggered differences, not in central ones."""
    harmful = run(fluid, tmp_path / "run", model__constraints=free_of_divergence("differences"))
    with pytest.warns(UserWarning, match="the constraint divergence_free of velocity") as caught:
        train(harmful)
    (text,) = (str(w.message) for w in caught if "constraint" in str(w.message))
    (change,) = re.findall(r"changes the true states of the training data by ([0-9.]+)%", text)
    (best,) = re.findall(r"take another scheme: staggered ([0-9.]+)%", text)
    assert float(change) > 5 > float(best)
    with pytest.warns(UserWarning, match="no forecast can be better"):
        plan(harmful)


def test_a_mean_that_is_not_kept(fluid, tmp_path):
    """Smoke that is poured in."""
    with FieldFile(fluid / "train.h5") as source:
        rising = [source.read(number) for number in range(len(source))]
        for trajectory in rising:
            for frame in range(source.header.frames):
                trajectory["smoke"][frame] *= 1.5**frame
        write(tmp_path / "rising.h5", source.header, rising, range(len(rising)))
    options = run(fluid, tmp_path / "run", model__constraints={"smoke": "keep_mean"})
    options.data.train = str(tmp_path / "rising.h5")
    with pytest.warns(UserWarning, match=r"keep_mean of smoke changes .*Leave it out$"):
        plan(options)


def test_constraints_that_the_data_obey(fluid, tmp_path):
    with warnings.catch_warnings(action="error", category=UserWarning):
        plan(run(fluid, tmp_path / "run", model__constraints=free_of_divergence("staggered")))


def test_validation_on_training_data(fluid, tmp_path):
    """The same file, a copy, and a part of it; a warning names the files."""
    path = fluid / "train.h5"
    same = run(fluid, tmp_path / "same", data__valid=str(path))
    with pytest.warns(UserWarning, match=r"4 of 4 trajectories of data\.valid are trained on") as w:
        train(same)
    assert f"the first in {path}: errors on them cannot select the best weights" in str(
        w[0].message
    )
    copy = tmp_path / "copy.h5"
    shutil.copy(path, copy)
    with pytest.warns(UserWarning, match=re.escape(f"the first in {copy} and {path}: ")):
        plan(run(fluid, tmp_path / "copy", data__test=str(copy)))
    with FieldFile(path) as source:
        write(tmp_path / "part.h5", source.header, [source.read(3)], [3])
    part = run(fluid, tmp_path / "part", data__valid=str(tmp_path / "part.h5"))
    with pytest.warns(UserWarning, match=r"1 of 1 trajectories of data\.valid"):
        plan(part)
    part.data.trajectories = 3  # the last one is not trained on
    with warnings.catch_warnings(action="error", category=UserWarning):
        plan(part)


@pytest.mark.filterwarnings("default::UserWarning")
def test_commands_tell_warnings_in_a_line(fluid, tmp_path, capsys):
    options = run(fluid, tmp_path / "run", data__valid=str(fluid / "train.h5"))
    assert main(command(options, tmp_path, "--dry-run")) == 0
    (line,) = (x for x in capsys.readouterr().err.splitlines() if "trained on" in x)
    assert line.startswith("cscnn: warning: 4 of 4 trajectories of data.valid")
