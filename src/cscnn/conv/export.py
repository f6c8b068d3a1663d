"""Plain convolutions that do the same as an equivariant one, for deployment."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from cscnn.conv.padding import pad

#: torch's convolutions by the number of dimensions.
TORCH_CONVS: dict[int, Any] = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}


class PadGrid(nn.Module):
    """Pads the grid axes of (batch, channels, *grid), each in its own mode."""

    def __init__(self, amounts: tuple[int, ...], modes: tuple[str, ...], blades: int = 0):
        super().__init__()
        self.amounts, self.modes, self.blades = amounts, modes, blades

    def forward(self, x: Tensor) -> Tensor:
        return pad(x, self.amounts, self.modes, self.blades)


class PlainFieldConv(nn.Module):
    """A convolution of flattened fields (batch, channels·blades, *grid), between fields.

    Args:
        conv: the convolution.
        blades: number of blades.
    """

    def __init__(self, conv: nn.Module, blades: int):
        super().__init__()
        self.conv = conv
        self.blades = blades

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x.movedim(-1, 2).flatten(1, 2))
        assert isinstance(y, Tensor)
        return y.unflatten(1, (-1, self.blades)).movedim(2, -1)


def export_conv(
    weight: Tensor,
    bias: Tensor | None,
    *,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    padding_mode: tuple[str, ...],
    blades: int,
) -> nn.Module:
    """``nn.ConvNd`` with these weights, behind a `PadGrid` if its padding is not torch's own."""
    d = weight.dim() - 2
    if d not in TORCH_CONVS:
        raise ValueError(
            f"torch has no plain convolution in {d} dimensions to export to, only 1 to 3"
        )
    torchs = ("zeros", "circular", "reflect", "replicate")  # padding modes of its convolutions
    padded_by_torch = len(set(padding_mode)) == 1 and padding_mode[0] in torchs
    conv = TORCH_CONVS[d](
        weight.shape[1],
        weight.shape[0],
        tuple(weight.shape[2:]),
        stride=stride,
        padding=padding if padded_by_torch else 0,
        padding_mode=padding_mode[0] if padded_by_torch else "zeros",
        bias=bias is not None,
        dtype=weight.dtype,
        device=weight.device,
    )
    conv.weight.data.copy_(weight)
    if bias is not None and conv.bias is not None:
        conv.bias.data.copy_(bias)
    return conv if padded_by_torch else nn.Sequential(PadGrid(padding, padding_mode, blades), conv)
