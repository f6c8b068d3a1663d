"""Sizes of violations, and the message when they are too large."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from cscnn.algebra import CliffordAlgebra


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


def chosen_kinds(algebra: CliffordAlgebra, kinds: str | Sequence[str] | None) -> Sequence[str]:
    """The kinds of transformation to test: those asked for, or all that exist."""
    if kinds is None:
        return algebra.kinds()
    chosen = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if not chosen:
        raise ValueError(f"kinds must name at least one of {algebra.kinds()}, got {kinds!r}")
    return chosen


def demand(errors: dict[str, float], tol: float, claim: str, algebra: CliffordAlgebra) -> None:
    """Raise ``AssertionError`` with a table unless all errors are at most ``tol``."""
    failed = [kind for kind, error in errors.items() if not error <= tol]
    if failed:
        table = "\n".join(f"  {kind:<12} {error:.3e}" for kind, error in errors.items())
        raise AssertionError(
            f"{claim} {', '.join(failed)} of O{algebra.signature} to {tol:.1e}. Near the tolerance "
            "it is rounding, which large boosts amplify; of order one it is broken, or it moves "
            f"points too (see grid_equivariance_errors). Relative errors:\n{table}"
        )
