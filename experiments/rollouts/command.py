"""The command of a study of rollouts."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module

from cscnn._util.files import check_folder
from experiments.command import check_known, run_study, study_parser
from experiments.rollouts.plan import PARTS, Contender, Recipe, Setting


@dataclass(frozen=True)
class Command:
    """Runs a study and writes its page; called with arguments it returns the exit code.

    Attributes:
        name: of the folder in ``experiments``, of the page and of the files beside it. Its module
            ``page`` has ``write_page(results, folder)``, which returns the file.
        description: what the study does.
        only: some of the networks, for the help text.
        settings, contenders, recipes, networks: see `Study`.
        parts: of all, those that the study has.
    """

    name: str
    description: str
    only: str
    settings: Mapping[str, Setting]
    contenders: Mapping[str, Contender]
    recipes: Mapping[str, Recipe]
    parts: Sequence[str] = PARTS
    networks: Callable[[], None] | None = None

    def __call__(self, argv: Sequence[str] | None = None) -> int:
        return run_study(self._parser(), argv, self._run)

    def _parser(self) -> argparse.ArgumentParser:
        parser = study_parser(
            f"python -m experiments.{self.name}",
            self.description,
            f"--only {self.only} --out {self.name} --workers 2",
            out=self.name,
            page=f"write {self.name}.md, its records and figure here",
            known=("DIR", f"folder with {self.name}.json"),
        )
        add = parser.add_argument
        known = ", ".join(self.contenders)
        add("--only", nargs="+", metavar="NETWORK", help=f"of {known} (default: all)")
        add("--parts", nargs="+", choices=self.parts, default=self.parts, help="(default: all)")
        add("--seconds", type=float, help="of a training (default: as the task has it)")
        add("--seeds", type=int, help="of the best recipe")
        return parser

    def _run(self, args: argparse.Namespace) -> int:
        check_known("network", args.only or (), self.contenders)
        check_folder(args.out, "for the files of the study", create=True)
        from experiments.rollouts.results import Study  # take seconds to import
        from experiments.rollouts.runner import open_results, run

        changes = {
            name: getattr(args, name) for name in ("seconds", "seeds") if getattr(args, name)
        }
        settings = {task: replace(setting, **changes) for task, setting in self.settings.items()}
        study = Study(settings, self.contenders, self.recipes, self.name, self.networks)
        results = open_results(study, args.out, args.known, workers=args.workers)
        chosen = {key: self.contenders[key] for key in args.only or self.contenders}
        results.study = replace(study, contenders=chosen)
        if not args.draw:
            for task in settings:
                run(results, task, args.parts, workers=args.workers)
        results.study = study
        if args.page is not None:
            page = import_module(f"experiments.{self.name}.page")
            print(f"wrote {page.write_page(results, args.page)}")
        return 0
