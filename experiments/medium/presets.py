"""Who takes part, and on what.

The plan, made from times of steps: 12 networks on two tasks and 10 on the third. The search takes
three or four trainings of two minutes each, the comparison one of a quarter of an hour for each of
the two sizes of the training split. Together these are about 23 hours of one core; 7 more are for
further seeds where verdicts are close.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.rollouts.plan import Contender, Recipe, Setting

#: Taps and depth of the residual networks. The paper has 8 blocks; 4 make steps affordable.
RESIDUAL = {"blocks": 4, "kernel_size": 7}
#: One number for each orbit of 3 taps: fewer than kernel networks have, so more channels fit in.
UNET = {
    "activation": "product",
    "kernel_size": 3,
    "kernel": {"name": "complete", "radial": "free"},
}
PRODUCTS = {"activation": "product", "blocks": 4, "kernel_size": 5}

OURS = {
    "cs_unet": Contender("CS-U-Net", "cs_unet", UNET, ours=True),
    "cs_resnet": Contender(
        "CS-ResNet, ours",
        "cs_resnet",
        {**PRODUCTS, "kernel": {"name": "complete", "hidden_dim": 8}},
        ours=True,
    ),
    "differential": Contender(
        "CS-ResNet, differential kernels",
        "cs_resnet",
        {**PRODUCTS, "kernel": {"name": "differential", "order": 2}},
        ours=True,
    ),
}
OTHERS = {
    "resnet": Contender("ResNet", "resnet", RESIDUAL),
    "unet": Contender("U-Net (PDEArena)", "unet"),
    "convnext_unet": Contender("ConvNeXt U-Net (The Well)", "convnext_unet"),
    "fno": Contender("FNO", "fno"),
    "gfno": Contender("G-FNO", "gfno"),
    "clifford_resnet": Contender("Clifford ResNet", "clifford_resnet", RESIDUAL),
    "steerable_resnet": Contender(
        "Steerable ResNet", "steerable_resnet", RESIDUAL, tasks=("navier_stokes", "maxwell3d")
    ),
    "paper": Contender("CS-ResNet (paper)", "cs_resnet", RESIDUAL),
    "published": Contender(
        "CS-ResNet (paper), published initialisation",
        "cs_resnet",
        {**RESIDUAL, "kernel": {"name": "implicit", "unit_variance": False}},
    ),
    "complete": Contender(
        "CS-ResNet (paper), complete kernels", "cs_resnet", {**RESIDUAL, "kernel": "complete"}
    ),
}
CONTENDERS = {**OURS, **OTHERS}

RECIPES = {
    "state": Recipe("state"),
    #: The scheme with which means over cells of this solver obey the law best: see
    #: docs/guides/calculus.md.
    "projection": Recipe(
        "change, no divergence",
        {},
        {
            "predict": "change",
            "constraints": {"velocity": {"kind": "divergence_free", "scheme": "spectral"}},
        },
    ),
}

#: What all tasks share.
COMMON: Mapping[str, Any] = {
    "params": 200_000,
    "steps": 1000,
    "seconds": 120.0,
    "longer": 7.5,
    "seeds": 1,
    "checks": 10,
}

CHARGES: Mapping[str, Any] = {"preset": "small"}  #: 64 frames of 32² points

SETTINGS = {
    "navier_stokes": Setting(
        "navier_stokes",
        "navier_stokes",
        {},  # the published simulation, 128² cells
        splits={"train": 512, "valid": 16, "test": 32},
        data={"frames_in": 4, "frames_out": 1, "coarsen": 2, "batch": 4, "valid_windows": 32},
        rates=(5e-4, 1.5e-3, 5e-3, 1.5e-2, 5e-2),
        recipes=("projection",),
        few=64,
        **COMMON,
    ),
    "maxwell_spacetime": Setting(
        "maxwell_spacetime",
        "maxwell_spacetime",
        CHARGES,
        splits={"train": 512, "valid": 16, "test": 32},
        data={
            "frames_in": 16, "frames_out": 2, "open_padding": "extrapolate", "batch": 2,
            "valid_windows": 16,
        },
        rates=(5e-4, 1.5e-3, 5e-3, 1.5e-2, 5e-2),
        recipes=("state",),
        few=64,
        others={"moving": {**CHARGES, "rapidity": 0.5}},
        **COMMON,
    ),
    "maxwell3d": Setting(
        "maxwell3d",
        "maxwell3d",
        # With the published periods sources hardly oscillate in the time that is simulated.
        {"period_factors": (0.5, 4.0)},
        splits={"train": 128, "valid": 8, "test": 16},
        data={"frames_in": 4, "frames_out": 1, "batch": 1, "valid_windows": 8},
        rates=(5e-4, 1.5e-3, 5e-3, 1.5e-2, 5e-2),
        recipes=("state",),
        horizon=4,
        few=16,
        **COMMON,
    ),
}  # fmt: skip
