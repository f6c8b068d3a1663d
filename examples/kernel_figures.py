"""The kernel pictures of the documentation: python examples/kernel_figures.py docs/figures"""

import sys
from pathlib import Path

import matplotlib as mpl
import torch

from cscnn import CliffordAlgebra
from cscnn.algebra.grids import grid_symmetries
from cscnn.kernels import CompleteKernel, ImplicitKernel
from cscnn.viz import plot_kernel

mpl.use("Agg")

from matplotlib.figure import Figure


def plot_mean_map() -> Figure:
    """A random map of multivectors, and its mean over the symmetries of the cube."""
    algebra = CliffordAlgebra((1, 1, 1))
    generator = torch.Generator().manual_seed(7)
    shape = (algebra.n_blades,) * 2
    random = torch.randn(shape, generator=generator, dtype=torch.float64)
    actions = [algebra.action(g) for g in grid_symmetries(algebra, (3, 3, 3))]
    mean = torch.stack([rho @ random @ rho.mT for rho in actions]).mean(0)
    figure = Figure(figsize=(8, 3.8), layout="constrained")
    axes = figure.subplots(1, 2)
    titles = ("a random linear map", f"its mean over {len(actions)} symmetries")
    for ax, matrix, title in zip(axes, (random, mean), titles, strict=True):
        limit = float(matrix.abs().max())
        image = ax.imshow(matrix.numpy(), cmap="RdBu_r", vmin=-limit, vmax=limit)
        ax.set_xticks(range(algebra.n_blades), algebra.blade_names)
        ax.set_yticks(range(algebra.n_blades), algebra.blade_names)
        ax.set_title(title)
        figure.colorbar(image, ax=ax, shrink=0.8)
    return figure


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
        "kernel_o2_tensors": plot_kernel(
            CompleteKernel(CliffordAlgebra((1, 1), symmetric=True), 1, 1),
            title="A complete kernel of O(2) with symmetric tensors",
        ),
        "irreducible": plot_mean_map(),
    }
    for name, figure in figures.items():
        path = folder / f"{name}.png"
        figure.savefig(path, dpi=90, metadata={"Software": None})
        print(path)


if __name__ == "__main__":
    main()
