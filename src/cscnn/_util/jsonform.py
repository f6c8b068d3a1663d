"""Dataclasses as JSON and back: one spelling, tuples as lists, null for what is not finite."""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from cscnn._util.files import write_text
from cscnn._util.suggest import did_you_mean

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Nested dataclasses, mappings and sequences as what JSON knows."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    return value


def from_json(cls: type[T], data: Any, origin: str = "") -> T:
    """Inverse of `to_json` for a dataclass; null becomes NaN where a float is expected.

    Args:
        cls: the dataclass.
        data: what `to_json` gave.
        origin: of the data, for error messages: a file or the name of the entry.

    Example:
        >>> @dataclasses.dataclass
        ... class Point:
        ...     name: str
        ...     position: tuple[float, ...]
        >>> from_json(Point, {"name": "a", "position": [1, None]})
        Point(name='a', position=(1.0, nan))
    """
    path = origin or cls.__name__
    if not isinstance(data, Mapping):
        raise ValueError(f"{path}: expected an object, got {data!r}")
    hints = typing.get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    if unknown := sorted(set(data) - set(fields)):
        raise ValueError(
            f"{path}: unknown entries {', '.join(unknown)}; it has {', '.join(fields)}"
            + did_you_mean(unknown[0], fields, otherwise="")
        )
    values = {}
    for name, field in fields.items():
        if name in data:
            values[name] = _read(hints[name], data[name], f"{path}.{name}")
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{path}: there is no entry {name}")
    return cls(**values)


def _read(hint: Any, value: Any, path: str) -> Any:
    origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _read_union(arguments, value, path)
    if origin is Literal:
        if value not in arguments:
            raise ValueError(f"{path}: expected one of {arguments}, got {value!r}")
        return value
    if dataclasses.is_dataclass(hint):
        return from_json(typing.cast(type, hint), value, path)
    if origin in (list, tuple, Sequence):
        return _read_sequence(origin, arguments, value, path)
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise ValueError(f"{path}: expected an object, got {value!r}")
        key, entry = arguments or (str, Any)
        return {_read_key(key, k, path): _read(entry, v, f"{path}.{k}") for k, v in value.items()}
    return _read_scalar(hint, value, path)


def _read_sequence(origin: Any, arguments: tuple[Any, ...], value: Any, path: str) -> Any:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{path}: expected a list, got {value!r}")
    if origin is tuple and arguments and Ellipsis not in arguments:
        if len(arguments) != len(value):
            raise ValueError(f"{path}: expected {len(arguments)} entries, got {value!r}")
        hints = arguments
    else:
        hints = (arguments[0] if arguments else Any,) * len(value)
    entries = [
        _read(h, v, f"{path}[{i}]") for i, (h, v) in enumerate(zip(hints, value, strict=True))
    ]
    return entries if origin is list else tuple(entries)


def _read_key(hint: Any, key: str, path: str) -> Any:
    """Keys of JSON are strings; those of dictionaries may be integers."""
    if hint is not int:
        return key
    try:
        return int(key)
    except ValueError:
        raise ValueError(f"{path}: expected an integer as key, got {key!r}") from None


def _read_union(choices: Sequence[Any], value: Any, path: str) -> Any:
    if value is None and types.NoneType in choices:
        return None
    errors = []
    for choice in choices:
        if choice is not types.NoneType:
            try:
                return _read(choice, value, path)
            except ValueError as error:
                errors.append(str(error))
    raise ValueError("; or ".join(errors))


def _read_scalar(hint: Any, value: Any, path: str) -> Any:
    if hint is Any:
        return value
    if hint is float and value is None:
        return math.nan
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is Path and isinstance(value, str):
        return Path(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise ValueError(f"{path}: expected {hint.__name__}, got {value!r}")
    return value


def write_json(path: Path, value: Any) -> None:
    """Write a file, whole or not at all."""
    write_text(path, json.dumps(to_json(value), indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """The contents of a JSON file, or an error that names it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # of decoding, or of JSON
        raise ValueError(f"{path} is damaged, it is no JSON: {error}") from error
