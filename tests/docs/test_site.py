"""The site in a real browser, served from this machine. ``make docs`` builds it."""

import re

import pytest

from tests.docs.site import SITE, needs_site, wait

pytestmark = needs_site

PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))


def test_every_page_opens(page, address):
    """With a title and all its pictures, and on a phone without scrolling to the side."""
    assert len(PAGES) > 60
    for name in PAGES:
        page.open(f"{address}/{name}", width=390, mobile=True)
        assert page.eval("document.title"), name
        assert page.eval("document.documentElement.scrollWidth") <= 390, name
        broken = "[...document.images].filter((i) => !i.complete || !i.naturalWidth).length"
        assert page.eval(broken) == 0, name
        assert page.problems == [], name


def test_navigation(page, address):
    page.open(f"{address}/index.html", width=1280)
    tabs = page.eval(
        "[...document.querySelectorAll('.md-tabs__link')].map((a) => a.textContent.trim())"
    )
    assert tabs[:5] == ["Home", "Start", "Tutorials", "How-to", "Explanation"]
    page.eval("document.querySelectorAll('.md-tabs__link')[2].click()")
    wait(page, "location.pathname.startsWith('/tutorials/') && document.readyState === 'complete'")
    assert "fluid" in page.eval("document.querySelector('h1').textContent")
    page.eval("document.querySelector('.md-footer__link--next').click()")
    wait(page, "location.pathname === '/tutorials/maxwell.html'")


@pytest.mark.parametrize("word", ["bivector", "CompleteKernel", "rapidity"])
def test_search_finds(page, address, word):
    page.open(f"{address}/index.html", width=1280)
    typed = f"""(() => {{ const query = document.querySelector('.md-search__input');
      query.focus(); query.value = '{word}';
      for (const name of ['input', 'keyup', 'change'])
        query.dispatchEvent(new Event(name, {{bubbles: true}})); }})()"""
    page.eval(typed)
    wait(page, "document.querySelectorAll('.md-search-result__item').length > 0")
    found = page.eval("document.querySelector('.md-search-result__list').textContent")
    assert word.lower() in found.lower()


def test_formulas_are_mathml(page, address):
    page.open(f"{address}/explanation/theory.html")
    sizes = page.eval(
        "[...document.querySelectorAll('math')].map((m) => m.getBoundingClientRect().height)"
    )
    assert len(sizes) > 40
    assert min(sizes) > 5
    for name in PAGES:
        text = (SITE / name).read_text(encoding="utf-8")
        assert "arithmatex" not in text, name
        assert "MathJax" not in text, name


def test_dark_mode(page, address):
    page.open(f"{address}/index.html")
    scheme = "document.body.getAttribute('data-md-color-scheme')"
    first = page.eval(scheme)
    page.eval(
        "document.querySelector('form[data-md-component=palette] label:not([hidden])').click()"
    )
    wait(page, f"{scheme} !== '{first}'")
    assert {first, page.eval(scheme)} == {"default", "slate"}


def test_tutorials_show_what_their_code_printed():
    for path in (SITE / "tutorials").glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert 'class="language-text output highlight"' in text or "output highlight" in text, path
        assert text.count("<img") > 0 or path.stem == "own_layer"


def test_public_objects_have_an_anchor():
    from website.reference import PAGES as MODULES
    from website.reference import homes

    text = "".join((SITE / "api" / f"{page}.html").read_text() for page in MODULES.values())
    missing = [path for path in homes().values() if f'id="{path}"' not in text]
    assert missing == []


def test_nothing_comes_from_elsewhere():
    """No script, style, font or picture has another address than the site's own."""
    for name in PAGES:
        text = (SITE / name).read_text(encoding="utf-8")
        assert re.findall(r'(?:src|<link[^>]*href)="(?:https?:)?//[^"]*"', text) == [], name
