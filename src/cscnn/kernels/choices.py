"""Kernels by choice: the table of all of them, and their names in files and on command lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from torch import Tensor

from cscnn._util.modules import named_classes
from cscnn._util.suggest import did_you_mean
from cscnn.algebra import CliffordAlgebra
from cscnn.kernels.base import KernelChoice, SteerableKernel

#: By name: all that the modules of this folder define.
CHOICES: dict[str, type[KernelChoice]] = named_classes("cscnn.kernels", KernelChoice)


def kernel_choice(value: str | Mapping[str, Any] | KernelChoice) -> KernelChoice:
    """A choice from the forms it has in files and on command lines.

    Args:
        value: a name, which means default options; a mapping with the name and options, the
            inverse of `KernelChoice.to_dict`; or a choice, which is returned as it is.

    Example:
        >>> kernel_choice({"name": "complete", "group": "SO"})
        Complete(group='SO', radial='network', causal=False, hidden_dim=16, condition=0)
    """
    if isinstance(value, KernelChoice):
        return value
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, Mapping):
        hint = ""
        if isinstance(value, type) and issubclass(value, KernelChoice):
            hint = f": write {value.__name__}()"
        raise TypeError(
            f"kernel must be a name ({', '.join(CHOICES)}), a mapping with a name, or a "
            f"KernelChoice such as Complete(), got {value!r}{hint}"
        )
    options = dict(value)
    name = options.pop("name", None)
    if not isinstance(name, str) or name not in CHOICES:
        hint = did_you_mean(name, CHOICES, otherwise="")
        raise ValueError(
            f"kernel must have one of the names {', '.join(CHOICES)}, got {value!r}{hint}"
        )
    known = [field.name for field in fields(CHOICES[name])]
    if unknown := [option for option in options if option not in known]:
        raise ValueError(
            f"options of the {name} kernel are {', '.join(known)}; got {', '.join(unknown)}"
            + (_hint(unknown) or did_you_mean(unknown[0], known, otherwise=""))
        )
    return CHOICES[name](**options)


def _hint(unknown: list[str]) -> str:
    """Which kernels know the options."""
    for name, choice in CHOICES.items():
        if shared := [field.name for field in fields(choice) if field.name in unknown]:
            return f"; the {name} kernel knows {', '.join(shared)}"
    return ""


def build_kernel(
    kernel: str | KernelChoice | SteerableKernel,
    algebra: CliffordAlgebra,
    c_in: int,
    c_out: int,
    points: Tensor,
    kernel_size: tuple[int, ...] | None = None,
) -> SteerableKernel:
    """The kernel of a convolution: built from a choice, or the given one if it fits.

    Args:
        kernel: a choice, its name, or a kernel.
        algebra, c_in, c_out: of the convolution.
        points, kernel_size: see `KernelChoice.build`.
    """
    if not isinstance(kernel, SteerableKernel):
        return kernel_choice(kernel).build(algebra, c_in, c_out, points, kernel_size)
    if (kernel.algebra, kernel.c_in, kernel.c_out) != (algebra, c_in, c_out):
        raise ValueError(
            f"the kernel is for {kernel.extra_repr()}, the convolution for "
            f"{algebra}, {c_in}, {c_out}"
        )
    return kernel
