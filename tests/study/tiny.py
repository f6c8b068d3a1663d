"""A study of seconds."""

from cscnn.study.plan import Contender, Setting, Study

SETTING = Setting(
    "sine_gordon",
    simulator={"preset": "small", "grid": (12,), "frames": 16},
    splits={"train": 3, "valid": 2, "test": 2},
    sizes=(1, 2),
    seeds=1,
    params=2000,
    model={"blocks": 1, "kernel_size": 3},
    data={"frames_in": 4, "batch": 2, "valid_windows": 4},
    steps=4,
    checks=2,
    rates=(1e-3, 1e-2),
    test_windows=4,
    kernel_width={"complete": 4},
    longer={"resnet": 2.5},
)
COMPLETE = {"kernel": "complete"}
TINY = Study(
    "tiny",
    {"sine_gordon": SETTING},
    {
        "resnet": Contender("ResNet", "resnet"),
        "ours": Contender("ours", "cs_resnet", COMPLETE, backgrounds=True),
        "ours_blind": Contender("ours, blind", "cs_resnet", COMPLETE, like="ours"),
    },
    {"sine_gordon": ("resnet", "ours")},
    {"sine_gordon": ("ours", "ours_blind")},
)
