"""Errors of the parser of ``cscnn train`` in our own words."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterator
from typing import Any

from cscnn._util.parser import WORDS, in_our_words, one_line
from cscnn._util.suggest import did_you_mean

#: How the parser says that it does not know an option.
UNKNOWN = (
    r"[Uu]nrecognized arguments?: --(?P<name>[\w.-]+)",
    r"(?:[Kk]ey|[Oo]ption) '(?P<name>[\w.]+)' is not expected",
    r"Group '(?P<group>[\w.]+)' does not accept (?:option|nested key) '(?P<name>[\w.]+)'",
)
HELP = ": cscnn train --help lists all"
#: How it says that a value has the wrong type, and where the value is.
KEY = re.compile(r'Parser key "([\w.]+)"')
VALUE = re.compile(r".*(?:Got value|Given value): (.*)$")


def explain(message: str, parser: Any) -> str:
    """One line that says which option is wrong, what it takes, and what was meant.

    Args:
        message: of jsonargparse.
        parser: which knows all options.
    """
    line = one_line(message)
    known = list(parser.get_defaults().keys(branches=True))
    for pattern in UNKNOWN:
        if match := re.search(pattern, line):
            parts = match.groupdict()
            name = f"{parts['group']}.{parts['name']}" if parts.get("group") else parts["name"]
            return f"unknown option {name}{did_you_mean(name, known, HELP)}"
    if match := re.fullmatch(r"[Uu]nrecognized arguments: (.*)", line):
        return f"do not know what to do with {match[1]}: options begin with --"
    if (key := KEY.search(line)) is not None:
        value = VALUE.search(line)
        got = f", got {value[1]}" if value else ""
        return f"{key[1]} takes {takes(key[1])}{got}"
    return in_our_words(re.sub(r"^argument (\S+)/\S+:", r"argument \1:", line))


def takes(key: str) -> str:
    """What an option may be, e.g. "an integer or null".

    Example:
        >>> takes("trainer.epochs"), takes("data.stride")
        ('an integer', 'an integer or a list, such as [1, 4]')
        >>> takes("trainer")
        'options of its own, such as --trainer.epochs'
    """
    from cscnn.forecasting.training.config import TrainConfig

    hint: Any = TrainConfig
    for part in key.split("."):
        hints = typing.get_type_hints(hint) if isinstance(hint, type) else {}
        if part not in hints:
            return "another value"
        hint = hints[part]
    if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
        return f"options of its own, such as --{key}.{next(iter(hint.__dataclass_fields__))}"
    return " or ".join(dict.fromkeys(_words(hint)))


def _words(hint: Any) -> Iterator[str]:
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        for choice in typing.get_args(hint):
            yield from _words(choice)
        return
    name = getattr(origin or hint, "__name__", str(hint))
    yield WORDS.get(name, name)
