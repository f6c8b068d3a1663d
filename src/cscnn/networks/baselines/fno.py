"""The Fourier neural operator, of the package neuraloperator."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from cscnn._util.checks import check_int
from cscnn._util.optional import require
from cscnn._util.torch_private import on_parts
from cscnn.networks.baselines.residual import at_most_3d
from cscnn.networks.batches import compute_nonempty
from cscnn.networks.entries import Sizes, register

#: How it grows: by its modes, from the usual number on; layers of half the width ask for even ones.
SIZES = Sizes(second="modes", values=tuple(sorted(range(2, 25), key=lambda m: abs(m - 12))), step=2)


@register("fno", interface="components", sizes=SIZES)
class FNO(nn.Module):
    """The Fourier neural operator of the package neuraloperator, without position embedding.

    Args:
        dim: axes of the grid, one to three.
        c_in, c_out: components of input and output.
        width: hidden channels.
        modes: Fourier modes kept along each axis.
        layers: number of Fourier layers.
        operator_options: further options of ``neuralop.models.FNO``.

    Shape:
        (batch, c_in, *grid) -> (batch, c_out, *grid)
    """

    def __init__(
        self,
        dim: int,
        c_in: int,
        c_out: int,
        width: int = 32,
        modes: int = 12,
        layers: int = 4,
        operator_options: Mapping[str, Any] | None = None,
    ):
        super().__init__()
        at_most_3d("FNO", dim)
        check_int("width", width, low=1)
        check_int("modes", modes, low=1)
        operators = require("neuralop.models", "FNO", "baselines")
        self.network = operators.FNO(
            (modes,) * dim,
            c_in,
            c_out,
            width,
            n_layers=layers,
            positional_embedding=None,
            **(operator_options or {}),
        )

    def _apply(self, fn: Any, recurse: bool = True) -> FNO:
        """Casts complex parameters to the complex number of the wanted precision."""
        return super()._apply(on_parts(fn), recurse)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Without the description that neuralop adds, which is no tensor."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Attempting to update metadata")
            state = super().state_dict(*args, **kwargs)
        state.pop("_metadata", None)
        return state

    def forward(self, x: Tensor) -> Tensor:
        y = compute_nonempty(self.network, x)
        assert isinstance(y, Tensor)
        return y
