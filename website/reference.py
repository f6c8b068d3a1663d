"""The API reference: which objects are public, and on which page each is described."""

from __future__ import annotations

import re
from importlib import import_module
from types import ModuleType

#: Public modules -> their pages in docs/api. A name belongs to the first module that has it.
PAGES = {
    "cscnn.algebra": "algebra",
    "cscnn.nn": "nn",
    "cscnn.kernels": "kernels",
    "cscnn.geometry": "geometry",
    "cscnn.conv": "conv",
    "cscnn.calculus": "calculus",
    "cscnn.networks": "networks",
    "cscnn.networks.baselines": "baselines",
    "cscnn.testing": "testing",
    "cscnn.testing.conformance": "conformance",
    "cscnn.interop": "interop",
    "cscnn.data": "data",
    "cscnn.data.readers": "readers",
    "cscnn.data.simulators": "simulators",
    "cscnn.forecasting": "forecasting",
    "cscnn.forecasting.training": "training",
    "cscnn.forecasting.evaluation": "evaluation",
    "cscnn.viz": "viz",
    "cscnn": "index",
}
MARKER = re.compile(r"^<!-- public: ([\w.]+) -->$", re.MULTILINE)


def public_names(module: str) -> list[str]:
    """What a module exports, without submodules that have a page of their own."""
    loaded = import_module(module)
    return [
        name for name in loaded.__all__ if not isinstance(getattr(loaded, name, None), ModuleType)
    ]


def homes() -> dict[tuple[str, str], str]:
    """(module, name) -> the path under which the object is described.

    Objects that are imported when first used are described where they are defined.
    """
    described: dict[int, str] = {}
    found = {}
    for module in PAGES:
        loaded = import_module(module)
        for name in public_names(module):
            value = getattr(loaded, name)
            path = f"{module}.{name}"
            if name not in vars(loaded) and module != "cscnn":
                path = f"{value.__module__}.{value.__qualname__}"
            if isinstance(value, type) or callable(value):
                path = described.setdefault(id(value), path)
            found[module, name] = path
    return found


def with_reference(markdown: str) -> str:
    """The text of a page with the public objects of a module in place of its marker."""
    return MARKER.sub(lambda match: describe(match[1]), markdown)


def describe(module: str) -> str:
    """Directives for mkdocstrings: one for each public object, or a link to its page."""
    where = homes()
    shown, elsewhere = [], []
    for name in public_names(module):
        path = where[module, name]
        page, _, _ = path.rpartition(".")
        if (page in PAGES and page != module) or path in shown:
            elsewhere.append(f"- `{module}.{name}`: [`{path}`][{path}]")
        else:
            shown.append(path)
    parts = [f"::: {path}" for path in shown]
    if elsewhere:
        parts.append("## Described elsewhere\n\n" + "\n".join(elsewhere))
    return "\n\n".join(parts)
