"""What the sections of the page share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cscnn.viz.report.charts import Chart


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


def chart_section(name: str, title: str, charts: Sequence[Chart | None]) -> Section | None:
    """A section of those charts that there are; None without any."""
    drawn = [chart for chart in charts if chart is not None]
    return Section(name, title, "charts.html", drawn) if drawn else None
