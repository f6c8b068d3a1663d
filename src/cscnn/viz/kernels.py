"""Pictures of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.conv import CliffordSteerableConv
from cscnn.kernels import SteerableKernel
from cscnn.viz.backend import matplotlib, pyplot

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

#: How the panels are to be read.
LEGEND = "columns: input blade, rows: output blade; e1 points up, e2 right; own colour scale each"


def plot_kernel(
    kernel: SteerableKernel | CliffordSteerableConv,
    *,
    channel: tuple[int, int] = (0, 0),
    resolution: int = 101,
    extent: float = 1.0,
    slice_at: float = 0.0,
    title: str | None = None,
) -> Figure:
    """The n x n panel of a kernel: how each input blade (column) feeds each output blade (row).

    In two dimensions every panel is the whole kernel; in three it is the slice at one value of the
    third coordinate. Each panel has its own symmetric colour scale (red positive, blue negative,
    white zero) with its largest value written in the corner; panels that vanish stay grey. In mixed
    signature the dotted lines are the light cone. The first axis points up, as time does in
    spacetime diagrams.

    Args:
        kernel: a kernel, evaluated on a fine grid, or a convolution, whose kernel is shown on its
            own sampling grid.
        channel: (output channel, input channel).
        resolution: points per axis, for a kernel.
        extent: coordinates run from -extent to extent, for a kernel.
        slice_at: third coordinate in three dimensions, in units in which kernel grids reach to 1;
            of a convolution the nearest slice is shown.
        title: above the panels.

    Returns:
        a matplotlib figure; ``figure.savefig("kernel.png")`` writes it.
    """
    sample = _sample(kernel, channel, resolution, extent, slice_at)
    side = _inches(sample.algebra)
    figure: Figure = pyplot().figure(figsize=(side, side), layout="constrained")
    _draw(figure, sample, sample.title if title is None else title)
    figure.supxlabel(LEGEND, fontsize=7)
    return figure


def plot_kernels(
    kernels: Mapping[str, SteerableKernel | CliffordSteerableConv],
    *,
    channel: tuple[int, int] = (0, 0),
    resolution: int = 101,
    extent: float = 1.0,
    slice_at: float = 0.0,
    title: str | None = None,
) -> Figure:
    """The panels of several kernels side by side, each under its name.

    Args:
        kernels: title -> kernel or convolution.
        title: above all of them.
        The others as for `plot_kernel`.
    """
    if not kernels:
        raise ValueError("a picture of kernels needs at least one, got none")
    samples = {
        name: _sample(kernel, channel, resolution, extent, slice_at)
        for name, kernel in kernels.items()
    }
    sides = [_inches(sample.algebra) for sample in samples.values()]
    matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(sum(sides), max(sides) + 0.3), layout="constrained")
    parts = figure.subfigures(1, len(sides), squeeze=False, wspace=0.05, width_ratios=sides)
    for part, (name, sample) in zip(parts[0], samples.items(), strict=True):
        _draw(part, sample, name)
    figure.supxlabel(LEGEND, fontsize=8)
    if title:
        figure.suptitle(title, fontsize=12)
    return figure


@dataclass(frozen=True)
class _Sample:
    """A kernel on a grid.

    Attributes:
        values: (blades, blades, rows, columns).
        shown: half-widths along both axes.
        rest: third coordinate, 0 in two dimensions.
        title: what it is.
    """

    algebra: CliffordAlgebra
    values: Tensor
    shown: tuple[float, float]
    rest: float
    title: str


def _sample(
    kernel: SteerableKernel | CliffordSteerableConv,
    channel: tuple[int, int],
    resolution: int,
    extent: float,
    slice_at: float,
) -> _Sample:
    algebra = kernel.algebra
    if algebra.dim not in (2, 3):
        raise ValueError(f"kernels of 2 and 3 dimensions have a picture, got {algebra}")
    if not (isinstance(channel, tuple) and len(channel) == 2):
        raise ValueError(f"channel must be (output channel, input channel), got {channel!r}")
    o, i = channel
    if not (0 <= o < kernel.c_out and 0 <= i < kernel.c_in):
        raise ValueError(f"channel {channel} is outside ({kernel.c_out}, {kernel.c_in})")
    if abs(slice_at) > extent:
        raise ValueError(f"slice_at must be between {-extent} and {extent}, got {slice_at}")
    values, shown, rest = _values(kernel, o, i, resolution, extent, slice_at)
    title = f"{type(kernel).__name__} of Cl{algebra.signature}"
    title += f", slice at {rest:g}" if algebra.dim == 3 else ""
    return _Sample(algebra, values, shown, rest, title)


def _inches(algebra: CliffordAlgebra) -> float:
    return 0.95 * algebra.n_blades + 0.8


def _draw(figure: Figure | SubFigure, sample: _Sample, title: str) -> None:
    """The panels of one kernel, in a figure or a part of one."""
    algebra, values, shown = sample.algebra, sample.values, sample.shown
    n = algebra.n_blades
    axes = figure.subplots(n, n, squeeze=False)
    largest = values.abs().max().item()
    for row in range(n):
        for column in range(n):
            ax, panel = axes[row, column], values[row, column]
            ax.set(xticks=[], yticks=[], facecolor="0.92")
            peak = panel.abs().max().item()
            if peak > 1e-6 * largest:
                ax.imshow(
                    panel.numpy(),
                    origin="lower",
                    extent=(-shown[1], shown[1], -shown[0], shown[0]),
                    cmap="RdBu_r",
                    vmin=-peak,
                    vmax=peak,
                    aspect="auto",
                    interpolation="nearest",
                )
                ax.text(
                    0.96,
                    0.05,
                    f"{peak:.2g}",
                    transform=ax.transAxes,
                    ha="right",
                    fontsize=6,
                    bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.8},
                )
                if len(set(algebra.metric)) == 2:
                    _light_cone(ax, shown, sample.rest, algebra.metric)
            else:
                ax.set(xlim=(0, 1), ylim=(0, 1))
            if row == 0:
                ax.set_title(algebra.blade_names[column], fontsize=9)
            if column == 0:
                ax.set_ylabel(algebra.blade_names[row], rotation=0, ha="right", fontsize=9)
    figure.suptitle(title, fontsize=11)


def _values(
    kernel: SteerableKernel | CliffordSteerableConv,
    o: int,
    i: int,
    resolution: int,
    extent: float,
    slice_at: float,
) -> tuple[Tensor, tuple[float, float], float]:
    """(n, n, rows, columns), the half-widths shown along both axes, and the third coordinate."""
    algebra = kernel.algebra
    n = algebra.n_blades
    with torch.no_grad():
        if isinstance(kernel, CliffordSteerableConv):
            shape = (kernel.c_out, n, kernel.c_in, n, *kernel.kernel_size)
            values = kernel.expanded_kernel().reshape(shape)[o, :, i].cpu()
            half = tuple(
                float(kernel.points[:, axis].max()) * size / max(size - 1, 1)
                for axis, size in enumerate(kernel.kernel_size[:2])
            )
            rest = 0.0
            if algebra.dim == 3:
                offsets = kernel.points[: kernel.kernel_size[2], 2].cpu()
                nearest = int((offsets - slice_at).abs().argmin())
                values, rest = values[..., nearest], float(offsets[nearest])
            return values, (half[0] or extent, half[1] or extent), rest
        like = next(kernel.parameters())
        axis = torch.linspace(-extent, extent, resolution, device=like.device, dtype=like.dtype)
        points = torch.cartesian_prod(axis, axis)
        if algebra.dim == 3:
            points = torch.cat([points, torch.full_like(points[:, :1], slice_at)], -1)
        matrices = kernel(points)[:, o, :, i].cpu()
    values = matrices.permute(1, 2, 0).reshape(n, n, resolution, resolution)
    return values, (extent, extent), slice_at if algebra.dim == 3 else 0.0


def _light_cone(ax: Any, shown: tuple[float, float], rest: float, metric: tuple[int, ...]) -> None:
    """t² = x² + rest² (or its counterpart for other signs) as dotted lines."""
    x = torch.linspace(-shown[1], shown[1], 201, dtype=torch.float64)
    square = -(metric[1] * x**2 + (metric[2] * rest**2 if len(metric) == 3 else 0.0)) * metric[0]
    t = square.clamp(min=0).sqrt().where(square >= 0, float("nan"))
    for branch in (t, -t):
        ax.plot(x.numpy(), branch.numpy(), ":", color="black", linewidth=0.7)
    ax.set(xlim=(-shown[1], shown[1]), ylim=(-shown[0], shown[0]))
