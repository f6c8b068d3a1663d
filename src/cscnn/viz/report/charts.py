"""Line charts as inline SVG, coloured by the style sheet so that they suit light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from cscnn.viz.numbers import number, power

WIDTH, HEIGHT = 440, 264
LEFT, RIGHT, TOP, BOTTOM = 50, 14, 24, 38
MARKERS = 9  #: at most, along a line
#: Runs differ by shape as well as by colour.
SHAPES = (
    "m-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0z",
    "m-3.4-3.4h6.8v6.8h-6.8z",
    "m0-4.4l4.4 7.6h-8.8z",
    "m0-4.8l4.8 4.8l-4.8 4.8l-4.8-4.8z",
)


@dataclass(frozen=True)
class Series:
    """A line of a chart.

    Attributes:
        label: in the legend.
        x, y: points; None where there is no number.
        style: a class of the style sheet: ``run-0``, ``run-1``, … or ``reference``.
        faint: a thin line without markers.
        low, high: ends of a band about the line, for each x; empty without one.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    style: str
    faint: bool = False
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()

    def points(self, log: bool) -> list[tuple[float, float]]:
        """Those that can be drawn."""
        pairs = zip(self.x, self.y, strict=False)
        finite = [(x, y) for x, y in pairs if y is not None and math.isfinite(y)]
        return [(x, y) for x, y in finite if y > 0 or not log]

    def band(self, log: bool) -> list[tuple[float, float, float]]:
        """x, low and high of the band where the line can be drawn."""
        drawn = dict(self.points(log))
        ends = zip(self.x, self.low, self.high, strict=False)
        # a logarithmic axis has no zero: there the band begins at the line
        return [
            (x, low if low > 0 or not log else drawn[x], high)
            for x, low, high in ends
            if x in drawn and low is not None and high is not None and (high > 0 or not log)
        ]


@dataclass(frozen=True)
class Axis:
    """A range of numbers, and where they are drawn."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False
    names: tuple[str, ...] = ()
    whole: bool = False  #: whether only whole numbers are marked, as of steps

    def __call__(self, value: float) -> float:
        """Position of a number."""
        low, high = (math.log10(v) if self.log else v for v in (self.low, self.high))
        value = math.log10(value) if self.log else value
        return self.start + (value - low) / (high - low) * (self.stop - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Numbers to mark, and their text."""
        if self.names:
            return list(enumerate(self.names))
        if not self.log:
            rough = (self.high - self.low) / 7
            unit = 10 ** math.floor(math.log10(rough))
            step = next(m * unit for m in (1, 2, 5, 10) if m * unit >= 0.999 * rough)
            step = max(step, 1) if self.whole else step
            first = math.ceil(self.low / step - 1e-9)
            last = math.floor(self.high / step + 1e-9)
            return [(i * step, f"{i * step:.6g}") for i in range(first, last + 1)]
        exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        span = math.log10(self.high / self.low)
        every = max(1, math.ceil(span / 7))
        digits = (1, 2, 5) if span < 2 else (1,)
        ticks = []
        for exponent in exponents:
            for digit in digits:
                value = digit * 10.0**exponent
                inside = self.low * 0.999 <= value <= self.high * 1.001
                if inside and (exponent % every == 0 or len(digits) > 1):
                    text = power(exponent) if digit == 1 else f"{digit}·{power(exponent)}"
                    ticks.append((value, f"{value:g}" if -3 <= exponent <= 3 else text))
        return ticks


@dataclass(frozen=True)
class Line:
    """A series as it is drawn.

    Attributes:
        label, style: as of the series.
        stroke: classes of the path.
        path: of the SVG.
        shape: of markers; empty if there are none.
        markers: position and label of each.
        band: path of the area about the line; empty if there is none.
    """

    label: str
    style: str
    stroke: str
    path: str
    shape: str
    markers: list[tuple[float, float, str]]
    band: str = ""

    @property
    def above(self) -> bool:
        """Whether it is drawn above references."""
        return self.style != "reference"


@dataclass(frozen=True)
class Chart:
    """What the template draws: all positions are in units of the SVG.

    Attributes:
        title, text: heading and explanation.
        lines: in the order of the legend.
        x_ticks, y_ticks: position and text.
        x_label, y_label: of the axes.
        spoken: the chart in words.
        table: a name and the numbers of all lines, for each x.
    """

    width: ClassVar[int] = WIDTH
    height: ClassVar[int] = HEIGHT
    left: ClassVar[int] = LEFT
    right: ClassVar[int] = WIDTH - RIGHT
    bottom: ClassVar[int] = HEIGHT - BOTTOM

    title: str
    text: str
    lines: list[Line]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    x_label: str
    y_label: str
    spoken: str
    table: list[tuple[str, list[str]]]


