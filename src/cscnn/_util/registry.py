"""`Registry`: a table of functions or classes by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Registry(dict[str, T]):
    """Entries by name, of which each is given once.

    Args:
        kind: what the entries are, for messages.
        source: the function or class of an entry. It may be added again under its name, e.g. when
            its module is reloaded; another one may not.

    Example:
        >>> table = Registry("shape")
        >>> table.add("scalar", int)
        >>> table.add("scalar", float)
        Traceback (most recent call last):
        ValueError: there is a shape named 'scalar' already, builtins.int: choose another name
    """

    def __init__(self, kind: str, source: Callable[[T], Any] = lambda entry: entry):
        super().__init__()
        self.kind, self.source = kind, source

    def add(self, name: str, entry: T) -> None:
        """Enter a name; raise if it is taken."""
        if name in self and (known := self._title(self[name])) != self._title(entry):
            raise ValueError(
                f"there is a {self.kind} named {name!r} already, {known}: choose another name"
            )
        self[name] = entry

    def _title(self, entry: T) -> str:
        source = self.source(entry)
        name = getattr(source, "__qualname__", repr(source))
        return f"{getattr(source, '__module__', '')}.{name}"
