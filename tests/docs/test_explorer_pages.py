"""The explorer's pages in a browser: what is dragged moves, and what is shown is true."""

import json

import pytest

from tests.docs.site import SITE, needs_site, wait
from tests.docs.test_explorer_numbers import FOLDER, PAIRS

pytestmark = needs_site

KERNELS = "explorer/kernels.html"
FORECAST = "explorer/forecast.html"


def visit(page, address, name, **window):
    page.open(f"{address}/{name}", width=window.pop("width", 1280), **window)
    wait(page, "document.querySelector('.explorer').dataset.drawn > 0")


def change(page, name, value):
    """Set a control as a reader does, and wait for the next picture."""
    page.eval(f"""(() => {{
      window.before = document.querySelector('.explorer').dataset.drawn;
      const control = document.querySelector('.explorer [name={name}]');
      control.value = {json.dumps(value)};
      const event = control.tagName === 'SELECT' ? 'change' : 'input';
      control.dispatchEvent(new Event(event, {{bubbles: true}})); }})()""")
    wait(page, "document.querySelector('.explorer').dataset.drawn !== window.before")


def errors(page):
    """Of the three kernels."""
    rows = page.eval("""[...document.querySelectorAll('[data-kernel]')].map((e) =>
      [e.dataset.kernel, Number(e.dataset.error)])""")
    return dict(rows)


def texts(page):
    return page.eval("""[...document.querySelectorAll('.explorer-error')].map((e) =>
      e.textContent)""")


# --- kernels --------------------------------------------------------------------------------------


def test_a_boost_by_the_keyboard(page, address):
    visit(page, address, KERNELS)
    page.eval("document.querySelector('[name=rapidity]').focus()")
    before, words = texts(page), "document.querySelector('[name=rapidity]').ariaValueText"
    assert page.eval(words).startswith("0.40, velocity 0.38")
    drawn = page.eval("document.querySelector('.explorer').dataset.drawn")
    for _ in range(3):
        page.press("ArrowRight", 39)
    wait(page, f"document.querySelector('.explorer').dataset.drawn > {drawn}")
    wait(page, f"{words}.startsWith('0.43')")
    wait(page, f"{json.dumps(before)}[1] !== document.querySelectorAll('.explorer-error')[1].value")
    assert all(a != b for a, b in zip(texts(page)[1:], before[1:], strict=True))


@pytest.mark.parametrize("field", ["bumps", "kink"])
def test_boosts_need_a_point(page, address, field):
    """A box loses them, a differential kernel does not, a control has never had them."""
    visit(page, address, KERNELS)
    change(page, "field", field)
    for grades in PAIRS:
        for name, grade in zip(("input", "output"), grades, strict=True):
            change(page, name, str(grade))
        change(page, "rapidity", "0.5")
        found = errors(page)
        assert found["differential"] < 0.004, grades
        assert found["steerable"] > max(0.04, 15 * found["differential"]), grades
        assert found["control"] > 0.1, grades
        change(page, "rapidity", "0")
        assert max(errors(page).values()) == 0, grades


def test_rotations_fit_into_the_box(page, address):
    visit(page, address, KERNELS)
    change(page, "space", "plane")
    assert page.eval("document.querySelector('[name=rapidity]').closest('div').hidden")
    for grades in PAIRS:
        for name, grade in zip(("input", "output"), grades, strict=True):
            change(page, name, str(grade))
        change(page, "angle", "40")
        found = errors(page)
        assert found["steerable"] < 2e-4, grades
        assert found["differential"] < 2e-4, grades
        assert found["control"] > 0.1, grades
        change(page, "angle", "90")  # a symmetry of the grid
        found = errors(page)
        assert max(found["steerable"], found["differential"]) < 1e-12, grades
        assert found["control"] > 0.1, grades


def test_grades_without_a_steerable_kernel_cannot_be_chosen(page, address):
    visit(page, address, KERNELS)
    closed = "[...document.querySelectorAll('[name=output] option')].map((o) => o.disabled)"
    for grade, expected in enumerate(
        [[False, False, True], [False, False, False], [True, False, False]]
    ):
        change(page, "input", str(grade))
        assert page.eval(closed) == expected
    change(page, "output", "2")
    change(page, "input", "0")  # then the output is a vector
    assert page.eval("document.querySelector('[name=output]').value") == "1"
    assert page.eval("document.querySelector('[name=share]').closest('div').hidden")
    change(page, "input", "1")
    assert not page.eval("document.querySelector('[name=share]').closest('div').hidden")
    before = errors(page)
    change(page, "share", "0.9")
    assert errors(page)["steerable"] != before["steerable"]


