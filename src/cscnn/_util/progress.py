"""A progress bar for whatever takes more than a few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TextIO, TypeVar

T = TypeVar("T")


class Bar:
    """Tells on stderr what is done, how fast, and how long the rest will take.

    On a terminal one line is kept up to date; elsewhere, e.g. in the log of a cluster job, a line
    is printed every half minute.

    Args:
        unit: what is counted.
        stream: by default stderr.
        quiet: say nothing.
    """

    def __init__(self, unit: str, stream: TextIO | None = None, quiet: bool = False):
        self.unit = unit
        self.stream = stream or sys.stderr
        self.live = self.stream.isatty()
        self.quiet = quiet
        self._marks = "█·" if _can_print(self.stream, "█·") else "#."
        self._what = ""
        self._shown = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Tell that ``done`` of ``total`` are finished."""
        now = time.monotonic()
        if what != self._what:
            self._what, self._start, self._first = what, now, done
            self._shown = now if not self.live else 0.0
        last = done >= total
        if self.quiet or (not last and now - self._shown < (0.1 if self.live else 30.0)):
            return
        self._shown = now
        text = f"{what} {done}/{total} {self.unit}"
        fresh, elapsed = done - self._first, now - self._start
        if fresh and elapsed > 0:
            rate = fresh / elapsed
            text += f", {rate:.2f}/s" if rate < 10 else f", {rate:.0f}/s"
            if not last:
                text += f", {duration((total - done) / rate)} left"
            else:
                text += f" in {duration(elapsed)}"
        if not self.live:
            if elapsed > 2:
                print(text, file=self.stream, flush=True)
            return
        filled = round(24 * done / max(total, 1))
        end = "\n" if last else ""
        bar = self._marks[0] * filled + self._marks[1] * (24 - filled)
        print(f"\r\033[K{bar} {text}", end=end, file=self.stream, flush=True)

    def over(self, what: str, items: Sequence[T]) -> Iterator[T]:
        """Go through items, telling how far it is."""
        for done, item in enumerate(items):
            self(what, done, len(items))
            yield item
        self(what, len(items), len(items))


def _can_print(stream: TextIO, text: str) -> bool:
    """Whether a terminal knows these characters."""
    try:
        text.encode(stream.encoding or "utf-8")
    except (UnicodeError, LookupError):
        return False
    return True


def duration(seconds: float) -> str:
    """A time for people.

    Example:
        >>> duration(7.4), duration(200), duration(7300)
        ('7 s', '3 min 20 s', '2 h 1 min')
    """
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60} min"


def status(text: str) -> None:
    """Tell a person at a terminal what is being done, in a line that the next one overwrites."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text} ...\r", end="", file=sys.stderr, flush=True)
