"""Packages that only some of the library needs."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(package: str, purpose: str, extra: str) -> Any:
    """The package, or an error that says which extra to install.

    Args:
        package: name to import.
        purpose: what needs it, e.g. ``"data files"``.
        extra: of ``cscnn``, e.g. ``"data"``.

    Example:
        >>> require("no_such_package", "an example", "data")
        Traceback (most recent call last):
        ImportError: an example needs the package no_such_package: pip install 'cscnn[data]'
    """
    try:
        return import_module(package)
    except ImportError as error:
        missing = error.name or package
        raise ImportError(
            f"{purpose} needs the package {missing}: pip install 'cscnn[{extra}]'", name=missing
        ) from error
