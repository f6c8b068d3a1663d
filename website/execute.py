"""Pages whose Python runs when the site is built; what it prints and draws is put below it.

A page asks for it by ``execute: true`` in its front matter. Its blocks are ordinary fences, so a
code host shows them too, and the tests find them. Outputs are kept in ``.cache/site``, under a hash
of the code and of the library: what has not changed is not run again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".cache" / "site"
FENCE = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
#: Sources that decide what a page shows.
SOURCES = ("src/**/*.py", "website/runner.py")
TIMEOUT = 600


def blocks_of(markdown: str) -> list[str]:
    """The Python of a page, in order."""
    return FENCE.findall(markdown)


def run(blocks: list[str], page: str) -> list[dict[str, Any]]:
    """What blocks of a page show, from the cache if nothing has changed.

    Args:
        blocks: they run one after the other in one process, in an empty folder.
        page: for error messages.
    """
    key = hashlib.sha256(json.dumps([blocks, library_hash()]).encode()).hexdigest()[:24]
    kept = CACHE / f"{key}.json"
    if kept.is_file():
        return json.loads(kept.read_text(encoding="utf-8"))
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
        "PYTHONHASHSEED": "0",
        "PYTHONIOENCODING": "utf-8",
        "COLUMNS": "100",
    }
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "website.runner"],
            input=json.dumps(blocks),
            capture_output=True,
            encoding="utf-8",
            cwd=folder,
            env=environment,
            timeout=TIMEOUT,
        )
    if done.returncode:
        raise RuntimeError(f"the Python of {page} does not run. {done.stderr}")
    CACHE.mkdir(parents=True, exist_ok=True)
    kept.write_text(done.stdout, encoding="utf-8")
    return json.loads(done.stdout)


@cache
def library_hash() -> str:
    """Of what decides, beside the code of a page, what it shows."""
    versions = [sys.version, *(version(name) for name in ("torch", "matplotlib"))]
    digest = hashlib.sha256(repr(versions).encode())
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def with_outputs(markdown: str, page: str) -> tuple[str, dict[str, bytes]]:
    """The text of a page with outputs below its blocks, and the pictures that it then needs.

    Args:
        markdown: the text.
        page: its path, e.g. ``tutorials/fluid.md``; pictures have its name.
    """
    outputs = iter(run(blocks_of(markdown), page))
    pictures: dict[str, bytes] = {}

    def show(match: re.Match[str]) -> str:
        output = next(outputs)
        parts = [match[0]]
        if output["text"].strip():
            parts.append(f'\n```{{.text .output title="Output"}}\n{output["text"].rstrip()}\n```\n')
        for suffix, content in output["pictures"]:
            name = f"{Path(page).stem}_{len(pictures) + 1}{suffix}"
            pictures[name] = base64.b64decode(content)
            parts.append(f"\n![Picture {len(pictures)}, drawn by the code above]({name})\n")
        return "".join(parts)

    return FENCE.sub(show, markdown), pictures
