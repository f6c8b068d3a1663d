"""Fields for the page as bytes that its script colours."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cscnn.viz.figures import matplotlib
from cscnn.viz.panels import MAPS, colour_limits, relative_size

LEVELS = 255  #: colours; the code above them stands for what is not a number


@dataclass(frozen=True)
class Quantity:
    """One component of a field in all runs: planes (frames, x, y)."""

    label: str
    targets: list[np.ndarray]
    predictions: list[np.ndarray]


def encode(quantities: Sequence[Quantity]) -> dict[str, Any]:
    """Sizes, limits, relative errors, colours, and bytes in base64; equal bytes are stored once."""
    blobs: dict[str, int] = {}
    return {
        "quantities": [_quantity(quantity, blobs) for quantity in quantities],
        "maps": {name: _ascii(colours(name)) for name in MAPS},
        "blobs": list(blobs),
    }


def _quantity(quantity: Quantity, blobs: dict[str, int]) -> dict[str, Any]:
    """One quantity; its bytes are added to the blobs."""
    truth = np.concatenate(quantity.targets)
    signed = bool((truth < 0).any())
    (low, high), _ = colour_limits(truth, signed)
    pairs = list(zip(quantity.targets, quantity.predictions, strict=True))
    with np.errstate(all="ignore"):  # forecasts may have blown up
        errors = [prediction - target for target, prediction in pairs]
        relative = [_relative(e, t) for e, t in zip(errors, quantity.targets, strict=True)]
    top = min(_typical(errors), high - low)
    return {
        "label": quantity.label,
        "map": "signed" if signed else "positive",
        "limits": [low, high],
        "error": top,
        "width": truth.shape[1],
        "height": truth.shape[2],
        "runs": [
            {
                "target": _blob(blobs, target, low, high),
                "prediction": _blob(blobs, prediction, low, high),
                "error": _blob(blobs, error, -top, top),
                "relative": by_frame,
            }
            for (target, prediction), error, by_frame in zip(pairs, errors, relative, strict=True)
        ],
    }


def colours(name: str) -> np.ndarray:
    """The colours of a map, (LEVELS, 3) bytes."""
    table = matplotlib().colormaps[MAPS[name]](np.linspace(0, 1, LEVELS))[:, :3]
    return (255 * table).round().astype(np.uint8)


def _typical(errors: Sequence[np.ndarray]) -> float:
    """What almost all errors are below."""
    sizes = np.concatenate([np.abs(e[np.isfinite(e)]) for e in errors])
    return float(np.quantile(sizes, 0.99)) if sizes.any() else 1.0


def _relative(error: np.ndarray, target: np.ndarray) -> list[float | None]:
    ratios = [relative_size(e, t) for e, t in zip(error, target, strict=True)]
    return [None if ratio is None else float(f"{ratio:.4g}") for ratio in ratios]


def _blob(blobs: dict[str, int], values: np.ndarray, low: float, high: float) -> int:
    """The position of an array among the blobs; equal ones are stored once."""
    with np.errstate(all="ignore"):
        codes = np.clip((values - low) / (high - low), 0, 1) * (LEVELS - 1)
        codes = np.where(np.isnan(values), LEVELS, codes.round()).astype(np.uint8)
    rows = codes.transpose(0, 2, 1)[:, ::-1]  # from the top, as canvases are drawn
    return blobs.setdefault(_ascii(rows), len(blobs))


def _ascii(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")
