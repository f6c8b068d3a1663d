"""Models by name: build them, for a width or for a budget of parameters, save and load them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar, overload

import torch

from cscnn.algebra import CliffordAlgebra
from cscnn.atomic import write_bytes
from cscnn.models.base import FieldModel, Model, PointModel, require
from cscnn.models.tasks import Task, get_task

Kind = TypeVar("Kind", bound=type[Model])

#: Group of entry points by which other packages offer models: name = "package.module:Class".
ENTRY_POINTS = "cscnn.models"

#: Largest deviation from a budget of parameters that is accepted.
BUDGET_TOLERANCE = 0.03


@dataclass(frozen=True)
class Entry:
    """A registered model.

    Attributes:
        kind: its class.
        second: what beside ``width`` may be changed to meet a budget of parameters: an option with
            the values to try, or one without, if the parameter count is quadratic in both.
        values: the values to try.
        ratio: in the other case, the usual ratio of that option to the width.
        fallbacks: further options to try, in this order, if that is not enough.
        step: widths are multiples of this.
    """

    kind: type[Model]
    second: str
    values: tuple[int, ...] = ()
    ratio: int = 1
    fallbacks: tuple[dict[str, Any], ...] = ()
    step: int = 1


_entries: dict[str, Entry] = {}


def register(
    name: str,
    *,
    second: str = "",
    values: tuple[int, ...] = (),
    ratio: int = 1,
    fallbacks: tuple[dict[str, Any], ...] = (),
    step: int = 1,
) -> Callable[[Kind], Kind]:
    """Decorator that makes a `FieldModel` or a `PointModel` known by a name; the others as in
    `Entry`.

    Example:
        >>> from cscnn.models import FieldModel, names, register
        >>> @register("mine")
        ... class Mine(FieldModel):
        ...     def __init__(self, task, width=8):
        ...         super().__init__(task)
        >>> "mine" in names()
        True
    """

    def add(kind: Kind) -> Kind:
        if name in _entries and _entries[name].kind.__qualname__ != kind.__qualname__:
            raise ValueError(f"there is a model named {name!r} already: {_entries[name].kind}")
        _entries[name] = Entry(kind, second, values, ratio, fallbacks, step)
        return kind

    return add


def _register_own() -> None:
    from cscnn.models import baselines, cs_pointnet, cs_resnet, gfno

    # A small budget asks for small kernel networks, or for another number of blocks.
    hidden = tuple({"kernel_options": {"hidden_dim": h}} for h in (8, 6, 4, 3, 2, 1))
    blocks = tuple({"blocks": b} for b in (9, 7, 10, 6, 11, 5, 12, 4))
    modes = tuple(sorted(range(2, 25), key=lambda m: abs(m - 12)))
    cubes: tuple[dict[str, Any], ...] = tuple({"modes": m} for m in (4, 3, 5, 2, 6, 1, 7, 8))
    layers: tuple[dict[str, Any], ...] = tuple({"layers": n} for n in (3, 5, 2, 6))
    deep = tuple({**n, **m} for n in layers for m in ({}, *cubes))
    own = {
        "cs_resnet": Entry(cs_resnet.CSResNet, "inner", fallbacks=hidden),
        "cs_unet": Entry(cs_resnet.CSUNet, "inner", fallbacks=hidden),
        "steerable_resnet": Entry(cs_resnet.SteerableResNet, "inner"),
        "resnet": Entry(baselines.ResNet, "inner", fallbacks=blocks),
        "clifford_resnet": Entry(baselines.CliffordResNet, "inner", fallbacks=blocks),
        "fno": Entry(baselines.FNO, "modes", modes, step=2),  # it has layers of half the width
        "gfno": Entry(gfno.GFNO, "hidden", ratio=gfno.HIDDEN, fallbacks=cubes + deep),
        "cs_pointnet": Entry(cs_pointnet.CSPointNet, "inner", fallbacks=hidden),
    }
    for name, entry in own.items():
        _entries.setdefault(name, entry)


def names() -> tuple[str, ...]:
    """All models, our own first: those of grids, then that of point sets and curved spaces."""
    _register_own()
    for point in entry_points(group=ENTRY_POINTS):
        if point.name not in _entries:
            register(point.name)(point.load())
    return tuple(_entries)


def kind(name: str) -> type[Model]:
    """The class of a model: a `FieldModel` is for grids, a `PointModel` for point sets."""
    return _entry(name).kind


def _entry(name: str) -> Entry:
    if name not in names():
        raise ValueError(f"unknown model {name!r}: choose from {', '.join(names())}")
    return _entries[name]


@overload
def build(
    name: str,
    task: str | Task,
    *,
    width: int | None = None,
    params: int | None = None,
    **options: Any,
) -> FieldModel: ...


@overload
def build(
    name: str,
    task: CliffordAlgebra,
    *,
    width: int | None = None,
    params: int | None = None,
    **options: Any,
) -> PointModel: ...


def build(
    name: str,
    task: str | Task | CliffordAlgebra,
    *,
    width: int | None = None,
    params: int | None = None,
    **options: Any,
) -> Model:
    """A model by name.

    Args:
        name: one of `names`.
        task: what to predict, or the name of one of `cscnn.models.TASKS`. Models of point sets know
            no tasks: for them it is the algebra, and ``c_in`` and ``c_out`` are options.
        width: number of channels.
        params: instead of a width, a number of parameters to come as close to as possible.
        options: further options of the model.

    Example:
        >>> model = build("cs_resnet", "navier_stokes", width=4, blocks=2, kernel_size=3)
        >>> model(torch.randn(1, 4, 16, 16, 4)).shape
        torch.Size([1, 1, 16, 16, 4])
    """
    entry = _entry(name)
    subject = _subject(name, task)
    known = _option_names(entry.kind)
    if unknown := [o for o in options if o not in known]:
        raise TypeError(f"{name} has the options {', '.join(sorted(known))}; got {unknown}")
    if width is not None and params is not None:
        raise ValueError(f"give width or params, not both: got {width} and {params}")
    if params is not None:
        options = {**options, **match(name, subject, params, **options)}
    elif width is not None:
        options = {**options, "width": width}
    model = _make(entry, subject, options)
    model.config = {"name": name, **_subject_to_dict(subject), "options": options}
    return model


def _subject(name: str, task: str | Task | CliffordAlgebra) -> Task | CliffordAlgebra:
    """What a model is built for, if it is of the right kind."""
    points = issubclass(kind(name), PointModel)
    if isinstance(task, CliffordAlgebra):
        if not points:
            raise ValueError(f"{name} predicts fields on grids: it takes a task, got {task}")
        return task
    task = get_task(task)
    if points:
        raise ValueError(
            f"{name} serves point sets and curved spaces, not grids like that of task {task.name}: "
            f"build it from Python, for CliffordAlgebra({task.metric}) and edges of cscnn.geometry"
        )
    return task


def _make(entry: Entry, subject: Task | CliffordAlgebra, options: dict[str, Any]) -> Model:
    make: Any = entry.kind
    model = make(subject, **options)
    assert isinstance(model, Model)
    return model


def _subject_to_dict(subject: Task | CliffordAlgebra) -> dict[str, Any]:
    if isinstance(subject, Task):
        return {"task": subject.to_dict()}
    return {"metric": list(subject.metric)}


def _option_names(kind: type[Model]) -> set[str]:
    """Names of all options, also of those that a class passes on to its parents."""
    found: set[str] = set()
    for cls in kind.__mro__:
        if "__init__" not in vars(cls):
            continue
        parameters = inspect.signature(vars(cls)["__init__"]).parameters.values()
        found |= {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return found - {"self", "task", "algebra"}


# --- a budget of parameters -----------------------------------------------------------------------


def match(
    name: str, task: str | Task | CliffordAlgebra, params: int, **options: Any
) -> dict[str, Any]:
    """Options with which a model has about ``params`` parameters; see `build`.

    Counts are polynomials of the width: they are found from a few small models, not by building
    large ones.
    """
    entry, subject = _entry(name), _subject(name, task)
    if params < 1:
        raise ValueError(f"params must be positive, got {params}")
    best: tuple[dict[str, Any], int] | None = None
    for extra in ({}, *entry.fallbacks):
        if any(key in options for key in extra):
            continue
        frozen = json.dumps({**options, **extra}, sort_keys=True)
        sizes = list(_sizes(name, entry, subject, params, frozen))
        closest = min(abs(count - params) for _, count in sizes)
        # Among those that are close enough, the most regular one comes first.
        tolerance = max(closest, 0.02 * params)
        chosen, count = next((o, c) for o, c in sizes if abs(c - params) <= tolerance)
        if best is None or abs(count - params) < abs(best[1] - params):
            best = ({**extra, **chosen}, count)
        if closest <= BUDGET_TOLERANCE * params:
            break
    assert best is not None
    if abs(best[1] - params) > BUDGET_TOLERANCE * params:
        whom = f"task {subject.name}" if isinstance(subject, Task) else str(subject)
        raise ValueError(
            f"{name} cannot have {params} parameters for {whom}: the closest it comes to is "
            f"{best[1]}, with {best[0]}"
        )
    return best[0]


def _sizes(
    name: str, entry: Entry, subject: Task | CliffordAlgebra, params: int, options: str
) -> Iterator[tuple[dict[str, int], int]]:
    """Options and their number of parameters, the most regular ones first."""
    given = json.loads(options)
    if entry.second and not entry.values and entry.second not in given:
        fit = _quadratic(lambda w, i: _count(name, subject, options, width=w, **{entry.second: i}))
        r, top = entry.ratio, 1
        while fit(top, max(1, r * top // 2)) < 2 * params:
            top += 1
        pairs = [(w, i) for w in range(1, top + 1) for i in range((r * w + 1) // 2, 2 * r * w + 1)]
        pairs.sort(key=lambda p: (abs(p[1] / p[0] / r - 1), p))
        for w, i in pairs:
            yield {"width": w, entry.second: i}, fit(w, i)
        return
    given_second = entry.second in given or not entry.values
    for extra in [{}] if given_second else [{entry.second: value} for value in entry.values]:
        a, b, c = (_count(name, subject, options, width=w * entry.step, **extra) for w in (1, 2, 3))
        curve = (a - 2 * b + c) / 2
        slope = b - a - 3 * curve
        start = a - slope - curve
        steps = 1
        while start + slope * steps + curve * steps**2 < 2 * params:
            count = round(start + slope * steps + curve * steps**2)
            yield {"width": steps * entry.step, **extra}, count
            steps += 1


def _quadratic(count: Callable[[int, int], int]) -> Callable[[int, int], int]:
    """The quadratic polynomial of two integers that agrees with a function at six points."""

    def terms(w: int, i: int) -> list[int]:
        return [1, w, i, w * i, w * w, i * i]

    points = [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (1, 3)]
    rows = torch.tensor([terms(w, i) for w, i in points], dtype=torch.float64)
    values = torch.tensor([count(w, i) for w, i in points], dtype=torch.float64)
    fit = torch.linalg.solve(rows, values).tolist()
    return lambda w, i: round(sum(a * b for a, b in zip(fit, terms(w, i), strict=True)))


@cache
def _count(name: str, subject: Task | CliffordAlgebra, options: str, **sizes: int) -> int:
    entry = _entry(name)
    given = entry.kind.quick({**json.loads(options), **sizes})
    if entry.kind.on_meta:
        with torch.device("meta"):
            return _make(entry, subject, given).n_parameters()
    state = torch.get_rng_state()
    try:
        return _make(entry, subject, given).n_parameters()
    finally:
        torch.set_rng_state(state)


# --- files ----------------------------------------------------------------------------------------


def save(model: Model, path: str | Path, weights: Mapping[str, torch.Tensor] | None = None) -> None:
    """Write a model to one safetensors file, with what is needed to build it again.

    Args:
        model: which.
        path: the file; written whole or not at all.
        weights: instead of those of the model, e.g. gathered from several devices.
    """
    require("safetensors", "saving a model", "train")
    from safetensors.torch import save as to_bytes

    weights = model.state_dict() if weights is None else weights
    tensors = {name: t.detach().cpu().contiguous() for name, t in weights.items()}
    write_bytes(Path(path), to_bytes(tensors, {"cscnn_model": json.dumps(model.config)}))


def load(path: str | Path) -> Model:
    """Build a model from a file that `save` has written."""
    require("safetensors", "loading a model", "train")
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
    model: Model
    if "task" in config:
        model = build(config["name"], Task.from_dict(config["task"]), **config["options"])
    else:
        model = build(config["name"], CliffordAlgebra(config["metric"]), **config["options"])
    dtype = next((t.dtype for t in tensors.values() if t.is_floating_point()), torch.float32)
    model.to(dtype)
    model.load_state_dict(tensors, assign=True)
    return model
