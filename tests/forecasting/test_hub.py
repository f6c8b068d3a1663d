"""Sharing a forecaster: folders, cards, the hub. No test reaches a network."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from cscnn.cli import main
from cscnn.data.simulators import NavierStokes
from cscnn.forecasting import Forecaster, Run
from cscnn.forecasting.evaluation import evaluate
from cscnn.forecasting.hub import push_folder
from cscnn.forecasting.hub.card import About, data_command, example, model_card
from tests.forecasting.evaluation.stubs import make_run
from tests.forecasting.given_data import forecaster as with_given
from tests.forecasting.point_tasks import forecaster_of, task_of

SMOKE = NavierStokes(grid=(16, 16), frames=8, warmup=1, every=1)


@pytest.fixture(scope="module")
def hub():
    return pytest.importorskip("huggingface_hub", reason="needs the extra hub")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that was evaluated."""
    torch.manual_seed(0)
    run = make_run(tmp_path_factory.mktemp("hub"), SMOKE, frames_in=2)
    evaluation, _ = evaluate(run, windows=4, trajectories=2)
    evaluation.save(run.path / "evaluation.json")
    return run


def frames_of(forecaster, size=8):
    torch.manual_seed(1)
    task = forecaster.task
    shape = (2, task.frames_in, *(size,) * task.dim)
    return {f.name: torch.randn(*shape, task.algebra.grade_sizes[f.grade]) for f in task.fields}


def assert_same(one, other):
    frames = frames_of(one)
    with torch.no_grad():
        for name, x in one(frames, steps=3).items():
            assert torch.equal(x, other(frames, steps=3)[name])


# --- folders --------------------------------------------------------------------------------------


def test_a_folder_comes_back_to_the_last_bit(hub, run, tmp_path):
    forecaster, folder = run.forecaster(), tmp_path / "new" / "smoke"
    assert forecaster.save_pretrained(folder) is None
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "model.safetensors"]
    assert_same(forecaster, Forecaster.from_pretrained(folder))
    with pytest.raises(FileExistsError, match="--overwrite"):
        forecaster.save_pretrained(folder)
    forecaster.save_pretrained(folder, overwrite=True)


def test_load_takes_a_run_a_file_and_a_shared_folder(hub, run, tmp_path):
    forecaster = run.forecaster()
    forecaster.save_pretrained(tmp_path / "folder")
    forecaster.save(tmp_path / "file.safetensors")
    for place in (run.path, tmp_path / "folder", tmp_path / "file.safetensors"):
        assert_same(forecaster, Forecaster.load(place))
        assert_same(forecaster, Forecaster.from_pretrained(str(place)))


