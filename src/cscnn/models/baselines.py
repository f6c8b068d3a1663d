"""Networks to compare with: ResNet, Clifford ResNet and the Fourier neural operator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from cscnn.algebra.blades import check_int
from cscnn.conv.export import PadGrid
from cscnn.models.base import ComponentModel, FieldModel, PaddedConv, at_most_3d, require
from cscnn.models.tasks import Task


class ChannelNorm(nn.Module):
    """Layer norm over the channels at each point of (batch, channels, *grid)."""

    def __init__(self, channels: int):
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x.movedim(1, -1)).movedim(-1, 1)
        assert isinstance(y, Tensor)
        return y


class ResidualNet(nn.Module):
    """The form of `CSResNet` on any features: embedding, residual blocks, output, with GELU.

    Args:
        c_in, width, inner, c_out: channels of the input, of the blocks, between the two
            convolutions of a block (by default ``width``), of the output.
        blocks: number of residual blocks.
        kernel_size: taps per axis of the blocks' convolutions; the others have one.
        conv: makes a convolution from its channels and its kernel size.
        norm: makes a norm from its channels.
    """

    def __init__(
        self,
        c_in: int,
        width: int,
        inner: int | None,
        c_out: int,
        *,
        blocks: int,
        kernel_size: int,
        conv: Callable[[int, int, int], nn.Module],
        norm: Callable[[int], nn.Module],
    ):
        super().__init__()
        check_int("width", width, low=1)
        inner = inner or width
        self.embedding = nn.Sequential(
            conv(c_in, width, 1), nn.GELU(), conv(width, width, 1), nn.GELU()
        )
        self.blocks = nn.ModuleList(
            nn.Sequential(
                conv(width, inner, kernel_size), norm(inner), nn.GELU(),
                conv(inner, width, kernel_size), norm(width),
            )
            for _ in range(blocks)
        )  # fmt: skip
        self.output = nn.Sequential(conv(width, width, 1), nn.GELU(), conv(width, c_out, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.embedding(x)
        for block in self.blocks:
            x = nn.functional.gelu(x + block(x))
        y = self.output(x)
        assert isinstance(y, Tensor)
        return y


class ResNet(ComponentModel):
    """The plain ResNet: the form of `CSResNet`, on components, with nothing built in.

    Args:
        task: what to predict.
        width: channels.
        inner: channels between the two convolutions of a block; by default ``width``.
        blocks: number of residual blocks.
        kernel_size: taps per axis.
        norm: normalise after each convolution of a block.
    """

    on_meta = True

    def __init__(
        self,
        task: Task,
        width: int = 64,
        inner: int | None = None,
        blocks: int = 8,
        kernel_size: int = 7,
        norm: bool = True,
    ):
        super().__init__(task)
        at_most_3d("resnet", task)
        self.network = ResidualNet(
            self.components_in,
            width,
            inner,
            self.components_out,
            blocks=blocks,
            kernel_size=kernel_size,
            conv=lambda a, b, size: PaddedConv(task.dim, a, b, size, task.padding_mode),
            norm=lambda channels: ChannelNorm(channels) if norm else nn.Identity(),
        )

    def compute_components(self, x: Tensor) -> Tensor:
        y = self.network(x)
        assert isinstance(y, Tensor)
        return y


class CliffordConv(nn.Module):
    """A convolution of the package cliffordlayers that keeps the grid, in any padding mode."""

    def __init__(
        self,
        metric: tuple[int, ...],
        c_in: int,
        c_out: int,
        kernel_size: int,
        modes: tuple[str, ...],
    ):
        super().__init__()
        from cliffordlayers.nn.modules import cliffordconv

        dim = len(metric)
        kind = getattr(cliffordconv, f"CliffordConv{dim}d")
        self.pad = PadGrid((kernel_size // 2,) * dim, modes)
        self.conv = kind(metric, c_in, c_out, kernel_size)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.movedim(-1, 2)
        padded = self.pad(flat.flatten(1, 2))
        y = self.conv(padded.unflatten(1, flat.shape[1:3]).movedim(2, -1))
        assert isinstance(y, Tensor)
        return y


class CliffordResNet(FieldModel):
    """The Clifford ResNet: multivector-valued kernels, geometric products instead of matrices.

    On the convolutions and norms of the package cliffordlayers. Commutes with translations only.

    Args:
        task: what to predict.
        width: channels.
        inner: channels between the two convolutions of a block; by default ``width``.
        blocks: number of residual blocks.
        kernel_size: taps per axis.
        norm: normalise after each convolution of a block.
    """

    def __init__(
        self,
        task: Task,
        width: int = 16,
        inner: int | None = None,
        blocks: int = 8,
        kernel_size: int = 7,
        norm: bool = True,
    ):
        super().__init__(task)
        if task.dim not in (2, 3):
            raise ValueError(
                f"cliffordlayers has Clifford convolutions in 2 and 3 dimensions; task {task.name} "
                f"has {task.dim}"
            )
        require("cliffordlayers", "clifford_resnet", "baselines")
        from cliffordlayers.nn.modules import groupnorm

        group_norm = getattr(groupnorm, f"CliffordGroupNorm{task.dim}d")
        self.network = ResidualNet(
            self.n_inputs,
            width,
            inner,
            task.out_channels,
            blocks=blocks,
            kernel_size=kernel_size,
            conv=lambda a, b, size: CliffordConv(task.metric, a, b, size, task.padding_mode),
            norm=lambda channels: group_norm(task.metric, 1, channels) if norm else nn.Identity(),
        )

    def compute(self, x: Tensor) -> Tensor:
        y = self.network(x.contiguous())
        assert isinstance(y, Tensor)
        return y


class FNO(ComponentModel):
    """The Fourier neural operator of the package neuraloperator, without position embedding.

    Args:
        task: what to predict.
        width: hidden channels.
        modes: Fourier modes kept along each axis.
        layers: number of Fourier layers.
        operator_options: further options of ``neuralop.models.FNO``.
    """

    def __init__(
        self,
        task: Task,
        width: int = 32,
        modes: int = 12,
        layers: int = 4,
        operator_options: Mapping[str, Any] | None = None,
    ):
        super().__init__(task)
        at_most_3d("fno", task)
        require("neuralop", "fno", "baselines")
        from neuralop.models import FNO as Operator

        check_int("width", width, low=1)
        check_int("modes", modes, low=1)
        self.network = Operator(
            (modes,) * task.dim,
            self.components_in,
            self.components_out,
            width,
            n_layers=layers,
            positional_embedding=None,
            **(operator_options or {}),
        )

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Without the description that neuralop adds, which is no tensor."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Attempting to update metadata")
            state = super().state_dict(*args, **kwargs)
        state.pop("_metadata", None)
        return state

    def compute_components(self, x: Tensor) -> Tensor:
        y = self.network(x)
        assert isinstance(y, Tensor)
        return y
