"""What the parts of the page share."""

from __future__ import annotations

from html import escape

from cscnn.viz.report.contents import Contents


def style(number: int) -> str:
    """The class of a run."""
    return f"run-{number % 8}"


def code(run: Contents, command: str = "evaluate") -> str:
    """A command about a run."""
    return f"<code>cscnn {command} {escape(str(run.run.path))}</code>"


def section(name: str, title: str, body: str) -> str:
    """A section with its heading."""
    return f'<section id="{name}"><h2>{escape(title)}</h2>{body}</section>'
