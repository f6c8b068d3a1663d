"""Errors about names that do not exist, with the one that may be meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST = 12  #: names that an error lists


def did_you_mean(name: object, known: Iterable[str], otherwise: str | None = None) -> str:
    """The end of an error about an unknown name: the closest ones, or the choice there is.

    Args:
        name: what was given.
        known: all names.
        otherwise: what to say if none is close, e.g. nothing if the error lists them already.

    Example:
        >>> did_you_mean("cs_resnt", ("cs_resnet", "resnet"))
        ': did you mean cs_resnet?'
        >>> did_you_mean("transformer", ("cs_resnet", "resnet"))
        ': choose from cs_resnet, resnet'
    """
    names = list(dict.fromkeys(known))
    if close := closest(str(name), names):
        return f": did you mean {_listed(close)}?"
    if otherwise is not None:
        return otherwise
    if not names:
        return ": there are none"
    listed = ", ".join(names[:MOST])
    return f": choose from {listed}" + (f", ... ({len(names)} in all)" if len(names) > MOST else "")


def _listed(names: list[str]) -> str:
    """Names as a sentence has them."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def closest(name: str, known: Iterable[str]) -> list[str]:
    """The names that are most like another one, if any are.

    One, or those that begin so or have it as one of their words.

    Example:
        >>> closest("small", ["maxwell3d_small", "navier_stokes_small", "smoke"])
        ['maxwell3d_small', 'navier_stokes_small']
    """
    names = list(known)
    folded = {_folded(n): n for n in reversed(names)}
    text = _folded(name)
    by_end = [n for n in names if n.rpartition(".")[2] == name and n != name]
    if by_end:  # a name without its group
        return by_end[:1]
    by_part = [n for n in names if text in n.lower().split("_")]
    if by_part and len(by_part) <= MOST:  # one word of several, e.g. the size of a preset
        return sorted(by_part)
    if matches := difflib.get_close_matches(text, folded, n=1, cutoff=0.6):
        return [folded[matches[0]]]
    begun = [n for key, n in folded.items() if len(text) > 2 and key.startswith(text)]
    return sorted(begun) if len(begun) <= 3 else []


def _folded(name: str) -> str:
    """A name without what people spell differently, and without the dashes of an option."""
    return name.lower().replace("-", "_").lstrip("_")


def check_known(kind: str, name: str, known: Iterable[str], owner: str = "") -> str:
    """``name`` if it is known, or an error.

    Args:
        kind: what it names, e.g. ``"network"``.
        name: what was given.
        known: all names.
        owner: whose they are, if that needs saying.

    Example:
        >>> check_known("network", "resnt", ("cs_unet", "resnet"))
        Traceback (most recent call last):
        ValueError: unknown network 'resnt': did you mean resnet?
    """
    names = tuple(known)
    if not isinstance(name, str) or name not in names:
        of = f" of {owner}" if owner else ""
        raise ValueError(f"unknown {kind} {name!r}{of}{did_you_mean(name, names)}")
    return name
