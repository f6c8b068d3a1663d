"""Trained forecasters for programs that do not have this library."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.export import ExportedProgram

from cscnn._util.checks import check_int
from cscnn._util.files import write_bytes
from cscnn._util.optional import require
from cscnn._util.progress import Bar
from cscnn.forecasting.forecaster import Forecaster
from cscnn.forecasting.given import split
from cscnn.forecasting.packing import symmetric_part
from cscnn.networks import plain_convolutions

SUFFIXES = (".pt2", ".onnx")  #: of torch.export, and of ONNX

#: Largest relative difference between an exported forecaster and the original.
TOLERANCE = 1e-3

Fields = dict[str, Tensor]


def deployable(forecaster: Forecaster) -> Forecaster:
    """The same forecaster with torch's convolutions; units and constants stay inside."""
    network = plain_convolutions(forecaster.network)
    f = forecaster
    copied = Forecaster(
        network, f.task, f.units, f.coarsen, f.predicts, f.constrain.constraints, f.stride
    )
    return copied.to(f.device).eval()


def export(
    forecaster: Forecaster,
    path: str | Path,
    *,
    grid: Sequence[int],
    batch: int = 1,
    quiet: bool = True,
) -> float:
    """Write one application of a forecaster, read it again, and compare it with the original.

    The program takes and returns physical fields, field name -> (batch, frames, *grid, components):
    ``frames_in`` frames in, ``frames_out`` frames out. It also takes what the task is given, as
    ``given``, see `Forecaster.forward`. In ONNX an input has the name of its field, and the output
    is called ``forecast_`` and that name.

    Args:
        forecaster: in eval mode.
        path: ``.pt2`` for ``torch.export``, or ``.onnx``.
        grid: points per axis of space, as the network sees them (see `Forecaster.view`).
        batch: size of batches that it will take.
        quiet: show no progress.

    Returns:
        the largest relative difference between the exported forecaster and the original.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise ValueError(f"the file must end in {' or '.join(SUFFIXES)}, got {path.name}")
    if forecaster.task.points is not None:
        raise ValueError(
            f"forecasters on grids can be exported, but task {forecaster.task.name} is on points"
        )
    frames, given = _example(forecaster, grid, check_int("batch", batch, low=1))
    options = {"given": given} if given else {}
    bar, title = Bar("steps", quiet=quiet), f"exporting {path.name}"
    with torch.no_grad():
        bar(title, 0, 3)
        expected = forecaster(frames, **options)
        bar(title, 1, 3)
        program = torch.export.export(deployable(forecaster), (frames,), options)
        bar(title, 2, 3)
        pack = _pack_torch if path.suffix == ".pt2" else _pack_onnx
        content, forecast = pack(program, frames, given)
        bar(title, 3, 3)
    error = _difference(forecast, expected)
    if not error < TOLERANCE:
        raise ValueError(f"the exported forecaster differs from the original by {error:.2g}")
    write_bytes(path, content)  # torch itself would end the process if the disk were full
    return error


def _example(forecaster: Forecaster, grid: Sequence[int], batch: int) -> tuple[Fields, Fields]:
    """Noise of the size of the training data, in physical units: frames, and what is given."""
    task = forecaster.task
    axes = task.dim - (task.time_axis is not None)
    if len(grid) != axes or min(grid) < 1:
        raise ValueError(
            f"task {task.name} has {axes} axes of space with at least one point each, got grid "
            f"{' '.join(map(str, grid))}"
        )
    generator = torch.Generator().manual_seed(0)
    kinds = {"forcing": (task.span, *grid), "static": tuple(grid), "constant": ()}
    shapes = {f.name: (task.frames_in, *grid) for f in task.fields}
    shapes |= {g.name: kinds[g.kind] for g in task.given}
    noise = {
        q.name: symmetric_part(
            q,
            torch.randn(batch, *shapes[q.name], task.algebra.size(q.grade), generator=generator),
        )
        for q in task.quantities
    }
    physical = forecaster.units.physical(noise)
    return split(
        task, {name: x.to(forecaster.device, forecaster.dtype) for name, x in physical.items()}
    )


def _difference(fields: Fields, expected: Fields) -> float:
    """Largest error of a field, relative to its largest value."""
    return max(
        float((fields[name].to(x) - x).abs().max() / x.abs().max()) for name, x in expected.items()
    )


def _pack_torch(program: ExportedProgram, frames: Fields, given: Fields) -> tuple[bytes, Fields]:
    """The content of a file .pt2, and what it makes of the frames."""
    file = io.BytesIO()
    torch.export.save(program, file)
    content = file.getvalue()
    options = {"given": given} if given else {}
    return content, dict(torch.export.load(io.BytesIO(content)).module()(frames, **options))


def _pack_onnx(program: ExportedProgram, frames: Fields, given: Fields) -> tuple[bytes, Fields]:
    """The content of a file .onnx, and what it makes of the frames."""
    require("onnxscript", "exporting to ONNX", "onnx")
    runtime = require("onnxruntime", "exporting to ONNX", "onnx")
    inputs, outputs = {**frames, **given}, [f"forecast_{name}" for name in frames]
    exported = torch.onnx.export(
        program, (), dynamo=True, verbose=False, input_names=list(inputs), output_names=outputs
    )
    assert exported is not None
    content = exported.model_proto.SerializeToString()
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    arrays = session.run(outputs, {name: x.cpu().numpy() for name, x in inputs.items()})
    return content, {name: torch.as_tensor(a) for name, a in zip(frames, arrays, strict=True)}
