"""`Forecaster`: a network with everything that turns it into a physical forecast."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cscnn._util.checks import check_choice, check_int
from cscnn._util.jsonform import to_json
from cscnn.data import FieldSource, open_fields
from cscnn.data.paths import Paths
from cscnn.data.strided import StrideLike, Strides
from cscnn.forecasting import frames as packed
from cscnn.forecasting.calibration import calibrate_for
from cscnn.forecasting.constraints import Constraint, Constraints, ConstraintsLike
from cscnn.forecasting.fits import (
    check_input,
    check_interface,
    check_network,
    check_steps,
    check_units,
)
from cscnn.forecasting.given import at_step, check_given
from cscnn.forecasting.given import pack as pack_given
from cscnn.forecasting.hub.pretrained import WEIGHTS, Pretrained
from cscnn.forecasting.losses import check_loss, get_loss
from cscnn.forecasting.points import Points, PointsLike, as_points
from cscnn.forecasting.task import ONE_BY_ONE, Task
from cscnn.forecasting.units import Units
from cscnn.forecasting.unroll import Unroll
from cscnn.forecasting.views import View, view
from cscnn.forecasting.windows import Window
from cscnn.networks import (
    Calibrated,
    Recipe,
    build,
    count_parameters,
    files,
    fit_budget,
)
from cscnn.networks.recipe import recipe_of

FORMAT = 4  #: of `Description`; raised when its entries change their meaning
KEY = "cscnn_forecaster"  #: of that description in the metadata of a file
PREDICTIONS = ("state", "change")  #: what the output of a network may be
ONE_STEP = Unroll()

Frames = Mapping[str, Tensor]  #: field name -> (batch, frames, *space, components)


@dataclass(frozen=True)
class Description:
    """What a file says beside the network, see `cscnn.networks.save`."""

    format: int
    task: Task
    units: Units
    coarsen: int = 1
    predicts: str = "state"
    constraints: tuple[Constraint, ...] = ()
    stride: Strides = ONE_BY_ONE


class Forecaster(Pretrained, nn.Module):
    """A network with its task, units and cells: physical fields in, physical fields out.

    Args:
        network: (batch, channels of task.input_type, *grid, blades) -> (batch, channels of
            task.output_type, *grid, blades), in scaled units. On points (points, channels, blades)
            with edges, see `cscnn.networks.CSPointNet`.
        task: what is forecast.
        units: in which the network computes; by default those of the data.
        coarsen: points per axis of the cells over which the network sees means of the data.
        predicts: ``"state"``, or ``"change"``: then the output of the network, times
            ``units.change`` of each field, is added to the newest known frame. With time as an axis
            of the grid it is added to the input at the same point, as the output is displaced by
            ``frames_out`` frames. Forecasts, losses and metrics are those of the state.
        constraints: what every predicted state obeys, e.g. ``{"velocity": "divergence_free"}``, see
            `Constraint`.
        stride: stored frames from one frame of the network to the next, or a range of strides.

    Example:
        >>> from cscnn.forecasting import Field, Task
        >>> waves = Task("waves", (1, 1), (Field("height", 0), Field("velocity", 1)))
        >>> forecaster = Forecaster.build("cs_resnet", waves, width=2, blocks=1, kernel_size=3)
        >>> grid = (1, 4, 16, 16)
        >>> frames = {"height": torch.randn(*grid, 1), "velocity": torch.randn(*grid, 2)}
        >>> forecaster(frames, steps=3)["velocity"].shape
        torch.Size([1, 3, 16, 16, 2])
    """

    constants: Tensor
    factors: Tensor  #: of outputs, one for each field

    def __init__(
        self,
        network: nn.Module,
        task: Task,
        units: Units | None = None,
        coarsen: int = 1,
        predicts: str = "state",
        constraints: ConstraintsLike = (),
        stride: StrideLike = 1,
    ):
        super().__init__()
        self.network = network
        self.task = task
        self.units: Units = units or Units.physical_units(q.name for q in task.quantities)
        self.predicts: str = check_choice("predicts", predicts, PREDICTIONS)
        change = predicts == "change"
        check_units(self.units, task, change)
        check_network(self.recipe, task)
        self.coarsen: int = check_int("coarsen", coarsen, low=1)
        self.stride: Strides = Strides.read(stride)
        self.constrain: Constraints = Constraints(task, constraints)
        self.register_buffer("constants", task.constant_multivectors(), persistent=False)
        sizes = {
            f.name: self.units.change[f.name] / self.units.scale[f.name] if change else 1.0
            for f in task.fields
        }
        self.register_buffer("factors", packed.factors(task, sizes), persistent=False)

    @classmethod
    def build(
        cls,
        name: str,
        task: Task,
        units: Units | None = None,
        coarsen: int = 1,
        predicts: str = "state",
        constraints: ConstraintsLike = (),
        stride: StrideLike = 1,
        *,
        params: int | None = None,
        calibrate: bool = True,
        **options: Any,
    ) -> Forecaster:
        """A forecaster with a fresh network.

        Args:
            name: of the network, see `cscnn.networks.names`.
            task: what is forecast.
            units, coarsen, predicts, constraints, stride: as above.
            params: instead of a width, a number of parameters to come as close to as possible.
            calibrate: set the initial scales of steerable networks by a pass of noise.
            options: of the network, e.g. ``width``.
        """
        check_interface(name, task)
        signature = (name, task.input_type, task.output_type)
        if params is not None:
            if options.get("width") is not None:
                raise ValueError(
                    f"give width or params, not both: got {options['width']} and {params}"
                )
            options = fit_budget(*signature, params, task.space, **options)
        network = build(*signature, task.space, **options)
        if calibrate and isinstance(network, Calibrated):
            calibrate_for(network, task)
        return cls(network, task, units, coarsen, predicts, constraints, stride)

    @property
    def dtype(self) -> torch.dtype:
        """Of the weights, or of the constants if there are no weights."""
        dtypes = (p.dtype for p in self.network.parameters() if p.is_floating_point())
        return next(dtypes, self.constants.dtype)

    @property
    def device(self) -> torch.device:
        """Of the weights."""
        return next(self.network.parameters(), self.constants).device

    @property
    def recipe(self) -> Recipe | None:
        """How the network was made, if it remembers."""
        return recipe_of(self.network)

    @property
    def name(self) -> str:
        """Of the network."""
        return self.recipe.name if self.recipe else type(self.network).__name__

    def n_parameters(self) -> int:
        """Number of trainable numbers."""
        return count_parameters(self.network)

    # --- forecasts --------------------------------------------------------------------------------

    def forward(
        self,
        frames: packed.FramesLike,
        steps: int | None = None,
        constants: Tensor | None = None,
        given: packed.FramesLike | None = None,
        points: PointsLike | None = None,
    ) -> dict[str, Tensor]:
        """Forecast, feeding predictions back for as many frames as are wanted.

        Args:
            frames: field name -> (batch, at least frames_in, *space, components), tensors or numpy
                arrays, in physical units and on the grid of `view`: means over cells of the data.
                The last ``frames_in`` count.
            steps: frames to forecast; by default ``frames_out``, and no more after a gap.
            constants: in place of those of the task, see `predict`.
            given: what the task is given, in physical units: forcing (batch, frames, *space,
                components) from the first of these frames to the last that is forecast, static
                fields (batch, *space, components), constants (batch, components).
            points: of fields on points, where *space is one axis: `Points`, or their positions,
                (points, dim), as one tensor for each sample or one for all.

        Returns:
            field name -> (batch, steps, *space, components), in the dtype of the weights, but at
            least float32.
        """
        steps = self.task.frames_out if steps is None else steps
        return self.roll_out(frames, steps, constants, given=given, points=points)

    def roll_out(
        self,
        frames: packed.FramesLike,
        steps: int,
        constants: Tensor | None = None,
        guard: Callable[[dict[str, Tensor]], Frames | None] | None = None,
        given: packed.FramesLike | None = None,
        points: PointsLike | None = None,
    ) -> dict[str, Tensor]:
        """`forward`, with a look at every block of new frames.

        If frames are channels, predictions take the place of the oldest frames; if time is an axis
        of the grid, block follows block. Both is the same: the last ``frames_in`` frames are known.
        A forcing advances with them.

        Args:
            guard: gets new frames (batch, frames_out, *space, components) and returns what is fed
                back; None from it ends the forecast early.
        """
        check_steps(self.task, steps)
        fields, seen = packed.as_tensors("frames", frames), self.task.frames_in
        quantities = packed.as_tensors("given", given or {})
        recent = {name: packed.recent(self.task, name, x) for name, x in fields.items()}
        wide = {name: torch.promote_types(x.dtype, self.dtype) for name, x in fields.items()}
        known = {name: x.to(self.device, wide[name]) for name, x in recent.items()}
        told = {n: x.to(self.device) for n, x in check_given(self.task, quantities).items()}
        batch, start = next(iter(fields.values())).shape[:2]
        places = as_points(points, self.task.points, batch, self.constants)
        blocks: list[dict[str, Tensor]] = []
        while len(blocks) * self.task.frames_out < steps:
            x = self.pack(known, at_step(self.task, told, len(blocks), start - seen))
            new = self.unpack(self.newest(self.predict(x, constants, places)))
            blocks.append(new)
            kept = new if guard is None else guard(new)
            if kept is None:
                break
            known = {n: torch.cat([x, kept[n].to(x)], 1)[:, -seen:] for n, x in known.items()}
        return {name: torch.cat([b[name] for b in blocks], 1)[:, :steps] for name in known}

    def pack(self, frames: Frames, given: Frames | None = None) -> Tensor:
        """Physical fields as the network's multivectors: (batch, channels, *grid, blades).

        Args:
            frames: field name -> (batch, frames, *space, components).
            given: what follows them in an input, of one step: as in `forward`, but a forcing has
                ``task.span`` frames.
        """
        x = self.task.pack(self._scaled(frames))
        return x if given is None else self._join(x, check_given(self.task, given))

    def _scaled(self, fields: Frames) -> dict[str, Tensor]:
        return {name: x.to(self.dtype) for name, x in self.units.scaled(fields).items()}

    def _join(self, x: Tensor, given: Frames) -> Tensor:
        """The frames of an input, and what is given."""
        if not given:
            return x
        told = pack_given(self.task, self._scaled(given), len(x), x.shape[2:-1])
        return torch.cat([x, told], 1)

    def unpack(self, x: Tensor) -> dict[str, Tensor]:
        """The network's multivectors as physical fields, of at least single precision."""
        x = x.to(torch.promote_types(x.dtype, torch.float32))
        return self.units.physical(self.task.unpack(x))

    def predict(
        self, x: Tensor, constants: Tensor | None = None, points: Points | None = None
    ) -> Tensor:
        """One application of the network, in scaled units, on the grid of its input.

        With time as an axis of the grid, only the last frames are new, see `newest`.

        Args:
            x: (batch, task.in_channels, *grid, blades), from `pack`: frames, and what is given.
            constants: (constants, blades) or (batch, constants, blades), see `Task.constants`; by
                default those of the task. Transform them with the field to test equivariance.
            points: of fields on points.
        """
        task, blades = self.task, self.task.algebra.n_blades
        known = self.constants if constants is None else constants
        check_input(x, known, task, points)
        frames = x[:, : task.frame_channels]
        if count := len(task.constants):
            known = known.to(x).expand(x.shape[0], count, blades)
            known = known.reshape(*known.shape[:2], *(1,) * task.grid_axes, blades)
            x = torch.cat([x, known.expand(*known.shape[:2], *x.shape[2:])], 1)
        y = self.network(x) if points is None else points.apply(self.network, x)
        assert isinstance(y, Tensor)
        if self.predicts == "change":
            y = packed.base(task, frames) + y * self.factors.to(y)
        return self.constrain(y, frames)

    def newest(self, y: Tensor) -> Tensor:
        """The new frames of what `predict` returns: all, unless time is an axis of the grid."""
        return packed.newest(self.task, y)

    def loss(
        self,
        window: Window,
        name: str = "mse",
        weights: Mapping[str, float] | None = None,
        unroll: Unroll = ONE_STEP,
    ) -> Tensor:
        """A loss of a batch of windows, in scaled units; the mean over unrolled steps.

        Args:
            window: a batch, see `collate`. Its target has ``frames_out`` frames for each step.
            name: which loss, see `cscnn.forecasting.losses`.
            weights: field name -> weight in the loss; 1 for fields that are not named.
            unroll: over how many steps of its own forecast, and how.
        """
        task, function, target = self.task, get_loss(name), self.pack(window.target)
        check_loss(name, task)
        points = as_points(window.points, task.points, len(target), self.constants)
        counted = task.inside_grid if points is None else points.counted
        check_steps(task, unroll.steps * task.frames_out)
        given = check_given(task, window.given)

        def step(x: Tensor, number: int) -> Tensor:
            x = self._join(x, at_step(task, given, number))
            return self.newest(self.predict(x, window.constants, points))

        def append(x: Tensor, y: Tensor) -> Tensor:  # as `pack` would: zeros without data
            clean = y if self.predicts == "change" else y * self.factors.to(y)
            return packed.append(task, x, clean)

        losses = [
            function(counted(y), counted(packed.block(task, target, number)), task, weights)
            for number, y in unroll.predictions(step, append, self.pack(window.known))
        ]
        return torch.stack(losses).mean()

    # --- data -------------------------------------------------------------------------------------

    def view(self, data: FieldSource | Paths, stride: int | None = None) -> View:
        """Data as the network sees them, if they are of its task.

        Args:
            data: an open source, or files.
            stride: by default the smallest of training. If these are a range, another one in it.
        """
        source = data if isinstance(data, FieldSource) else open_fields(data)
        return view(self.task, source, self.coarsen, self.stride, stride)

    # --- files ------------------------------------------------------------------------------------

    def save(self, path: str | Path, weights: Mapping[str, Tensor] | None = None) -> None:
        """Write one safetensors file that says in its metadata what it is; whole or not at all.

        A compiled or parametrised network is written as the plain one that it stands for.

        Args:
            path: the file.
            weights: instead of those of the network, e.g. gathered from several devices.
        """
        constraints = self.constrain.constraints
        description = Description(
            FORMAT, self.task, self.units, self.coarsen, self.predicts, constraints, self.stride
        )
        text = json.dumps(to_json(description))
        files.save(path, self.network, weights=weights, metadata={KEY: text})

    @classmethod
    def load(cls, path: str | Path, device: torch.device | str = "cpu") -> Forecaster:
        """Read a forecaster from a file, from a run, or from a folder to share, in eval mode.

        Args:
            path: what `save` has written, or a folder that holds ``model.safetensors``.
            device: where to put it.
        """
        path = Path(path)
        file = path / WEIGHTS if path.is_dir() else path
        metadata, tensors = files.read(file)
        d = files.described(file, metadata, KEY, Description, FORMAT)
        network = files.restore(file, metadata, tensors)
        forecaster = cls(network, d.task, d.units, d.coarsen, d.predicts, d.constraints, d.stride)
        return forecaster.to(device).eval()
