"""Small convolutions to test."""

import torch

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.conv import use_backend
from cscnn.kernels import Complete, Differential, Implicit

FIELD = (2, 2, 6, 5, 4)

#: Choices of kernels that are fast to evaluate.
SMALL = {
    "implicit": Implicit(num_layers=2, hidden_dim=4),
    "complete": Complete(hidden_dim=4),
    "differential": Differential(order=2),
}


def build(metric, c_in=2, c_out=3, kernel_size=3, kernel="implicit", backend="auto", **options):
    """A convolution with a small kernel, by name, or with the given one."""
    kernel = SMALL[kernel] if isinstance(kernel, str) else kernel
    conv = CliffordSteerableConv(
        CliffordAlgebra(metric), c_in, c_out, kernel_size, kernel=kernel, **options
    )
    if conv.bias is not None:
        torch.nn.init.normal_(conv.bias)
    return use_backend(conv, backend)


def twin(conv):
    """Another convolution of the same type, with other weights."""
    names = {"ImplicitKernel": "implicit", "CompleteKernel": "complete"}
    return build((1, -1), kernel=names.get(type(conv.kernel).__name__, "differential"))
