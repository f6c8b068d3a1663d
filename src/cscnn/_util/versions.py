"""Versions that a report of a bug needs, without importing what is large."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("torch", "numpy", "lightning", "h5py")


def versions(package: str, number: str) -> str:
    """A line for each: the package, Python, what it depends on, the system, the accelerator.

    Args:
        package: whose program it is.
        number: its version.
    """
    lines = {package: number, "python": platform.python_version()}
    lines |= {name: _version(name) for name in PACKAGES}
    lines["system"] = f"{platform.system()} {platform.release()}, {platform.machine()}"
    lines["accelerator"] = _accelerator(lines["torch"])
    width = max(map(len, lines)) + 2
    return "\n".join(f"{name:<{width}}{value}" for name, value in lines.items())


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _accelerator(torch_version: str) -> str:
    """What torch can compute on beside the CPU; it is asked only if its build may know any."""
    if torch_version.endswith("+cpu") or torch_version == "not installed":
        return "none"
    import torch

    if not torch.accelerator.is_available():
        return "none"
    device = torch.accelerator.current_accelerator()
    kind = "none" if device is None else device.type
    return f"cuda: {torch.cuda.get_device_name()}" if kind == "cuda" else kind
