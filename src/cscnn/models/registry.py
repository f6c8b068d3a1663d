"""Models by name: build them, for a width or for a budget of parameters, save and load them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import torch

from cscnn.models.base import FieldModel
from cscnn.models.tasks import Task, get_task

#: Group of entry points by which other packages offer models: name = "package.module:Class".
ENTRY_POINTS = "cscnn.models"

#: Largest deviation from a budget of parameters that is accepted.
BUDGET_TOLERANCE = 0.03


@dataclass(frozen=True)
class Entry:
    """A registered model.

    Attributes:
        kind: its class.
        second: what beside ``width`` may be changed to meet a budget of parameters: ``"inner"``
            (the parameter count is quadratic in both), or an option with the values to try.
    """

    kind: type[FieldModel]
    second: str
    values: tuple[int, ...] = ()


_entries: dict[str, Entry] = {}


def register(
    name: str, *, second: str = "", values: tuple[int, ...] = ()
) -> Callable[[type[FieldModel]], type[FieldModel]]:
    """Decorator that makes a `FieldModel` known by a name.

    Example:
        >>> from cscnn.models import FieldModel, names, register
        >>> @register("mine")
        ... class Mine(FieldModel):
        ...     def __init__(self, task, width=8):
        ...         super().__init__(task)
        >>> "mine" in names()
        True
    """

    def add(kind: type[FieldModel]) -> type[FieldModel]:
        if name in _entries and _entries[name].kind.__qualname__ != kind.__qualname__:
            raise ValueError(f"there is a model named {name!r} already: {_entries[name].kind}")
        _entries[name] = Entry(kind, second, values)
        return kind

    return add


def _register_own() -> None:
    from cscnn.models import baselines, cs_resnet

    modes = tuple(range(2, 25))
    for name, kind, second, values in (
        ("cs_resnet", cs_resnet.CSResNet, "inner", ()),
        ("cs_unet", cs_resnet.CSUNet, "inner", ()),
        ("steerable_resnet", cs_resnet.SteerableResNet, "inner", ()),
        ("resnet", baselines.ResNet, "inner", ()),
        ("clifford_resnet", baselines.CliffordResNet, "inner", ()),
        ("fno", baselines.FNO, "modes", modes),
        ("gfno", baselines.GFNO, "modes", modes),
    ):
        if name not in _entries:
            register(name, second=second, values=values)(kind)


def names() -> tuple[str, ...]:
    """All models, our own first."""
    _register_own()
    for point in entry_points(group=ENTRY_POINTS):
        if point.name not in _entries:
            register(point.name)(point.load())
    return tuple(_entries)


def _entry(name: str) -> Entry:
    if name not in names():
        raise ValueError(f"unknown model {name!r}: choose from {', '.join(names())}")
    return _entries[name]


def build(
    name: str,
    task: str | Task,
    *,
    width: int | None = None,
    params: int | None = None,
    **options: Any,
) -> FieldModel:
    """A model by name.

    Args:
        name: one of `names`.
        task: what to predict, or the name of one of `cscnn.models.TASKS`.
        width: number of channels.
        params: instead of a width, a number of parameters to come as close to as possible.
        options: further options of the model.

    Example:
        >>> model = build("cs_resnet", "navier_stokes", width=4, blocks=2, kernel_size=3)
        >>> model(torch.randn(1, 4, 16, 16, 4)).shape
        torch.Size([1, 1, 16, 16, 4])
    """
    entry, task = _entry(name), get_task(task)
    known = _option_names(entry.kind)
    if unknown := [o for o in options if o not in known]:
        raise TypeError(f"{name} has the options {', '.join(sorted(known))}; got {unknown}")
    if width is not None and params is not None:
        raise ValueError(f"give width or params, not both: got {width} and {params}")
    if params is not None:
        options = {**options, **match(name, task, params, **options)}
    elif width is not None:
        options = {**options, "width": width}
    model = entry.kind(task, **options)
    model.config = {"name": name, "task": task.to_dict(), "options": options}
    return model


def _option_names(kind: type[FieldModel]) -> set[str]:
    """Names of all options, also of those that a class passes on to its parents."""
    found: set[str] = set()
    for cls in kind.__mro__:
        if "__init__" not in vars(cls):
            continue
        parameters = inspect.signature(vars(cls)["__init__"]).parameters.values()
        found |= {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
        if cls.__name__ == "FNO":
            from cscnn.models.baselines import require

            require("neuralop", "fno")
            from neuralop.models import FNO

            found |= set(inspect.signature(FNO.__init__).parameters)
    return found - {"self", "task"}


# --- a budget of parameters -----------------------------------------------------------------------


def match(name: str, task: str | Task, params: int, **options: Any) -> dict[str, int]:
    """Options with which a model has about ``params`` parameters.

    Counts are polynomials of the width: they are found from a few small models, not by building
    large ones.
    """
    entry, task = _entry(name), get_task(task)
    if params < 1:
        raise ValueError(f"params must be positive, got {params}")
    frozen = json.dumps(options, sort_keys=True)
    sizes = list(_sizes(name, entry, task, params, frozen))
    closest = min(abs(count - params) for _, count in sizes)
    # Among those that are close enough, the most regular one comes first.
    tolerance = max(closest, 0.01 * params)
    chosen, count = next((o, c) for o, c in sizes if abs(c - params) <= tolerance)
    if abs(count - params) > BUDGET_TOLERANCE * params:
        raise ValueError(
            f"{name} cannot have {params} parameters for task {task.name}: the closest it comes "
            f"to is {count}, with {chosen}"
        )
    return chosen


def _sizes(
    name: str, entry: Entry, task: Task, params: int, options: str
) -> Iterator[tuple[dict[str, int], int]]:
    """Options and their number of parameters, the most regular ones first."""
    given = json.loads(options)
    if entry.second == "inner" and "inner" not in given:
        points = [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (1, 3)]
        counts = [_count(name, task, options, width=w, inner=i) for w, i in points]
        rows = [[1, w, i, w * i, w * w, i * i] for w, i in points]
        fit = torch.linalg.solve(
            torch.tensor(rows, dtype=torch.float64), torch.tensor(counts, dtype=torch.float64)
        )

        def count(w: int, i: int) -> int:
            terms = torch.tensor([1, w, i, w * i, w * w, i * i], dtype=torch.float64)
            return round(float(fit @ terms))

        top = 1
        while count(top, max(1, top // 2)) < 2 * params:
            top += 1
        pairs = [(w, i) for w in range(1, top + 1) for i in range((w + 1) // 2, 2 * w + 1)]
        pairs.sort(key=lambda p: (abs(p[1] / p[0] - 1), p))
        for w, i in pairs:
            yield {"width": w, "inner": i}, count(w, i)
        return
    given_second = entry.second in given or not entry.values
    for extra in [{}] if given_second else [{entry.second: value} for value in entry.values]:
        a, b, c = (_count(name, task, options, width=w, **extra) for w in (1, 2, 3))
        curve = (a - 2 * b + c) / 2
        slope = b - a - 3 * curve
        start = a - slope - curve
        width = 1
        while start + slope * width + curve * width**2 < 2 * params:
            yield {"width": width, **extra}, round(start + slope * width + curve * width**2)
            width += 1


@cache
def _count(name: str, task: Task, options: str, **sizes: int) -> int:
    state = torch.get_rng_state()
    try:
        return _entry(name).kind(task, **{**json.loads(options), **sizes}).n_parameters()
    finally:
        torch.set_rng_state(state)


# --- files ----------------------------------------------------------------------------------------


def save(model: FieldModel, path: str | Path) -> None:
    """Write a model to one safetensors file, with what is needed to build it again."""
    from safetensors.torch import save_file

    path = Path(path)
    tensors = {name: t.detach().cpu().contiguous() for name, t in model.state_dict().items()}
    temporary = path.with_name(path.name + ".tmp")
    save_file(tensors, temporary, metadata={"cscnn_model": json.dumps(model.config)})
    temporary.replace(path)


def load(path: str | Path) -> FieldModel:
    """Build a model from a file that `save` has written."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is not a readable safetensors file: {error}") from error
    if "cscnn_model" not in metadata:
        raise ValueError(f"{path} has no description of a cscnn model: was it written by save()?")
    config = json.loads(metadata["cscnn_model"])
    model = build(config["name"], Task.from_dict(config["task"]), **config["options"])
    dtype = next((t.dtype for t in tensors.values() if t.is_floating_point()), torch.float32)
    model.to(dtype)
    model.load_state_dict(tensors)
    return model
