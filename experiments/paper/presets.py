"""The comparisons of the paper, at a size for two cores and some hours, and at the paper's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cscnn.forecasting.runs import SPLITS
from experiments.paper.plan import Contender, Setting
from experiments.paper.study import Study

COMPLETE = {"kernel": "complete"}
OURS = {"kernel": "complete", "activation": "product"}

#: All models by the names of their folders. Baselines and the paper's own network are told nothing
#: that they were not told in the paper; ours is given the constants of the task.
CONTENDERS = {
    "resnet": Contender("ResNet", "resnet"),
    "clifford_resnet": Contender("Clifford ResNet", "clifford_resnet"),
    "steerable_resnet": Contender("Steerable ResNet", "steerable_resnet"),
    "fno": Contender("FNO", "fno", convolutional=False),
    "gfno": Contender("G-FNO", "gfno", convolutional=False),
    # U-Nets that the paper does not have: depth and taps are their own, see `RIVALS`
    "unet": Contender("U-Net", "unet", convolutional=False),
    "convnext_unet": Contender("ConvNeXt U-Net", "convnext_unet", convolutional=False),
    "cs_resnet": Contender("CS-ResNet (paper)", "cs_resnet"),
    "cs_complete": Contender("CS-ResNet, complete kernels", "cs_resnet", COMPLETE),
    "ours": Contender("CS-ResNet, ours", "cs_resnet", OURS, constants=True),
    # ours with differential operators for kernels; a step to zero at a border is a large derivative
    **{
        f"differential{order}": Contender(
            f"CS-ResNet, differential kernels of order {order}",
            "cs_resnet",
            {**OURS, "kernel": {"name": "differential", "order": order}},
            constants=True,
            open_padding="extrapolate",
        )
        for order in (2, 4)
    },
    # each ingredient of ours left out; gates want other learning rates than products
    "ours_gate": Contender("ours, gates only", "cs_resnet", COMPLETE, True),
    "ours_blind": Contender("ours, no backgrounds", "cs_resnet", OURS, False, "ours"),
    "ours_implicit": Contender(
        "ours, implicit kernels", "cs_resnet", {"activation": "product"}, True, "ours"
    ),
    "ours_no_norm": Contender(
        "ours, no normalisation", "cs_resnet", {**OURS, "norm": False}, True, "ours"
    ),
    "ours_forward": Contender(
        "ours, kernels that know the future (O+)",
        "cs_resnet",
        {**OURS, "kernel": {"name": "complete", "group": "O+"}},
        True,
        "ours",
    ),
    "ours_wide_kernels": Contender(
        "ours, kernel networks of width 16, fewer channels",
        "cs_resnet",
        {**OURS, "kernel": {"name": "complete", "hidden_dim": 16}},
        True,
        "ours",
    ),
    # kernels and what is beyond open borders, apart
    "ours_extrapolated": Contender(
        "ours, extrapolated at open borders",
        "cs_resnet",
        OURS,
        True,
        "ours",
        open_padding="extrapolate",
    ),
    "differential4_zeros": Contender(
        "differential kernels of order 4, zeros at open borders",
        "cs_resnet",
        {**OURS, "kernel": {"name": "differential", "order": 4}},
        True,
        "differential4",
    ),
    # what the paper ablates
    "cs_fixed_head": Contender(
        "paper, fixed head weights",
        "cs_resnet",
        {"kernel": {"name": "implicit", "learn_head": False}},
        rate_of="cs_resnet",
    ),
    "resnet_told": Contender("ResNet, with backgrounds", "resnet", {}, True, "resnet"),
}

PLANE = (
    "resnet", "clifford_resnet", "steerable_resnet", "fno", "gfno",
    "cs_resnet", "cs_complete", "ours", "differential2", "differential4",
)  # fmt: skip
SPACETIME = ("resnet", "clifford_resnet", "fno", "gfno", "cs_resnet", "cs_complete", "ours")
SCALING = {
    "navier_stokes": PLANE,
    "maxwell_spacetime": SPACETIME,
    "maxwell3d": PLANE,
}
ABLATIONS = {
    "navier_stokes": (
        "ours", "ours_gate", "ours_blind", "ours_implicit", "ours_no_norm", "ours_wide_kernels",
        "cs_resnet", "cs_fixed_head", "resnet_told",
    ),
    "maxwell_spacetime": (
        "ours", "ours_gate", "ours_blind", "ours_forward", "resnet_told",
    ),
    "maxwell3d": ("ours", "ours_extrapolated", "differential4", "differential4_zeros"),
}  # fmt: skip

#: How many steps others take in the time of one of ours, at the small size.
STEP_FACTORS = {
    "navier_stokes": {
        "resnet": 6, "clifford_resnet": 1.2, "steerable_resnet": 1.1, "fno": 18,
        "gfno": 7, "cs_resnet": 1.6, "cs_complete": 1.2,
    },
    "maxwell_spacetime": {
        "resnet": 10, "clifford_resnet": 2.2, "fno": 15, "gfno": 12,
        "cs_resnet": 1.1, "cs_complete": 1.4,
    },
    "maxwell3d": {
        "resnet": 7, "clifford_resnet": 1.7, "fno": 15, "gfno": 5,
        "cs_resnet": 1.45, "cs_complete": 1.1, "differential2": 1.65,
    },
}  # fmt: skip
FURTHER = (1.5e-4, 5e-4, 1.5e-1, 5e-1)

#: Half the depth of the published networks or less, and 5 taps instead of 7, so that a step takes
#: tenths of a second.
SMALL = Study(
    "small",
    {
        "navier_stokes": Setting(
            "navier_stokes",
            simulator={"preset": "small"},  # 64² cells, seen as 32²
            splits={"train": 128, "valid": 16, "test": 32},
            sizes=(8, 32, 128),
            seeds=3,
            params=30_000,
            options={"blocks": 4, "kernel_size": 5},
            data={"frames_in": 4, "frames_out": 1, "coarsen": 2, "batch": 4, "valid_windows": 64},
            steps=400,
            rates=(1.5e-3, 5e-3, 1.5e-2, 5e-2),
            further_rates=FURTHER,
            hidden_dim={"implicit": 4, "complete": 4},
            step_factors=STEP_FACTORS["navier_stokes"],
        ),
        "maxwell_spacetime": Setting(
            "maxwell_spacetime",
            simulator={  # fewer charges, closer together, as there is room for few
                "preset": "small",
                "grid": (16, 16),
                "frames": 32,
                "oscillating": (1, 2),
                "orbiting": (1, 1),
                "distance": 4.0,
                "amplitude": (1.0, 4.0),
            },
            splits={"train": 128, "valid": 16, "test": 32},
            sizes=(8, 32, 128),
            seeds=3,
            params=25_500,
            options={"blocks": 2, "kernel_size": 5},
            data={"frames_in": 4, "batch": 2, "valid_windows": 48},
            steps=600,
            rates=(1.5e-3, 5e-3, 1.5e-2, 5e-2),
            further_rates=FURTHER,
            warmup=30,  # without it steerable networks blow up or die in the first steps
            hidden_dim={"implicit": 4, "complete": 8},
            step_factors=STEP_FACTORS["maxwell_spacetime"],
            own_options={"fno": {"modes": 4, "layers": 5}},  # more modes have no room on this grid
        ),
        "maxwell3d": Setting(
            "maxwell3d",
            # With the published periods sources hardly oscillate in the time that is simulated.
            simulator={"preset": "small", "period_factors": (0.5, 4.0)},
            splits={"train": 64, "valid": 16, "test": 32},
            sizes=(4, 16, 64),
            seeds=3,
            params=25_500,
            options={"blocks": 2, "kernel_size": 5},
            data={"frames_in": 4, "frames_out": 1, "batch": 1, "valid_windows": 32},
            steps=200,
            rates=(1.5e-3, 5e-3, 1.5e-2),
            further_rates=(5e-2, *FURTHER),
            test_windows=64,
            hidden_dim={"implicit": 4, "complete": 8},
            warmup=20,
            step_factors=STEP_FACTORS["maxwell3d"],
            own_options={"fno": {"modes": 4, "layers": 5}},  # more modes have no room on this grid
        ),
    },
    CONTENDERS,
    SCALING,
    ABLATIONS,
)

#: How many steps the U-Nets take in the time of one of ours: steps timed beside those of ResNet.
RIVAL_STEPS = {
    "navier_stokes": {"unet": 5, "convnext_unet": 8},
    "maxwell_spacetime": {"unet": 8, "convnext_unet": 10},
    "maxwell3d": {"unet": 4, "convnext_unet": 6},
}
#: The small study with two networks more. It shares the records of that one, and they are missing
#: from the published page until they are trained.
RIVALS = replace(
    SMALL,
    name="rivals",
    settings={
        task: replace(setting, step_factors={**setting.step_factors, **RIVAL_STEPS[task]})
        for task, setting in SMALL.settings.items()
    },
    scaling={task: (*keys, *RIVAL_STEPS[task]) for task, keys in SCALING.items()},
)

#: With the usual kernel networks there are no wider ones to compare with.
PAPER_ABLATIONS = {
    task: tuple(key for key in keys if key != "ours_wide_kernels")
    for task, keys in ABLATIONS.items()
}


def _published(task: str, splits: tuple[int, int, int], **sizes: Any) -> Setting:
    """A task as in the paper: its data, its networks, and our search for learning rates."""
    return Setting(
        task,
        simulator={},
        splits=dict(zip(SPLITS, splits, strict=True)),
        seeds=3,
        options={},
        checks=50,
        rates=(3e-4, 1e-3, 3e-3),
        further_rates=(1e-4, 1e-2, 3e-2),
        **sizes,
    )


PAPER_SETTINGS = (
    _published(
        "navier_stokes", (5120, 1024, 1024), sizes=(64, 512, 2048, 5120), params=7_200_000,
        data={"frames_in": 4, "frames_out": 1, "coarsen": 2, "batch": 8}, steps=320_000,
        test_windows=10_240,
    ),
    _published(
        "maxwell_spacetime", (2048, 256, 256), sizes=(64, 512, 2048), params=1_000_000,
        data={"frames_in": 16, "batch": 16}, steps=64_000, test_windows=2048,
    ),
    _published(
        "maxwell3d", (512, 64, 64), sizes=(64, 256, 512), params=1_000_000,
        data={"frames_in": 4, "frames_out": 1, "batch": 2}, steps=50_000, test_windows=256,
    ),
)  # fmt: skip
PAPER = Study(
    "paper",
    {setting.task: setting for setting in PAPER_SETTINGS},
    CONTENDERS,
    SCALING,
    PAPER_ABLATIONS,
)

STUDIES = {study.name: study for study in (SMALL, RIVALS, PAPER)}
