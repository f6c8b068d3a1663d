"""Who takes part, and on what."""

from __future__ import annotations

from experiments.rollouts.plan import Contender, Recipe, Setting

#: Small kernel networks, so that there are parameters left for channels.
NETWORK = {
    "activation": "product",
    "blocks": 2,
    "kernel_size": 5,
    "kernel": {"name": "complete", "hidden_dim": 4},
}

CONTENDERS = {
    "tensors": Contender("CS-ResNet, stress as a tensor", "cs_resnet", NETWORK, ours=True),
    "components": Contender("CS-ResNet, components as scalars", "cs_resnet_components", NETWORK),
    "resnet": Contender("ResNet", "resnet", {"blocks": 2, "kernel_size": 5}),
    "unet": Contender("U-Net (PDEArena)", "unet"),
    "fno": Contender("FNO", "fno"),
}

RECIPES = {"change": Recipe("change, one step", {}, {"predict": "change"})}

#: Waves run along x mainly.
ALONG = {"preset": "small", "focus": 4.0}

SETTINGS = {
    "elastodynamics": Setting(
        "elastodynamics",
        "elastodynamics",
        ALONG,
        splits={"train": 32, "valid": 16, "test": 32},
        data={"frames_in": 1, "frames_out": 1, "batch": 4, "valid_windows": 32},
        params=20_000,
        steps=1000,
        seconds=60.0,
        rates=(1.5e-3, 5e-3, 1.5e-2, 5e-2),
        others={
            "at_45": {**ALONG, "direction": 45.0},
            "at_90": {**ALONG, "direction": 90.0},
        },
    ),
}
