"""Pictures of kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cscnn.conv import CliffordSteerableConv
from cscnn.kernels import SteerableKernel
from cscnn.viz.backend import pyplot

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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

    plt = pyplot()
    n = algebra.n_blades
    size = 0.95 * n + 0.8
    figure, axes = plt.subplots(n, n, figsize=(size, size), layout="constrained")
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
                    _light_cone(ax, shown, rest, algebra.metric)
            else:
                ax.set(xlim=(0, 1), ylim=(0, 1))
            if row == 0:
                ax.set_title(algebra.blade_names[column], fontsize=9)
            if column == 0:
                ax.set_ylabel(algebra.blade_names[row], rotation=0, ha="right", fontsize=9)
    if title is None:
        title = f"{type(kernel).__name__} of Cl{algebra.signature}"
        title += f", slice at {rest:g}" if algebra.dim == 3 else ""
    figure.suptitle(title, fontsize=11)
    figure.supxlabel(
        "columns: input blade, rows: output blade; e1 points up, e2 right; own colour scale each",
        fontsize=7,
    )
    return figure


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
