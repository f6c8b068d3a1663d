"""The command ``cscnn train``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from cscnn._util.suggest import check_known
from cscnn.forecasting.training.configfile import check_config_file, config_files
from cscnn.forecasting.training.explain import explain

DESCRIPTION = """\
Trains a model and writes a folder with its weights, metrics and state. Run the same command again
after an interruption and it goes on; on the same machine the final weights are the same to the
last bit. Every option can come from a YAML file (--config), from a preset, or from the command
line; later ones win. --batch, --workers, --device, --devices, --nodes and --strategy are short for
the options of groups that end so (--device for --trainer.accelerator)."""

EXAMPLES = (
    "cscnn train --preset navier_stokes_small --data.train data/smoke/train.h5 \\\n"
    "      --data.valid data/smoke/valid.h5 --data.test data/smoke/test.h5 --out runs/smoke",
    "cscnn train --preset navier_stokes_small --data.train data/smoke/train.h5 \\\n"
    "      --model.name resnet --model.options {} --optimizer.lr 3e-4 --out runs/resnet",
    "cscnn train --resume runs/smoke",
)

#: Options that are not of the configuration.
EXTRA = ("config", "preset", "resume", "dry_run", "overwrite", "quiet")

#: Options that may be given without their group -> the options.
SHORT = {
    "batch": "data.batch",
    "workers": "data.workers",
    "device": "trainer.accelerator",
    "devices": "trainer.devices",
    "nodes": "trainer.nodes",
    "strategy": "trainer.strategy",
}


def presets() -> list[str]:
    """Names of the configurations that come with the package."""
    folder = files("cscnn.forecasting.training") / "presets"
    return sorted(p.name.removesuffix(".yaml") for p in folder.iterdir())


def preset_file(name: str) -> Path:
    """The YAML file of a preset."""
    check_known("preset", name, presets())
    return Path(str(files("cscnn.forecasting.training") / "presets" / f"{name}.yaml"))


def make_parser() -> Any:
    """The parser of all options, with those of the configuration by group."""
    try:
        import jsonargparse
        import lightning  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"training needs the package {error.name}: pip install 'cscnn[train]'", name=error.name
        ) from error
    from cscnn.forecasting.losses import LOSSES
    from cscnn.forecasting.training.config import TrainConfig
    from cscnn.forecasting.training.learning import LearningConfig

    parser = jsonargparse.ArgumentParser(
        prog="cscnn train",
        description=DESCRIPTION,
        epilog="examples:\n" + "\n".join(f"  {example}" for example in EXAMPLES),
        formatter_class=_formatter(jsonargparse),
        exit_on_error=False,
        allow_abbrev=False,  # a misspelt option must not count as another one
    )
    parser.add_argument("--config", action="config", help="a YAML file with any of these options")
    parser.add_argument("--preset", help=f"one of {', '.join(presets())}")
    parser.add_argument("--resume", help="go on with the run in this folder")
    parser.add_argument("--dry-run", action="store_true", help="print what would be done, and stop")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace a run that is in --out (default: refuse)"
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_class_arguments(TrainConfig, as_positional=False, skip={"training"})
    parser.add_class_arguments(LearningConfig, "training", as_positional=False, skip={"loss"})
    groups = parser.groups or {}
    groups["training"].add_argument(
        "--training.loss",
        default=LearningConfig.loss,
        help=f"what is minimised: {'; '.join(_summary(*item) for item in LOSSES.items())}",
    )
    return parser


def parse(arguments: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    """A configuration from the command line, and what else was asked for."""
    parser = make_parser()
    import jsonargparse

    from cscnn.forecasting.training.config import TrainConfig

    try:
        spelled = _with_preset([_long(text) for text in arguments])
        for path in config_files(spelled):
            _check_file(path, parser)
        parsed = parser.parse_args(spelled)
    except jsonargparse.ArgumentError as error:
        raise ValueError(explain(str(error), parser)) from None
    settings = parsed.clone()
    extra = {name: settings.pop(name, None) for name in EXTRA}
    if extra["resume"]:
        return _resumed(Path(extra["resume"]), arguments), extra
    config = TrainConfig.from_dict(settings.as_dict())
    if extra["quiet"]:
        config.trainer.progress = False
    return config, extra


def _long(text: str) -> str:
    """A word of the command line, with the group of an option that was left out."""
    name, equals, value = text.removeprefix("--").partition("=")
    if text.startswith("--") and name in SHORT:
        return f"--{SHORT[name]}{equals}{value}"
    return text


def _summary(name: str, function: Any) -> str:
    """A loss by the first line of its docstring."""
    line = str(function.__doc__).splitlines()[0].rstrip(".")
    return f"{name}: {line[:1].lower()}{line[1:]}"


def _check_file(path: Path, parser: Any) -> None:
    """Raise for a file that is wrong by itself, with its name."""
    import jsonargparse

    check_config_file(path)
    try:
        parser.parse_args(["--config", str(path)])
    except jsonargparse.ArgumentError as error:
        raise ValueError(f"--config {path}: {explain(str(error), parser)}") from None


def _formatter(jsonargparse: Any) -> Any:
    import argparse

    class Formatter(jsonargparse.DefaultHelpFormatter, argparse.RawDescriptionHelpFormatter):
        """Keeps the lines of the description."""

    return Formatter


def _with_preset(arguments: list[str]) -> list[str]:
    """The preset's file first, so that everything else wins over it."""
    for number, text in enumerate(arguments):
        if text == "--preset" and number + 1 < len(arguments):
            return ["--config", str(preset_file(arguments[number + 1])), *arguments]
        if text.startswith("--preset="):
            return ["--config", str(preset_file(text.removeprefix("--preset="))), *arguments]
    return arguments


