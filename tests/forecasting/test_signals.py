"""The sizes of signals and gradients at the start of training, on the tasks of the simulators."""

import pytest
import torch

from cscnn.data.simulators import create
from cscnn.forecasting import Forecaster, Task
from cscnn.networks import FieldType

GRIDS = {2: (24, 24), 3: (12, 12, 12), 4: (6, 6, 6, 6)}


@pytest.mark.parametrize("kernel", ["implicit", "complete"])
@pytest.mark.parametrize(
    ("name", "width"),
    [("navier_stokes", w) for w in (4, 12, 48)]
    + [(t, w) for t in ("maxwell3d", "maxwell_spacetime") for w in (4, 12)]
    + [("maxwell_spacetime4d", 4)],
)
def test_signals_and_gradients_keep_their_size(name, width, kernel):
    """The variance of the output is within [0.1, 10] of the input's, and so are gradients.

    Gradients are those with respect to the input of the first layer, in the components that carry
    data, for unit noise as the gradient of the output. Their squares are compared summed, not per
    component: that is how much unit noise on the input changes the output, whereas four frames
    that are used for one frame have a quarter of its gradient each.
    """
    simulator = create(name)
    task = Task.from_header(simulator.header(), frames_in=simulator.frames_in)
    forecaster = Forecaster.build("cs_resnet", task, width=width, kernel=kernel)
    seen = FieldType(task.algebra, task.input_type.grades[: task.in_channels])
    x = seen.noise((2, *GRIDS[task.dim])).requires_grad_()
    y = task.output_type.extract(forecaster.predict(x))
    assert 0.1 < y.var() < 10
    g = torch.randn_like(y)
    (gradient,) = torch.autograd.grad(y, x, g)
    assert 0.1 < seen.extract(gradient).square().sum() / g.square().sum() < 10
