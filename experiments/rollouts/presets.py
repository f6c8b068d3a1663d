"""Who takes part, how they are trained, and on what."""

from __future__ import annotations

from experiments.rollouts.plan import Contender, Recipe, Setting

PRODUCTS = {"activation": "product", "kernel_size": 5}
COMPLETE = {"name": "complete", "hidden_dim": 4}
#: One number for each orbit of 3 taps: fewer than kernel networks have, so more channels fit in.
FREE_KERNELS = {"kernel_size": 3, "kernel": {"name": "complete", "radial": "free"}}
UNET = {"activation": "product", **FREE_KERNELS}
REPEAT = {"wall_padding": "symmetric"}

CONTENDERS = {
    "cs_resnet": Contender(
        "CS-ResNet", "cs_resnet", {**PRODUCTS, "blocks": 4, "kernel": COMPLETE}, ours=True
    ),
    "differential": Contender(
        "CS-ResNet, differential kernels",
        "cs_resnet",
        {**PRODUCTS, "blocks": 4, "kernel": {"name": "differential", "order": 2}},
        ours=True,
    ),
    "cs_unet": Contender("CS-U-Net", "cs_unet", UNET, ours=True),
    "cs_unet_repeat": Contender(
        "CS-U-Net, walls repeat all components",
        "cs_unet",
        UNET,
        ours=True,
        data=REPEAT,
        like="cs_unet",
    ),
    "resnet": Contender("ResNet", "resnet", {"blocks": 4, "kernel_size": 5}),
    "unet": Contender("U-Net (PDEArena)", "unet"),
    "convnext_unet": Contender("ConvNeXt U-Net (The Well)", "convnext_unet"),
    "fno": Contender("FNO", "fno"),
}

CHANGE = {"predict": "change"}
#: The scheme with which means over cells of this solver obey the law best: see
#: docs/guides/calculus.md.
FREE = {"velocity": {"kind": "divergence_free", "scheme": "spectral"}}

#: From the second on, each adds one thing to predicting the change.
RECIPES = {
    "state": Recipe("state, one step"),
    "change": Recipe("change, one step", {}, CHANGE),
    "noise": Recipe("change, noise 0.02", {"noise": 0.02}, CHANGE),
    "unroll": Recipe("change, 3 steps unrolled", {"unroll": 3}, CHANGE),
    "pushforward": Recipe(
        "change, pushforward over 1 to 3 steps", {"unroll": 3, "pushforward": True}, CHANGE
    ),
    "projection": Recipe("change, no divergence", {}, {**CHANGE, "constraints": FREE}),
}

SETTINGS = {
    "navier_stokes": Setting(
        "navier_stokes",
        "navier_stokes",
        {"preset": "small"},  # 64² cells, seen as 32²
        splits={"train": 32, "valid": 16, "test": 32},
        data={"frames_in": 4, "frames_out": 1, "coarsen": 2, "batch": 4, "valid_windows": 32},
        params=30_000,
        steps=1000,
        seconds=90.0,
        longer=1.0,
        rates=(5e-4, 1.5e-3, 5e-3, 1.5e-2, 5e-2),
        recipes=("change", "state", "noise", "unroll", "pushforward", "projection"),
    ),
}