def line_chart(
    title: str,
    text: str,
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    log: bool = True,
    names: tuple[str, ...] = (),
) -> Chart | None:
    """A figure: heading, explanation, legend, lines, and the numbers in a table; None if empty.

    Args:
        title: heading.
        text: explanation.
        series: what to draw.
        x_label, y_label: of the axes.
        log: whether the vertical axis is logarithmic.
        names: of x = 0, 1, …, if those are no numbers.
    """
    drawn = [s for s in series if s.points(log)]
    if not drawn:
        return None
    xs = [x for s in drawn for x, _ in s.points(log)]
    ys = [y for s in drawn for _, y in s.points(log)]
    ys += [y for s in drawn for _, low, high in s.band(log) for y in (low, high)]
    low, high = (-0.4, len(names) - 0.6) if names else _range(xs, False)
    whole = all(float(x).is_integer() for x in xs)
    x_axis = Axis(low, high, Chart.left, Chart.right, names=names, whole=whole)
    y_axis = Axis(*_range(ys, log, pad=True), Chart.bottom, TOP, log)
    return Chart(
        title,
        text,
        [_line(s, x_axis, y_axis) for s in drawn],
        [(x_axis(value), tick) for value, tick in x_axis.ticks()],
        [(y_axis(value), tick) for value, tick in y_axis.ticks()],
        x_label,
        y_label,
        _spoken(title, drawn, x_label, log),
        _table(drawn, names),
    )


def _range(values: Sequence[float], log: bool, pad: bool = False) -> tuple[float, float]:
    low, high = min(values), max(values)
    if log:
        if high / low < 10:  # at least a decade, so that noise looks like noise
            middle = math.sqrt(low * high)
            low, high = min(low, middle / 10**0.5), max(high, middle * 10**0.5)
        return low / 1.15, high * 1.15
    if pad and low < high / 2:  # from zero, unless that would hide everything
        low = min(low, 0.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    margin = 0.05 * (high - low) if pad else 0.0
    return low - margin * (low != 0), high + margin


def _line(series: Series, x_axis: Axis, y_axis: Axis) -> Line:
    points = [(x_axis(x), y_axis(y), x, y) for x, y in series.points(y_axis.log)]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y, _, _ in points)
    if series.faint:
        return Line(series.label, series.style, "line faint", path, "", [])
    shape = ""
    if series.style.startswith("run-"):
        shape = SHAPES[int(series.style.removeprefix("run-")) % len(SHAPES)]
    every = math.ceil(len(points) / MARKERS)
    markers = [
        (x, y, f"{series.label}: {number(b)} at {a:g}") for x, y, a, b in points[::-1][::every]
    ]
    band = _band(series, x_axis, y_axis)
    return Line(series.label, series.style, "line", path, shape, markers if shape else [], band)


def _band(series: Series, x_axis: Axis, y_axis: Axis) -> str:
    """Along the upper ends, and back along the lower ones."""
    ends = series.band(y_axis.log)
    if len(ends) < 2:
        return ""
    corners = [(x, high) for x, _, high in ends] + [(x, low) for x, low, _ in ends[::-1]]
    return "M" + "L".join(f"{x_axis(x):.1f} {y_axis(y):.1f}" for x, y in corners) + "Z"


def _spoken(title: str, drawn: Sequence[Series], x_label: str, log: bool) -> str:
    """The chart in words."""
    sentences = []
    for series in drawn:
        points = series.points(log)
        (a, b), (c, d) = points[0], points[-1]
        sentences.append(
            f"{series.label} goes from {number(b)} at {a:g} to {number(d)} at {c:g}"
            if len(points) > 1
            else f"{series.label} is {number(b)} at {a:g}"
        )
    return f"{title}, against {x_label}: {'; '.join(sentences)}."


def _table(drawn: Sequence[Series], names: tuple[str, ...]) -> list[tuple[str, list[str]]]:
    """All numbers, a row for each x."""
    cells = [_cells(s) for s in drawn]
    return [
        (names[int(x)] if names else f"{x:g}", [column.get(x, number(None)) for column in cells])
        for x in sorted({x for s in drawn for x in s.x})
    ]


def _cells(series: Series) -> dict[float, str]:
    """x -> the number, with the ends of the band."""
    cells = {x: number(y) for x, y in zip(series.x, series.y, strict=False)}
    for x, low, high in zip(series.x, series.low, series.high, strict=False):
        if low is not None and high is not None:
            cells[x] += f" ({number(low)} to {number(high)})"
    return cells
