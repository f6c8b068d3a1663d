"""Who takes part, and on what."""

from __future__ import annotations

from typing import Any

from experiments.rollouts.plan import Contender, Recipe, Setting

NETWORK = {"activation": "product", "blocks": 4, "kernel_size": 5}
#: Small kernel networks, so that there are parameters left for channels.
COMPLETE = {"name": "complete", "hidden_dim": 4}
IMPLICIT = {"name": "implicit", "num_layers": 3, "hidden_dim": 4}
CONDITION = {"condition": 4}


def family(label: str, kernel: dict[str, Any]) -> tuple[Contender, Contender, Contender]:
    """Without knowledge of the mean, with plain global context, and with conditional kernels."""
    conditional = {**kernel, **CONDITION}
    return (
        Contender(label, "cs_resnet", {**NETWORK, "kernel": kernel}),
        Contender(f"{label}, global context", "cs_resnet_context", {**NETWORK, "kernel": kernel}),
        Contender(f"{label}, conditional", "cs_resnet", {**NETWORK, "kernel": conditional}),
    )


KERNELS = {"complete": COMPLETE, "implicit": IMPLICIT}
#: Keys of a family: without, plain global context, conditional kernels.
KEYS = {kind: (kind, f"{kind}_context", f"{kind}_conditional") for kind in KERNELS}
CONTENDERS = {
    key: contender
    for kind, kernel in KERNELS.items()
    for key, contender in zip(KEYS[kind], family(f"{kind} kernels", kernel), strict=True)
}

RECIPES = {"change": Recipe("change, one step", {}, {"predict": "change"})}

SETTINGS = {
    "navier_stokes": Setting(
        "navier_stokes",
        "navier_stokes",
        {"preset": "small"},  # 64² cells, seen as 32²
        splits={"train": 32, "valid": 16, "test": 32},
        data={"frames_in": 4, "frames_out": 1, "coarsen": 2, "batch": 4, "valid_windows": 32},
        params=20_000,
        steps=1000,
        seconds=60.0,
        rates=(1.5e-3, 5e-3, 1.5e-2),
    ),
}
