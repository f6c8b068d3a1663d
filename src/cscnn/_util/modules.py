"""What the modules of a package define, so that a new one is a file and nothing else."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType
from typing import TypeVar

from cscnn._util.registry import Registry

T = TypeVar("T")


def import_modules(package: str) -> list[ModuleType]:
    """All modules of a package and of its subpackages, imported.

    Example:
        >>> [module.__name__ for module in import_modules("cscnn.interop")]
        ['cscnn.interop.flax', 'cscnn.interop.irreps', 'cscnn.interop.pyg']
    """
    path = import_module(package).__path__
    return [import_module(found.name) for found in pkgutil.walk_packages(path, f"{package}.")]


def named_classes(package: str, base: type[T]) -> dict[str, type[T]]:
    """Classes that modules of a package derive from ``base``, by their attribute ``name``, sorted.

    Classes without a ``name`` of their own, i.e. those between, are left out. Two classes of one
    name are an error.
    """
    classes: Registry[type[T]] = Registry(base.__name__)
    for module in import_modules(package):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, base) and "name" in vars(value):
                classes.add(vars(value)["name"], value)
    return dict(sorted(classes.items()))
