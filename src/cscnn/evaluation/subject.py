"""A model with the data that it is measured on, and the measurements one by one."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cscnn.data import FieldSource, Scaling, Windows
from cscnn.data.windows import average_cells
from cscnn.evaluation import metrics, symmetry
from cscnn.evaluation.frames import Fields, frames_error
from cscnn.evaluation.rollout import forecast, persistence, rollout
from cscnn.models import FieldModel
from cscnn.progress import Bar

#: Largest cube, in points per axis, on which boosts are tried, by the number of axes.
BLOCKS = {2: 64, 3: 32, 4: 12}


class NonFinitePrediction(ValueError):
    """A model says NaN or infinity about data that are finite."""


class Subject:
    """A model with the data that it is measured on."""

    def __init__(
        self, model: FieldModel, scaling: Scaling, source: FieldSource, coarsen: int, batch: int
    ):
        self.model, self.scaling, self.source, self.batch = model, scaling, source, batch
        self.coarsen, self.task = coarsen, model.task
        self.windows = Windows(source, model.task, mode="all", coarsen=coarsen)
        self.device = model.background.device
        header = source.header
        self.time = header.time_axis is not None
        self.frame_spacing = header.frame_spacing * (coarsen if self.time else 1)
        self.components = {f.name: header.algebra.grade_sizes[f.grade] for f in header.fields}
        first = int(self.time)
        spacing = tuple(h * coarsen for h in header.spacing)[first:]
        periodic = tuple(kind == "periodic" for kind in header.boundary)[first:]

        def spectra(p: Tensor, t: Tensor) -> Tensor:
            return metrics.spectrum_error(p, t, spacing, periodic)

        self.kinds: dict[str, metrics.Metric] = {
            "mse": metrics.mse,
            "relative_l2": metrics.relative_l2,
            "vrmse": metrics.vrmse,
            "spectrum_error": spectra,
        }

    def choose(self, count: int, seed: int) -> list[int]:
        """Windows, in order."""
        rng = np.random.default_rng(seed)
        return sorted(rng.permutation(len(self.windows))[:count].tolist())

    def read(self, numbers: list[int]) -> tuple[Fields, Fields]:
        """Input and target of windows in physical units, (batch, frames, *space, components)."""
        cut = [self.windows[i] for i in numbers]
        for number, window in zip(numbers, cut, strict=True):
            if not (window.input.isfinite().all() and window.target.isfinite().all()):
                trajectory, start = self.windows.locate(number)
                raise ValueError(
                    f"{self.source.path}: trajectory {trajectory} has values that are not finite "
                    f"in the window from frame {start}"
                )
        known, target = (
            self.task.unpack(torch.stack([w[side] for w in cut]).to(self.device)) for side in (0, 1)
        )
        return known, target

    def one_step(self, chosen: list[int], bar: Bar) -> dict[str, Any]:
        """Errors of one application of the model, and of the forecast that nothing changes."""
        found: list[dict[str, dict[str, Tensor]]] = []
        lazy: list[dict[str, dict[str, Tensor]]] = []
        for start in range(0, len(chosen), self.batch):
            bar("one step", start, len(chosen))
            numbers = chosen[start : start + self.batch]
            known, target = self.read(numbers)
            predicted = forecast(self.model, known, self.scaling)
            if bad := [name for name, x in predicted.items() if not x.isfinite().all()]:
                raise NonFinitePrediction(
                    f"the model's prediction of {', '.join(bad)} is not finite for a window from "
                    f"trajectory, frame {self.windows.locate(numbers[0])}: its weights may be "
                    "broken, or the data are not those that scaling.json is for"
                )
            found.append(metrics.scores(predicted, target, self.kinds))
            still = persistence(known, self.task.frames_out)
            lazy.append(metrics.scores(still, target, self.kinds))
        bar("one step", len(chosen), len(chosen))
        fields, all_fields = self._summary(found)
        scaled = sum(
            self.components[name] * fields[name]["mse"] / self.scaling.scale[name] ** 2
            for name in fields
        )
        scaled_mse = scaled / sum(self.components.values())
        _, persistent = self._summary(lazy)
        return {**all_fields, "scaled_mse": scaled_mse, "fields": fields, "persistence": persistent}

    def _summary(
        self, found: list[dict[str, dict[str, Tensor]]]
    ) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
        """Means over windows and frames: of each field, and of all."""
        joined = {
            name: {kind: torch.cat([part[name][kind] for part in found]) for kind in self.kinds}
            for name in self.components
        }
        fields = {
            name: {kind: metrics.mean(values) for kind, values in kinds.items()}
            for name, kinds in joined.items()
        }
        whole = metrics.total(joined, self.components)
        return fields, {kind: metrics.mean(values) for kind, values in whole.items()}

    def trajectory(self, numbers: list[int], frames: int) -> Fields:
        """The first frames of trajectories, (batch, frames, *space, components)."""
        factor = self.coarsen if self.time else 1
        parts: dict[str, list[Tensor]] = {name: [] for name in self.components}
        for number in numbers:
            for name, array in self.source.read(number, 0, frames * factor).items():
                x = torch.as_tensor(array).float()
                if not x.isfinite().all():
                    raise ValueError(
                        f"{self.source.path}: trajectory {number} has values of {name} that are "
                        "not finite"
                    )
                if self.coarsen > 1:
                    x = average_cells(x, self.coarsen, self.time)
                parts[name].append(x)
        return {name: torch.stack(xs).to(self.device) for name, xs in parts.items()}

    @property
    def frames(self) -> int:
        """Frames of a trajectory, as the model sees it."""
        return self.source.header.frames // (self.coarsen if self.time else 1)

    def steps(self, wanted: int | None) -> int:
        """Frames of a rollout; by default all there are."""
        start = self.task.frames_in
        most = self.frames - start
        if wanted is not None and not 1 <= wanted <= most:
            raise ValueError(
                f"{self.source.path} has trajectories of {self.frames} frames, of which the model "
                f"takes {start}: a rollout can have 1 to {most} steps, got {wanted}"
            )
        return most if wanted is None else wanted

    def rollouts(
        self, count: int, steps: int | None, bar: Bar
    ) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Errors by step, and the first trajectory for pictures."""
        start = self.task.frames_in
        steps = self.steps(steps)
        kinds = {k: self.kinds[k] for k in ("mse", "relative_l2")}
        kinds["correlation"] = metrics.correlation
        curves: list[dict[str, Tensor]] = []
        lazy: list[Tensor] = []
        stable: list[int] = []
        times = [self.frame_spacing * step for step in range(1, steps + 1)]
        samples: dict[str, np.ndarray] = {}
        for begin in range(0, count, self.batch):
            bar("rollout", begin, count)
            numbers = list(range(begin, min(begin + self.batch, count)))
            frames = self.trajectory(numbers, start + steps)
            known = {name: x[:, :start] for name, x in frames.items()}
            made = rollout(self.model, frames, self.scaling, steps)
            found = metrics.scores(made.prediction, made.target, kinds)
            curves.append(metrics.total(found, self.components))
            still = metrics.scores(persistence(known, steps), made.target, kinds)
            lazy.append(metrics.total(still, self.components)["relative_l2"])
            stable += made.stable.tolist()
            if not begin:
                samples["times"] = np.asarray(times, np.float32)
                for title, group in (
                    ("target", made.target), ("prediction", made.prediction), ("input", known),
                ):  # fmt: skip
                    for name, x in group.items():
                        samples[f"{title}/{name}"] = x[0].cpu().numpy().astype(np.float32)
        bar("rollout", count, count)
        horizon = min(stable)
        joined = {kind: torch.cat([c[kind] for c in curves]).nanmean(0).tolist() for kind in kinds}
        # a mean over the survivors only would look better the more are lost
        known_part = {k: v[:horizon] + [math.nan] * (steps - horizon) for k, v in joined.items()}
        lost = metrics.correlation_time(known_part["correlation"], range(1, steps + 1))
        return {
            "steps": list(range(1, steps + 1)),
            "times": times,
            **known_part,
            "correlation_time": None if lost is None else lost * self.frame_spacing,
            "correlation_frames": lost,
            "stable_steps": horizon,
            "stable": stable,
            "trajectories": count,
            "persistence": {"relative_l2": torch.cat(lazy).nanmean(0).tolist()},
        }, samples

    def symmetry(self, chosen: list[int], seed: int, quiet: bool) -> dict[str, Any]:
        """Violations of symmetries, and errors seen from other frames."""
        bar = Bar("transformations", quiet=quiet)
        model = symmetry.in_float64(self.model)
        x = self.scaled_input(_spread(chosen, 2))
        block = self._block(x)
        wide = block if block.shape[2] > x.shape[2] else x  # room in time for an interior
        sight = symmetry.reach(model, wide.shape[2:-1], seed)
        result: dict[str, Any] = {
            "reach": list(sight),
            "interior": symmetry.has_interior(self.task, wide.shape[2:-1], sight),
            "group": symmetry.symmetry_group(model),
            "translation": symmetry.translation_error(model, wide, sight, seed),
            "point group": symmetry.point_group_error(model, x, seed=seed),
            "rotation": None,
            "boost": None,
            "frames": None,
        }
        if symmetry.has_rotations(self.task):
            moves = {a: symmetry.rotation(self.task.dim, a, seed) for a in symmetry.ANGLES}
            found = _moved(model, x, moves, bar, "rotations")
            result["rotation"] = _lists("angles", found)
        if symmetry.has_boosts(self.task):
            boosts = {r: symmetry.boost(model.algebra, r, seed) for r in symmetry.RAPIDITIES}
            found = _moved(model, block, boosts, bar, "boosts")
            result["boost"] = _lists("rapidities", found)
        frames = frames_error(
            self.model,
            self.source.header,
            self.scaling,
            self.read(_spread(chosen, 4 * self.batch)),
            coarsen=self.coarsen,
            progress=lambda items: bar.over("other frames", list(items)),
        )
        result["frames"] = None if frames is None else frames.to_dict()
        return result

    def scaled_input(self, numbers: list[int]) -> Tensor:
        """What the model is given for some windows, in float64."""
        return self._scaled(self.read(numbers)[0])

    def _scaled(self, fields: Fields) -> Tensor:
        wide = {name: x.double() for name, x in fields.items()}
        return self.task.pack(self.scaling.apply(wide))

    def _block(self, x: Tensor) -> Tensor:
        """Inputs on a cube as large as the data allow: room for boosts. x if time is no axis."""
        if not self.time:
            return x
        space = x.shape[3:-1]
        size = min(self.frames, *space, BLOCKS.get(self.task.dim, 8))
        size -= size % (8 if size >= 16 else 2)
        numbers = list(range(min(2, len(self.source))))
        fields = self.trajectory(numbers, max(size, 1))
        for axis, n in enumerate(space):
            fields = {name: f.narrow(2 + axis, (n - size) // 2, size) for name, f in fields.items()}
        return self._scaled(fields)

    def cost(self, chosen: list[int]) -> dict[str, Any]:
        """Speed and memory of forecasts."""
        from cscnn.measure import peak_memory

        known, _ = self.read(chosen[: self.batch])
        size = len(next(iter(known.values())))
        seconds = []
        for _ in range(4):  # the first one warms up
            start = time.perf_counter()
            made = forecast(self.model, known, self.scaling)
            float(next(iter(made.values())).sum())  # waits for the device
            seconds.append(time.perf_counter() - start)
        one = {name: x[:1] for name, x in known.items()}

        def work() -> list[Tensor]:
            return list(forecast(self.model, one, self.scaling).values())

        return {
            "windows_per_second": size / min(seconds[1:]),
            "batch": size,
            "peak_bytes": peak_memory(work),
            "parameters": self.model.n_parameters(),
        }


def _spread(chosen: list[int], count: int) -> list[int]:
    """Some of many, from all trajectories and times."""
    places = np.linspace(0, len(chosen) - 1, min(count, len(chosen)))
    return [chosen[round(i)] for i in places]


Moves = dict[float, symmetry.Moved]


def _moved(model: FieldModel, x: Tensor, moves: dict[float, Tensor], bar: Bar, what: str) -> Moves:
    """Errors of the transformations for which the grid has room."""
    grid, spacing = tuple(x.shape[2:-1]), model.task.grid_spacing
    fit = {
        value: g
        for value, g in moves.items()
        if symmetry.room(grid, spacing, g) >= symmetry.SMALLEST
    }
    sight = symmetry.reach(model, grid) if fit else ()
    return {
        value: symmetry.motion_error(model, x, fit[value], sight)
        for value in bar.over(what, list(fit))
    }


def _lists(name: str, found: Moves) -> dict[str, list[float]] | None:
    """JSON form; None if there was no room for any."""
    return (
        {
            name: list(found),
            "errors": [m.error for m in found.values()],
            "floor": [m.floor for m in found.values()],
        }
        if found
        else None
    )
