"""The site as ``make docs`` has built it, for tests in a browser."""

import os
import time
from pathlib import Path

import pytest

from tests.viz.browser import find_browser

SITE = Path(__file__).parents[2] / "site"

needs_site = [
    pytest.mark.slow,
    pytest.mark.external,
    pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="make docs builds the site"),
    pytest.mark.skipif(find_browser() is None or os.name != "posix", reason="needs chromium"),
]


def wait(page, condition, seconds=20):
    """Until an expression of the page is true."""
    end = time.monotonic() + seconds
    while not _holds(page, condition):
        assert time.monotonic() < end, f"{condition} does not become true"
        time.sleep(0.05)


def _holds(page, condition):
    """Whether it is true; not while the browser goes from one page to another."""
    try:
        return page.eval(condition)
    except RuntimeError as error:
        if "navigated" in str(error):
            return False
        raise
