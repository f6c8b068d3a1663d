# pyright: strict
"""A program of a user of the application half, with the extras train and viz.

`tools/check_dist.py` runs it, and checks its types, where only the wheel is installed.
"""

import tempfile
from pathlib import Path

import torch
from torch import Tensor

from cscnn import CliffordAlgebra
from cscnn.forecasting import Field, Forecaster, Task, TrainConfig, Units, evaluate, train
from cscnn.kernels import Complete
from cscnn.networks import FieldType, build


def forecaster_of(task: Task) -> Forecaster:
    """A small network with the types of a task."""
    algebra: CliffordAlgebra = task.algebra
    seen: FieldType = task.input_type
    assert seen.algebra == algebra
    kernel = Complete(hidden_dim=4)
    network = build("cs_resnet", seen, task.output_type, width=2, blocks=1, kernel=kernel)
    return Forecaster(network, task, Units({"height": 2.0, "velocity": 1.0}), predicts="state")


def main() -> None:
    """Forecast waves, and read the forecaster back."""
    task = Task("waves", (1, 1), (Field("height", 0), Field("velocity", 1)), frames_in=2)
    forecaster = forecaster_of(task).eval()
    shape = (1, task.frames_in, 8, 8)
    frames = {"height": torch.randn(*shape, 1), "velocity": torch.randn(*shape, 2)}
    later: dict[str, Tensor] = forecaster(frames, steps=3)
    assert later["velocity"].shape == (1, 3, 8, 8, 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "waves.safetensors"
        forecaster.save(path)
        again = Forecaster.load(path)
    assert torch.equal(again(frames, steps=3)["height"], later["height"])
    print(f"{task.name}: {', '.join(later)}; {train.__name__}, {evaluate.__name__}")
    print(f"epochs by default: {TrainConfig().trainer.epochs}")


if __name__ == "__main__":
    main()
