"""The command ``cscnn train``: options, presets, mistakes, plans."""

import shutil
from pathlib import Path

import h5py
import pytest
import torch

from cscnn.cli import main
from cscnn.data import open_fields
from cscnn.data.simulators import create
from cscnn.forecasting import Forecaster, Run, Task, Units, Windows, collate, train
from cscnn.forecasting.losses import LOSSES
from cscnn.forecasting.predict import predict
from cscnn.forecasting.receptive_field import default_margin
from cscnn.forecasting.training import ModelConfig
from cscnn.forecasting.training.command import parse, presets
from cscnn.forecasting.training.loader import WindowData
from cscnn.forecasting.training.plan import plan
from tests.forecasting.training.runs import QUIET, command, config

pytestmark = QUIET


@pytest.mark.parametrize("name", presets())
def test_presets_are_valid(name: str, tmp_path: Path) -> None:
    options, _ = parse(["--preset", name, "--out", "x", "--data.train", "y", "--seed=3"])
    options.check()
    assert options.seed == 3
    changed, _ = parse([f"--preset={name}", "--data.frames_in", "2", "--model.name=resnet"])
    assert (changed.data.frames_in, changed.model.name) == (2, "resnet")
    assert changed.trainer.epochs == options.trainer.epochs


@pytest.mark.parametrize("name", presets())
def test_presets_fit_their_data(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """In spacetime windows are longer than forecasts, and the default margin has room."""
    options, _ = parse(["--preset", name])
    task_name, size = name.rsplit("_", 1)
    header = create(task_name, size).header()
    data = options.data
    task = Task.from_header(
        header, frames_in=data.frames_in, frames_out=data.frames_out,
        open_padding=data.open_padding,
    )  # fmt: skip
    assert task.frames_in + task.frames_out <= header.frames
    if task.time_axis is None or size == "paper":
        return
    assert 4 * task.frames_out <= task.frames_in
    assert task.open_padding == "extrapolate"
    network = {**options.model.options, "width": 1}
    forecaster = Forecaster.build(options.model.name, task, calibrate=False, **network)
    margin = default_margin(forecaster, (task.frames_in, *header.grid))
    assert 0 < 4 * margin <= min(header.grid)
    assert not caplog.records  # nothing was cut


#: Options of training for rollouts that contradict themselves or the data, and what is said.
ROLLOUTS = [
    ("--training.unrolls 2", "unknown option training.unrolls: did you mean training.unroll?"),
    ("--training.unroll 0", "training.unroll must be at least 1, got 0"),
    ("--training.unroll 3", "a window needs 32 frames, the trajectories have 16: unroll fewer"),
    ("--training.unrol 3", "did you mean training.unroll?"),  # no abbreviations
    ("--training.pushforward true", "it needs training.unroll of at least 2, got 1"),
    ("--training.grow 2", "training.grow=2 is about unrolled steps"),
    ("--training.recompute_steps true", "training.recompute_steps=True is about unrolled steps"),
    ("--training.unroll 2 --training.grow 9 --trainer.epochs 8",
     "training.grow=9 epochs are more than trainer.epochs=8"),
    ("--training.unroll 2 --training.pushforward true --training.recompute_steps true",
     "saves nothing with training.pushforward"),
    ("--training.noise=-0.1", "training.noise must be at least 0 and finite, got -0.1"),
    ("--training.noise=.nan", "training.noise must be at least 0 and finite, got nan"),
    ("--training.weights.smoke 2", "weight for 'smoke', but the fields of task sine_gordon are"),
    ("--training.weights.sine=-1", "the weight of sine must be at least 0 and finite, got -1"),
    ('--training.weights {"sine":0,"cosine":0,"gradient":0}', "all fields have weight 0"),
    ("--model.predict future", "model.predict must be one of state, change, got 'future'"),
    ("--data.stride 0", "data.stride must be a number of frames of at least 1"),
    ("--data.stride [4,1]", "or a range of them from small to large such as [1, 4], got [4, 1]"),
    ("--data.stride [1,2,3]", "such as [1, 4], got [1, 2, 3]"),
    ("--data.stride x", "data.stride"),
    ("--data.stride [1,2]", "stride must be one number, got the range [1, 2]"),
    ("--data.stride 3 --data.frames_in 4",
     "a window needs 22 frames (8 with stride 3), the trajectories have 16"),
    ("--data.gap=-1", "data.gap must be at least 0, got -1"),
    ("--data.gap 2", "change frames_out, and leave out gap=2"),
    ("--data.gap 2 --training.unroll 2", "a forecast after a gap cannot be fed back"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "smoke"], "unknown preset 'smoke'"),
        (["--data.trian", "x"], "unknown option data.trian: did you mean data.train?"),
        (["--lr", "0.1"], "unknown option lr: did you mean optimizer.lr?"),
        (["--no-such", "3"], "unknown option no-such"),
        (["--model.depth", "3"], "unknown option model.depth"),
        (["--data.batch", "x"], "data.batch"),
        (["--out", "X"], "needs training data: --data.train FILE"),
        (["--data.train", "x"], "needs a folder: --out RUN"),
        (["--out", "X", "--data.train", "nothing.h5", "--model.width", "2"],
         "there is no file nothing.h5"),
        (["--out", "X", "--data.train", "D"], "either model.width or model.params"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--model.name", "vgg"], "vgg"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--data.frames_in", "99"],
         "a window needs 198 frames, the trajectories have 16"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--trainer.devices", "3"],
         "data.batch=8 is not divisible by 3 devices"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--optimizer.ema", "1.5"],
         "ema must be in [0, 1), got 1.5"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--trainer.steps", "-1"],
         "trainer.steps"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--training.loss", "l7"],
         "loss must be one of mse, relative, h1, got 'l7'"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--strategy", "fsdp"],
         "fsdp needs several devices"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--strategy=fsdp",
          "--devices=2", "--trainer.precision", "64"], "with trainer.precision 32 or bf16-mixed"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--strategy=fsdp_cpu_offload",
          "--devices=2"], "strategy must be one of auto, ddp, "),
        (["--out", "X", "--data.train", "D", "--model.width", "2",
          "--strategy=deepspeed_stage_3"], "got 'deepspeed_stage_3'"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--strategy=ddp_spawn"],
         "ddp, ddp_find_unused_parameters_true, fsdp, got 'ddp_spawn'"),
        (["--out", "X", "--data.train", "D", "--model.width", "2",
          "--trainer.accelerator", "abacus"],
         "abacus"),
        *((["--out", "X", "--data.train", "D", "--model.width", "2", *more.split()], text) for
          more, text in ROLLOUTS),
        (["--resume", "X", "--seed", "3"], "it goes without ['--seed']"),
        (["--resume", "D"], "train.h5 is not a complete run, it has no config.json: it is a file"),
        (["--out", "D", "--data.train", "D", "--model.width", "2"],
         "is a file: a run needs a folder"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--seed", str(2**63)],
         "seed must be at most 4294967295 (32 bits), got 9223372036854775808"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--seed=-1"],
         "seed must be at least 0, got -1"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--optimizer.final_lr", "-0.1"],
         "optimizer.final_lr must be at least 0 and finite, got -0.1"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--optimizer.lr", ".inf"],
         "optimizer.lr must be positive and finite, got inf"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--trainer.precision=16-true"],
         "must be one of 32, 64, bf16-mixed, 16-mixed, bf16-true, got '16-true'"),
        (["--out", "X", "--data.train", "D", "--model.params", str(10**15)],
         "model.params=1000000000000000 needs at least 16000 TB per device"),
    ],
)  # fmt: skip
def test_bad_commands(
    arguments: list[str],
    message: str,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = {"X": str(tmp_path / "run"), "D": str(data / "train.h5")}
    assert main(["train", *(names.get(a, a) for a in arguments)]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "run").exists()  # nothing that looks like a run is left behind


def test_short_names_are_not_looked_for_in_values() -> None:
    options, _ = parse(["--out", "runs/eight--devices", "--devices", "8", "--strategy=ddp"])
    assert (options.out, options.trainer.devices) == ("runs/eight--devices", 8)
    assert options.trainer.strategy == "ddp"


def test_help_lists_the_losses(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LOSSES, "mine", LOSSES["mse"])
    with pytest.raises(SystemExit):
        parse(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "--training.loss LOSS what is minimised: mse: mean square error of all components" in text
    )
    for name in LOSSES:
        assert f"{name}: " in text.split("--training.loss LOSS")[-1]


def test_the_loss_is_the_one_that_is_asked_for(data: Path, tmp_path: Path) -> None:
    """A new loss is one entry: the command, the configuration and the run know it by its name."""
    options = config(data, tmp_path / "run", trainer__epochs=1)
    assert main(command(options, tmp_path, "--training.loss", "relative")) == 0
    run = Run(options.folder)
    assert run.config().training.loss == "relative"
    source = open_fields(options.data.valid)
    forecaster = run.forecaster()
    windows = Windows(source, forecaster.task, mode="all")
    with torch.no_grad():
        loss = forecaster.loss(collate(list(windows)), "relative")
    assert run.metrics()[0]["valid_loss"] == pytest.approx(loss.item(), rel=1e-5)
    options.training.loss = "mse"
    with pytest.raises(ValueError, match=r"holds a run with training\.loss=relative, not mse"):
        train(options)


def test_unknown_keys_in_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("data: {trian: x}\n")
    assert main(["train", "--config", str(path)]) == 1
    assert "unknown option data.trian: did you mean data.train?" in capsys.readouterr().err
    path.write_text("data: [\n")
    assert main(["train", "--config", str(path)]) == 1
    assert main(["train", "--config", str(tmp_path / "absent.yaml")]) == 1
    assert "absent.yaml" in capsys.readouterr().err


BOMB = "\n".join(
    ["seed: 3", "a0: &a0 [x, x]", *(f"a{i}: &a{i} [{', '.join(9 * [f'*a{i - 1}'])}]"
                                  for i in range(1, 20))]
)  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty: it shall give options by name"),
        ("- 1\n- 2\n", "must give options by name, e.g. seed: 3, got a list"),
        ("seed", "must give options by name, e.g. seed: 3, got 'seed'"),
        ("data: [\n", "is no YAML: while parsing"),
        ("\x00", "is no YAML: "),
        ("[" * 5000, "is no YAML: "),
        ("data: {trian: x}", "unknown option data.trian: did you mean data.train?"),
        ("data: {batch: x}", "data.batch"),
        (BOMB, "stands for more than 10000 entries once its aliases are resolved"),
        ("model: &m {options: *m}", "stands for more than 10000 entries"),
        ("# " + "x" * 1_000_000, "has 1000002 bytes, at most 1000000 are read"),
    ],
    ids=lambda text: text[:20],
)
@pytest.mark.parametrize("spelling", ["--config {}", "--config={}"])
def test_bad_files_are_named(
    content: str, message: str, spelling: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(content)
    assert main(["train", *spelling.format(path).split()]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith(f"cscnn: error: --config {path}")
    assert message in error


def test_what_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--config", str(tmp_path)]) == 1
    assert f"--config {tmp_path} is a folder: give a YAML file" in capsys.readouterr().err
    path = tmp_path / "config.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    assert main(["train", "--config", str(path)]) == 1
    assert f"--config {path} is no YAML: 'utf-8' codec" in capsys.readouterr().err


def test_runs_that_do_not_fit(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = config(data, tmp_path / "run", trainer__devices=2)
    memory = "cscnn.forecasting.training.room.available_memory"
    monkeypatch.setattr(memory, lambda: 20_000)
    with pytest.raises(
        ValueError,
        match=r"data.batch=4 needs at least .* kB .*, 10\.0 kB are",
    ):
        train(run)
    monkeypatch.setattr(memory, lambda: None)  # not known
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    with pytest.raises(OSError, match=r"states needs .* of disk, but .*run has 1\.0 kB"):
        train(run)
    assert not (run.folder / "config.json").exists()


@pytest.mark.parametrize("split", ["train", "valid"])
def test_empty_files(split: str, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "empty.h5"
    shutil.copy(data / f"{split}.h5", path)
    with h5py.File(path, "r+") as file:
        for name in ("index", "checksum", "grade0/sine", "grade0/cosine", "grade1/gradient"):
            old, attributes = file[name], dict(file[name].attrs)
            del file[name]
            file.create_dataset(name, (0, *old.shape[1:]), old.dtype).attrs.update(attributes)
    run = config(data, tmp_path / "run", **{f"data__{split}": str(path)})
    with pytest.raises(ValueError, match=r"empty\.h5: it holds no trajectories"):
        train(run, Units({"sine": 1.0, "cosine": 1.0, "gradient": 1.0}))
    assert not (run.folder / "config.json").exists()


@pytest.mark.parametrize(("name", "works"), [("cs_resnet", True), ("gfno", False)])
def test_weights_of_16_bits(name: str, works: bool, data: Path, tmp_path: Path) -> None:
    options = {"blocks": 1, "kernel_size": 3} if works else {"modes": 2, "layers": 1}
    run = config(data, tmp_path / "run", model__name=name, model__options=options,
                 trainer__precision="bf16-true", trainer__epochs=1)  # fmt: skip
    if not works:
        with pytest.raises(ValueError, match=r"gfno cannot have .*=bf16-true, try bf16-mixed"):
            train(run)
        return
    train(run)
    predict(Run(run.folder).forecaster(), data / "test.h5", tmp_path / "forecast.h5", steps=2)
    with open_fields(tmp_path / "forecast.h5") as made:
        assert made.header.frames == 2


def test_changes_are_lost_in_16_bits(data: Path, tmp_path: Path) -> None:
    run = config(data, tmp_path / "run", model__predict="change", trainer__precision="bf16-true")
    with pytest.raises(ValueError, match=r"predict=change does not go with .*=bf16-true.*-mixed"):
        plan(run)


def test_dry_run(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = config(data, tmp_path / "run")
    assert main(command(options, tmp_path, "--dry-run")) == 0
    text = capsys.readouterr().out
    for expected in ("batches per epoch   4", "steps in all        12", "batch per device    4",
                     "memory per device   about", '"frames_in": 6'):  # fmt: skip
        assert expected in text
    assert not options.folder.exists()


def test_a_dry_run_refuses_what_a_run_would(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []
    close = WindowData.close
    monkeypatch.setattr(WindowData, "close", lambda self: (closed.append(self), close(self)))
    usage = shutil.disk_usage(tmp_path)._replace(free=10)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: usage)
        with pytest.raises(OSError, match=r"the folder of weights and states needs .* of disk"):
            plan(config(data, tmp_path / "run"))
    fno = ModelConfig("fno", width=2, options={"modes": 2, "layers": 1})
    with pytest.raises(ValueError, match=r"fno cannot have trainer\.precision=bf16-true"):
        plan(config(data, tmp_path / "run", model=fno, trainer__precision="bf16-true"))
    assert len(closed) == 2


def test_debug_shows_where(
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = config(data, tmp_path / "run", optimizer__lr=-1.0)
    with pytest.raises(ValueError, match="lr must be positive"):
        main(command(options, tmp_path, "--debug"))

    def broken(config: object, **_: object) -> None:
        raise RuntimeError("the device\nis on fire")

    monkeypatch.setattr("cscnn.forecasting.training.train.train", broken)
    assert main(command(options, tmp_path)) == 1
    error = capsys.readouterr().err
    assert error == "cscnn: error: RuntimeError: the device is on fire (--debug shows where)\n"


def test_overwrite_begins_anew_when_all_is_ready(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = train(config(data, out, trainer__epochs=1))
    kept = first.file("model.safetensors").read_bytes()
    (out / "notes.txt").write_text("mine")
    other = config(data, out, trainer__epochs=1, seed=7)
    with pytest.raises(ValueError, match=r"holds a run with seed=0, not 7: .* --overwrite"):
        train(other)
    missing = config(data, out, trainer__epochs=1, data__train=str(tmp_path / "gone.h5"))
    with pytest.raises(FileNotFoundError):
        train(missing, overwrite=True)
    assert first.file("model.safetensors").read_bytes() == kept  # nothing was removed yet
    again = train(other, overwrite=True)
    assert again.config().seed == 7
    assert len(again.metrics()) == 1
    assert again.file("model.safetensors").read_bytes() != kept
    assert (out / "notes.txt").read_text() == "mine"


def test_overwrite_goes_on_if_torchrun_restarts(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    train(config(data, out, trainer__epochs=1, optimizer__schedule="constant"))
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    longer = config(data, out, trainer__epochs=2, optimizer__schedule="constant")
    again = train(longer, overwrite=True)
    assert [row["epoch"] for row in again.metrics()] == [1, 2]
