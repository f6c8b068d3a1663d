"""House rules for prose that a program can check: lengths, banned phrases, the glossary."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GLOSSARY = DOCS / "glossary.md"
PAGES = (*sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("*.md")))
SOURCES = tuple(
    path
    for folder in ("src", "examples", "benchmarks", "experiments", "website")
    for path in sorted((ROOT / folder).rglob("*.py"))
)
#: Pages of the site that teach: not the reference, the home page or the glossary itself.
TEACHING = tuple(
    page
    for page in sorted(DOCS.rglob("*.md"))
    if page.parent.name != "api" and page not in (DOCS / "index.md", GLOSSARY)
)

MAX_README, MAX_LINE = 150, 100

#: A phrase that needs a second reading, and what to write instead.
BANNED = {
    "the least of": "minimum of ten interleaved timings",
    "side by side timings": "interleaved timings",
    "timings side by side": "interleaved timings",
    "measured side by side": "from interleaved timings",
    "whoever": "name the subject",
    "so many": "a number of",
    "who hears whom": "receivers and senders",
    "forecast that nothing changes": "the persistence forecast",
    "the last known frame stays": "the persistence forecast",
    "what cannot be": "name the noun",
    "quarter turn": "rotation by 90 degrees",
}


def prose_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines of Markdown with their numbers, without tables, code and pictures."""
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside and not line.startswith(("|", "    ", "!")):
            yield number, line


def long_lines(text: str) -> Iterator[str]:
    """Those that could be broken: not a single long link."""
    for number, line in prose_lines(text):
        if len(line) > MAX_LINE and not re.fullmatch(r"\s*(- )?\S*\[[^\]]*\]\(\S*\)\S*", line):
            yield f"{number}: {len(line)} characters"


def banned(text: str) -> Iterator[str]:
    """Phrases of a text, also across the ends of lines, that have a plain equivalent."""
    joined = re.sub(r"\s+(#:? )?", " ", text).lower()
    for phrase, better in BANNED.items():
        if phrase in joined:
            yield f'"{phrase}": write "{better}"'


def violations(check, paths) -> list[str]:
    return [
        f"{path.relative_to(ROOT).as_posix()}:{problem}"
        for path in paths
        for problem in check(path.read_text(encoding="utf-8"))
    ]


def test_the_readme_is_short():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MAX_README


def test_lines_of_pages_are_short():
    assert not violations(long_lines, PAGES)


def test_phrases_are_plain():
    assert not violations(banned, (*PAGES, *SOURCES))


@pytest.mark.parametrize("page", TEACHING, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_begins_with_what_its_reader_can_do(page):
    text = re.sub(r"\A---\n.*?\n---\n", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    title, _, rest = text.lstrip().partition("\n")
    assert title.startswith("# ")
    assert rest.lstrip().startswith("After this page you ")


@pytest.mark.parametrize("page", TEACHING, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_links_to_the_glossary(page):
    if page.name in {"benchmarks.md", "models.md", "results.md"}:
        pytest.skip("tables that a program writes")
    assert "glossary.md" in page.read_text(encoding="utf-8")


def test_links_to_the_glossary_have_an_entry():
    entries = re.findall(r'<a id="([^"]+)"></a>', GLOSSARY.read_text(encoding="utf-8"))
    assert len(entries) == len(set(entries)) > 50
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert set(re.findall(r"glossary\.md#([\w-]+)", text)) <= set(entries), page


def test_the_glossary_is_sorted():
    text = GLOSSARY.read_text(encoding="utf-8")
    words = re.findall(r"</a>(.+?) \|", text)
    assert words == sorted(words, key=str.lower)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("x " * 51, ["1: 102 characters"]),
        ("short\n" + "- " + "y " * 60, ["2: 122 characters"]),
        ("| " + "x " * 60 + "|", []),
        ("```\n" + "x " * 60 + "\n```", []),
        ("    " + "x " * 60, []),
        (f"[link](https://{'x' * 100})", []),
        (f"- [link](https://{'x' * 100}).", []),
        (f"words before a [link](https://{'x' * 100})", ["1: 131 characters"]),
    ],
)
def test_the_walker_sees_long_lines(text, problems):
    assert list(long_lines(text)) == problems


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It says who is ahead, whoever it is.", True),
        ("the minimum, not the\n    least of some", True),
        ("#: use the first so\n#: many", True),
        ("the minimum of ten interleaved timings", False),
    ],
)
def test_the_walker_sees_banned_phrases(text, found):
    assert bool(list(banned(text))) == found
