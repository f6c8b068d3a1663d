"""The forecasters that come with the package: whole, loadable, and as good as the index says."""

import json
import math
import re
import shlex
import shutil
from pathlib import Path

import pytest
import torch

from cscnn.data import open_fields
from cscnn.data.generate import generate, plans
from cscnn.data.simulators import create
from cscnn.forecasting import Forecaster, zoo
from cscnn.forecasting.evaluation import Evaluator

pytest.importorskip("safetensors")

#: Root mean square errors on a few fresh trajectories are those of the index up to this factor.
TOLERANCE = 1.5
TRAJECTORIES = 4
SIZE = 300_000  #: bytes of weights, at most


def test_there_are_three():
    assert zoo.names() == ("maxwell3d", "navier_stokes", "sine_gordon")


@pytest.mark.parametrize("name", zoo.names())
def test_files_are_whole_and_small(name):
    """`folder` compares the checksums."""
    folder, entry = zoo.folder(name), zoo.entry(name)
    assert {path.name for path in folder.iterdir()} == set(entry.sha256)
    assert entry.bytes == (folder / "model.safetensors").stat().st_size < SIZE
    assert entry.relative_error < 0.5
    assert entry.point_group < 1e-12


@pytest.mark.parametrize("name", zoo.names())
def test_commands_parse_and_made_these_weights(name):
    pytest.importorskip("jsonargparse")
    from cscnn.cli import parser_of, split
    from cscnn.forecasting.training.command import parse
    from experiments.zoo import RECIPES, commands

    entry = zoo.entry(name)
    assert entry.summary == RECIPES[name].summary
    for text, recipe in zip(entry.commands, commands(name, Path("zoo")), strict=True):
        program, *words = shlex.split(text)
        assert (program, words) == ("cscnn", recipe)
        command, rest = split(words)
        if command == "train":
            config = parse(rest)[0]
            trained = json.loads((zoo.folder(name) / "training.json").read_text())
            assert trained["model"] == config.to_dict()["model"]
            assert trained["optimizer"] == config.to_dict()["optimizer"]
        else:
            parser_of(command).parse_args(rest)


@pytest.mark.parametrize("name", zoo.names())
def test_forecasts_are_as_good_as_recorded(name, tmp_path):
    """On new trajectories of the same simulator."""
    entry = zoo.entry(name)
    generated = shlex.split(entry.commands[0])
    simulator = create(generated[2], generated[generated.index("--preset") + 1])
    generate(plans(simulator, tmp_path, {"test": TRAJECTORIES}, seed=1))
    forecaster = Forecaster.from_pretrained(f"zoo:{name}")
    assert forecaster.n_parameters() == entry.parameters
    with open_fields(tmp_path / "test.h5") as source:
        evaluator = Evaluator(forecaster, source, batch=8, quiet=True)
        one_step = evaluator.one_step(evaluator.choose(16, seed=0))
        ratio = math.sqrt(one_step.scaled_mse / entry.scaled_mse)
        assert 1 / TOLERANCE < ratio < TOLERANCE
        view = forecaster.view(source)
        first = view.read(0, 0, forecaster.task.frames_in)
        frames = {n: torch.as_tensor(x)[None].float() for n, x in first.items()}
        with torch.no_grad():
            later = forecaster(frames, steps=4)
    for field in forecaster.task.fields:
        assert later[field.name].shape[1] == 4
        assert later[field.name].isfinite().all()


def test_kernels_of_spacetime_are_differential():
    options = Forecaster.from_pretrained("zoo:sine_gordon").recipe.options
    assert options["kernel"] == "differential"


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A zoo of one forecaster to do damage to."""
    shutil.copytree(zoo.FOLDER / "sine_gordon", tmp_path / "sine_gordon")
    shutil.copy(zoo.FOLDER / zoo.INDEX, tmp_path)
    monkeypatch.setattr(zoo, "FOLDER", tmp_path)
    return tmp_path


def test_damage_is_told(copied):
    file = copied / "sine_gordon" / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged: its checksum is wrong"):
        zoo.folder("sine_gordon")
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"install cscnn again, or run make zoo"):
        Forecaster.from_pretrained("zoo:sine_gordon")
    (copied / zoo.INDEX).unlink()
    with pytest.raises(FileNotFoundError, match=r"install cscnn again, or run make zoo"):
        zoo.names()


def test_unknown_names_get_a_suggestion():
    with pytest.raises(ValueError, match=re.escape("'navier_stoke': did you mean navier_stokes?")):
        Forecaster.from_pretrained("zoo:navier_stoke")


def test_the_command_lists_them(capsys):
    from cscnn.cli import main

    assert main(["hub", "zoo", "--commands"]) == 0
    out = capsys.readouterr().out
    for name in zoo.names():
        assert f"zoo:{name}: " in out
        assert zoo.entry(name).commands[1] in out
