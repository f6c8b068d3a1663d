"""What the sections of the page share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading and an entry in the navigation.

    Attributes:
        name: of its anchor.
        title: its heading.
        template: the file below ``templates`` that draws it; it knows the section and all runs.
        content: what the template shows.
    """

    name: str
    title: str
    template: str
    content: Any = None
