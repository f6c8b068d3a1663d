"""The results page: tables, figures and verdicts, all from records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cscnn._util.files import write_text
from cscnn.data import open_fields
from cscnn.forecasting import Run
from cscnn.forecasting.evaluation.results import Samples
from cscnn.viz import draw_kernel_story, plot_comparison, plot_rollouts
from cscnn.viz.figures import save
from experiments.markdown import page_text
from experiments.paper import figures
from experiments.paper.claims import Evidence, claims
from experiments.paper.outcomes import Outcome
from experiments.paper.plan import Setting
from experiments.paper.results import Results
from experiments.paper.tables import (
    borrowed_rates,
    effort,
    lowest,
    machine_line,
    model_table,
    rotation_table,
    setting_table,
)

#: Models in pictures of forecasts, and fields of them.
SHOWN = ("resnet", "cs_resnet", "ours")
FIELDS = {"navier_stokes": ["smoke"], "maxwell3d": ["electric"]}


def write_page(results: Results, tasks: Sequence[str], folder: Path) -> Path:
    """Draw everything that there are records of.

    Args:
        results: of the study.
        tasks: which.
        folder: of results.md and, in a folder figures, the pictures.
    """
    page = Page(results, tasks, folder)
    page.pictures.mkdir(parents=True, exist_ok=True)
    lines = [*page.introduction()]
    if page.scaling:
        lines += [
            *page.errors(),
            *page.verdicts(),
            *page.equal_training_time(),
            *page.convergence(),
            *page.symmetry(),
        ]
    lines += [*page.ablated(), *page.forecasts(), *page.kernels()]
    path = folder / "results.md"
    write_text(path, page_text(lines))
    return path


@dataclass
class Page:
    """The sections of the page, each as lines of Markdown.

    Args:
        results: of the study.
        tasks: which.
        folder: of the page.
    """

    results: Results
    tasks: Sequence[str]
    folder: Path

    @property
    def pictures(self) -> Path:
        """Folder of the pictures."""
        return self.folder / "figures"

    def _part(self, part: str) -> dict[str, list[Outcome]]:
        by_task = {task: self.results.outcomes(task, part) for task in self.tasks}
        return {task: outcomes for task, outcomes in by_task.items() if outcomes}

    @cached_property
    def scaling(self) -> dict[str, list[Outcome]]:
        """Task -> outcomes of all sizes of the training set."""
        return self._part("scaling")

    @cached_property
    def equal_time(self) -> dict[str, list[Outcome]]:
        """Task -> outcomes of others that were trained for as long as ours."""
        return self._part("time")

    @cached_property
    def ablations(self) -> dict[str, list[Outcome]]:
        """Task -> outcomes of networks that lack an ingredient."""
        return self._part("ablations")

    def setting(self, task: str) -> Setting:
        """Of a task."""
        return self.results.study.settings[task]

    def _picture(self, name: str, figure: Any | None, alt: str) -> list[str]:
        """Write a picture, if there is one, and show it."""
        if figure is None:
            return []
        save(figure, self.pictures / f"results_{name}.png", dpi=85)
        return self._shown(name, alt)

    def _shown(self, name: str, alt: str) -> list[str]:
        return [f"![{alt}](figures/results_{name}.png)", ""]

    def _tables(self, by_task: dict[str, list[Outcome]]) -> list[str]:
        lines = []
        for task, outcomes in by_task.items():
            table = model_table(outcomes, self.setting(task))
            lines += [f"### {task}", "", *lowest(outcomes), *table, ""]
        return lines

    # --- sections ---------------------------------------------------------------------------------

    def introduction(self) -> list[str]:
        """What was done, at what size, and what is missing."""
        results = self.results
        name = results.study.name
        every = [outcome for task in self.tasks for outcome in results.outcomes(task)]
        discussed = (self.folder / "results_discussion.md").is_file()
        comments = " See also the [discussion](results_discussion.md)." if discussed else ""
        lines = [
            f"# Results: the paper's experiments at size `{name}`",
            "",
            "After this page you know the errors and costs of all networks on the tasks of the "
            f"paper, at a reduced size.{comments} Written by "
            f"`python -m experiments.paper --preset {name}`.",
            "",
            f"{METHOD}{self._timings(every)}.",
            "",
            *setting_table([self.setting(task) for task in self.tasks]),
            *effort(every),
        ]
        missing = {task: len(results.missing(task)) for task in self.tasks}
        counts = [f"{task} ({count} trainings or more)" for task, count in missing.items() if count]
        return [*lines, f"Not run yet: {', '.join(counts)}.", ""] if counts else lines

    def _timings(self, outcomes: Sequence[Outcome]) -> str:
        """How seconds were measured, and on what machine."""
        timings = [t for task in self.scaling if (t := self.results.timing(task)) is not None]
        measured = [o for o in outcomes if o.record.measured]
        alone = dict.fromkeys(f'"{o.label}"' for o in measured if o.seconds is None)
        if not timings or all(o.seconds is None for o in measured):
            return ", the minimum over all runs"
        machines = dict.fromkeys(machine_line(timing.machine) for timing in timings)
        text = f", the minimum of ten interleaved timings ({'; '.join(machines)})"
        return f"{text}; those of {', '.join(alone)} the minimum over their runs" if alone else text

    def errors(self) -> list[str]:
        """Errors by number of training simulations."""
        figure = figures.plot_scaling(self.scaling)
        return [
            "## Error by number of training simulations",
            "",
            *self._picture("scaling", figure, "test error against training simulations"),
            *self._tables(self.scaling),
        ]

    def verdicts(self) -> list[str]:
        """What was expected, and whether it holds."""
        lines = ["## Expectations and findings", ""]
        lines += ["| task | statement | holds | numbers |", "|---|---|---|---|"]
        for task, outcomes in self.scaling.items():
            setting = self.setting(task)
            evidence = Evidence(
                task,
                outcomes,
                ablations=self.ablations.get(task, ()),
                equal_time=self.equal_time.get(task, ()),
                faster=setting.step_factors,
                expected=self.results.study.scaling[task],
                seeds=setting.seeds,
                planned_size=max(setting.sizes),
            )
            for claim in claims(evidence):
                lines.append(f"| {task} | {claim.text} | {claim.verdict} | {claim.numbers} |")
        return [*lines, ""]

    def equal_training_time(self) -> list[str]:
        """Errors of networks that were trained for as long as ours."""
        if not self.equal_time:
            return []
        by_task = {}
        for task, outcomes in self.equal_time.items():
            size = max(o.trajectories for o in outcomes)
            slower = [
                o for o in self.scaling.get(task, ())
                if o.trajectories == size and o.key not in self.setting(task).step_factors
            ]  # fmt: skip
            order = self.results.study.scaling[task].index
            by_task[task] = sorted([*outcomes, *slower], key=lambda o, order=order: order(o.key))  # type: ignore[misc]
        return [*EQUAL_TIME, "", *self._tables(by_task)]

    def convergence(self) -> list[str]:
        """Learning curves."""
        lines = ["## Convergence", ""]
        for task, outcomes in self.scaling.items():
            lines += [f"{task}, largest training size:", ""]
            alt = f"validation error of {task} by steps and by time"
            figure = figures.plot_convergence(outcomes)
            lines += self._picture(f"convergence_{task}", figure, alt)
        return lines

    def symmetry(self) -> list[str]:
        """Violations of symmetries, and errors for other observers."""
        equivariance = figures.plot_equivariance(self.scaling)
        observers = figures.plot_observers(self.scaling)
        alt = "equivariance error by angle and rapidity"
        return [
            "## Symmetry of the trained models",
            "",
            "The first figure shows the paper's relative equivariance error under rotations and "
            "boosts, by interpolation ([definition](guides/evaluation.md#symmetry)). The second "
            "shows test errors of the same events for other observers.",
            "",
            *self._picture("equivariance", equivariance, alt),
            *self._picture("frames", observers, "relative test error by frame of the observer"),
            *self._rotations(),
        ]

    def _rotations(self) -> list[str]:
        """The numbers of the picture for angles that no grid has."""
        lines = []
        for task, outcomes in self.scaling.items():
            if table := rotation_table(outcomes):
                lines += [f"Relative equivariance error of {task} by angle of rotation:", ""]
                lines += [*table, ""]
        return lines

    def ablated(self) -> list[str]:
        """Errors without one ingredient."""
        if not self.ablations:
            return []
        every = [outcome for outcomes in self.ablations.values() for outcome in outcomes]
        figure = figures.plot_ablations(self.ablations)
        return [
            "## Ablations",
            "",
            *borrowed_rates(every),
            *self._picture("ablations", figure, "errors without one ingredient"),
            *self._tables(self.ablations),
        ]

    def forecasts(self) -> list[str]:
        """Rollouts: their errors by time, and fields beside the truth."""
        lines = ["## Forecasts", ""]
        for task, outcomes in self.scaling.items():
            shown = [
                o for o in outcomes
                if o.key in SHOWN and o.record.measured and o.record.measured.rollout
            ]  # fmt: skip
            alt = f"errors of rollouts of {task} by time"
            lines += self._picture(f"rollouts_{task}", _rollouts(shown, task), alt)
            name, alt = f"fields_{task}", f"target, predictions and errors of {task}"
            comparison = self._fields(shown, task)
            drawn = (self.pictures / f"results_{name}.png").is_file()
            if comparison is None and shown and drawn:  # from the runs of an earlier study
                lines += self._shown(name, alt)
            lines += self._picture(name, comparison, alt)
        return lines

    def _fields(self, outcomes: Sequence[Outcome], task: str) -> Any | None:
        """None if the runs are not here: only their records are kept."""
        samples = {}
        for outcome in outcomes:
            run = Run(self.results.out / "runs" / outcome.record.name)
            if (run.path / "samples.npz").is_file():
                forecaster = run.forecaster()
                samples[outcome.label] = Samples.load(run.path / "samples.npz", forecaster.task)
        data = self.results.data(task, "test")
        if not samples or not data.is_file():
            return None
        with open_fields(data) as source:
            return plot_comparison(samples, source.header, fields=FIELDS.get(task), title=task)

    def kernels(self) -> list[str]:
        """What implicit kernels lack."""
        lines = ["## Kernels", ""]
        for name, caption in draw_kernel_story(self.pictures):
            alt = caption.partition(". ")[0]
            lines += [f"![{alt}](figures/{name})", "", f"*{caption}*", ""]
        return lines


def _rollouts(outcomes: Sequence[Outcome], task: str) -> Any | None:
    curves = {}
    persistence = None
    for outcome in outcomes:
        if outcome.record.measured and (rollout := outcome.record.measured.rollout):
            curves[outcome.label] = (rollout.times, rollout.relative_l2)
            persistence = persistence or (rollout.times, rollout.persistence)
    return plot_rollouts(curves, persistence=persistence, title=task) if curves else None


METHOD = """\
## How it was measured

- **Training.** All models of a task have the same budget of parameters. They see the same windows
  in the same order for the same number of steps, unless stated otherwise. The optimiser is AdamW
  with a cosine schedule; gradients are clipped at norm 1.
- **Inputs.** Ours gets the constant vectors of its task: the direction of buoyancy, or the
  displacement from input to target. The others do not. The ablations show the effect.
- **Learning rates** are chosen on the validation split at the middle training size. Further rates
  (in brackets) are tried while the best one is the smallest or the largest. `≤` and `≥` mark the
  ends of that search.
- **Errors** are mean squared errors of one step on the test split, in units of the variance of each
  field. Relative errors are root mean square errors, in units of the target. `±` is half the
  distance between the best and the worst seed.
- **Seconds per step** are those of a forward and a backward pass\
"""

EQUAL_TIME = (
    "## Error at equal training time",
    "",
    "Networks with cheaper steps than ours are trained for more steps, so that the training time "
    "is about the same. Learning rates are unchanged; the training set is the largest. Slower "
    "networks take the same number of steps as ours.",
)
