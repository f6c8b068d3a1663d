"""The kernel pictures of the documentation: python examples/kernel_figures.py docs/figures"""

import sys
from pathlib import Path

import matplotlib as mpl
import torch

from cscnn import CliffordAlgebra
from cscnn.kernels import CompleteKernel, ImplicitKernel
from cscnn.viz import plot_kernel

mpl.use("Agg")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/figures")
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(4)
    figures = {
        "kernel_o2_implicit": plot_kernel(
            ImplicitKernel(CliffordAlgebra((1, 1)), 1, 1),
            title="An implicit kernel of O(2): the paper's",
        ),
        "kernel_o2_complete": plot_kernel(
            CompleteKernel(CliffordAlgebra((1, 1)), 1, 1),
            title="A complete kernel of O(2)",
        ),
        "kernel_o11_complete": plot_kernel(
            CompleteKernel(CliffordAlgebra((1, -1)), 1, 1),
            title="A complete kernel of O(1,1)",
        ),
    }
    for name, figure in figures.items():
        path = folder / f"{name}.png"
        figure.savefig(path, dpi=90, metadata={"Software": None})
        print(path)


if __name__ == "__main__":
    main()
