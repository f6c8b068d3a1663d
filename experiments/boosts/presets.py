"""The tasks: solitons on a line, charges over a plane, charges in space."""

from __future__ import annotations

from typing import Any

from experiments.boosts.plan import Model, Setting


def _kernel_networks(name: str, *widths: int) -> dict[str, dict[str, Any]]:
    """Widths of the networks that make kernels: what they do not take is left for channels."""
    return {f"width {w}": {"kernel": {"name": name, "hidden_dim": w}} for w in widths}


PRODUCTS = {"activation": "product"}

MODELS = {
    "resnet": Model(
        "ResNet", "resnet", variants={"normalised": {}, "not normalised": {"norm": False}}
    ),
    "unet": Model(
        "U-Net (PDEArena)", "unet", {"multipliers": (1, 1), "blocks_per_level": 1}, shares=False,
        variants={"normalised": {}, "not normalised": {"norm": False}},
    ),
    "implicit": Model(
        "CS-ResNet, implicit kernels (the paper's)", "cs_resnet", PRODUCTS,
        _kernel_networks("implicit", 2, 4),
    ),
    "complete": Model(
        "CS-ResNet, complete kernels", "cs_resnet", PRODUCTS, _kernel_networks("complete", 4, 8)
    ),
    "differential": Model(
        "CS-ResNet, differential kernels", "cs_resnet", PRODUCTS,
        {f"order {n}": {"kernel": {"name": "differential", "order": n}} for n in (2, 4)},
    ),
}  # fmt: skip

RATES = (1.5e-3, 3e-3, 6e-3, 1.2e-2, 2.4e-2)

SETTINGS = {
    "sine_gordon": Setting(
        "sine_gordon",
        "sine_gordon",
        spacing=0.4,
        frames=28,
        grid=(32,),
        frames_in=12,
        frames_out=2,
        margin=4,
        options={"speed_limit": 0.5},
        splits={"train": 128, "valid": 16, "test": 32},
        params=16_000,
        network={"blocks": 2, "kernel_size": 5},
        steps=300,
        rates=RATES,
        models=("resnet", "unet", "implicit", "complete", "differential"),
        refinement=2,
        refined=("complete", "differential"),
        refinements=(1, 4),
        displacements=(2,),
    ),
    "charges": Setting(
        "charges",
        "maxwell_spacetime",
        spacing=1.0,
        frames=40,
        grid=(26, 26),
        frames_in=20,
        frames_out=3,
        margin=6,
        options={"height": 4.0},
        splits={"train": 64, "valid": 8, "test": 16},
        params=12_180,
        network={"blocks": 2, "kernel_size": 5},
        steps=300,
        batch=1,
        rates=RATES[1:],
        paddings=("extrapolate", "replicate"),
        models=("resnet", "unet", "implicit", "complete", "differential"),
        refined=("complete", "differential"),
        prolongations=(3,),
        rapidities=(0.0, 0.25, 0.5, 0.75),
        observed=16,
    ),
    "charges4d": Setting(
        "charges4d",
        "maxwell_spacetime4d",
        spacing=1.0,
        frames=14,
        grid=(10, 10, 10),
        frames_in=10,
        frames_out=2,
        margin=2,
        options={"clearance": 3.0},
        splits={"train": 16, "valid": 2, "test": 4},
        params=6_150,
        network={"blocks": 1, "kernel_size": 5},
        steps=60,
        batch=1,
        rates=(6e-3,),
        paddings=("extrapolate", "zeros"),
        models=("complete", "differential"),  # the plain one has at most three axes
        seeds=1,
        checks=4,
        rapidities=(0.0, 0.25, 0.5),
        observed=4,
    ),
}
