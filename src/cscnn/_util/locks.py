"""Locks between processes."""

from __future__ import annotations

import errno
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: Seconds to wait: children of a process that was killed, which share its lock, are about to end.
PATIENCE = 2.0

#: Where Windows locks a byte, so that others can still read who has the lock.
BYTE = 1 << 30


@contextmanager
def locked(lock: Path, what: str) -> Iterator[None]:
    """Be the only process that works on something, or raise an error that names the other one.

    The system releases the lock of a process however it ends, so none is ever stale; the file only
    says who has it. On file systems that know no locks nothing is excluded.

    Args:
        lock: a file that exists while the lock is held. Its folder must exist.
        what: is locked, for the message.

    Example:
        >>> import tempfile
        >>> lock = Path(tempfile.mkdtemp()) / ".lock"
        >>> with locked(lock, "the folder"):
        ...     lock.exists()
        True
        >>> lock.exists()
        False
    """
    file = _acquire(lock, what)
    try:
        os.ftruncate(file, 0)
        os.write(file, f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield
    finally:
        if sys.platform != "win32":  # where an open file cannot be removed
            lock.unlink(missing_ok=True)
        os.close(file)
        with suppress(OSError):  # on Windows: another process has it already
            if sys.platform == "win32":
                lock.unlink(missing_ok=True)


def _acquire(lock: Path, what: str) -> int:
    """The open file of a lock that this process has now."""
    deadline = time.monotonic() + PATIENCE
    while True:
        file = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            free = _try(file)
            if free and _is_same(file, lock):
                return file
            if not free and time.monotonic() > deadline:
                holder = os.pread(file, 200, 0) if hasattr(os, "pread") else os.read(file, 200)
                raise BlockingIOError(
                    errno.EAGAIN,
                    f"{what} is in use by {holder.decode(errors='replace') or 'another process'}: "
                    "wait until it ends, or choose another output",
                )
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        time.sleep(0.05)


def _is_same(file: int, path: Path) -> bool:
    """Whether an open file is still the one of a path: its last owner has removed it."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _try(file: int) -> bool:
    """Lock an open file, unless another one has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(file, BYTE, os.SEEK_SET)
            try:
                msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(file, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            return False
        if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            return True  # this file system knows no locks
        raise
    return True
