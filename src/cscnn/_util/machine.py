"""Memory of a piece of work, and what machine it ran on."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch


def peak_memory(work: Callable[[], object]) -> int:
    """Largest number of bytes allocated by torch at one time during the work, beyond the start."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        return torch.cuda.max_memory_allocated() - before
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else it reports every start on stderr
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, acc_events=True
    ) as profile:
        work()
    result = profile.profiler.kineto_results
    changes = [(e.start_ns(), e.nbytes()) for e in result.events() if e.name() == "[memory]"]
    live = peak = 0
    for _, change in sorted(changes, key=lambda c: c[0]):
        live += change
        peak = max(peak, live)
    return peak


def memory_limit() -> int | None:
    """Bytes of memory that this machine has, or that its control group allows; None if unknown."""
    limits = []
    with suppress(AttributeError, ValueError, OSError):  # there is no sysconf on Windows
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(ValueError, OSError):  # a number, or the word max
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
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
    return int(status.total)


def machine() -> dict[str, str]:
    """What the numbers were measured on."""
    return {
        "processor": _processor(),
        "torch threads": str(torch.get_num_threads()),
        "accelerator": str(torch.accelerator.current_accelerator())
        if torch.accelerator.is_available()
        else "none",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
