"""The tasks: solitons on a line, charges over a plane, charges in space."""

from __future__ import annotations

from experiments.boosts.plan import Model, Setting

SMALL_NETWORKS = {"hidden_dim": 4}  #: that make kernels: what they do not take is left for channels

MODELS = {
    "resnet": Model("ResNet", "resnet"),
    "implicit": Model(
        "CS-ResNet, implicit kernels (the paper's)", "cs_resnet",
        {"kernel": {"name": "implicit", **SMALL_NETWORKS}, "activation": "product"},
    ),
    "complete": Model(
        "CS-ResNet, complete kernels", "cs_resnet",
        {"kernel": {"name": "complete", **SMALL_NETWORKS}, "activation": "product"},
    ),
    "differential": Model(
        "CS-ResNet, differential kernels", "cs_resnet",
        {"kernel": "differential", "activation": "product"},
    ),
}  # fmt: skip

RATES = (1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2)

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
        models=("resnet", "implicit", "complete", "differential"),
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
        params=12_000,
        network={"blocks": 2, "kernel_size": 5},
        steps=300,
        batch=1,
        rates=RATES,
        models=("resnet", "implicit", "complete", "differential"),
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
        params=6_000,
        network={"blocks": 1, "kernel_size": 5},
        steps=60,
        batch=1,
        rates=(4e-3,),
        paddings=("extrapolate", "zeros"),
        models=("complete", "differential"),  # the plain one has at most three axes
        seeds=1,
        checks=4,
        rapidities=(0.0, 0.25, 0.5),
        observed=4,
    ),
}