def test_the_orbit_moves_the_kernel(page, address):
    visit(page, address, KERNELS)
    picture = "document.querySelectorAll('canvas')[4].toDataURL()"
    before, error = page.eval(picture), errors(page)["steerable"]
    change(page, "shell", "-2")
    assert page.eval(picture) != before
    assert errors(page)["steerable"] != error


# --- forecasts ------------------------------------------------------------------------------------


def test_forecasts_are_those_of_the_networks(page, address):
    """The page computes the errors that the program which trained them has found."""
    text = (FOLDER / "forecast_data.js").read_text("utf-8")
    film = json.loads(text.removeprefix("globalThis.forecastData = ").removesuffix(";\n"))
    visit(page, address, FORECAST)
    shown = "[...document.querySelectorAll('.explorer-error')].map((e) => Number(e.dataset.error))"
    for number, network in enumerate(film["networks"]):
        change(page, "network", str(number))
        for observer, expected in enumerate(network["errors"]):
            change(page, "observer", str(observer))
            rest, motion = page.eval(shown)
            assert rest == pytest.approx(network["errors"][0], abs=2e-3)
            assert motion == pytest.approx(expected, abs=2e-3)


def test_time_moves_and_plays(page, address):
    visit(page, address, FORECAST)
    frame = "Number(document.querySelector('.explorer').dataset.frame)"
    before = texts(page)
    change(page, "time", "10")
    assert page.eval(frame) == 10
    assert texts(page) != before
    page.eval("document.querySelector('.explorer-play').click()")
    wait(page, f"{frame} > 12")
    assert "Pause" in page.eval("document.querySelector('.explorer-play').textContent")
    assert page.eval("document.querySelector('[name=time]').value > 12")
    page.eval("document.querySelector('.explorer-play').click()")
    assert "Play" in page.eval("document.querySelector('.explorer-play').textContent")
    page.eval("document.querySelector('.explorer-play').click()")
    change(page, "time", "63")  # who moves the slider stops the film
    assert "Play" in page.eval("document.querySelector('.explorer-play').textContent")


# --- both -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [KERNELS, FORECAST])
def test_panels_fit_and_follow_the_colours_of_the_page(page, address, name):
    """Light and dark, on a screen and on a phone: panels line up and are as sharp as they can."""
    red = """(() => {
      const copy = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
      copy.drawImage(document.querySelector('canvas'), -30, -2);
      return copy.getImageData(0, 0, 1, 1).data[0]; })()"""
    for width in (1280, 390):
        visit(page, address, name, width=width, mobile=width == 390)
        page.eval("document.body.setAttribute('data-md-color-scheme', 'default')")
        wait(page, f"{red} > 200")
        page.eval("document.body.setAttribute('data-md-color-scheme', 'slate')")
        wait(page, f"{red} < 120")
        boxes = page.eval("""[...document.querySelectorAll('canvas')].map((c) => {
          const box = c.getBoundingClientRect();
          return [box.left, box.right, box.width / box.height, c.width / c.clientWidth]; })""")
        assert min(left for left, *_ in boxes) >= 0
        assert max(right for _, right, *_ in boxes) <= width
        assert max(ratio for *_, ratio, _ in boxes) - min(ratio for *_, ratio, _ in boxes) < 0.03
        assert all(abs(sharpness - 1) < 0.02 for *_, sharpness in boxes)
        labels = """[...document.querySelectorAll('.explorer input, .explorer select')].every(
          (c) => c.labels.length === 1 && c.labels[0].textContent.length > 3)"""
        assert page.eval(labels)


@pytest.mark.parametrize("name", [KERNELS, FORECAST])
def test_pages_work_from_disk(page, name):
    page.open((SITE / name).as_uri())
    wait(page, "document.querySelector('.explorer').dataset.drawn > 0")


@pytest.mark.parametrize("name", [KERNELS, FORECAST])
def test_without_scripts_there_are_words_and_figures(page, address, name):
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(f"{address}/{name}")
        words = page.eval("document.querySelector('.md-content').innerText")
        assert "needs JavaScript" in words
        links = page.eval("[...document.querySelectorAll('noscript a')].map((a) => a.pathname)")
        assert len(links) == 2
        assert all((SITE / link.lstrip("/")).is_file() for link in links)
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)
