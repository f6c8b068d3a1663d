import sys

import pytest
import torch

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.kernels import Complete, CompleteKernel, Differential, ImplicitKernel

pytest.importorskip("matplotlib")

from matplotlib import pyplot

from cscnn.viz import plot_kernel, plot_kernels
from cscnn.viz.figures import fit_text


def drawn(figure):
    """Row-major list of panels: their image, or None where the kernel vanishes."""
    return [axes.images[0].get_array() if axes.images else None for axes in figure.axes]


@pytest.mark.parametrize("build", [ImplicitKernel, CompleteKernel])
def test_panels_show_the_kernel(build):
    algebra = CliffordAlgebra((1, -1))
    kernel = build(algebra, 2, 2)
    panels = drawn(plot_kernel(kernel, channel=(1, 0), resolution=9))
    assert len(panels) == 16
    axis = torch.linspace(-1, 1, 9)
    with torch.no_grad():
        expected = kernel(torch.cartesian_prod(axis, axis))[:, 1, :, 0].reshape(9, 9, 4, 4)
    for i, panel in enumerate(panels):
        values = expected[..., i // 4, i % 4]
        if panel is None:
            assert values.abs().max() < 1e-5
        else:
            assert torch.allclose(torch.as_tensor(panel.data), values)


def test_what_a_conditional_kernel_is_given_is_zero():
    kernel = Complete(hidden_dim=4, condition=2)
    conv = CliffordSteerableConv(CliffordAlgebra((1, 1)), 1, 1, 3, kernel=kernel)
    first = drawn(plot_kernel(conv))[0]
    with torch.no_grad():
        taps = conv.expanded_kernel(torch.zeros(2, 4))
    assert torch.allclose(torch.as_tensor(first.data), taps[0, 0])
    assert len(drawn(plot_kernel(conv.kernel, resolution=5))) == 16


@pytest.mark.parametrize(
    ("metric", "lines"), [((1, -1), 2), ((1, 1), 0), ((1, 1, -1), 2), ((1, 1, 1), 0)]
)
def test_the_light_cone_is_drawn_in_spacetime_only(metric, lines):
    figure = plot_kernel(CompleteKernel(CliffordAlgebra(metric), 1, 1), resolution=5)
    assert len(figure.axes[0].lines) == lines
    assert len(figure.axes) == 4 ** len(metric)


def test_convolutions_and_slices(tmp_path):
    conv = CliffordSteerableConv(CliffordAlgebra((1, -1, -1)), 1, 1, (5, 3, 7), spacing=(1, 1, 0.5))
    figure = plot_kernel(conv, slice_at=0.5)
    panels = drawn(figure)
    assert len(panels) == 64
    assert panels[0].shape == (5, 3)
    figure.savefig(tmp_path / "kernel.png")
    assert (tmp_path / "kernel.png").stat().st_size > 1000


@pytest.mark.parametrize(("metric", "size"), [((1, -1), (5, 7)), ((1, 1, 1), (3, 5, 3))])
def test_differential_kernels_are_shown_on_their_taps(metric, size):
    """A bare one is shown as the convolution with it is."""
    conv = CliffordSteerableConv(
        CliffordAlgebra(metric), 2, 1, size, kernel=Differential(order=2), spacing=0.5
    )
    options = {"channel": (0, 1), "slice_at": 0.4}
    bare, whole = plot_kernel(conv.kernel, **options), plot_kernel(conv, **options)
    assert drawn(bare)[0].shape == size[:2]
    for a, b in zip(drawn(bare), drawn(whole), strict=True):
        assert (a is None) == (b is None)
        assert a is None or torch.allclose(torch.as_tensor(a.data), torch.as_tensor(b.data))
    assert [ax.get_xlim() for ax in bare.axes] == [ax.get_xlim() for ax in whole.axes]


def texts(figure):
    """All that is written outside of panels, also in parts of the figure."""
    return [text for part in (figure, *figure.subfigs) for text in part.texts if text.get_text()]


def assert_not_cut_off(figure):
    """Every text lies within the figure, and above or below all panels, up to a pixel."""
    figure.draw_without_rendering()
    panels = [ax.get_window_extent() for part in (figure, *figure.subfigs) for ax in part.axes]
    low, high = min(p.y0 for p in panels) + 1, max(p.y1 for p in panels) - 1
    for text in texts(figure):
        box = text.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width, text
        assert 0 <= box.y0 < box.y1 <= figure.bbox.height, text
        assert box.y1 <= low or box.y0 >= high, text


LONG = "a title that says which layer of which network was trained on which of the data sets"


@pytest.mark.parametrize("dpi", [50, 110])
@pytest.mark.parametrize("title", [None, "", LONG])
def test_captions_are_not_cut_off(title, dpi):
    algebra = CliffordAlgebra((1, 1))
    kernel, conv = ImplicitKernel(algebra, 1, 1), CliffordSteerableConv(algebra, 1, 1, 3)
    figure = plot_kernel(conv, title=title)
    figure.set_dpi(dpi)
    assert len(texts(figure)) == (1 if title == "" else 2)
    assert_not_cut_off(figure)
    figure = plot_kernels({"one": kernel, title or "two": conv}, resolution=3, title=title)
    figure.set_dpi(dpi)
    assert len(texts(figure)) == (4 if title else 3)
    assert_not_cut_off(figure)
    caption = texts(figure)[0].get_text().replace("\n", " ")
    assert caption.startswith("Columns: input blade. Rows: output blade.")
    assert caption.endswith("colour scale.")


def test_captions_of_three_dimensions_are_not_cut_off():
    figure = plot_kernel(CliffordSteerableConv(CliffordAlgebra((1, -1, -1)), 1, 1, 3))
    assert len(texts(figure)) == 2
    assert_not_cut_off(figure)


def test_a_caption_on_one_line_is_cut_off():
    """The control of the test before."""
    figure = plot_kernel(ImplicitKernel(CliffordAlgebra((1, 1)), 1, 1), resolution=3)
    caption = next(text for text in texts(figure) if "Columns" in text.get_text())
    caption.set_text(caption.get_text().replace("\n", " "))
    with pytest.raises(AssertionError):
        assert_not_cut_off(figure)


def test_text_is_broken_between_words():
    assert fit_text("one two three", 100, 8) == "one two three"
    assert fit_text("one two\nthree", 100, 8) == "one two\nthree"
    assert fit_text("one two three", 0.5, 8).split("\n") == ["one two", "three"]


def test_no_window_is_opened():
    plot_kernel(ImplicitKernel(CliffordAlgebra((1, 1)), 1, 1), resolution=3)
    assert pyplot.get_fignums() == []


def test_errors(monkeypatch):
    with pytest.raises(ValueError, match=r"2 and 3 dimensions have a picture, got .*\(1,\)"):
        plot_kernel(ImplicitKernel(CliffordAlgebra((1,)), 1, 1))
    with pytest.raises(ValueError, match=r"channel \(2, 0\) is outside \(1, 1\)"):
        plot_kernel(ImplicitKernel(CliffordAlgebra((1, 1)), 1, 1), channel=(2, 0))
    with pytest.raises(ValueError, match=r"\(output channel, input channel\), got 0"):
        plot_kernel(ImplicitKernel(CliffordAlgebra((1, 1)), 1, 1), channel=0)
    with pytest.raises(ValueError, match=r"between -1\.0 and 1\.0, got 99"):
        plot_kernel(ImplicitKernel(CliffordAlgebra((1, 1, 1)), 1, 1), slice_at=99)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'cscnn\[viz\]'"):
        plot_kernel(ImplicitKernel(CliffordAlgebra((1, 1)), 1, 1))


def test_several_kernels_side_by_side(tmp_path):
    algebra = CliffordAlgebra((1, 1))
    kernels = {"one": ImplicitKernel(algebra, 1, 1), "two": CompleteKernel(algebra, 1, 1)}
    figure = plot_kernels(kernels, resolution=9, title="both")
    for part, kernel in zip(figure.subfigs, kernels.values(), strict=True):
        alone = drawn(plot_kernel(kernel, resolution=9))
        for shown, expected in zip(drawn(part), alone, strict=True):
            assert (shown is None) == (expected is None)
            assert shown is None or (shown == expected).all()
    assert [part.get_suptitle() for part in figure.subfigs] == ["one", "two"]
    assert figure.get_suptitle() == "both"
    figure.savefig(tmp_path / "kernels.png", dpi=50)
    with pytest.raises(ValueError, match="at least one, got none"):
        plot_kernels({})
