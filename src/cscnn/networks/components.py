"""`OnComponents`: where networks of components meet multivectors."""

from __future__ import annotations

from torch import Tensor, nn

from cscnn.algebra import CliffordAlgebra
from cscnn.networks.fieldtype import FieldType
from cscnn.networks.steerable import check_channels


class OnComponents(nn.Module):
    """A network of components as a map between fields of multivectors.

    Takes out the components that carry data, runs the network, and puts its results back. What the
    network commutes with is its own affair; most know nothing of how components transform.

    Args:
        network: (batch, input_type.components, *grid) -> (batch, output_type.components, *grid).
        input_type, output_type: which components carry data.
    """

    def __init__(self, network: nn.Module, input_type: FieldType, output_type: FieldType):
        super().__init__()
        self.network = network
        self.input_type = input_type
        self.output_type = output_type
        self.algebra: CliffordAlgebra = input_type.algebra
        self.c_in: int = input_type.channels
        self.c_out: int = output_type.channels

    def forward(self, x: Tensor) -> Tensor:
        """(batch, c_in, *grid, blades) -> (batch, c_out, *grid, blades)"""
        check_channels(self, x)
        return self.output_type.insert(self.network(self.input_type.extract(x)))
