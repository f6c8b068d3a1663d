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
from cscnn.kernels.differential import DifferentialKernel
from cscnn.viz.figures import fit_text, new_figure, set_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

#: How the panels are to be read.
LEGEND = (
    "Columns: input blade. Rows: output blade. e1 points up, e2 right. Each panel has its own "
    "colour scale."
)
POINTS = 8  #: size of its letters

Kernel = SteerableKernel | CliffordSteerableConv


def plot_kernel(
    kernel: Kernel,
    *,
    channel: tuple[int, int] = (0, 0),
    resolution: int = 101,
    extent: float = 1.0,
    slice_at: float = 0.0,
    title: str | None = None,
) -> Figure:
    """The n x n panel of a kernel: how each input blade (column) feeds each output blade (row).

    In two dimensions every panel is all of the kernel. In three it is the slice at one value of the
    third coordinate. Each panel has its own symmetric colour scale (red positive, blue negative,
    white zero) with its largest value written in the corner; panels that vanish stay grey. In mixed
    signature the dotted lines are the light cone. The first axis points up, as time does in
    spacetime diagrams. Multivectors that a kernel is given beside the points are zero.

    Args:
        kernel: a kernel, evaluated on a fine grid, or a convolution, whose kernel is shown on its
            own sampling grid. A differential kernel is shown on its taps, where alone it is
            defined.
        channel: (output channel, input channel).
        resolution: points per axis, for a kernel.
        extent: coordinates run from -extent to extent, for a kernel.
        slice_at: third coordinate in three dimensions, in units in which kernel grids reach to 1;
            of a convolution the nearest slice is shown.
        title: above the panels; by default what the kernel is, none if empty.

    Returns:
        a matplotlib figure; ``figure.savefig("kernel.png")`` writes it.
    """
    cut = _Cut(channel, resolution, extent, slice_at)
    sample = cut.sample(kernel)
    side = _inches(sample.algebra)
    figure = new_figure(side, side, "constrained")
    _draw(figure, sample, sample.title if title is None else title)
    figure.supxlabel(fit_text(LEGEND, side, POINTS), fontsize=POINTS)
    return figure


def plot_kernels(
    kernels: Mapping[str, Kernel],
    *,
    title: str | None = None,
    channel: tuple[int, int] = (0, 0),
    resolution: int = 101,
    extent: float = 1.0,
    slice_at: float = 0.0,
) -> Figure:
    """The panels of several kernels side by side, each under its name.

    Args:
        kernels: title -> kernel or convolution.
        title: above all of them.
        channel, resolution, extent, slice_at: as for `plot_kernel`.
    """
    if not kernels:
        raise ValueError("a picture of kernels needs at least one, got none")
    cut = _Cut(channel, resolution, extent, slice_at)
    samples = {name: cut.sample(kernel) for name, kernel in kernels.items()}
    sides = [_inches(sample.algebra) for sample in samples.values()]
    figure = new_figure(sum(sides), max(sides) + 0.3, "constrained")
    parts = figure.subfigures(1, len(sides), squeeze=False, wspace=0.05, width_ratios=sides)
    for part, (name, sample) in zip(parts[0], samples.items(), strict=True):
        _draw(part, sample, name)
    figure.supxlabel(fit_text(LEGEND, sum(sides), POINTS), fontsize=POINTS)
    if title:
        set_title(figure, title, 12)
    return figure


@dataclass(frozen=True)
class _Sample:
    """A kernel on a grid.

    Attributes:
        values: (blades, blades, rows, columns).
        half_widths: of what is shown, along both axes.
        third: third coordinate, 0 in two dimensions.
        title: what it is.
    """

    algebra: CliffordAlgebra
    values: Tensor
    half_widths: tuple[float, float]
    third: float
    title: str


