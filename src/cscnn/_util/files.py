"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import glob
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

#: Numbers of errors of the disk.
DISK = frozenset(
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EIO", "EACCES", "EPERM")
    if hasattr(errno, name)  # Windows lacks some
)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file of the same name to write; it takes the place of ``path`` if all goes well.

    It is alone in a hidden folder beside ``path``. The folder is new, nobody can guess its name,
    and nobody else can write into it. So no link that was put there beforehand is followed. If
    ``path`` is a link, the file that it points to is replaced. A file that is replaced keeps its
    permissions. The new one is on the disk before it gets its name.

    Example:
        >>> path = Path(tempfile.mkdtemp()) / "numbers.txt"
        >>> with replacing(path) as temporary:
        ...     _ = temporary.write_text("1 2 3")
        >>> path.read_text()
        '1 2 3'
    """
    target = _target(path)
    with _told_as_of(path):
        folder = Path(tempfile.mkdtemp(".tmp", f".{target.name}.", target.parent))
    temporary = folder / path.name
    try:
        try:
            yield temporary
        except OSError as error:
            about = error.errno in DISK if error.filename is None else _is_of(error, temporary)
            if not about:
                raise
            raise _cannot_write(path, error) from error
        with _told_as_of(path):
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, temporary)
            temporary.replace(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _target(path: Path) -> Path:
    """The file itself, if a path is a link."""
    return Path(os.path.realpath(path))


def _is_of(error: OSError, file: Path) -> bool:
    return isinstance(error.filename, str | os.PathLike) and Path(error.filename) == file


@contextmanager
def _told_as_of(path: Path) -> Iterator[None]:
    """Errors name a path instead of what is written in its place."""
    try:
        yield
    except OSError as error:
        raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> OSError:
    before = "; the one from before is intact" if path.exists() else ""
    message = f"cannot write {path}{before}: {error.strerror or error}"
    # with the number, Python finds the kind of error again
    return OSError(message) if error.errno is None else OSError(error.errno, message)


def remove_leftovers(*paths: Path) -> None:
    """Remove what killed processes left when they wrote files; nobody may be writing them now."""
    for path in map(_target, paths):
        for folder in path.parent.glob(f".{glob.escape(path.name)}.????????.tmp"):
            shutil.rmtree(folder, ignore_errors=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write a text file."""
    write_bytes(path, text.encode())


def check_output(path: Path, *, inputs: Iterable[Path] = (), overwrite: bool = False) -> None:
    """Raise unless a file may be written. Call it before the work, not after it.

    Args:
        path: the file. Its folder must be there.
        inputs: what the work reads, which is never replaced.
        overwrite: whether a file that exists may be replaced.
    """
    check_folder(path.parent, f"to write {path.name} into")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file to write")
    if path.exists() and any(other.exists() and path.samefile(other) for other in inputs):
        raise ValueError(f"{path} is read here and cannot be replaced: choose another output")
    if os.path.lexists(path):
        if not overwrite:
            raise FileExistsError(f"{path} exists: choose another output, or add --overwrite")
        if not (path.is_file() or path.is_symlink()):
            raise ValueError(f"{path} is a device, not a file to replace: choose another output")


def check_folder(folder: Path, purpose: str, *, create: bool = False) -> None:
    """Raise unless a folder is there and can be written into.

    Args:
        folder: the folder.
        purpose: what it is for, e.g. ``"to write page.html into"``.
        create: whether it will be made if it is not there.
    """
    if create and not folder.exists():
        folder = next(path for path in folder.absolute().parents if path.exists())
    if not folder.exists():
        raise FileNotFoundError(f"there is no folder {folder} {purpose}")
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file, not a folder {purpose}")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"folder {folder} is read-only: there is no right {purpose}")
