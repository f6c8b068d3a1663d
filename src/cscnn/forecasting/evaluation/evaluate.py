"""All measurements of one forecaster together."""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch

from cscnn._util.checks import check_int
from cscnn._util.machine import machine
from cscnn.data import FieldSource, open_fields
from cscnn.data.paths import Paths
from cscnn.forecasting.evaluation import metrics
from cscnn.forecasting.evaluation.evaluator import Evaluator
from cscnn.forecasting.evaluation.results import DataInfo, Evaluation, ModelInfo, Samples
from cscnn.forecasting.forecaster import Forecaster
from cscnn.forecasting.runs import Run, is_run, load_forecaster


def evaluate(
    forecaster: Forecaster | Run | Path | str,
    data: FieldSource | Paths | None = None,
    *,
    split: str = "test",
    windows: int = 256,
    steps: int | None = None,
    trajectories: int = 16,
    device: torch.device | str | None = None,
    batch: int = 8,
    seed: int = 0,
    quiet: bool = True,
    stride: int | None = None,
) -> tuple[Evaluation, Samples]:
    """Measure a forecaster. All numbers but those of cost are reproducible.

    Args:
        forecaster: in eval mode; or a run, its folder, or the file of a forecaster.
        data: to measure it on: an open source, a file, a folder, a pattern or a list of files; by
            default those of the run.
        split: which data of the run to use.
        windows: number of windows for errors of one step, chosen at random; all if there are fewer.
        steps: frames of rollouts; by default as many as the trajectories have.
        trajectories: number of rollouts, the first of the data.
        device: where to compute; by default where the forecaster is, the CPU for files.
        batch: windows that are computed together.
        seed: of random choices.
        quiet: show no progress.
        stride: stored frames from one frame to the next; by default the smallest of training.

    Returns:
        the numbers, and the rollout of one trajectory for pictures.
    """
    for name, value in (("windows", windows), ("trajectories", trajectories), ("batch", batch)):
        check_int(name, value, low=1)
    name, run, forecaster = _load(forecaster, device)
    with _open(name, run, split, data) as source:
        evaluator = Evaluator(forecaster, source, batch, quiet, stride)
        steps = evaluator.steps(steps)  # an error now, not after the long part
        chosen = evaluator.choose(windows, seed)
        count = min(trajectories, len(source))
        one_step = evaluator.one_step(chosen)
        rollout, samples = evaluator.rollouts(count, steps)
        evaluation = Evaluation(
            run=name,
            model=_model_info(forecaster),
            task=forecaster.task,
            data=_data_info(evaluator, source, split, len(chosen), count),
            one_step=one_step,
            rollout=rollout,
            symmetry=_in_double_precision(evaluator, source).symmetry(chosen, seed),
            cost=evaluator.cost(chosen),
            machine=machine(),
        )
    return evaluation, samples


def _load(
    forecaster: Forecaster | Run | Path | str, device: torch.device | str | None
) -> tuple[str, Run | None, Forecaster]:
    """What it is called, the run that it is of, and the forecaster itself."""
    if isinstance(forecaster, Forecaster):
        moved = forecaster if device is None else forecaster.to(device)
        return forecaster.name, None, moved
    path = forecaster.path if isinstance(forecaster, Run) else Path(forecaster)
    loaded = load_forecaster(path, "cpu" if device is None else device)
    return str(path), Run(path) if is_run(path) else None, loaded


def _open(
    name: str, run: Run | None, split: str, data: FieldSource | Paths | None
) -> AbstractContextManager[FieldSource]:
    """The data, which are closed afterwards unless they were open before."""
    if isinstance(data, FieldSource):
        return nullcontext(data)
    if data is not None:
        return open_fields(data)
    if run is None:
        raise ValueError(f"{name} does not name its data, as a run would: give data (--data FILE)")
    return run.source(split)


def _model_info(forecaster: Forecaster) -> ModelInfo:
    options = {} if forecaster.recipe is None else forecaster.recipe.options
    return ModelInfo(forecaster.name, forecaster.n_parameters(), options)


def _data_info(
    evaluator: Evaluator, source: FieldSource, split: str, windows: int, rollouts: int
) -> DataInfo:
    return DataInfo(
        path=str(source.path),
        split=source.header.split or split,
        trajectories=len(source),
        windows=windows,
        rollouts=rollouts,
        stride=evaluator.stride,
        time_unit=source.header.time_unit,
    )


def _in_double_precision(evaluator: Evaluator, source: FieldSource) -> Evaluator:
    """The evaluator itself, or one on the CPU if its device does not compute in float64."""
    if metrics.has_float64(evaluator.forecaster.device):
        return evaluator
    on_cpu = copy.deepcopy(evaluator.forecaster).cpu()
    return Evaluator(on_cpu, source, evaluator.batch, evaluator.quiet, evaluator.stride)
