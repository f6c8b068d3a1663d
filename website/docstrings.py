"""Docstrings as Markdown: an extension of griffe, which reads them for the API reference."""

from __future__ import annotations

import re
from typing import Any

import griffe

from website.reference import homes

#: "c_in, c_out: channels", and what belongs to it.
JOINT = re.compile(r"^( +)(\w+(?:, \w+)+)(: .*(?:\n\1 +.*)*)", re.MULTILINE)
#: `Name`, but not ``code``.
NAME = re.compile(r"(?<![`\w])`([A-Za-z_][\w.]*)`(?!`)")


def to_markdown(text: str, links: dict[str, str]) -> str:
    """A docstring with links to public objects, as griffe and Markdown expect it.

    Parameters that share a description get an entry each, the marks of literal blocks go, and
    examples are a section that is shown as code.

    Args:
        text: the docstring.
        links: names that have an entry -> their full paths.

    Example:
        >>> to_markdown("See `Edges`::", {"Edges": "cscnn.geometry.Edges"})
        'See [`Edges`][cscnn.geometry.Edges]:'
    """

    def link(match: re.Match[str]) -> str:
        path = links.get(match[1])
        return f"[`{match[1]}`][{path}]" if path else match[0]

    text = re.sub(r"^( *)Example:$", r"\1Examples:", text, flags=re.MULTILINE)
    text = JOINT.sub(lambda m: "\n".join(f"{m[1]}{n}{m[3]}" for n in m[2].split(", ")), text)
    text = re.sub(r"^( *)::$", r"\1", text, flags=re.MULTILINE)
    return NAME.sub(link, re.sub(r"::$", ":", text, flags=re.MULTILINE))


class Docstrings(griffe.Extension):
    """Changes every docstring that griffe has read."""

    def __init__(self) -> None:
        found = homes()
        self.links = {name: path for (_, name), path in reversed(found.items())}
        self.links |= {f"{module}.{name}": path for (module, name), path in found.items()}

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """After a module, class, function or attribute was read."""
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value, self.links)
