"""Small convolutions to test."""

import torch

from cscnn import CliffordAlgebra, CliffordSteerableConv

FIELD = (2, 2, 6, 5, 4)

FAST = {"num_layers": 2, "hidden_dim": 4}


def build(metric, c_in=2, c_out=3, kernel_size=3, kernel="implicit", **options):
    chosen = FAST if kernel == "implicit" else {"hidden_dim": 4}
    chosen = {**chosen, **options.pop("kernel_options", {})}
    conv = CliffordSteerableConv(
        CliffordAlgebra(metric),
        c_in,
        c_out,
        kernel_size,
        kernel=kernel,
        kernel_options=chosen,
        **options,
    )
    if conv.bias is not None:
        torch.nn.init.normal_(conv.bias)
    return conv


def twin(conv):
    """Another convolution of the same kind, with other weights."""
    return build((1, -1), kernel="implicit" if hasattr(conv.kernel, "head") else "complete")
