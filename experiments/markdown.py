"""Markdown that a person can read as it is: lines of at most 100 characters."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

#: Longest line outside of tables and pictures.
WIDTH = 100

#: How lines begin that cannot be broken: tables, pictures, headings, code.
_WHOLE = ("|", "!", "#", "    ")


def page_text(lines: Iterable[str]) -> str:
    """The text of a page. Long lines of prose are broken, also those of lists, but not
    within code.

    Args:
        lines: of Markdown; an entry may hold several lines.
    """
    text = "\n".join(lines).rstrip()
    return "\n".join(_broken(line) for line in text.split("\n")) + "\n"


def _broken(line: str) -> str:
    if len(line) <= WIDTH or line.startswith(_WHOLE):
        return line
    whole = re.sub(r"`[^`]+`", lambda code: code.group().replace(" ", "\0"), line)
    return textwrap.fill(
        whole,
        WIDTH,
        subsequent_indent="  " if line.startswith("- ") else "",
        break_long_words=False,
        break_on_hyphens=False,
    ).replace("\0", " ")
