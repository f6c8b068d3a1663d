"""Model cards: what a shared forecaster is, how it was made, and how well it does."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cscnn
from cscnn._util.optional import require
from cscnn.data.header import Header
from cscnn.data.simulators import SIMULATORS
from cscnn.forecasting.evaluation.results import ErrorCurves, Evaluation, SymmetryErrors
from cscnn.forecasting.runs import Run
from cscnn.forecasting.training.config import TrainConfig

if TYPE_CHECKING:
    from cscnn.forecasting.forecaster import Forecaster

TAGS = ("cscnn", "clifford-algebra", "equivariance", "physics", "pde")
METRICS = ("mse", "relative_l2", "correlation")  #: of one step, in the metadata
POINTS, STEPS = 200, 10  #: of the example: for fields on points, and of its forecast


@dataclass(frozen=True)
class About:
    """What a card says beside the forecaster itself; what is not known is left out.

    Attributes:
        title: by default the name of the task.
        summary: one sentence on what it forecasts.
        license: of the weights, as the hub spells it.
        data: header of the training data.
        trajectories: of the training data.
        config: of the training.
        evaluation: what ``cscnn evaluate`` has measured.
    """

    title: str = ""
    summary: str = ""
    license: str = "mit"
    data: Header | None = None
    trajectories: int | None = None
    config: TrainConfig | None = None
    evaluation: Evaluation | None = None

    @classmethod
    def of_run(cls, run: Run, **texts: str) -> About:
        """What the folder of a run tells.

        Args:
            run: the run. Its data and its evaluation may be missing.
            texts: ``title``, ``summary`` and ``license``.
        """
        data, trajectories, evaluation = None, None, None
        config = run.config() if (run.path / "config.json").is_file() else None
        if config is not None:
            try:
                with run.source("train") as source:
                    data, trajectories = source.header, len(source)
            except (OSError, ValueError):  # they were moved or removed: the card leaves them out
                pass
        if (numbers := run.path / "evaluation.json").is_file():
            evaluation = Evaluation.load(numbers)
        return cls(
            data=data,
            trajectories=trajectories,
            config=config,
            evaluation=evaluation,
            **texts,
        )


def model_card(forecaster: Forecaster, repo_id: str, about: About = About()) -> Any:  # noqa: B008
    """A ``huggingface_hub.ModelCard``: valid metadata, then Markdown.

    Args:
        forecaster: what is shared.
        repo_id: by which others will load it, or the name of a folder.
        about: what else is known.
    """
    hub = require("huggingface_hub", "a model card", "hub")
    task = forecaster.task
    title = about.title or f"{task.name}: {forecaster.name}"
    results = list(_results(hub, about.evaluation)) if about.evaluation else None
    data = hub.ModelCardData(
        license=about.license,
        library_name="cscnn",
        tags=[*TAGS, task.name],
        metrics=list(METRICS) if results else None,
        model_name=title if results else None,
        eval_results=results,
    )
    parts = [f"# {title}", *_introduction(forecaster, about), *_use(forecaster, repo_id, about)]
    parts += _fields(forecaster)
    parts += _made(about)
    if about.evaluation is not None:
        parts += [*_errors(about.evaluation), *_symmetry(about.evaluation.symmetry)]
    parts += ["## Licence", f"The weights have the licence `{about.license}`."]
    return hub.ModelCard(f"---\n{data.to_yaml()}\n---\n\n" + "\n\n".join(parts) + "\n")


def _results(hub: Any, evaluation: Evaluation) -> Iterator[Any]:
    """Errors as the metadata have them."""
    for metric in METRICS:
        value = evaluation.one_step.total.get(metric, math.nan)
        if math.isfinite(value):
            yield hub.EvalResult(
                task_type="time-series-forecasting",
                task_name="one step",
                dataset_type=evaluation.task.name,
                dataset_name=evaluation.task.name,
                dataset_split=evaluation.data.split,
                metric_type=metric,
                metric_value=float(f"{value:.4g}"),
            )


def _introduction(forecaster: Forecaster, about: About) -> list[str]:
    names = ", ".join(f.name for f in forecaster.task.fields)
    made = (
        f"Forecasts {names} by the network `{forecaster.name}` with {forecaster.n_parameters():,} "
        f"parameters, made with cscnn {cscnn.__version__}. Physical fields in, physical fields out."
    )
    return [about.summary, made] if about.summary else [made]


def _use(forecaster: Forecaster, repo_id: str, about: About) -> list[str]:
    """An example that runs as it is."""
    lines = [
        "import torch",
        "from cscnn.forecasting import Forecaster",
        "",
        f'forecaster = Forecaster.from_pretrained("{repo_id}")',
        *example(forecaster, about.data),
    ]
    text = "\n".join(lines)
    extra = "hub" if "/" in repo_id else "train"  # a folder needs no hub
    return ["## Use it", f"    pip install 'cscnn[{extra}]'", f"```python\n{text}\n```"]


def example(forecaster: Forecaster, data: Header | None = None) -> list[str]:
    """Lines of Python that forecast from noise of the right shape.

    Args:
        forecaster: called so in these lines.
        data: whose grid is taken.
    """
    task = forecaster.task
    axes = task.dim - (task.time_axis is not None)
    grid: tuple[int, ...] = (16,) * axes
    if data is not None and data.grid:
        grid = tuple(n // forecaster.coarsen for n in data.grid)
    if task.points is not None:
        grid = (POINTS,)
    kinds = {"forcing": (task.span, *grid), "static": grid, "constant": ()}

    def noise(shape: Sequence[int], grade: int | str) -> str:
        if isinstance(grade, str):  # of a symmetric tensor, T^ij = x^i x^j
            numbers = (1, *shape, task.dim, 1)
            return f"(lambda x: (x * x.mT).flatten(-2))(torch.randn({_listed(numbers)}))"
        numbers = (1, *shape, task.algebra.size(grade))
        return f"torch.randn({_listed(numbers)})"

    lines = ["frames = {"]
    lines += [f'    "{f.name}": {noise((task.frames_in, *grid), f.grade)},' for f in task.fields]
    lines.append("}  # (batch, frames, *space, components)")
    fixed = task.gap or any(g.kind == "forcing" for g in task.given)
    call = f"frames, steps={task.frames_out if fixed else STEPS}"
    if task.given:
        entries = [f'    "{g.name}": {noise(kinds[g.kind], g.grade)},' for g in task.given]
        lines += ["given = {", *entries, "}"]
        call += ", given=given"
    if task.points is not None:
        call += f", points=torch.rand({POINTS}, {task.dim})"
    return [*lines, f"later = forecaster({call})"]


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _fields(forecaster: Forecaster) -> list[str]:
    task = forecaster.task
    metric = "".join("+" if sign > 0 else "-" for sign in task.metric)
    boundary = [task.boundary] if isinstance(task.boundary, str) else task.boundary
    rows = [("field", "grade", "components", "units", "typical size")]
    for quantity in task.quantities:
        size = task.algebra.size(quantity.grade)
        scale = forecaster.units.scale[quantity.name]
        units = quantity.units or "–"
        rows.append((quantity.name, str(quantity.grade), str(size), units, f"{scale:.3g}"))
    facts = [
        f"- metric `{metric}`" + ", time is an axis of the grid" * (task.time_axis is not None),
        f"- {task.frames_in} frames in, {task.frames_out} out, {task.frame_spacing:g} apart",
        f"- boundary: {', '.join(boundary)}",
    ]
    if task.spacing is not None and task.points is None:
        facts.append(f"- spacing of the grid: {', '.join(f'{h:g}' for h in task.spacing)}")
    if forecaster.coarsen > 1:
        facts.append(f"- sees means over {forecaster.coarsen} points of the data along each axis")
    facts += [f"- background {b.name}: {tuple(b.components)}" for b in task.backgrounds]
    return ["## What it forecasts", _table(rows), "\n".join(facts)]


def _made(about: About) -> list[str]:
    parts = []
    if about.data is not None:
        parts += ["## Training data", _origin(about.data, about.trajectories)]
        if command := data_command(about.data, about.trajectories):
            parts.append(f"    {command}")
    if about.config is not None:
        parts += [
            "## Training",
            f"`cscnn train`, {about.config.trainer.epochs} epochs, batches of "
            f"{about.config.data.batch}, learning rate {about.config.optimizer.lr:g}, seed "
            f"{about.config.seed}. All options are in `training.json`:",
            "    cscnn train --config training.json --data.train train.h5 --data.valid valid.h5 "
            "--out runs/again",
        ]
    return parts


def _origin(data: Header, trajectories: int | None) -> str:
    count = "" if trajectories is None else f"{trajectories} trajectories of "
    made = f"made by `{data.generator}`, version {data.generator_version}, seed {data.seed}"
    simulator = SIMULATORS.get(data.generator)
    what = "" if simulator is None else f" {(simulator.__doc__ or '').splitlines()[0]}"
    return f"{count}{data.frames} frames, {made if data.generator else 'of unknown origin'}.{what}"


def data_command(data: Header, trajectories: int | None) -> str:
    """The command that makes the data again; empty if no simulator of this version does."""
    simulator = SIMULATORS.get(data.generator)
    if simulator is None or simulator.version != data.generator_version:
        return ""
    options = {n: tuple(v) if isinstance(v, list) else v for n, v in data.parameters.items()}
    changes = {
        preset: {n: v for n, v in options.items() if simulator.create(preset).parameters()[n] != v}
        for preset in simulator.presets
    }
    preset = min(changes, key=lambda name: len(changes[name]))
    words = ["cscnn", "generate", data.generator, "--preset", preset, "--out", "data"]
    words += ["--seed", str(data.seed)]
    if trajectories is not None:
        words += ["--split", f"{data.split or 'train'}={trajectories}"]
    if changes[preset]:
        words += ["--set", *(f"{n}={_spelled(v)}" for n, v in changes[preset].items())]
    return shlex.join(words)


def _spelled(value: object) -> str:
    """A value as --set takes it, e.g. 64,64."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _errors(evaluation: Evaluation) -> list[str]:
    data, one_step, rollout = evaluation.data, evaluation.one_step, evaluation.rollout
    rows: list[tuple[str, ...]] = [("one step", *METRICS)]
    for title, errors in (
        *one_step.fields.items(),
        ("all fields", one_step.total),
        ("persistence forecast", one_step.persistence),
    ):
        rows.append((title, *(_number(errors.get(name, math.nan)) for name in METRICS)))
    shown = sorted({0, len(rollout.steps) // 2, len(rollout.steps) - 1})
    lasting = [("rollout, correlation", *(f"step {rollout.steps[i]}" for i in shown))]
    curves: Iterable[tuple[str, ErrorCurves]] = (*rollout.fields.items(), ("all fields", rollout))
    lasting += [(t, *(_number(c.correlation[i]) for i in shown)) for t, c in curves]
    text = (
        f"Split {data.split}: {data.windows} windows of {data.trajectories} trajectories, rollouts "
        f"of {data.rollouts}. A forecast of zeros has relative_l2 1; the mean is large "
        "if the truth vanishes in some windows. The persistence forecast repeats the last known "
        "frame."
    )
    return ["## Errors", text, _table(rows), _table(lasting)]


def _symmetry(symmetry: SymmetryErrors) -> list[str]:
    rows = [
        ("transformation g", "error"),
        ("translation", f"{symmetry.translation:.1e}"),
        ("rotations and reflections of the grid", f"{symmetry.point_group:.1e}"),
    ]
    for kind, motion, unit in (("rotation", symmetry.rotation, "°"), ("boost", symmetry.boost, "")):
        if motion is not None:
            pairs = zip(motion.values, motion.errors, strict=True)
            rows += [(f"{kind} {value:g}{unit}", f"{error:.1e}") for value, error in pairs]
    text = (
        "How far forecasts are from commuting with symmetries: |f(gx) - gf(x)| / |f(gx) + gf(x)|."
    )
    if not symmetry.interior:
        text += " The receptive field reaches the borders from every point, which adds to it."
    return ["## Symmetry", text, _table(rows)]


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "–"


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    """Rows in Markdown, of which the first is the head."""
    head, *body = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])
