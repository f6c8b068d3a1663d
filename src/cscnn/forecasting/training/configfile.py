"""Configuration files: what is wrong with one is told by its name, before it is resolved."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from cscnn._util.optional import require

#: Bytes of a file, and entries that it may stand for once aliases are resolved.
LARGEST, MOST = 1_000_000, 10_000


def config_files(arguments: Sequence[str]) -> list[Path]:
    """The files that a command line names."""
    named = [text.removeprefix("--config=") for text in arguments if text.startswith("--config=")]
    pairs = pairwise(arguments)
    return [Path(name) for name in (*named, *(b for a, b in pairs if a == "--config"))]


def check_config_file(path: Path) -> None:
    """Raise unless it is a YAML file with options by name, of a reasonable size."""
    if path.is_dir():
        raise IsADirectoryError(f"--config {path} is a folder: give a YAML file")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path} for --config")
    if (size := path.stat().st_size) > LARGEST:
        raise ValueError(f"--config {path} has {size} bytes, at most {LARGEST} are read")
    yaml = require("yaml", "--config", "train")
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        entries = _count(root, {}, yaml)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"--config {path} is no YAML: {' '.join(str(error).split())}") from error
    if root is None:
        raise ValueError(f"--config {path} is empty: it shall give options by name")
    if not isinstance(root, yaml.MappingNode):
        kind = "a list" if isinstance(root, yaml.SequenceNode) else f"{root.value!r:.80}"
        raise ValueError(f"--config {path} must give options by name, e.g. seed: 3, got {kind}")
    if entries > MOST:
        raise ValueError(
            f"--config {path} stands for more than {MOST} entries once its aliases are resolved"
        )


def _count(node: Any, known: dict[int, int], yaml: Any) -> int:
    """Entries below a node, those of an alias as often as it is used, or some number > MOST."""
    if not isinstance(node, yaml.CollectionNode):
        return 1
    if id(node) not in known:
        known[id(node)] = MOST + 1  # what contains itself has no end
        pairs = isinstance(node, yaml.MappingNode)
        children = [n for pair in node.value for n in pair] if pairs else node.value
        total = 1 + sum(_count(child, known, yaml) for child in children)
        known[id(node)] = min(total, MOST + 1)
    return known[id(node)]
