"""Checks of arguments: the value itself, or an error that shows what came instead."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TypeVar

from cscnn._util.suggest import did_you_mean

T = TypeVar("T")


def check_int(name: str, value: object, low: int) -> int:
    """``value`` as an integer of at least ``low``."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        received = type(value).__name__
        raise TypeError(f"{name} must be an integer, got {value!r} ({received})") from None
    if number < low:
        raise ValueError(f"{name} must be at least {low}, got {number}")
    return number


def check_type(name: str, value: object, expected: type[T]) -> T:
    """``value`` if it is of the type."""
    if not isinstance(value, expected):
        raise TypeError(f"{name} must be of type {expected.__name__}, got {value!r}")
    return value


def check_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """``value`` if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        hint = did_you_mean(value, choices, otherwise="")
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}{hint}")
    return value


def check_positive(**values: float | Sequence[float]) -> None:
    """Raise unless all values are positive and finite."""
    for name, value in values.items():
        for entry in value if isinstance(value, list | tuple) else (value,):
            try:
                positive = 0 < entry < math.inf
            except TypeError:
                raise TypeError(f"{name} must be a positive number, got {value!r}") from None
            if not positive:
                raise ValueError(f"{name} must be positive, got {value}")
