import sys

import pytest
import torch

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.kernels import CompleteKernel, ImplicitKernel

mpl = pytest.importorskip("matplotlib")
mpl.use("Agg")

from cscnn.viz import plot_kernel, plot_kernels  # noqa: E402


@pytest.fixture(autouse=True)
def _close():
    yield
    mpl.pyplot.close("all")


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


def test_the_light_cone_is_drawn_in_spacetime_only():
    for metric, lines in (((1, -1), 2), ((1, 1), 0), ((1, 1, -1), 2), ((1, 1, 1), 0)):
        figure = plot_kernel(CompleteKernel(CliffordAlgebra(metric), 1, 1), resolution=5)
        assert len(figure.axes[0].lines) == lines


def test_convolutions_and_slices(tmp_path):
    conv = CliffordSteerableConv(CliffordAlgebra((1, -1, -1)), 1, 1, (5, 3, 7), spacing=(1, 1, 0.5))
    figure = plot_kernel(conv, slice_at=0.5)
    panels = drawn(figure)
    assert len(panels) == 64
    assert panels[0].shape == (5, 3)
    figure.savefig(tmp_path / "kernel.png")
    assert (tmp_path / "kernel.png").stat().st_size > 1000
    assert drawn(plot_kernel(ImplicitKernel(CliffordAlgebra((1, 1, 1)), 1, 1), resolution=5))


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
