"""Which backend a convolution uses for the sizes at hand, as functions that compilers may meet.

What they return is a constant of a compiled graph. Compilers pass plain values on to them, no
objects: so the fields of `ConvSizes` come as a dictionary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cscnn._util.torch_private import constant_for_compilers
from cscnn.conv.derivatives.cost import Operators, derivatives_are_faster
from cscnn.conv.sizes import ConvSizes
from cscnn.conv.spectral.cost import plan_tiles


@constant_for_compilers
def choose_tiles(fields: Mapping[str, Any], backend: str) -> tuple[int, ...] | None:
    """`plan_tiles` for a convolution of these sizes."""
    return plan_tiles(ConvSizes(**fields), backend)


@constant_for_compilers
def choose_derivatives(fields: Mapping[str, Any], operators: Operators) -> bool:
    """`derivatives_are_faster` for a convolution of these sizes."""
    return derivatives_are_faster(ConvSizes(**fields), operators)
