"""Target, prediction and error with a slider for time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from cscnn.viz.report import frames
from cscnn.viz.report.contents import Contents
from cscnn.viz.report.layout import code, section, style


def forecasts(runs: Sequence[Contents]) -> str:
    """Fields with a slider."""
    groups = frames.group(runs)
    body = "".join(
        _viewer(runs, frames.make_viewer(runs, chosen, frames.BUDGET // len(groups)), i)
        for i, chosen in enumerate(groups)
    )
    for run in runs:
        if run.samples is None:
            body += (
                f'<p class="missing">There are no fields of <b>{escape(run.label)}</b>: '
                f"{code(run)} writes them.</p>"
            )
    return section("forecasts", "Forecasts beside the truth", body)


def _viewer(runs: Sequence[Contents], viewer: frames.Viewer, position: int) -> str:
    chips = "".join(
        f'<label><input type="radio" name="quantity-{position}" value="{i}"'
        f"{' checked' if i == 0 else ''}><span>{escape(q.label)}</span></label>"
        for i, q in enumerate(viewer.quantities)
    )
    last = max(len(viewer.steps) - 1, 0)
    slider = (
        f'<div class="time"><button type="button" class="play">Play</button>'
        f'<input type="range" min="0" max="{last}" value="0" step="1" aria-label="time step">'
        '<span class="when"></span></div>'
        if last
        else ""
    )
    rows = []
    for row, i in enumerate(viewer.runs):
        label = escape(runs[i].label)
        planes = "".join(
            f'<figure><canvas role="img" data-run="{row}" data-kind="{kind}" data-name="{label}" '
            f'style="aspect-ratio:{viewer.aspect:.4f}" aria-label="{kind} of {label}"></canvas>'
            f"<figcaption>{kind}</figcaption></figure>"
            for kind in ("target", "prediction", "error")
        )
        rows.append(
            f'<div class="row {style(i)}"><h3><i class="dot"></i>{label} '
            f'<span class="relative" data-run="{row}"></span></h3>'
            f'<div class="planes">{planes}</div></div>'
        )
    bars = "".join(
        f'<div class="scale" data-kind="{kind}"><span class="low"></span>'
        f'<i aria-hidden="true"></i><span class="high"></span> '
        f'<span class="what">{text}</span></div>'
        for kind, text in (("field", "target and prediction"), ("error", "error"))
    )
    about = ["The x axis points right, " + ("time up" if viewer.diagram else "the y axis up")]
    about += viewer.notes
    about.append("all runs share the colours")
    data = frames.to_script(frames.encode(viewer))
    return (
        f'<div class="viewer" data-frame="0"><script type="application/json">{data}</script>'
        '<div class="controls"><fieldset><legend class="hidden">quantity</legend>'
        f'{chips}</fieldset>{slider}</div>{"".join(rows)}<div class="scales">{bars}</div>'
        f'<p class="note">{escape("; ".join(about))}.</p>'
        "<noscript><p>The fields need JavaScript.</p></noscript></div>"
    )
