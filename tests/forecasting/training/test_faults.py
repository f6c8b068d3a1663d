"""Losses that are not numbers, disks that are full, files that are damaged or evil."""

import os
import shutil
import signal
from pathlib import Path

import h5py
import pytest
import torch

from cscnn._util.locks import locked
from cscnn.forecasting import Forecaster, Run, Window
from cscnn.forecasting.runs import TRAINED
from cscnn.forecasting.training.callbacks import RunFolder
from cscnn.forecasting.training.module import NonFiniteLoss
from cscnn.forecasting.training.train import read_progress, train
from tests.forecasting.training.runs import QUIET, config, same
from tests.forks import fork, needs_fork

pytestmark = QUIET


def test_loss_that_is_not_a_number(data: Path, tmp_path: Path) -> None:
    wild = config(data, tmp_path / "run", optimizer__lr=1e30, optimizer__clip=0.0,
                  optimizer__schedule="constant")  # fmt: skip
    with pytest.raises(NonFiniteLoss, match=r"the loss is (nan|inf) at epoch 1, batch \d"):
        train(wild)
    assert {path.name for path in wild.folder.iterdir()} <= set(TRAINED)
    assert Forecaster.load(wild.folder / "diagnosis.safetensors").n_parameters() > 0


@pytest.mark.parametrize("bad", [1, 4])
def test_validation_loss_that_is_not_a_number(
    bad: int, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the first batch, or in all of them."""
    run = config(data, tmp_path / "run")
    loss, batches = Forecaster.loss, iter(range(100))

    def broken(self: Forecaster, window: Window, *how: object) -> torch.Tensor:
        bad_one = not self.training and next(batches) < bad
        return (float("nan") if bad_one else 1.0) * loss(self, window, *how)

    monkeypatch.setattr(Forecaster, "loss", broken)
    with pytest.raises(NonFiniteLoss, match="the validation loss is nan at epoch 1"):
        train(run)
    assert Forecaster.load(run.folder / "diagnosis.safetensors").n_parameters() > 0
    assert not (run.folder / "state.ckpt").exists()


def test_no_run_ends_well_without_weights(data: Path, tmp_path: Path) -> None:
    run = config(data, tmp_path / "run", trainer__epochs=1)
    train(run)
    (run.folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"has lost its best weights, model\.safetensors: put"):
        train(run)


def test_every_bit_of_a_state_is_checked(data: Path, tmp_path: Path) -> None:
    """But for those of an archive that mean nothing, such as dates."""
    run = config(data, tmp_path / "run", trainer__epochs=1)
    train(run)
    state = run.folder / "state.ckpt"
    content, refused = state.read_bytes(), 0
    expected = torch.load(state, weights_only=True)["state_dict"]
    for position in range(5, len(content), len(content) // 50):
        flipped = bytearray(content)
        flipped[position] ^= 1
        state.write_bytes(flipped)
        try:
            read_progress(state)
        except ValueError:
            refused += 1
        else:
            weights = torch.load(state, weights_only=True)["state_dict"]
            assert all(torch.equal(weights[name], x) for name, x in expected.items())
    assert refused > 20


@pytest.mark.parametrize("split", ["train", "valid"])
def test_other_data_are_refused(split: str, data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "data")
    run = config(tmp_path / "data", tmp_path / "run", trainer__epochs=1,
                 optimizer__schedule="constant")  # fmt: skip
    train(run)
    run.trainer.epochs = 2
    path = tmp_path / "data" / f"{split}.h5"
    with h5py.File(path, "r+") as file:
        file.attrs["spacing"] = 2 * file.attrs["spacing"]
    with pytest.raises(ValueError, match=rf"{split}\.h5 is not the data .*: spacing is .*, not "):
        train(run)
    shutil.copy(data / path.name, path)
    with h5py.File(path, "r+") as file:
        file["checksum"][1] = 0
    with pytest.raises(ValueError, match=rf"{split}\.h5 .*: the checksum of its numbers is"):
        train(run)
    shutil.copy(data / path.name, path)
    assert len(train(run).metrics()) == 2


def test_damaged_files_are_named(data: Path, tmp_path: Path) -> None:
    run = config(data, tmp_path / "run", trainer__epochs=1)
    train(run)
    state = run.folder / "state.ckpt"
    state.write_bytes(state.read_bytes()[:500])
    with pytest.raises(ValueError, match=r"state\.ckpt is damaged"):
        train(run)
    model = run.folder / "model.safetensors"
    model.write_bytes(model.read_bytes()[:500])
    with pytest.raises(ValueError, match=r"model\.safetensors is not a readable safetensors file"):
        Run(run.folder).forecaster()
    (run.folder / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config\.json is damaged"):
        Run(run.folder).config()


@pytest.mark.parametrize(("written", "age"), [(None, "an older"), (99, "a newer")])
def test_states_of_other_versions_are_not_called_damaged(
    written: int | None, age: str, undisturbed: Run, data: Path, tmp_path: Path
) -> None:
    shutil.copytree(undisturbed.path, tmp_path / "run")
    state = tmp_path / "run" / "state.ckpt"
    content = torch.load(state, weights_only=True)
    content["callbacks"]["RunFolder"]["format"] = written
    if written is None:
        del content["callbacks"]["RunFolder"]["format"], content["callbacks"]["RunFolder"]["data"]
    torch.save(content, state)
    with pytest.raises(ValueError, match=rf"was written by {age} cscnn: .*go on with that") as told:
        train(config(data, tmp_path / "run"))
    assert "damaged" not in str(told.value)
    assert "remove" not in str(told.value)


def test_states_need_the_data(tmp_path: Path) -> None:
    """Without it, states were written that could not be read."""
    with pytest.raises(TypeError, match="data"):
        RunFolder(tmp_path)


def test_two_runs_with_one_folder(undisturbed: Run, data: Path, tmp_path: Path) -> None:
    shutil.copytree(undisturbed.path, tmp_path / "run")
    before = (tmp_path / "run" / "state.ckpt").read_bytes()
    with (
        locked(tmp_path / "run" / ".lock", "the folder"),
        pytest.raises(
            BlockingIOError, match=rf"run is in use by process {os.getpid()} on .*: wait"
        ),
    ):
        train(config(data, tmp_path / "run", optimizer__schedule="constant"))
    assert (tmp_path / "run" / "state.ckpt").read_bytes() == before
    train(config(data, tmp_path / "run"))
    assert not (tmp_path / "run" / ".lock").exists()


def test_strangers_checkpoints_are_not_executed(data: Path, tmp_path: Path) -> None:
    run = config(data, tmp_path / "run", trainer__epochs=1)
    train(run)

    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "executed"),))

    torch.save({"state_dict": {}, "evil": Evil()}, run.folder / "state.ckpt")
    with pytest.raises(Exception, match=r"is damaged or not a state"):
        train(run)
    assert not (tmp_path / "executed").exists()


def test_leftovers_of_a_kill_are_removed(undisturbed: Run, data: Path) -> None:
    folders = [".state.ckpt.12345678.tmp", ".model.safetensors.abcdefgh.tmp"]
    left = [undisturbed.path / name for name in folders]
    others = undisturbed.path / ".evaluation.json.12345678.tmp"
    for path in (*left, others):
        path.mkdir()
        (path / "half").write_bytes(b"of a file")
    train(config(data, undisturbed.path))
    assert not any(path.exists() for path in left)
    assert others.exists()  # of a process that may be alive
    shutil.rmtree(others)


def test_unwritable_folder(data: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        train(config(data, tmp_path / "file" / "run"))


@needs_fork
@pytest.mark.parametrize("name", ["model.safetensors", "state.ckpt"])
def test_a_full_disk_loses_nothing(name: str, data: Path, tmp_path: Path) -> None:
    """A limit on the size of files stops the writing, as a full disk would."""
    # judged by the training loss, which falls: every epoch writes both files
    undisturbed = train(config(data, tmp_path / "undisturbed", data__valid=""))
    losses = [row["train_loss"] for row in undisturbed.metrics()]
    assert losses == sorted(losses, reverse=True)
    run = config(data, tmp_path / "run", data__valid="")
    report = tmp_path / "report.txt"

    def limited() -> None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        ended = RunFolder.on_train_epoch_end

        def after_the_first(self: RunFolder, trainer: object, module: object) -> None:
            if self.rows:
                size = undisturbed.file(name).stat().st_size - 1000
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
            ended(self, trainer, module)

        RunFolder.on_train_epoch_end = after_the_first
        try:
            train(run)
        except OSError as error:
            report.write_text(str(error))
            raise

    _, status = os.waitpid(fork(limited), 0)
    assert os.WEXITSTATUS(status) == 1
    message = report.read_text()
    assert f"cannot write {run.folder / name}; the one from before is intact" in message
    assert not list(run.folder.glob("*.tmp")) + list(run.folder.glob(".*"))
    assert Run(run.folder).forecaster().n_parameters() > 0
    assert same(undisturbed, train(run))


@pytest.mark.parametrize("split", ["valid", "test"])
def test_a_start_that_fails_leaves_the_folder_free(split: str, data: Path, tmp_path: Path) -> None:
    """The corrected command starts in it."""
    run = config(data, tmp_path / "run", trainer__epochs=1)
    right = getattr(run.data, split)
    setattr(run.data, split, str(tmp_path / "absent.h5"))
    with pytest.raises(FileNotFoundError, match=r"absent\.h5"):
        train(run)
    setattr(run.data, split, right)
    assert train(run).forecaster()


def test_a_lost_state_does_not_cost_the_weights(data: Path, tmp_path: Path) -> None:
    run = train(config(data, tmp_path / "run", trainer__epochs=2))
    before = run.file("model.safetensors").read_bytes()
    run.file("state.ckpt").unlink()
    with pytest.raises(ValueError, match=r"its state\.ckpt is gone: put the file back"):
        train(config(data, tmp_path / "run", trainer__epochs=2))
    assert run.file("model.safetensors").read_bytes() == before
