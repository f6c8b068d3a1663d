"""Room on the disk and in memory: told before the work, not after hours of it."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path


def size(count: float) -> str:
    """A number of bytes for people.

    Example:
        >>> size(12), size(1500), size(2.5e9), size(7e16)
        ('12 B', '1.5 kB', '2.5 GB', '70000 TB')
    """
    units = ("B", "kB", "MB", "GB", "TB")
    power = 0
    while count >= 999.5 and power < len(units) - 1:
        count, power = count / 1000, power + 1
    digits = 1 if power and count < 99.95 else 0
    return f"{count:.{digits}f} {units[power]}"


def check_disk(folder: Path, need: int, purpose: str) -> None:
    """Raise if a disk has not enough room.

    Args:
        folder: where files will be; it need not be there yet.
        need: bytes.
        purpose: who needs them, e.g. ``"train.h5"``.
    """
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    if need > free:
        raise OSError(f"{purpose} needs {size(need)} of disk, but {folder} has {size(free)} free")


def check_memory(need: int, purpose: str) -> None:
    """Raise if there is not enough memory, where the system tells how much is available.

    Args:
        need: bytes.
        purpose: who needs them, e.g. ``"4 workers"``.
    """
    free = available_memory()
    if free is not None and need > free:
        raise MemoryError(f"{purpose} needs {size(need)} of memory, but {size(free)} is available")


def available_memory() -> int | None:
    """Bytes that new processes can use without swapping, or None if the system does not tell."""
    limits = []
    with suppress(ValueError, OSError):  # a number, or the word max
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                limits.append(1024 * int(line.split()[1]))
    with suppress(AttributeError, ValueError, OSError):  # there is no sysconf on Windows
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    if sys.platform == "win32":
        limits.append(_windows_memory())
    return min(limits, default=None)


def _windows_memory() -> int:
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = [("length", ctypes.c_uint32), ("load", ctypes.c_uint32)] + [
            (name, ctypes.c_uint64)
            for name in ("total", "free", "page", "free_page", "virtual", "free_virtual", "more")
        ]

    status = Status(length=ctypes.sizeof(Status))
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    return int(status.free)
