"""Trained models for programs that do not have this library."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import Tensor, nn

from cscnn.data import Scaling
from cscnn.models import Task
from cscnn.training.run import Run

SUFFIXES = {"torch": ".pt2", "onnx": ".onnx"}


class Deployed(nn.Module):
    """Physical fields in, physical fields out: the model with its units and backgrounds inside.

    Takes and returns (batch, channels, *grid, blades), see the task of the run.
    """

    scale_in: Tensor
    shift_in: Tensor
    scale_out: Tensor
    shift_out: Tensor

    def __init__(self, model: nn.Module, task: Task, scaling: Scaling):
        super().__init__()
        self.model = model
        for end, frames in (("in", task.frames_in), ("out", task.frames_out)):
            scale, shift = _factors(task, scaling, frames)
            self.register_buffer(f"scale_{end}", scale)
            self.register_buffer(f"shift_{end}", shift)

    def forward(self, x: Tensor) -> Tensor:
        y = self.model((x - self.shift_in) / self.scale_in)
        assert isinstance(y, Tensor)
        return y * self.scale_out + self.shift_out


def _factors(task: Task, scaling: Scaling, frames: int) -> tuple[Tensor, Tensor]:
    """Scale and shift of a field of multivectors, (1, channels, *ones, blades)."""
    axes = (1, *(1,) * (task.dim - 1)) if task.time_axis is not None else (frames, *(1,) * task.dim)
    ones = {f.name: torch.ones(1, *axes, task.algebra.grade_sizes[f.grade]) for f in task.fields}
    scale = task.pack({name: x * scaling.scale[name] for name, x in ones.items()})
    shift = task.pack({name: x * scaling.shift.get(name, 0.0) for name, x in ones.items()})
    return torch.where(scale == 0, 1.0, scale), shift


def plain_model(run: Run) -> Deployed:
    """The model of a run as plain convolutions, in physical units."""
    model = run.model()
    plain = getattr(model, "export", lambda: model)()
    dtype = next(model.parameters()).dtype
    return Deployed(plain, model.task, run.scaling()).to(dtype).eval()


def export(run: Run, path: Path, kind: str = "torch", batch: int = 1) -> float:
    """Write a model, read it again, and compare.

    Args:
        run: which.
        path: the file.
        kind: ``"torch"`` for ``torch.export`` (.pt2) or ``"onnx"``.
        batch: size of batches that it will take.

    Returns:
        the largest relative difference between the exported model and ours.
    """
    if kind not in SUFFIXES:
        raise ValueError(f"kind must be one of {', '.join(SUFFIXES)}, got {kind!r}")
    module = plain_model(run)
    x = _example(run, batch).to(next(module.parameters()).dtype)
    blades = list(run.model().task.blades)
    x[..., blades] = (x * module.scale_in + module.shift_in)[..., blades].to(x.dtype)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        with torch.no_grad():
            expected = module(x)
            result = (_torch if kind == "torch" else _onnx)(module, x, temporary)
        error = float((result - expected).abs().max() / expected.abs().max())
        if not error < 1e-3:
            raise ValueError(f"the exported model differs from the original by {error:.2g}")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return error


def _example(run: Run, batch: int) -> Tensor:
    """Noise of the size that the model was trained on, in its units."""
    config = run.config()["data"]
    header = run.source("train").header
    task = run.model().task
    coarsen = int(config["coarsen"])
    grid = tuple(n // coarsen for n in header.grid)
    if task.time_axis is not None:
        grid = (task.frames_in, *grid)
    generator = torch.Generator().manual_seed(0)
    shape = (batch, task.in_channels, *grid, task.algebra.n_blades)
    x = torch.zeros(shape)
    blades = list(task.blades)
    x[..., blades] = torch.randn(*shape[:-1], len(blades), generator=generator)
    return x


def _torch(module: nn.Module, x: Tensor, path: Path) -> Tensor:
    program = torch.export.export(module, (x,))
    torch.export.save(program, path)
    result = torch.export.load(path).module()(x)
    assert isinstance(result, Tensor)
    return result


def _onnx(module: nn.Module, x: Tensor, path: Path) -> Tensor:
    try:
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"ONNX needs the package {error.name}: pip install 'cscnn[onnx]'",
            name=error.name,
        ) from error
    torch.onnx.export(
        module, (x,), str(path), dynamo=True, external_data=False, verbose=False,
        input_names=["fields"], output_names=["forecast"],
    )  # fmt: skip
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {"fields": x.numpy()})
    return torch.as_tensor(result)
