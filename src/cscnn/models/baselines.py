"""Networks to compare with: ResNet, Clifford ResNet and Fourier neural operators."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from cscnn.algebra.blades import check_int
from cscnn.conv.export import PadGrid
from cscnn.models.base import ComponentModel, FieldModel, PaddedConv, at_most_3d
from cscnn.models.tasks import Task


def require(package: str, model: str) -> None:
    """Raise with the extra to install unless a package is there."""
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise ImportError(
            f"{model} needs the package {package}: pip install 'cscnn[baselines]'", name=package
        )


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
        require("cliffordlayers", "clifford_resnet")
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
        require("neuralop", "fno")
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


class GroupSpectralConv(nn.Module):
    """Convolution over translations, quarter turns and reflections of the plane, by Fourier modes.

    Features are functions on the group D4: (batch, channels, 8, x, y). One set of weights
    W[out, in, g](k) on the modes |k| ≤ modes is turned into all orientations::

        y[h](k) = sum_g W[h^-1 g](h^-1 k) x[g](k)

    plus the same without modes, on single points.
    """

    def __init__(self, c_in: int, c_out: int, modes: int):
        super().__init__()
        self.modes = modes
        side = 2 * modes + 1
        scale = (c_in * 8) ** -0.5
        weight = torch.randn(c_out, c_in, 8, side, side, 2) * scale / 2
        self.weight = nn.Parameter(weight)  # real and imaginary part last
        self.local = nn.Parameter(torch.randn(c_out, c_in, 8) * scale)
        self.bias = nn.Parameter(torch.zeros(c_out))

    def forward(self, x: Tensor) -> Tensor:
        batch, grid = x.shape[0], x.shape[3:]
        modes = [min(self.modes, (n - 1) // 2) for n in grid]
        rows, columns = (torch.arange(-m, m + 1, device=x.device) for m in modes)
        inside = [slice(self.modes - m, self.modes + m + 1) for m in modes]
        weight = torch.view_as_complex(self.weight)
        weights = torch.stack(
            [turn(weight[:, :, relative(h)], h)[..., inside[0], inside[1]] for h in range(8)],
            1,
        )  # (c_out, 8, c_in, 8, k, k)
        weights = weights.flatten(0, 1).flatten(1, 2)
        spectrum = torch.fft.fft2(x.flatten(1, 2))
        low = spectrum[..., rows.remainder(grid[0])[:, None], columns.remainder(grid[1])]
        mixed = torch.einsum("oixy,bixy->boxy", weights, low)
        full = spectrum.new_zeros(batch, weights.shape[0], *grid)
        full[..., rows.remainder(grid[0])[:, None], columns.remainder(grid[1])] = mixed
        y = torch.fft.ifft2(full).real.unflatten(1, (-1, 8))
        local = torch.stack([self.local[:, :, relative(h)] for h in range(8)], 1)
        y = y + torch.einsum("ohig,bigxy->bohxy", local, x)
        return y + self.bias[:, None, None, None]


def turn(x: Tensor, h: int) -> Tensor:
    """Element h of D4 applied to the last two axes: a reflection (h ≥ 4), then h % 4 quarter turns.

    Example:
        >>> import torch
        >>> turn(torch.tensor([[1, 2], [3, 4]]), 1).tolist()
        [[2, 4], [1, 3]]
    """
    if h >= 4:
        x = x.flip(-1)
    return torch.rot90(x, h % 4, (-2, -1))


def compose(g: int, h: int) -> int:
    """The element g h of D4: first h, then g."""
    turns = (g % 4 + (-(h % 4) if g >= 4 else h % 4)) % 4
    return turns + 4 * ((g >= 4) != (h >= 4))


def relative(h: int) -> list[int]:
    """h^-1 g for every g."""
    inverse = next(i for i in range(8) if compose(i, h) == 0)
    return [compose(inverse, g) for g in range(8)]


def turn_features(x: Tensor, h: int) -> Tensor:
    """Element h acting on functions of D4 and the plane, (batch, channels, 8, x, y)."""
    return turn(x, h)[:, :, relative(h)]


class GFNO(ComponentModel):
    """The group-equivariant Fourier neural operator for D4 in the plane.

    Inside it commutes with quarter turns and reflections; lifting and projection are
    unconstrained, as in the paper, and do not know how components transform.

    Args:
        task: what to predict, in two dimensions.
        width: hidden channels, each a function of eight group elements.
        modes: Fourier modes kept along each axis.
        layers: number of Fourier layers.
    """

    def __init__(self, task: Task, width: int = 8, modes: int = 8, layers: int = 4):
        super().__init__(task)
        if task.dim != 2:
            raise ValueError(
                f"gfno is built on the symmetries of the square; task {task.name} has {task.dim} "
                "dimensions (the cube's group has 48 elements: every weight would be held 48 times)"
            )
        check_int("width", width, low=1)
        check_int("modes", modes, low=1)
        self.lifting = nn.Conv2d(self.components_in, 8 * width, 1)
        self.layers = nn.ModuleList(GroupSpectralConv(width, width, modes) for _ in range(layers))
        self.projection = nn.Sequential(
            nn.Conv2d(8 * width, 16 * width, 1),
            nn.GELU(),
            nn.Conv2d(16 * width, self.components_out, 1),
        )

    def compute_components(self, x: Tensor) -> Tensor:
        x = self.lifting(x).unflatten(1, (-1, 8))
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i < len(self.layers) - 1:
                x = nn.functional.gelu(x)
        y = self.projection(x.flatten(1, 2))
        assert isinstance(y, Tensor)
        return y
