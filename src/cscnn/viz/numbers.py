"""Numbers for people."""

from __future__ import annotations

import math

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None) -> str:
    """Three digits, e.g. ``0.0123`` or ``3.20 × 10⁻⁷``; a dash for what is missing."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        text = f"{value:#.3g}".rstrip(".") if abs(value) < 1000 else f"{value:,.0f}"
        return text.replace("-", "−")
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa} × {power(int(exponent))}".replace("-", "−")


def power(exponent: int) -> str:
    """A power of ten, e.g. ``10⁻³``."""
    return "10" + str(exponent).translate(_SUPERSCRIPTS)


def percent(value: float | None) -> str:
    """A fraction in percent, e.g. ``4.20 %``; tiny and huge ones as numbers."""
    if value is None or not math.isfinite(value):
        return number(value)
    if 0 < abs(value) < 1e-5 or abs(value) >= 9.99:
        return number(value)
    return number(100 * value) + " %"


def count(value: float | None) -> str:
    """An integer with separators."""
    return "–" if value is None else f"{round(value):,}"


def size(value: float | None) -> str:
    """Bytes as MB or GB."""
    if value is None:
        return "–"
    return f"{value / 1e9:.3g} GB" if value >= 1e9 else f"{value / 1e6:.3g} MB"


def times(value: float | None) -> str:
    """A factor, e.g. ``1.3 ×``."""
    return "–" if value is None else f"{number(value)} ×"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 5400 else f"{seconds / 3600:.3g} h"


def listing(words: list[str]) -> str:
    """``a, b and c``"""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
