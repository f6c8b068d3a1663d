"""What tests of symmetry share: elements to test with, sizes of violations, their message."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.group import in_group, keeps_orientation


def relative_error(actual: Tensor, expected: Tensor, floor: float = 0.0) -> float:
    """max |actual - expected| / max |expected|; NaN and shape mismatches count as infinite."""
    if actual.shape != expected.shape:
        return float("inf")
    if actual.numel() == 0:
        return 0.0
    scale = max(expected.detach().abs().max().item(), floor)
    difference = (actual - expected).detach().abs().max().item()
    if not difference < float("inf"):  # NaN or infinite
        return float("inf")
    return difference / scale if scale > 0 else (float("inf") if difference else 0.0)


def chosen_kinds(
    algebra: CliffordAlgebra, kinds: str | Sequence[str] | None, group: str = "O"
) -> Sequence[str]:
    """The kinds of transformation to test: those asked for, or all that the group has."""
    if kinds is None:
        absent = {"reflection"} if keeps_orientation(group) else set()
        return tuple(kind for kind in algebra.kinds() if kind not in absent)
    chosen = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if not chosen:
        raise ValueError(f"kinds must name at least one of {algebra.kinds()}, got {kinds!r}")
    return chosen


def random_element(
    algebra: CliffordAlgebra,
    group: str,
    kind: str = "any",
    rapidity: float | tuple[float, float] = 2.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """A random element (dim, dim) of O, SO, O+ or SO+, in float64."""
    for _ in range(1000):
        g = algebra.random_orthogonal(
            kind, rapidity=rapidity, generator=generator, dtype=torch.float64
        )
        if in_group(algebra, g, group):
            return g
    raise ValueError(f"there is no {kind} in the group {group} of {algebra}")


def demand(
    errors: dict[str, float], tol: float, claim: str, algebra: CliffordAlgebra, group: str = "O"
) -> None:
    """Raise ``AssertionError`` with a table unless all errors are at most ``tol``."""
    failed = [kind for kind, error in errors.items() if not error <= tol]
    if failed:
        table = "\n".join(f"  {kind:<12} {error:.3e}" for kind, error in errors.items())
        raise AssertionError(
            f"{claim} {', '.join(failed)} of {group}{algebra.signature} to {tol:.1e}. Near the "
            "tolerance it is rounding, which large boosts amplify; of order one it is broken, or "
            f"it moves points too (see grid_equivariance_errors). Relative errors:\n{table}"
        )
