"""Data as a network sees them: on its grid, with its time between frames."""

from __future__ import annotations

from cscnn.data import Coarse, FieldSource, Strided
from cscnn.data.coarse import coarse
from cscnn.data.stated import Stated, stated
from cscnn.data.strided import Strides, strided
from cscnn.forecasting.spaces import check_own_spacings
from cscnn.forecasting.task import Task

View = FieldSource | Coarse | Strided | Stated  #: data, or what a network sees of them


def view(
    task: Task, source: FieldSource, coarsen: int, strides: Strides, stride: int | None = None
) -> View:
    """A view of data, or an error if they are not of the task.

    Args:
        task: what is forecast.
        source: the data as they are stored.
        coarsen: points per axis that are joined to a cell.
        strides: of training, in stored frames.
        stride: the one of the view; by default the smallest of training.
    """
    seen = coarse(stated(source, task.given), coarsen)
    try:
        chosen = strides.choose(stride)
        own = strides if strides.varies else Strides(chosen, chosen)
        task.check_data(seen.header, own)
        check_own_spacings(task, seen.header, own)
    except ValueError as error:
        raise ValueError(f"{source.path} is not for this forecaster: {error}") from error
    return strided(seen, chosen, told=strides.varies)
