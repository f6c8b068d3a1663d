"""Memory of a piece of work, and what machine it ran on."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
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


def usable_device(name: str) -> torch.device:
    """A device by its name, or an error if nothing can be computed there."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"cannot compute on device {name!r}, but on cpu: {reason}") from error
    return device


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
