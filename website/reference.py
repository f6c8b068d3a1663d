"""The API reference: which objects are public, and on which page each is described."""

from __future__ import annotations

import re
from functools import cache
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
    "cscnn.data.writers": "writers",
    "cscnn.data.simulators": "simulators",
    "cscnn.forecasting": "forecasting",
    "cscnn.forecasting.training": "training",
    "cscnn.forecasting.hub": "hub",
    "cscnn.forecasting.zoo": "zoo",
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
    """(module, name) -> the path under which the object is described."""
    return {key: path for key, (_, path) in _places().items()}


@cache
def _places() -> dict[tuple[str, str], tuple[str, str]]:
    """(module, name) -> module on whose page the object is described, and its path there.

    What a module only imports when it is used is described where it is defined, and so is a
    function that has the name of its file: the path of the export would be that of the file.
    """
    first: dict[int, tuple[str, str]] = {}
    places = {}
    for module in PAGES:
        loaded = import_module(module)
        for name in public_names(module):
            value = getattr(loaded, name)
            path = f"{module}.{name}"
            defined = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
            if (name not in vars(loaded) and module != "cscnn") or defined == f"{path}.{name}":
                path = defined
            place = (module, path)
            places[module, name] = first.setdefault(id(value), place) if callable(value) else place
    return places


def with_reference(markdown: str) -> str:
    """The text of a page with the public objects of a module in place of its marker."""
    return MARKER.sub(lambda match: describe(match[1]), markdown)


def describe(module: str) -> str:
    """Directives for mkdocstrings: one for each public object, or a link to its page."""
    shown, elsewhere = [], []
    for name in public_names(module):
        owner, path = _places()[module, name]
        if owner == module and f"::: {path}" not in shown:
            shown.append(f"::: {path}")
        else:
            elsewhere.append(f"- `{module}.{name}`: [`{path}`][{path}]")
    if elsewhere:
        shown.append("## Other names, and what is described elsewhere\n\n" + "\n".join(elsewhere))
    return "\n\n".join(shown)
