"""What steerable kernels look like, what the implicit ones lack, and how two of them get it back.

Pictures with measured numbers, all from random kernels: panels of kernels, radial functions, and
the angular frequencies of the block that maps vectors to vectors (paper, Figs. 3, 6, 7, App. B).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cscnn.viz.figures import new_figure, save
from cscnn.viz.kernel_numbers import (
    FREQUENCIES,
    RADIUS,
    SEED,
    Radial,
    compose,
    frequency_contents,
    radial_functions,
    random_kernels,
    random_pair,
)
from cscnn.viz.kernels import plot_kernels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GROUPS = {"O(2)": (1, 1), "O(1,1)": (1, -1)}
STYLES = {"project": "-", "stretch": "-.", "wedge": "--", "contract": ":"}


def draw_kernel_story(folder: Path) -> list[tuple[str, str]]:
    """Draw random kernels, their radial functions and angular frequencies, into a folder.

    Returns:
        (file name, caption) of each. The captions have the measured numbers.
    """
    made: list[tuple[str, Figure, str]] = []
    for group, metric in GROUPS.items():
        letters = "".join(c for c in group.lower() if c.isalnum())
        made.append((f"results_kernels_{letters}.png", *_panels(group, metric)))
    made.append(("results_kernels_radial.png", *_radial()))
    made.append(("results_kernels_frequency2.png", *_frequencies()))
    for name, figure, _ in made:
        save(figure, folder / name, dpi=85)
    return [(name, caption) for name, _, caption in made]


def _panels(group: str, metric: tuple[int, ...]) -> tuple[Figure, str]:
    kernels = random_kernels(metric)
    titles = {"implicit": f"implicit kernel of {group}", "complete": f"complete kernel of {group}"}
    figure = plot_kernels({titles[k]: kernel for k, kernel in kernels.items()}, resolution=41)
    cone = " Dotted lines are the light cone." if len(set(metric)) == 2 else ""
    caption = (
        f"Random kernels of {group}: the paper's implicit one (left) and a complete one (right). "
        "They have the initial weights of a new network. A panel shows how one input component "
        "(column) feeds one output component (row), by the position of the sender. Components are "
        "the scalar 1, the vector e1, e2 and the bivector e12. Red is positive, blue negative, "
        "grey zero by symmetry; the number is the largest value. The four panels in the middle "
        "map vectors to vectors. Off their diagonal the implicit kernel is zero, the complete one "
        "is not."
        f"{cone}"
    )
    return figure, caption


def _radial() -> tuple[Figure, str]:
    figure = new_figure(9.6, 6.2, "constrained")
    axes = figure.subplots(2, 2, squeeze=False, sharey=True)
    ranks = []
    for row, (group, metric) in enumerate(GROUPS.items()):
        for column, (name, kernel) in enumerate(random_kernels(metric).items()):
            radial = radial_functions(kernel)
            ax = axes[row, column]
            _draw_radial(ax, radial)
            title = f"{len(radial.names)} functions, {radial.rank} independent"
            ax.set_title(f"{name} kernel of {group}: {title}", fontsize=10)
            ranks.append(f"{name} {group} {radial.rank} of {len(radial.names)}")
        axes[row, 0].set_ylabel("function / its largest value", fontsize=9)
    lines, names = axes[0, 1].get_legend_handles_labels()
    figure.legend(
        lines, names, loc="outside lower center", ncols=len(names), fontsize=9, handlelength=3
    )
    caption = (
        "Radial functions of random kernels, each divided by its largest value. A steerable kernel "
        "is a sum of fixed matrices of v, each times a function of |v|. α acts on each grade as it "
        "is, β stretches along v, γ raises the grade by v, δ lowers it. In the implicit kernel all "
        "α are multiples of one function, all γ and δ are multiples of another, and there is no β. "
        "In the complete kernel all functions differ. Independent functions "
        f"(numerical rank): {', '.join(ranks)}."
    )
    return figure, caption


def _draw_radial(ax: Any, radial: Radial) -> None:
    colours = {name: f"C{i}" for i, name in enumerate(("α0", "α1", "α2", "β1", "γ0", "γ1"))}
    colours |= {"δ1": "C7", "δ2": "C9"}
    at = radial.at.numpy()
    ax.axhline(0, color="0.85", linewidth=0.8)
    sides = [at > 0, at < 0] if (at < 0).any() else [at > 0]
    widths = torch.linspace(5, 1.4, len(radial.names)).tolist()  # so that hidden lines are seen
    for name, kind, values, width in zip(
        radial.names, radial.kinds, radial.values, widths, strict=True
    ):
        scaled = (values / values[values.abs().argmax()]).numpy()
        for number, side in enumerate(sides):  # the implicit one jumps at the light cone
            ax.plot(
                at[side],
                scaled[side],
                STYLES[kind],
                color=colours[name],
                linewidth=width,
                label=name if not number else None,
            )
    ax.set_xlim(float(at.min()) if len(sides) == 2 else 0, float(at.max()))
    ax.set_ylim(-1.08, 1.08)
    ax.tick_params(labelsize=8)
    if len(sides) == 2:
        ax.axvline(0, color="0.6", linewidth=0.8, linestyle=":")
        ax.set_xlabel("space-like  ←   distance from the light cone   →  time-like", fontsize=9)
    else:
        ax.set_xlabel("|v|", fontsize=9)


#: What `frequency_contents` measures, with the titles in the picture.
TITLES = {
    "implicit": "one implicit kernel",
    "complete": "one complete kernel",
    "two": "two implicit kernels in a row",
}


def _frequencies() -> tuple[Figure, str]:
    contents = frequency_contents()
    figure = new_figure(10.2, 6.6, "constrained")
    axes = figure.subplots(2, 3, squeeze=False, sharey="row", height_ratios=(1.15, 1))
    axis = torch.linspace(-0.9, 0.9, 13, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    for column, (name, title) in enumerate(TITLES.items()):
        most = int(contents[name][:, 2].argmax())
        if name == "two":
            matrices = compose(*random_pair(most), grid).sum(0)
        else:
            with torch.no_grad():
                matrices = random_kernels((1, 1), SEED + most)[name](grid)[:, 0, :, 0]
        _draw_response(axes[0, column], grid, matrices[:, 1:3, 1])
        axes[0, column].set_title(title, fontsize=10)
        _draw_content(axes[1, column], contents[name])
    axes[0, 0].set_ylabel("response to one vector", fontsize=9)
    axes[1, 0].set_ylabel("relative size", fontsize=9)
    return figure, _frequency_caption(contents)


def _draw_response(ax: Any, points: Tensor, vectors: Tensor) -> None:
    """Output vectors at the points, for an input vector to the right at the origin."""
    size = vectors.norm(dim=1)
    # long and short ones both have a direction to see
    shown = vectors / size[:, None] * (size / size.max()).pow(0.35)[:, None]
    ax.quiver(
        *points.T.numpy(),
        *shown.T.numpy(),
        angles="xy",
        scale_units="xy",
        scale=7.5,
        pivot="middle",
        color="0.25",
        width=0.007,
    )
    ax.quiver(
        0, 0, 0.3, 0, angles="xy", scale_units="xy", scale=1, pivot="middle", color="C3",
        width=0.02, zorder=3,
    )  # fmt: skip
    turn = torch.linspace(0, 2 * math.pi, 101)
    ax.plot(RADIUS * turn.cos(), RADIUS * turn.sin(), ":", color="C0", linewidth=1.2)
    ax.set(xlim=(-1, 1), ylim=(-1, 1), aspect="equal", xticks=[], yticks=[])


def _draw_content(ax: Any, contents: Tensor) -> None:
    """A dot for each kernel and frequency, and medians in figures."""
    floor = 1e-18  # zeros are drawn here
    count = len(contents)
    spread = torch.linspace(-0.22, 0.22, count)
    for frequency in range(FREQUENCIES):
        sizes = contents[:, frequency].clamp(min=floor)
        colour = "C3" if frequency == 2 else "0.35"
        ax.plot(frequency + spread, sizes, ".", color=colour, markersize=4, alpha=0.7)
        median = contents[:, frequency].median().item()
        text = f"{median:.2f}" if median > 1e-3 else f"{median:.0e}" if median else "0"
        ax.text(frequency, 12, text, ha="center", fontsize=8, color=colour)
    ax.axhspan(floor / 3, 1e-13, color="0.93", zorder=0)
    ax.text(FREQUENCIES - 0.55, 2e-14, "rounding errors", ha="right", fontsize=7, color="0.4")
    ax.set(yscale="log", ylim=(floor / 3, 300), xlim=(-0.5, FREQUENCIES - 0.5))
    ax.set_yticks([1e-15, 1e-10, 1e-5, 1])
    ax.set_xticks(range(FREQUENCIES))
    ax.tick_params(labelsize=8)
    ax.set_xlabel("angular frequency on the dotted ring", fontsize=9)


def _frequency_caption(contents: Mapping[str, Tensor]) -> str:
    def median(name: str) -> str:
        return f"{contents[name][:, 2].median().item():.2g}"

    worst = max(contents[k][:, 2].max().item() for k in ("implicit", "two through vectors"))
    least = min(contents[k][:, 2].min().item() for k in ("complete", "two"))
    return (
        "What is missing between vectors, and how it comes back. Top: the input is one vector at "
        "the centre (red). The arrows are the output vectors; short ones are drawn longer than "
        "they are. The response of an implicit kernel is parallel to the input. Bottom: how much "
        "of each angular frequency the vector-to-vector block has on the ring. There is a dot for "
        f"each of {len(contents['two'])} random kernels; numbers are medians. Frequency 2 is zero "
        f"for implicit kernels (at most {worst:.0e}). Its median is {median('complete')} for "
        f"complete kernels and {median('two')} for two implicit ones in a row; the minimum of both "
        f"is {least:.0e}. It comes back through the scalars and bivectors between the two (median "
        f"{median('two through others')} of that part), not through vectors. The top row shows the "
        "kernels with the most of it."
    )
