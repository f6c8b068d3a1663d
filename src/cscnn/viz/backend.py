"""The optional plotting library."""

from __future__ import annotations

from typing import Any


def pyplot() -> Any:
    """``matplotlib.pyplot``, or an error that says what to install."""
    matplotlib()
    from matplotlib import pyplot as plt

    return plt


def matplotlib() -> Any:
    """The package ``matplotlib``, or an error that says what to install."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'cscnn[viz]'") from error
    return matplotlib
