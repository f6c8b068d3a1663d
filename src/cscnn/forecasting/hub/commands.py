"""The commands that share forecasters: ``cscnn hub save``, ``push`` and ``zoo``."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from cscnn._util.files import check_folder, check_output
from cscnn._util.parser import Parser, add_out
from cscnn._util.resources import size
from cscnn.forecasting.commands import add_forecaster

if TYPE_CHECKING:
    from cscnn.forecasting.hub.card import About


def add_save(command: Parser) -> None:
    """``cscnn hub save``."""
    command.describe(
        "Writes a folder with the weights and a model card, which can be shared by any means. The "
        "card says what is forecast, how data and weights were made, what cscnn evaluate has "
        "measured, and how to use it. Forecaster.from_pretrained reads the folder.",
        "cscnn hub save runs/smoke --out smoke",
        "cscnn hub save runs/smoke --out smoke --repo me/smoke --license cc-by-4.0 --overwrite",
    )
    add_forecaster(command)
    add_out(command, "FOLDER", "the folder to write", required=True)
    command.add_argument(
        "--repo", metavar="ID", help="by which others will load it (default: the folder's name)"
    )
    _add_texts(command)
    command.set_defaults(run=_save)


def add_push(command: Parser) -> None:
    """``cscnn hub push``."""
    command.describe(
        "Uploads a forecaster with its card to the Hugging Face hub. A folder of cscnn hub save is "
        "uploaded as it is, so that you can edit its card. Log in by hf auth login before.",
        "cscnn hub push runs/smoke --repo me/smoke",
        "cscnn hub push smoke --repo me/smoke --private --message 'Trained for longer'",
    )
    add_forecaster(command)
    command.add_argument("--repo", metavar="ID", required=True, help="the repository, user/name")
    command.add_argument(
        "--private", action="store_true", help="if it is new, others do not see it"
    )
    command.add_argument("--branch", help="(default: main)")
    command.add_argument("--message", help="of the commit")
    _add_texts(command)
    command.set_defaults(run=_push)


def add_zoo(command: Parser) -> None:
    """``cscnn hub zoo``."""
    command.describe(
        "Lists the forecasters that come with the package, with their errors and the commands that "
        "made them. They are for trying things out: each was trained for two minutes.",
        "cscnn hub zoo",
        "cscnn hub zoo --commands",
    )
    command.add_argument("--commands", action="store_true", help="show how they were made")
    command.set_defaults(run=_zoo)


def _add_texts(command: Parser) -> None:
    command.add_argument("--title", help="of the card (default: task and network)")
    command.add_argument("--summary", help="one sentence on what it forecasts")
    command.add_argument("--license", default="mit", help="of the weights (default: %(default)s)")


def _about(args: argparse.Namespace) -> About:
    """What the card says: texts of the command line, and what the folder of a run tells."""
    from cscnn.forecasting.hub.card import About
    from cscnn.forecasting.runs import Run

    texts = {"title": args.title or "", "summary": args.summary or "", "license": args.license}
    return About.of_run(Run(args.forecaster), **texts)


def _write(args: argparse.Namespace, folder: Path, repo: str, overwrite: bool) -> None:
    from cscnn.forecasting.runs import load_forecaster

    forecaster, about = load_forecaster(args.forecaster), _about(args)
    forecaster.save_pretrained(
        folder,
        repo_id=repo,
        model_card_kwargs={f.name: getattr(about, f.name) for f in fields(about)},
        overwrite=overwrite,
    )


def _save(args: argparse.Namespace) -> int:
    from cscnn.forecasting.hub.pretrained import FILES

    out: Path = args.out
    check_folder(out, "to write a forecaster into", create=True)
    inputs = [args.forecaster, *(args.forecaster / name for name in FILES)]
    for name in FILES:
        if out.is_dir():
            check_output(out / name, inputs=inputs, overwrite=args.overwrite)
    _write(args, out, args.repo or out.name, args.overwrite)
    for name in FILES:
        if (out / name).exists():
            print(f"{out / name}: {size((out / name).stat().st_size)}")
    return 0


def _push(args: argparse.Namespace) -> int:
    from cscnn.forecasting.hub.pretrained import CARD, MESSAGE, push_folder

    options = {
        "commit_message": args.message or MESSAGE,
        "private": True if args.private else None,
        "branch": args.branch,
    }
    if (args.forecaster / CARD).is_file():
        print(push_folder(args.forecaster, args.repo, **options))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        _write(args, Path(folder), args.repo, overwrite=False)
        print(push_folder(folder, args.repo, **options))
    return 0


def _zoo(args: argparse.Namespace) -> int:
    from cscnn.forecasting import zoo

    for name in zoo.names():
        entry = zoo.entry(name)
        print(
            f"zoo:{name}: {entry.summary} {entry.parameters:,} parameters, {size(entry.bytes)}, "
            f"{entry.relative_error:.0%} of the error of the persistence forecast"
        )
        if args.commands:
            print("".join(f"    {command}\n" for command in entry.commands), end="")
    return 0
