"""The page in a real browser."""

import io
import os

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("safetensors")

from PIL import Image

from cscnn.viz.report.page import write_report
from tests.viz.browser import Browser, find_browser
from tests.viz.report_runs import TASKS, make_run

pytestmark = [
    pytest.mark.slow,  # a browser, and six runs for it
    pytest.mark.external,
    pytest.mark.skipif(find_browser() is None or os.name != "posix", reason="needs chromium"),
]

PIXELS = "[...document.querySelectorAll('canvas')].map((c) => c.toDataURL())"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page for each task, with two runs, and a run with an unusual name."""
    root = tmp_path_factory.mktemp("pages")
    made = {}
    for name, task in TASKS.items():
        runs = [
            make_run(root / name / "a_run_with_a_name_that_is_longer_than_a_phone_is_wide", task()),
            make_run(root / name / "plain & <simple>", task(), "resnet", quality=2, seed=1),
        ]
        made[name] = write_report(runs, root / f"{name}.html").as_uri()
    return made


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture
def page(browser):
    """Nothing may go wrong on the page, nothing may be asked of the network."""
    browser.problems.clear()
    yield browser
    assert browser.problems == []


def picture(page):
    return np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB")).astype(int)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_no_horizontal_scroll(page, pages, name, width):
    page.open(pages[name], width=width, mobile=width < 500)
    assert page.eval("innerWidth") == width
    page.eval("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert page.eval("document.documentElement.scrollWidth") <= width


def test_the_slider_moves_time(page, pages):
    page.open(pages["fluid"])
    assert page.eval("document.querySelector('.when').textContent") == "step 1, t = 6"
    first = page.eval(PIXELS)
    assert len(first) == 6
    page.eval("document.querySelector('input[type=range]').focus()")
    for _ in range(3):
        page.press("ArrowRight", 39)
    assert page.eval("document.querySelector('.viewer').dataset.frame") == "3"
    assert page.eval("document.querySelector('.when').textContent") == "step 4, t = 24"
    slider = "document.querySelector('input[type=range]')"
    assert page.eval(f"{slider}.getAttribute('aria-valuetext')") == "step 4, t = 24"
    label = page.eval("document.querySelector('canvas').getAttribute('aria-label')")
    assert label.startswith("target of smoke, a_run")
    assert label.endswith("step 4, t = 24")
    fourth = page.eval(PIXELS)
    assert all(a != b for a, b in zip(first, fourth, strict=True))
    assert first[0] == first[3]  # both runs forecast the same trajectory
    page.press("End", 35)
    assert page.eval("document.querySelector('.viewer').dataset.frame") == "7"
    page.open(pages["fluid"] + "#frame=3")
    assert page.eval(PIXELS) == fourth
    page.open(pages["fluid"] + "#frame=99")
    assert page.eval("document.querySelector('.viewer').dataset.frame") == "7"


def test_quantities_and_play(page, pages):
    page.open(pages["charges"] + "#frame=2")
    first = page.eval(PIXELS)
    page.eval("document.querySelector('input[type=radio]').focus()")
    page.press("ArrowRight", 39)
    assert page.eval("document.querySelector('.viewer').dataset.quantity") == "1"
    assert all(a != b for a, b in zip(first, page.eval(PIXELS), strict=True))
    page.eval("document.querySelector('.play').focus()")
    page.press("Enter", 13, "\r")
    assert page.eval("document.querySelector('.play').textContent") == "Pause"
    waiting = """new Promise((done) => { const look = () =>
      document.querySelector('.viewer').dataset.frame === '4' ? done(true) : setTimeout(look, 20);
      look(); })"""
    answer = page.call("Runtime.evaluate", expression=waiting, awaitPromise=True)
    assert answer["result"]["value"]
    page.press("Enter", 13, "\r")
    assert page.eval("document.querySelector('.play').textContent") == "Play"


def test_fields_on_a_line_have_no_slider(page, pages):
    page.open(pages["line"])
    assert page.eval("document.querySelector('input[type=range]')") is None
    assert page.eval("document.querySelector('canvas').height") == 8
    assert len(set(page.eval(PIXELS))) == 5  # the target is the same for both


def test_colours_follow_the_reader(page, pages):
    """Every text stands out from what is behind it, by day and by night."""
    shades = {}
    for dark in (False, True):
        page.open(pages["fluid"], dark=dark)
        shades[dark] = picture(page)
        contrasts = page.eval("""[...document.querySelectorAll("body *")].filter((e) =>
          [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) &&
          e.getClientRects().length && !e.closest("script,style,noscript,.hidden")).map((e) => {
          const lum = (text) => { const c = text.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
            .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
            return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]; };
          let back = e;
          const clear = (x) => getComputedStyle(x).backgroundColor === "rgba(0, 0, 0, 0)";
          while (back && clear(back)) back = back.parentElement;
          const style = getComputedStyle(e);
          const a = lum(e.closest("svg") ? style.fill : style.color);
          const b = lum(getComputedStyle(back || document.body).backgroundColor);
          return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.textContent]; })""")
        assert len(contrasts) > 100
        assert [c for c in contrasts if c[0] < 4.5] == []
    assert shades[False][5, 5].min() > 240
    assert shades[True][5, 5].max() < 40


def test_print(page, pages):
    page.open(pages["fluid"])
    page.call("Emulation.setEmulatedMedia", media="print")
    assert page.eval("getComputedStyle(document.querySelector('nav')).display") == "none"
    page.call("Emulation.setEmulatedMedia", media="")
    assert len(page.call("Page.printToPDF")["data"]) > 50_000
