"""Line charts as inline SVG, coloured by the style sheet so that they suit light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from cscnn.viz.report.numbers import number, power

WIDTH, HEIGHT = 440, 264
LEFT, RIGHT, TOP, BOTTOM = 50, 14, 24, 38
MARKERS = 9  #: at most, along a line


@dataclass(frozen=True)
class Series:
    """A line of a chart.

    Attributes:
        label: in the legend.
        x, y: points; None where there is no number.
        style: a class of the style sheet: ``run-0``, ``run-1``, … or ``reference``.
        faint: a thin line without markers.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    style: str
    faint: bool = False

    def points(self, log: bool) -> list[tuple[float, float]]:
        """Those that can be drawn."""
        pairs = zip(self.x, self.y, strict=False)
        return [(x, y) for x, y in pairs if y is not None and (y > 0 or not log)]


@dataclass(frozen=True)
class Axis:
    """A range of numbers, and where they are drawn."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False
    names: tuple[str, ...] = ()

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
            first = math.ceil(self.low / step - 1e-9)
            last = math.floor(self.high / step + 1e-9)
            return [(i * step, f"{i * step:.6g}") for i in range(first, last + 1)]
        exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        span = math.log10(self.high / self.low)
        every = max(1, math.ceil(span / 7))
        digits = (1, 2, 5) if span < 2 else (1,)
        found = []
        for exponent in exponents:
            for digit in digits:
                value = digit * 10.0**exponent
                inside = self.low * 0.999 <= value <= self.high * 1.001
                if inside and (exponent % every == 0 or len(digits) > 1):
                    plain = -3 <= exponent <= 3
                    text = f"{value:g}" if plain else f"{digit}·{power(exponent)}"
                    found.append((value, text if plain or digit > 1 else power(exponent)))
        return found


def line_chart(
    title: str,
    text: str,
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    log: bool = True,
    names: tuple[str, ...] = (),
) -> str:
    """A figure: heading, explanation, legend, lines, and the numbers in a table.

    Args:
        title: heading, plain text.
        text: explanation, plain text.
        series: what to draw.
        x_label, y_label: of the axes.
        log: whether the vertical axis is logarithmic.
        names: of x = 0, 1, …, if those are no numbers.
    """
    drawn = [s for s in series if s.points(log)]
    if not drawn:
        return ""
    xs = [x for s in drawn for x, _ in s.points(log)]
    ys = [y for s in drawn for _, y in s.points(log)]
    low, high = (-0.4, len(names) - 0.6) if names else _range(xs, False)
    x_axis = Axis(low, high, LEFT, WIDTH - RIGHT, names=names)
    y_axis = Axis(*_range(ys, log, pad=True), HEIGHT - BOTTOM, TOP, log)
    parts = [*_grid(x_axis, y_axis, x_label, y_label)]
    for line in sorted(drawn, key=lambda s: s.style != "reference"):  # runs above references
        parts.append(_line(line, x_axis, y_axis, log))
    legend = "".join(f'<li class="{s.style}">{_swatch(s)}{escape(s.label)}</li>' for s in drawn)
    return (
        f'<figure class="chart"><figcaption><h3>{escape(title)}</h3><p>{escape(text)}</p>'
        f'</figcaption><ul class="legend">{legend}</ul>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(_spoken(title, drawn, x_label, log))}">{"".join(parts)}</svg>'
        f"{_table(drawn, x_label, names)}</figure>"
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


def _grid(x_axis: Axis, y_axis: Axis, x_label: str, y_label: str) -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = []
    for value, text in y_axis.ticks():
        y = y_axis(value)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>')
        parts.append(f'<text class="tick end" x="{LEFT - 7}" y="{y + 4:.1f}">{text}</text>')
    for value, text in x_axis.ticks():
        x = x_axis(value)
        parts.append(f'<path class="grid" d="M{x:.1f} {bottom}v4"/>')
        parts.append(
            f'<text class="tick middle" x="{x:.1f}" y="{bottom + 17}">{escape(text)}</text>'
        )
    parts.append(f'<path class="axis" d="M{LEFT} {bottom}H{right}"/>')
    middle = (LEFT + right) / 2
    parts.append(
        f'<text class="name middle" x="{middle}" y="{HEIGHT - 4}">{escape(x_label)}</text>'
    )
    parts.append(f'<text class="name" x="{LEFT - 42}" y="12">{escape(y_label)}</text>')
    return parts


def _line(series: Series, x_axis: Axis, y_axis: Axis, log: bool) -> str:
    points = [(x_axis(x), y_axis(y), x, y) for x, y in series.points(log)]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y, _, _ in points)
    kind = "line faint" if series.faint else "line"
    parts = [f'<path class="{kind}" d="{path}"/>']
    if not series.faint:
        every = math.ceil(len(points) / MARKERS)
        for x, y, a, b in points[::-1][::every]:
            label = f"<title>{escape(series.label)}: {number(b)} at {a:g}</title>"
            parts.append(_marker(series.style, x, y, label))
    return f'<g class="{series.style}">{"".join(parts)}</g>'


def _marker(style: str, x: float, y: float, label: str = "") -> str:
    """Runs differ by shape as well as by colour."""
    shapes = (
        "m-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0z",
        "m-3.4-3.4h6.8v6.8h-6.8z",
        "m0-4.4l4.4 7.6h-8.8z",
        "m0-4.8l4.8 4.8l-4.8 4.8l-4.8-4.8z",
    )
    if not style.startswith("run-"):
        return ""
    shape = shapes[int(style.removeprefix("run-")) % len(shapes)]
    return f'<path class="marker" d="M{x:.1f} {y:.1f}{shape}">{label}</path>'


def _swatch(series: Series) -> str:
    kind = "line faint" if series.faint else "line"
    marker = "" if series.faint else _marker(series.style, 13, 6)
    return (
        f'<svg viewBox="0 0 26 12" width="26" height="12" aria-hidden="true">'
        f'<path class="{kind}" d="M1 6H25"/>{marker}</svg>'
    )


def _spoken(title: str, drawn: Sequence[Series], x_label: str, log: bool) -> str:
    """The chart in words."""
    told = []
    for series in drawn:
        points = series.points(log)
        (a, b), (c, d) = points[0], points[-1]
        told.append(
            f"{series.label} goes from {number(b)} at {a:g} to {number(d)} at {c:g}"
            if len(points) > 1
            else f"{series.label} is {number(b)} at {a:g}"
        )
    return f"{title}, against {x_label}: {'; '.join(told)}."


def _table(drawn: Sequence[Series], x_label: str, names: tuple[str, ...]) -> str:
    xs = sorted({x for s in drawn for x in s.x})
    values = [dict(zip(s.x, s.y, strict=False)) for s in drawn]
    head = "".join(f'<th scope="col">{escape(s.label)}</th>' for s in drawn)
    body = "".join(
        f'<tr><th scope="row">{escape(names[int(x)]) if names else f"{x:g}"}</th>'
        + "".join(f"<td>{number(v.get(x))}</td>" for v in values)
        + "</tr>"
        for x in xs
    )
    return (
        "<details><summary>The numbers</summary>"
        '<div class="scroll" tabindex="0" role="region" aria-label="the numbers of this chart">'
        f'<table><thead><tr><th scope="col">{escape(x_label)}</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></details>"
    )
