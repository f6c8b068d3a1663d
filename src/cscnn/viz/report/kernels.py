"""Kernels for the page, as images."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from cscnn.conv import CliffordSteerableConv
from cscnn.viz.kernels import plot_kernel
from cscnn.viz.report.contents import Contents
from cscnn.viz.report.section import Section

SIZE = 7  #: points per axis of the kernels that are shown, if there are such


@dataclass(frozen=True)
class Plate:
    """A kernel of a run, or why there is none.

    Attributes:
        text: the caption, or what follows the label of the run in a sentence why there is none.
        image: a PNG in base64; empty if there is none.
        alt: the image in words.
        resume: whether the sentence ends with the command that goes on training.
    """

    text: str
    image: str = ""
    alt: str = ""
    resume: bool = False


def kernels(runs: Sequence[Contents]) -> Section:
    """What a layer of each run has learnt."""
    return Section("kernels", "Kernels", "kernels.html", [kernel_plate(run) for run in runs])


def kernel_plate(run: Contents) -> Plate:
    """A kernel of a run, or why there is none."""
    if not (run.run.path / "model.safetensors").is_file():
        return Plate(" has no weights yet: they are written by ", resume=True)
    try:
        forecaster = run.run.forecaster()
    except ImportError as error:
        return Plate(f" cannot be built here: {error}.")
    conv = first_conv(forecaster)
    if conv is None:
        return Plate(f", a {run.network}, has no steerable kernels.")
    if conv.algebra.dim not in (2, 3):
        return Plate(f" has kernels of {conv.algebra.dim} dimensions, which have no picture.")
    return _draw(run, conv)


def _draw(run: Contents, conv: CliffordSteerableConv) -> Plate:
    algebra = conv.algebra
    file = io.BytesIO()
    plot_kernel(conv, title="").savefig(file, format="png", dpi=110)
    points = " × ".join(map(str, conv.kernel_size))
    of = " for a field without mean" if conv.kernel.condition else ""
    light = " Dotted lines are the light cone." if len(set(algebra.metric)) == 2 else ""
    return Plate(
        f"the kernel between the first channels of its first layer with {points} points{of}. Rows "
        "are output blades, columns input blades. Red is positive, blue negative, grey zero by "
        f"symmetry.{light}",
        base64.b64encode(file.getvalue()).decode("ascii"),
        f"A kernel of {run.label}: {algebra.n_blades} × {algebra.n_blades} panels, how each input "
        f"blade feeds each output blade.{light}",
    )


def first_conv(network: nn.Module) -> CliffordSteerableConv | None:
    """The first steerable convolution of the usual size, or else of the largest."""
    convs = [m for m in network.modules() if isinstance(m, CliffordSteerableConv)]
    usual = [conv for conv in convs if min(conv.kernel_size) == SIZE]
    return max(usual or convs, key=lambda conv: min(conv.kernel_size), default=None)
