"""What MkDocs calls when it builds the site."""

from __future__ import annotations

import logging
import sys
from pathlib import Path, PurePosixPath
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # MkDocs loads this file by its path

from mkdocs.structure.files import File

from website.commands import with_commands
from website.execute import with_outputs
from website.formulas import with_mathml
from website.reference import with_reference

log = logging.getLogger("mkdocs.hooks.website")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Before a page becomes HTML: run its code, and put the API reference into it."""
    if page.meta.get("execute"):
        log.info("Running the Python of %s", page.file.src_uri)
        markdown, pictures = with_outputs(markdown, page.file.src_uri)
        folder = PurePosixPath(page.file.src_uri).parent
        for name, content in pictures.items():
            files.append(File.generated(config, str(folder / name), content=content))
    return with_commands(with_reference(markdown))


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """After it: formulas."""
    return with_mathml(html)
