"""Files that are written whole or not at all."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A hidden file of the same kind to write; it takes the place of ``path`` if all goes well.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "numbers.txt"
        >>> with replacing(path) as temporary:
        ...     _ = temporary.write_text("1 2 3")
        >>> path.read_text()
        '1 2 3'
    """
    temporary = _temporary(path, os.getpid())
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        if error.filename is not None and str(error.filename) != str(temporary):
            raise
        before = "; the one from before is intact" if path.exists() else ""
        message = f"cannot write {path}{before}: {error.strerror or error}"
        # with the number, Python finds the kind of error again
        raise (
            OSError(message) if error.errno is None else OSError(error.errno, message)
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _temporary(path: Path, process: int | str) -> Path:
    return path.with_name(f".{path.stem}.{process}.tmp{path.suffix}")


def remove_leftovers(*paths: Path) -> None:
    """Remove what killed processes left when they wrote files; nobody may be writing them now."""
    for path in paths:
        pattern = _temporary(Path(glob.escape(path.name)), "[0-9]*").name
        for leftover in path.parent.glob(pattern):
            leftover.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write a text file."""
    write_bytes(path, text.encode())