@dataclass(frozen=True)
class _Cut:
    """Which numbers of a kernel are shown, see `plot_kernel`."""

    channel: tuple[int, int]
    resolution: int
    extent: float = 1.0
    slice_at: float = 0.0

    def sample(self, kernel: Kernel) -> _Sample:
        """The numbers."""
        algebra = kernel.algebra
        if algebra.dim not in (2, 3):
            raise ValueError(f"kernels of 2 and 3 dimensions have a picture, got {algebra}")
        if not (isinstance(self.channel, tuple) and len(self.channel) == 2):
            raise ValueError(
                f"channel must be (output channel, input channel), got {self.channel!r}"
            )
        o, i = self.channel
        if not (0 <= o < kernel.c_out and 0 <= i < kernel.c_in):
            raise ValueError(f"channel {self.channel} is outside ({kernel.c_out}, {kernel.c_in})")
        if abs(self.slice_at) > self.extent:
            raise ValueError(
                f"slice_at must be between {-self.extent} and {self.extent}, got {self.slice_at}"
            )
        with torch.no_grad():
            if isinstance(kernel, CliffordSteerableConv):
                taps = kernel.expanded_kernel(kernel.kernel.zero_extra())
                values, half_widths, third = self._on_taps(kernel, taps)
            elif isinstance(kernel, DifferentialKernel):
                taps = kernel.expand(kernel.points.to(kernel.weight))
                values, half_widths, third = self._on_taps(kernel, taps)
            else:
                values, half_widths, third = self._of_kernel(kernel)
        title = f"{type(kernel).__name__} of Cl{algebra.signature}"
        title += f", slice at {third:g}" if algebra.dim == 3 else ""
        return _Sample(algebra, values, half_widths, third, title)

    def _on_taps(
        self, kernel: CliffordSteerableConv | DifferentialKernel, taps: Tensor
    ) -> tuple[Tensor, tuple[float, float], float]:
        """Values, half-widths and third coordinate on the grid of taps."""
        o, i = self.channel
        n, sizes, points = kernel.algebra.n_blades, kernel.kernel_size, kernel.points.cpu()
        values = taps.reshape(kernel.c_out, n, kernel.c_in, n, *sizes)[o, :, i].cpu()
        half = tuple(
            float(points[:, axis].max()) * size / max(size - 1, 1)
            for axis, size in enumerate(sizes[:2])
        )
        third = 0.0
        if kernel.algebra.dim == 3:
            offsets = points[: sizes[2], 2]
            nearest = int((offsets - self.slice_at).abs().argmin())
            values, third = values[..., nearest], float(offsets[nearest])
        return values, (half[0] or self.extent, half[1] or self.extent), third

    def _of_kernel(self, kernel: SteerableKernel) -> tuple[Tensor, tuple[float, float], float]:
        """The same on a fine grid."""
        o, i = self.channel
        n, side, extent = kernel.algebra.n_blades, self.resolution, self.extent
        like = next(kernel.parameters())
        axis = torch.linspace(-extent, extent, side, device=like.device, dtype=like.dtype)
        points = torch.cartesian_prod(axis, axis)
        third = self.slice_at if kernel.algebra.dim == 3 else 0.0
        if kernel.algebra.dim == 3:
            points = torch.cat([points, torch.full_like(points[:, :1], third)], -1)
        matrices = kernel(points, extra=kernel.zero_extra())[:, o, :, i].cpu()
        return matrices.permute(1, 2, 0).reshape(n, n, side, side), (extent, extent), third


def _inches(algebra: CliffordAlgebra) -> float:
    return 0.95 * algebra.n_blades + 0.8


def _draw(figure: Figure | SubFigure, sample: _Sample, title: str) -> None:
    """The panels of one kernel, in a figure or a part of one."""
    algebra, values = sample.algebra, sample.values
    n = algebra.n_blades
    axes = figure.subplots(n, n, squeeze=False)
    largest = values.abs().max().item()
    for row in range(n):
        for column in range(n):
            ax, panel = axes[row, column], values[row, column]
            ax.set(xticks=[], yticks=[], facecolor="0.92")
            if panel.abs().max().item() > 1e-6 * largest:
                _draw_panel(ax, sample, panel)
            else:
                ax.set(xlim=(0, 1), ylim=(0, 1))
            if row == 0:
                ax.set_title(algebra.blade_names[column], fontsize=9)
            if column == 0:
                ax.set_ylabel(algebra.blade_names[row], rotation=0, ha="right", fontsize=9)
    if title:
        set_title(figure, title, 11)


def _draw_panel(ax: Any, sample: _Sample, panel: Tensor) -> None:
    """One block (rows, columns) with its largest value, and the light cone if there is one."""
    y, x = sample.half_widths
    peak = panel.abs().max().item()
    ax.imshow(
        panel.numpy(),
        origin="lower",
        extent=(-x, x, -y, y),
        cmap="RdBu_r",
        vmin=-peak,
        vmax=peak,
        aspect="auto",
        interpolation="nearest",
    )
    box = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.8}
    ax.text(0.96, 0.05, f"{peak:.2g}", transform=ax.transAxes, ha="right", fontsize=6, bbox=box)
    if len(set(sample.algebra.metric)) == 2:
        _light_cone(ax, sample)


def _light_cone(ax: Any, sample: _Sample) -> None:
    """t² = x² + third² (or its counterpart for other signs) as dotted lines."""
    metric, (height, width) = sample.algebra.metric, sample.half_widths
    x = torch.linspace(-width, width, 201, dtype=torch.float64)
    beyond = metric[2] * sample.third**2 if len(metric) == 3 else 0.0
    square = -(metric[1] * x**2 + beyond) * metric[0]
    t = square.clamp(min=0).sqrt().where(square >= 0, float("nan"))
    for branch in (t, -t):
        ax.plot(x.numpy(), branch.numpy(), ":", color="black", linewidth=0.7)
    ax.set(xlim=(-width, width), ylim=(-height, height))