def _resumed(folder: Path, arguments: Sequence[str]) -> Any:
    from cscnn.forecasting.runs import Run

    others = [a for a in arguments if a.startswith("--") and not a.startswith("--resume")]
    if set(others) - {"--dry-run", "--quiet"}:
        raise ValueError(f"--resume takes the configuration of the run: it goes without {others}")
    config = Run(folder).config()
    config.out = str(folder)
    if "--quiet" in others:
        config.trainer.progress = False
    return config


def run(arguments: Sequence[str]) -> int:
    """Train as the command line says."""
    config, extra = parse(arguments)
    from lightning.pytorch.utilities import rank_zero_only

    from cscnn.forecasting.training.launch import Terminated
    from cscnn.forecasting.training.plan import plan
    from cscnn.forecasting.training.train import train

    if extra["dry_run"]:
        for name, value in plan(config).items():
            shown = f"about {value / 1e6:,.0f} MB" if name.startswith("memory") else value
            print(f"{name:<20}{shown}")
        print("configuration")
        print(json.dumps(config.to_dict(), indent=2))
        return 0
    try:
        finished = train(config, overwrite=bool(extra["overwrite"]))
    except (KeyboardInterrupt, Terminated) as end:
        if getattr(rank_zero_only, "rank", 0) == 0:
            how = "terminated" if isinstance(end, Terminated) else "interrupted"
            again = f"cscnn train --resume {config.out} goes on after the last epoch"
            begun = (config.folder / "config.json").exists()
            print(f"\n{how}: {again}" if begun else f"\n{how} before the run began")
        return Terminated.EXIT if isinstance(end, Terminated) else 130
    if getattr(rank_zero_only, "rank", 0) != 0:
        return 0
    rows = finished.metrics()
    last = [row for row in rows if row["unroll"] == rows[-1]["unroll"]]  # of which one was kept
    best = min(last, key=lambda row: row.get("valid_loss", row["train_loss"]))
    name = "valid_loss" if "valid_loss" in best else "train_loss"
    data = config.data
    split = "" if data.test else " --split valid" if data.valid else " --data FILE"
    epochs = "1 epoch" if len(rows) == 1 else f"{len(rows)} epochs"
    print(
        f"{finished.path}: {epochs}, best {name} {best[name]:.4g} "
        f"in epoch {best['epoch']:.0f}; next: cscnn evaluate {finished.path}{split}"
    )
    return 0
