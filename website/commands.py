"""The help texts of the command line, as the program itself writes them."""

from __future__ import annotations

import io
import os
import re
from contextlib import redirect_stdout
from unittest.mock import patch

from cscnn.cli import main

MARKER = re.compile(r"^<!-- help: ?([\w ]*) -->$", re.MULTILINE)


def with_commands(markdown: str) -> str:
    """The text of a page with help texts in place of its markers."""
    return MARKER.sub(lambda match: f"```text\n{help_text(match[1])}```", markdown)


def help_text(command: str) -> str:
    """What ``cscnn COMMAND --help`` prints, 80 columns wide.

    Args:
        command: empty for the program itself.
    """
    written = io.StringIO()
    with redirect_stdout(written), patch.dict(os.environ, COLUMNS="82"):  # read by argparse
        try:
            main([*command.split(), "--help"])
        except SystemExit as end:
            if end.code:
                raise ValueError(f"there is no command {command!r}") from end
    return written.getvalue()
