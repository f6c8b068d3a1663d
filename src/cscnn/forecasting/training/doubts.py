"""What is probably a mistake in a run, though it could be meant: measured before it begins."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from cscnn.data import FieldSource, open_fields
from cscnn.data.files import FieldFile
from cscnn.forecasting.constraints import SCHEMES, Constraint, Constraints
from cscnn.forecasting.forecaster import Forecaster
from cscnn.forecasting.frames import block
from cscnn.forecasting.training.loader import WindowData
from cscnn.forecasting.windows import Window, collate

#: A constraint is doubtful if it changes true states by more than this part of their size, or of
#: what happens to them in a step.
LARGE, LARGE_IN_STEP = 0.05, 0.5

WINDOWS = 8  #: on which constraints are measured


def warn(forecaster: Forecaster, data: WindowData) -> None:
    """A warning for each doubt."""
    for text in (*_shared_data(data), *_harmful_constraints(forecaster, data)):
        warnings.warn(text, stacklevel=2)


def _sample(data: WindowData) -> Window:
    """A batch of training windows from all of the data."""
    windows = data.all_windows()
    chosen = np.linspace(0, len(windows) - 1, min(WINDOWS, len(windows))).astype(int)
    return collate([windows[int(i)] for i in chosen])


def _harmful_constraints(forecaster: Forecaster, data: WindowData) -> Iterator[str]:
    """A sentence for each field whose true states a constraint changes much."""
    constraints = forecaster.constrain.constraints
    if not constraints:
        return
    task, batch = forecaster.task, _sample(data)
    known, target = (forecaster.units.scaled(x) for x in (batch.known, batch.target))
    inputs, state = forecaster.pack(batch.known), block(task, forecaster.pack(batch.target), 0)
    for name in dict.fromkeys(c.field for c in constraints):
        own = tuple(c for c in constraints if c.field == name)
        new = target[name][:, : task.frames_out]
        change = float((new - known[name][:, -1:]).norm() / new.norm().clamp(min=1e-30))

        def floor(chosen: tuple[Constraint, ...], field: str = name) -> float:
            return Constraints(task, chosen).floor(state, inputs)[field]

        if (harm := floor(own)) <= min(LARGE, LARGE_IN_STEP * change):
            continue
        kinds = " and ".join(c.kind for c in own)
        yield (
            f"the constraint {kinds} of {name} changes the true states of the training data by "
            f"{harm:.1%} of their size, while a step changes them by {change:.1%}: no forecast can "
            f"be better. {_advice(own, floor)}"
        )


def _advice(own: tuple[Constraint, ...], floor: Callable[[tuple[Constraint, ...]], float]) -> str:
    """How the other schemes would do."""
    if all(c.kind == "keep_mean" for c in own):
        return "Leave it out"
    others = [s for s in SCHEMES if any(c.scheme != s for c in own)]
    numbers = ", ".join(
        f"{scheme} {floor(tuple(replace(c, scheme=scheme, accuracy=2) for c in own)):.1%}"
        for scheme in others
    )
    return f"Leave it out, or take another scheme: {numbers}"


def _shared_data(data: WindowData) -> Iterator[str]:
    """A sentence for each split that has trajectories of the training data."""
    train = dict(_trajectories(data.source)[: data.config.trajectories])
    for split, use in (("valid", "select the best weights"), ("test", "tell how good it is")):
        if not getattr(data.config, split):
            continue
        with open_fields(getattr(data.config, split)) as source:
            other = _trajectories(source)
        if both := [(path, train[key]) for key, path in other if key in train]:
            files = " and ".join(dict.fromkeys(both[0]))
            yield (
                f"{len(both)} of {len(other)} trajectories of data.{split} are trained on, the "
                f"first in {files}: errors on them cannot {use}. Take other files"
            )


def _trajectories(source: FieldSource) -> list[tuple[bytes, str]]:
    """What tells each trajectory from others, its checksum or file and number; and its file."""
    keys = []
    for file in source.files:
        if isinstance(file, FieldFile):
            own = [checksum.tobytes() for checksum in file.checksums()]
            file.close()  # there may be thousands
        else:
            own = [f"{file.path.resolve()} {number}".encode() for number in range(len(file))]
        keys += [(key, str(file.path)) for key in own]
    return keys
