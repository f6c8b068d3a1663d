"""The command ``cscnn train``."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from cscnn.forecasting.training.configfile import check_config_file, config_files

DESCRIPTION = """\
Trains a model and writes a folder with its weights, metrics and state. Run the same command again
after an interruption and it goes on; on the same machine the final weights are the same to the
last bit. Every option can come from a YAML file (--config), from a preset, or from the command
line; later ones win.

examples:
  cscnn train --preset navier_stokes_small --data.train data/smoke/train.h5 \\
      --data.valid data/smoke/valid.h5 --data.test data/smoke/test.h5 --out runs/smoke
  cscnn train --preset navier_stokes_small ... --model.name resnet --optimizer.lr 3e-4
  cscnn train --resume runs/smoke
  torchrun --nproc-per-node 8 -m cscnn.cli train --devices 8 --strategy ddp ...

--devices, --nodes and --strategy are short for --trainer.devices and so on."""

#: Options that may be given without their group.
SHORT = re.compile(r"^--(devices|nodes|strategy)(?==|$)")


def presets() -> list[str]:
    """Names of the configurations that come with the package."""
    folder = files("cscnn.forecasting.training") / "presets"
    return sorted(p.name.removesuffix(".yaml") for p in folder.iterdir())


def preset_file(name: str) -> Path:
    """The YAML file of a preset."""
    if name not in presets():
        raise ValueError(f"unknown preset {name!r}{_guess(name, presets())}")
    return Path(str(files("cscnn.forecasting.training") / "presets" / f"{name}.yaml"))


def _guess(name: str, known: Sequence[str]) -> str:
    close = [k for k in known if k.split(".")[-1] == name]
    close = close or difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f": did you mean {close[0]}?" if close else f": choose from {', '.join(known)}"


def parse(arguments: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    """A configuration from the command line, and what else was asked for."""
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
        formatter_class=_formatter(jsonargparse),
        exit_on_error=False,
        allow_abbrev=False,  # a misspelt option must not count as another one
    )
    parser.add_argument("--config", action="config", help="a YAML file with any of these options")
    parser.add_argument("--preset", help=f"one of {', '.join(presets())}")
    parser.add_argument("--resume", help="go on with the run in this folder")
    parser.add_argument("--dry-run", action="store_true", help="print what would be done, and stop")
    parser.add_class_arguments(TrainConfig, as_positional=False, skip={"training"})
    parser.add_class_arguments(LearningConfig, "training", as_positional=False, skip={"loss"})
    groups = parser.groups or {}
    groups["training"].add_argument(
        "--training.loss",
        default=LearningConfig.loss,
        help=f"what is minimised: {'; '.join(_summary(*item) for item in LOSSES.items())}",
    )
    try:
        spelled = _with_preset([SHORT.sub(r"--trainer.\1", text) for text in arguments])
        for path in config_files(spelled):
            _check_file(path, parser)
        parsed = parser.parse_args(spelled)
    except jsonargparse.ArgumentError as error:
        raise ValueError(_explain(str(error), parser)) from None
    settings = parsed.clone()
    extra = {name: settings.pop(name, None) for name in ("config", "preset", "resume", "dry_run")}
    if extra["resume"]:
        return _resumed(Path(extra["resume"]), arguments), extra
    return TrainConfig.from_dict(settings.as_dict()), extra


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
        raise ValueError(f"--config {path}: {_explain(str(error), parser)}") from None


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


def _explain(message: str, parser: Any) -> str:
    """An error of the parser, in one line and with a suggestion."""
    known = [name for name in parser.get_defaults().keys(branches=True)]  # noqa: C416
    unknown = re.search(r"[Uu]nrecognized arguments?: --([\w.-]+)", message)
    unknown = unknown or re.search(r"(?:Key|key|option|Option) '([\w.]+)' is not expected", message)
    group = re.search(r"Group '([\w.]+)' does not accept (?:option|nested key) '([\w.]+)'", message)
    line = " ".join(message.split())
    if unknown is None and group is None:
        return line
    name = unknown.group(1) if unknown else ".".join(group.groups()) if group else ""
    return f"unknown option {name}{_guess(name, known)}"


def _resumed(folder: Path, arguments: Sequence[str]) -> Any:
    from cscnn.forecasting.runs import Run

    others = [a for a in arguments if a.startswith("--") and not a.startswith("--resume")]
    if others and others != ["--dry-run"]:
        raise ValueError(f"--resume takes the configuration of the run: it goes without {others}")
    config = Run(folder).config()
    config.out = str(folder)
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
        finished = train(config)
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
    print(
        f"{finished.path}: {len(rows)} epochs, best {name} {best[name]:.4g} "
        f"in epoch {best['epoch'] + 1:.0f}; next: cscnn evaluate {finished.path}{split}"
    )
    return 0
