"""The Clifford-steerable ResNet of the paper, the O(n)-steerable ResNet, and a U-Net."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from cscnn.algebra.blades import check_int
from cscnn.conv import CliffordSteerableConv
from cscnn.conv.export import PlainFieldConv
from cscnn.models.base import FieldModel
from cscnn.models.blocks import CSBlock, activation_layer, apply_block, calibrate_, check_activation
from cscnn.models.tasks import Task


class CSNetwork(FieldModel):
    """What Clifford-steerable networks share: how their convolutions and activations are made."""

    embedding: nn.Sequential
    output: nn.Sequential

    def __init__(
        self,
        task: Task,
        *,
        kernel_size: int = 7,
        kernel: str = "implicit",
        kernel_options: Mapping[str, Any] | None = None,
        activation: str = "gate",
        padding_mode: str | tuple[str, ...] | None = None,
        norm: bool = True,
        checkpointing: bool = False,
        backend: str = "auto",
        calibrate: bool = True,
    ):
        super().__init__(task)
        if isinstance(padding_mode, list):
            padding_mode = tuple(padding_mode)
        self.kernel_size = kernel_size
        self.activation = check_activation(activation)
        self.norm = norm
        self.checkpointing = checkpointing
        self._calibrate = calibrate
        self._options: dict[str, Any] = {
            "kernel": kernel,
            "kernel_options": self._kernel_options(kernel, kernel_options),
            "padding_mode": padding_mode or task.padding_mode,
            "spacing": task.grid_spacing,
            "backend": backend,
        }

    @classmethod
    def quick(cls, options: dict[str, Any]) -> dict[str, Any]:
        kernel_options = dict(options.get("kernel_options") or {})
        if options.get("kernel", "implicit") == "implicit":
            kernel_options["unit_variance"] = False
        return {**options, "calibrate": False, "kernel_options": kernel_options}

    @staticmethod
    def _kernel_options(kernel: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
        default = {"unit_variance": True} if kernel == "implicit" else {}
        return {**default, **(options or {})}

    def conv(self, c_in: int, c_out: int, kernel_size: int) -> CliffordSteerableConv:
        """A convolution with the options of this network."""
        return CliffordSteerableConv(self.algebra, c_in, c_out, kernel_size, **self._options)

    def act(self, channels: int) -> nn.Module:
        """An activation."""
        return activation_layer(self.activation, self.algebra, channels)

    def block(self, width: int, inner: int) -> CSBlock:
        """A residual block."""
        convs = (
            self.conv(width, inner, self.kernel_size),
            self.conv(inner, width, self.kernel_size),
        )
        return CSBlock(self.algebra, convs, self.norm, (self.act(inner), self.act(width)))

    def run(self, block: nn.Module, x: Tensor) -> Tensor:
        """Apply a block, recomputing it in the backward pass if checkpointing is on."""
        return apply_block(block, x, frugal=self.checkpointing)

    def export(self) -> nn.Module:
        """The same map with plain convolutions, for deployment without this library's kernels."""
        model = copy.deepcopy(self).eval()
        for parent in list(model.modules()):
            for name, child in parent.named_children():
                if isinstance(child, CliffordSteerableConv):
                    plain = PlainFieldConv(child.export(), child.algebra.n_blades)
                    setattr(parent, name, plain)
        return model

    def embed(self, width: int) -> nn.Sequential:
        """Two 1-point convolutions into ``width`` channels."""
        return nn.Sequential(
            self.conv(self.n_inputs, width, 1), self.act(width),
            self.conv(width, width, 1), self.act(width),
        )  # fmt: skip

    def project(self, width: int) -> nn.Sequential:
        """Two 1-point convolutions into the output channels."""
        return nn.Sequential(
            self.conv(width, width, 1),
            self.act(width),
            self.conv(width, self.task.out_channels, 1),
        )

    def calibrate_(self, size: int = 2) -> None:
        """Set initial scales by a pass of noise, see `cscnn.models.blocks.calibrate_`.

        Args:
            size: the size of the grid is a multiple of this.
        """
        kernel_options = self._options["kernel_options"]
        if not self._calibrate or not kernel_options.get("unit_variance", True):
            return  # the latter is the published initialisation
        size *= max(1, {1: 64, 2: 32, 3: 12, 4: 6}[self.task.dim] // size)
        calibrate_(
            self,
            (2, self.task.in_channels, *(size,) * self.task.dim, self.algebra.n_blades),
            blades=self.task.blades,
            layers=[m for m in self.modules() if isinstance(m, CliffordSteerableConv)],
            entries=self.entries(),
            last=self.output[-1],
        )

    def entries(self) -> list[nn.Module]:
        """The convolutions whose outputs enter a chain of residual blocks."""
        return [self.embedding[2]]


class CSResNet(CSNetwork):
    """The paper's network: two 1-point embeddings, residual blocks, two 1-point output layers.

    Args:
        task: what to predict.
        width: channels.
        inner: channels between the two convolutions of a block; by default ``width``.
        blocks: number of residual blocks.
        kernel_size: taps per axis of the blocks' convolutions.
        kernel: ``"implicit"`` (the paper's) or ``"complete"``.
        kernel_options: options of the kernel; implicit kernels start with unit variance here,
            ``{"unit_variance": False}`` gives the published initialisation.
        activation: ``"gate"`` (the paper's) or ``"product"``, see `ProductGate`.
        padding_mode: by default what the task's boundary asks for.
        norm: normalise after each convolution of a block, in spacetime by absolute squares.
        checkpointing: recompute blocks in the backward pass, for less memory.
        backend: see `CliffordSteerableConv`.
        calibrate: set initial scales by a pass of noise, see `CSNetwork.calibrate_`.
    """

    def __init__(
        self,
        task: Task,
        width: int = 16,
        inner: int | None = None,
        blocks: int = 8,
        **options: Any,
    ):
        super().__init__(task, **options)
        check_int("width", width, low=1)
        check_int("blocks", blocks, low=1)
        self.embedding = self.embed(width)
        self.blocks = nn.ModuleList(self.block(width, inner or width) for _ in range(blocks))
        self.output = self.project(width)
        self.calibrate_()

    def compute(self, x: Tensor) -> Tensor:
        x = self.embedding(x)
        for block in self.blocks:
            x = self.run(block, x)
        y = self.output(x)
        assert isinstance(y, Tensor)
        return y


class SteerableResNet(CSResNet):
    """The O(n)-steerable ResNet: all steerable kernels, with radial profiles on Gaussian rings.

    Steerable kernels between multivectors are known in closed form, so this needs no solver and
    runs in three dimensions as in two. Euclidean tasks only: rings are compact, hyperbolas are not.
    """

    @classmethod
    def quick(cls, options: dict[str, Any]) -> dict[str, Any]:
        return {**options, "calibrate": False}

    def __init__(self, task: Task, width: int = 16, **options: Any):
        if len(set(task.metric)) > 1:
            raise ValueError(
                "steerable_resnet is for O(n), the symmetry of a Euclidean space; task "
                f"{task.name} has metric {task.metric}: use cs_resnet"
            )
        if "kernel" in options:
            raise TypeError("steerable_resnet has one kind of kernel: use cs_resnet to choose")
        kernel_options = {"radial": "rings", **(options.pop("kernel_options", None) or {})}
        super().__init__(task, width, kernel="complete", kernel_options=kernel_options, **options)


class CSUNet(CSNetwork):
    """An equivariant U-Net for large grids.

    Grids are halved by averaging cells of two points per axis and doubled by repeating them. Both
    treat the points of a cell alike, so they commute with all symmetries of an even grid, which
    striding (it keeps one point of each cell) does not.

    Args:
        task: what to predict.
        width: channels on the finest grid; doubled on each coarser one.
        inner: channels between the two convolutions of the finest blocks; by default ``width``.
        levels: how often the grid is halved; its sizes must be divisible by 2^levels.
        options: as for `CSResNet`.
    """

    def __init__(
        self, task: Task, width: int = 8, inner: int | None = None, levels: int = 2, **options: Any
    ):
        super().__init__(task, **options)
        check_int("width", width, low=1)
        self.levels = check_int("levels", levels, low=1)
        inner = inner or width
        widths = [width * 2**i for i in range(levels + 1)]
        inners = [inner * 2**i for i in range(levels + 1)]
        self.embedding = self.embed(width)
        self.down = nn.ModuleList(map(self.block, widths[:-1], inners[:-1]))
        self.widen = nn.ModuleList(self.conv(a, b, 1) for a, b in pairwise(widths))
        self.bottom = self.block(widths[-1], inners[-1])
        self.narrow = nn.ModuleList(self.conv(b, a, 1) for a, b in pairwise(widths))
        self.merge = nn.ModuleList(self.conv(2 * w, w, 1) for w in widths[:-1])
        self.up = nn.ModuleList(map(self.block, widths[:-1], inners[:-1]))
        self.output = self.project(width)
        self.calibrate_(size=2**levels)

    def entries(self) -> list[nn.Module]:
        return [*super().entries(), *self.widen, *self.merge]

    def compute(self, x: Tensor) -> Tensor:
        grid = tuple(x.shape[2:-1])
        if any(n % 2**self.levels for n in grid):
            raise ValueError(
                f"this U-Net halves the grid {self.levels} times: sizes must be divisible by "
                f"{2**self.levels}, got {grid}"
            )
        x = self.embedding(x)
        skips = []
        for block, widen in zip(self.down, self.widen, strict=True):
            x = self.run(block, x)
            skips.append(x)
            x = widen(halve(x))
        x = self.run(self.bottom, x)
        levels = list(zip(self.narrow, self.merge, self.up, skips, strict=True))
        for narrow, merge, block, skip in reversed(levels):
            x = merge(torch.cat([skip, double(narrow(x))], 1))
            x = self.run(block, x)
        y = self.output(x)
        assert isinstance(y, Tensor)
        return y


def halve(x: Tensor) -> Tensor:
    """Mean over cells of two points per axis of (batch, channels, *grid, blades)."""
    for axis in range(2, x.dim() - 1):
        x = x.unflatten(axis, (-1, 2)).mean(axis + 1)
    return x


def double(x: Tensor) -> Tensor:
    """Each point twice along every axis of the grid: the adjoint of `halve`, up to a factor."""
    for axis in range(2, x.dim() - 1):
        x = x.repeat_interleave(2, axis)
    return x
