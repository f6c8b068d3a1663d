"""Which files a folder, a pattern or a list stands for."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path

Paths = str | Path | Sequence[str | Path]  #: a file, a folder, a pattern, or a list of these

SUFFIXES = (".h5", ".hdf5")  #: of the files that are read of a folder
PATTERN = re.compile(r"[*?]|\[.+\]")


def list_files(paths: Paths) -> list[Path]:
    """The files that are meant, in an order that does not depend on the file system.

    A folder stands for the ``.h5`` and ``.hdf5`` files in it, a pattern (``*``, ``?``, ``[...]``,
    and ``**`` for any folders) for the files that match. Both are sorted so that 2 comes before
    10. A text with commas is a list; lists keep their order. A file that exists is itself,
    whatever its name looks like. Files that do not exist are errors when they are opened.

    Args:
        paths: one of these, or a list.

    Example:
        >>> [path.name for path in list_files("b.h5,a.h5")]
        ['b.h5', 'a.h5']
    """
    entries = [paths] if isinstance(paths, str | Path) else list(paths)
    if not entries:
        raise ValueError("a list of files must not be empty: name a file, a folder or a pattern")
    files = [file for entry in entries for file in _expand(entry)]
    seen: dict[str, Path] = {}
    for file in files:
        name = os.path.normcase(os.path.realpath(file))
        if name in seen:
            raise ValueError(
                f"{file} is there twice, also as {seen[name]}: its trajectories would count double"
            )
        seen[name] = file
    return files


def spelled(paths: Paths) -> str:
    """Files, folders and patterns as one short text for messages."""
    if isinstance(paths, str | Path):
        return str(paths)
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(str(path) for path in paths[:3]) + more


def _expand(entry: str | Path) -> list[Path]:
    """The files of one entry of a list."""
    text = str(entry).strip() if isinstance(entry, str) else str(entry)
    if not text:
        raise ValueError(f"expected a file, a folder or a pattern, got {str(entry)!r}")
    path = Path(text)
    if _exists(path):
        return _in_folder(path) if path.is_dir() else [path]
    if not PATTERN.search(text) and "," not in text:
        return [path]
    names = glob.glob(text, recursive=True)  # noqa: PTH207 (Path.glob takes no absolute patterns)
    matches = [Path(name) for name in names if Path(name).is_file()]
    if matches:
        return sorted(matches, key=_natural)
    if "," in text:
        return [file for part in text.split(",") for file in _expand(part)]
    raise FileNotFoundError(f"no file matches the pattern {text}")


def _exists(path: Path) -> bool:
    """Whether there is a file or folder; a long list is too long for the name of one."""
    try:
        return path.exists()
    except OSError:
        return False


def _in_folder(folder: Path) -> list[Path]:
    """The readable files in a folder, hidden ones excepted."""
    entries = sorted((p for p in folder.iterdir() if not p.name.startswith(".")), key=_natural)
    files = [p for p in entries if p.suffix.lower() in SUFFIXES and p.is_file()]
    if not files:
        names = ", ".join(p.name for p in entries[:5]) or "nothing"
        raise FileNotFoundError(
            f"{folder} is a folder without {' or '.join(SUFFIXES)} files: it holds {names}"
        )
    return files


def _natural(path: Path) -> tuple[tuple[str | int, ...], str]:
    """Sorts numbers in names by their size."""
    parts = re.split(r"([0-9]+)", path.as_posix())
    return tuple(int(p) if i % 2 else p for i, p in enumerate(parts)), path.as_posix()
