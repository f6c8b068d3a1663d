"""Kernels for the page, as images."""

from __future__ import annotations

import base64
import io
from html import escape

from cscnn.conv import CliffordSteerableConv
from cscnn.models import FieldModel
from cscnn.viz.backend import pyplot
from cscnn.viz.kernels import plot_kernel
from cscnn.viz.report.contents import Contents

SIZE = 7  #: points per axis of the kernels that are shown, if there are such


def kernel_figure(run: Contents) -> str:
    """A figure with a kernel of a run, or a sentence why there is none."""
    label = escape(run.label)
    if not (run.run.path / "model.safetensors").is_file():
        folder = escape(str(run.run.path))
        return (
            f'<p class="missing"><b>{label}</b> has no weights yet: they are written by '
            f"<code>cscnn train --resume {folder}</code>.</p>"
        )
    try:
        model = run.run.model()
    except ImportError as error:
        return f'<p class="missing"><b>{label}</b> cannot be built here: {escape(str(error))}.</p>'
    conv = first_conv(model)
    if conv is None:
        name = escape(run.model_name)
        return f'<p class="missing"><b>{label}</b>, a {name}, has no steerable kernels.</p>'
    algebra = conv.algebra
    if algebra.dim not in (2, 3):
        return (
            f'<p class="missing"><b>{label}</b> has kernels of {algebra.dim} dimensions, which '
            "have no picture.</p>"
        )
    figure = plot_kernel(conv, title="")
    file = io.BytesIO()
    try:
        figure.savefig(file, format="png", dpi=110)
    finally:
        pyplot().close(figure)
    image = base64.b64encode(file.getvalue()).decode("ascii")
    points = " × ".join(map(str, conv.kernel_size))
    light = "; dotted lines are the light cone" if len(set(algebra.metric)) == 2 else ""
    alt = (
        f"A kernel of {run.label}: {algebra.n_blades} × {algebra.n_blades} panels, how each input "
        f"blade feeds each output blade{light}"
    )
    return (
        f'<figure class="plate"><img alt="{escape(alt)}" src="data:image/png;base64,{image}">'
        f"<figcaption><b>{label}</b>: the kernel between the first channels of its first layer "
        f"with {points} points. Rows are output blades, columns input blades; red is positive, "
        f"blue negative, grey zero by symmetry{light}.</figcaption></figure>"
    )


def first_conv(model: FieldModel) -> CliffordSteerableConv | None:
    """The first steerable convolution of the usual size, or else of the largest."""
    convs = [m for m in model.modules() if isinstance(m, CliffordSteerableConv)]
    usual = [conv for conv in convs if min(conv.kernel_size) == SIZE]
    return max(usual or convs, key=lambda conv: min(conv.kernel_size), default=None)