def test_folders_need_no_package(run):
    """Not even to be imported."""
    code = (
        "import sys\nsys.modules['huggingface_hub'] = None\n"
        "from cscnn.forecasting import Forecaster\n"
        f"forecaster = Forecaster.from_pretrained({str(run.path)!r})\n"
        "for name, call in (('load', lambda: Forecaster.from_pretrained('me/smoke')),\n"
        "                   ('save', lambda: forecaster.save_pretrained('new'))):\n"
        "    try:\n        call()\n"
        "    except ImportError as error:\n        print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert all("pip install 'cscnn[hub]'" in line for line in lines)


# --- cards ----------------------------------------------------------------------------------------


def test_the_card_is_read_back(hub, run):
    card = hub.ModelCard(str(model_card(run.forecaster(), "me/smoke", About.of_run(run))))
    data, measured = card.data, About.of_run(run).evaluation
    assert (data.license, data.library_name) == ("mit", "cscnn")
    assert {"cscnn", "navier_stokes"} <= set(data.tags)
    results = {result.metric_type: result for result in data.eval_results}
    assert results["relative_l2"].metric_value == pytest.approx(
        measured.one_step.total["relative_l2"], rel=1e-3
    )
    assert results["mse"].dataset_split == "test"
    for text in ("## Use it", "## Training data", "## Training", "## Errors", "## Symmetry",
                 "## Licence", "persistence forecast", f"{measured.symmetry.point_group:.1e}",
                 "Smoke that rises in a closed box"):  # fmt: skip
        assert text in card.text, text


def test_the_card_without_a_run_says_what_is_known(hub, run):
    card = hub.ModelCard(str(model_card(run.forecaster(), "x", About(license="cc-by-4.0"))))
    assert card.data.license == "cc-by-4.0"
    assert card.data.eval_results is None
    assert "## Training" not in card.text


def test_the_card_is_used_in_five_lines(hub, run, tmp_path):
    """Its Python runs as it is."""
    folder = tmp_path / "smoke"
    run.forecaster().save_pretrained(folder, repo_id=folder.as_posix())
    text = (folder / "README.md").read_text(encoding="utf-8")
    code = text.partition("```python\n")[2].partition("```")[0]
    names = {}
    exec(code, names)
    assert names["later"]["velocity"].shape[:2] == (1, 10)


@pytest.mark.parametrize("make", [with_given, lambda: forecaster_of(task_of(frames_out=1))])
def test_examples_have_what_is_given_and_points(make):
    forecaster = make()
    names = {"torch": torch, "forecaster": forecaster}
    exec("\n".join(example(forecaster)), names)
    assert set(names["later"]) == {f.name for f in forecaster.task.fields}


def test_the_card_has_the_command_that_made_the_data():
    from cscnn.cli import parser_of
    from cscnn.data.commands import _option
    from cscnn.data.simulators import create

    header = SMOKE.describe(seed=3, split="train")
    _, name, *words = data_command(header, 12).split()
    args = parser_of(name).parse_args(words)
    assert (args.seed, args.split) == (3, ["train=12"])
    assert create(args.task, args.preset, **dict(map(_option, args.set))) == SMOKE
    assert data_command(replace(header, generator_version=99), 12) == ""
    assert data_command(replace(header, generator="another program"), 12) == ""


def test_training_options_hold_no_paths_and_train_again(hub, run, tmp_path):
    from cscnn.forecasting.training.command import parse

    about = About.of_run(run)
    folder = tmp_path / "smoke"
    run.forecaster().save_pretrained(folder, model_card_kwargs={"config": about.config})
    text = (folder / "training.json").read_text()
    assert str(run.path.parent) not in text
    words = ["--config", str(folder / "training.json"), "--data.train", "a.h5", "--out", "again"]
    config, _ = parse(words)
    assert config.model == about.config.model
    assert config.optimizer == about.config.optimizer
    assert config.data.train == "a.h5"


# --- the hub --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nobody/nothing", "nothing"])
def test_offline_an_unknown_name_is_told(hub, name, tmp_path, monkeypatch):
    """In a process of its own: the package reads HF_HUB_OFFLINE when it is imported."""
    code = (
        "from cscnn.forecasting import Forecaster\n"
        f"try:\n    Forecaster.from_pretrained({name!r}, cache_dir={str(tmp_path)!r})\n"
        "except FileNotFoundError as error:\n    print(error)"
    )
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    (line,) = done.stdout.splitlines()
    assert f"'{name}' is no folder that exists, was not downloaded before" in line
    assert "HF_HUB_OFFLINE" in line


def test_what_cannot_be_a_repository_is_told(hub):
    with pytest.raises(ValueError, match="'a/b/c' is no folder that exists, and no repository"):
        Forecaster.from_pretrained("a/b/c")


def test_downloads_get_all_options(hub, run, monkeypatch):
    asked = {}

    def download(repo_id, filename, **options):
        asked.update(options, repo_id=repo_id)
        return str(run.path / filename)

    monkeypatch.setattr(hub, "hf_hub_download", download)
    options = {
        "revision": "v1", "token": "t", "cache_dir": "c", "local_files_only": True,
        "force_download": False,
    }  # fmt: skip
    assert_same(run.forecaster(), Forecaster.from_pretrained("me/smoke", **options))
    assert asked == {**options, "repo_id": "me/smoke"}


@pytest.fixture
def uploads(hub, monkeypatch):
    """What is uploaded: options, and file -> content."""
    made = SimpleNamespace(created=[], files={}, options={})

    class Api:
        def __init__(self, token=None):
            made.token = token

        def create_repo(self, *, repo_id, private, exist_ok):
            made.created.append((repo_id, private, exist_ok))
            return SimpleNamespace(repo_id=repo_id)

        def upload_folder(self, *, folder_path, **options):
            made.options = options
            made.files = {p.name: p.read_bytes() for p in Path(folder_path).iterdir()}
            return "https://example.org/commit"

    monkeypatch.setattr(hub, "HfApi", Api)
    return made


def test_uploads_are_exactly_the_folder(run, uploads, tmp_path):
    url = run.forecaster().save_pretrained(
        tmp_path / "smoke", push_to_hub=True, repo_id="me/smoke", private=True, branch="next"
    )
    assert url == "https://example.org/commit"
    assert uploads.files == {p.name: p.read_bytes() for p in (tmp_path / "smoke").iterdir()}
    assert uploads.created == [("me/smoke", True, True)]
    assert (uploads.options["repo_id"], uploads.options["revision"]) == ("me/smoke", "next")


def test_push_without_a_folder(run, uploads, tmp_path):
    forecaster = run.forecaster()
    forecaster.push_to_hub("me/smoke", token="secret", commit_message="Better", create_pr=True)
    assert (uploads.token, uploads.options["commit_message"]) == ("secret", "Better")
    assert uploads.options["create_pr"] is True
    assert set(uploads.files) == {"README.md", "model.safetensors"}
    (tmp_path / "model.safetensors").write_bytes(uploads.files["model.safetensors"])
    assert_same(forecaster, Forecaster.load(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"has no README\.md"):
        push_folder(tmp_path, "me/smoke")


def test_errors_of_the_hub_are_one_sentence(hub, run, monkeypatch):
    class Api:
        def __init__(self, token=None):
            pass

        def create_repo(self, **options):
            from huggingface_hub.errors import LocalTokenNotFoundError

            raise LocalTokenNotFoundError("long advice")

    monkeypatch.setattr(hub, "HfApi", Api)
    with pytest.raises(PermissionError, match="hf auth login"):
        run.forecaster().push_to_hub("me/smoke")


# --- commands -------------------------------------------------------------------------------------


def test_commands_save_and_push(run, uploads, tmp_path, capsys):
    out = tmp_path / "smoke"
    save = ["hub", "save", str(run.path), "--out", str(out), "--repo", "me/smoke"]
    assert main([*save, "--summary", "Smoke in a small box."]) == 0
    assert sorted(p.name for p in out.iterdir()) == [
        "README.md", "model.safetensors", "training.json",
    ]  # fmt: skip
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "Smoke in a small box." in card
    assert 'from_pretrained("me/smoke")' in card
    assert main(save) == 1
    assert "--overwrite" in capsys.readouterr().err
    assert main([*save, "--overwrite"]) == 0
    (out / "README.md").write_text("---\nlicense: mit\n---\nedited")
    assert main(["hub", "push", str(out), "--repo", "me/smoke", "--private"]) == 0
    assert uploads.files["README.md"].endswith(b"edited")
    assert set(uploads.files) == {"README.md", "model.safetensors", "training.json"}
    assert main(["hub", "push", str(run.path), "--repo", "me/run", "--message", "First"]) == 0
    assert uploads.options["commit_message"] == "First"
    assert b"## Errors" in uploads.files["README.md"]
    assert json.loads(uploads.files["training.json"])["model"]
    assert "https://example.org/commit" in capsys.readouterr().out


def test_a_run_cannot_be_saved_onto_itself(hub, run, capsys):
    assert main(["hub", "save", str(run.path), "--out", str(run.path), "--overwrite"]) == 1
    assert "is read here and cannot be replaced" in capsys.readouterr().err


def test_commands_take_shared_folders(hub, run, tmp_path, capsys):
    folder = tmp_path / "smoke"
    run.forecaster().save_pretrained(folder)
    test = Run(run.path).config().data.test
    assert main(["evaluate", str(folder), "--data", test]) == 1
    assert "give --out FILE" in capsys.readouterr().err
    few = ["--windows", "2", "--trajectories", "1", "--quiet"]
    out = str(tmp_path / "numbers.json")
    assert main(["evaluate", str(folder), "--data", test, "--out", out, *few]) == 0
    assert "one step" in capsys.readouterr().out
