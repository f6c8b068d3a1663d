"""Every model compiles, for every task it serves."""

import pytest
import torch
from tiny_models import SERVED, sample, tiny

from cscnn.testing import relative_error

pytest.importorskip("cliffordlayers", reason="the extra 'baselines' is not installed")
pytest.importorskip("neuralop", reason="the extra 'baselines' is not installed")

COMPLETE = {"kernel": "complete", "kernel_options": {"hidden_dim": 4}}
SMALL = {
    "cs_resnet": {**COMPLETE, "blocks": 1},
    "cs_unet": {**COMPLETE, "levels": 1},
    "steerable_resnet": {"blocks": 1},
}


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.filterwarnings("ignore")  # compiling neuralop warns of graph breaks and caches
@pytest.mark.parametrize(
    ("name", "task"), [p for p in SERVED if p != ("cs_unet", "maxwell_spacetime4d")]
)  # the last one works too, and takes a minute
def test_compiles(name, task):
    model = tiny(name, task, **SMALL.get(name, {})).eval()
    x = sample(model.task)
    compiled = torch.compile(model, backend="aot_eager")
    assert relative_error(compiled(x), model(x)) < 1e-4
