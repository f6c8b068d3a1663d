"""What turns pages into the site: executed code, formulas, docstrings, help texts."""

import base64

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jsonargparse")

from website import execute
from website.commands import with_commands
from website.runner import run_block

PAGE = """# Title

```python
x = 6
print("printed")
x * 7
```

```python
import matplotlib.pyplot as plt

figure, ax = plt.subplots()
figure
```

```bash
make docs
```
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(execute, "CACHE", tmp_path / "cache")
    return tmp_path / "cache"


def test_a_page_shows_what_its_code_shows(cache):
    text, pictures = execute.with_outputs(PAGE, "tutorials/some.md")
    assert text.startswith(PAGE[: PAGE.index("```\n")])
    assert '```{.text .output title="Output"}\nprinted\n42\n```' in text
    assert "](some_1.png)" in text
    assert list(pictures) == ["some_1.png"]
    assert pictures["some_1.png"].startswith(b"\x89PNG")
    assert text.endswith("```bash\nmake docs\n```\n")
    (kept,) = cache.iterdir()
    kept.write_text(kept.read_text().replace("42", "43"))
    assert "\n43\n" in execute.with_outputs(PAGE, "tutorials/some.md")[0]  # not run again


def test_code_that_fails_is_an_error(cache):
    with pytest.raises(RuntimeError, match=r"the Python of a\.md does not run(.|\n)*1 / 0"):
        execute.with_outputs("```python\n1 / 0\n```\n", "a.md")
    assert not cache.exists()


def test_warnings_are_errors(cache):
    code = "import warnings\n\nwarnings.warn('old')\n"
    with pytest.raises(RuntimeError, match="old"):
        execute.with_outputs(f"```python\n{code}```\n", "a.md")


def test_blocks_share_their_names(tmp_path):
    names = {}
    assert run_block("x = 2", names, "a") == {"text": "", "pictures": []}
    assert run_block("x + 1", names, "b")["text"] == "3\n"
    assert run_block("None", names, "c")["text"] == ""


def test_files_with_pictures_are_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "film.gif").write_bytes(b"GIF89a")
    shown = run_block('from pathlib import Path\nPath("film.gif")', {}, "a")
    assert shown == {"text": "", "pictures": [(".gif", base64.b64encode(b"GIF89a").decode())]}


def test_help_texts_are_those_of_the_program():
    text = with_commands("before\n<!-- help: info -->\nafter")
    assert "usage: cscnn info [-h] [--metric METRIC]" in text
    assert text.startswith("before\n```text\n")
    assert text.endswith("```\nafter")
    with pytest.raises(ValueError, match="no command 'nonsense'"):
        with_commands("<!-- help: nonsense -->")


# --- with the tools of the site -------------------------------------------------------------------


@pytest.mark.external
def test_formulas_become_mathml():
    pytest.importorskip("latex2mathml", reason="pip install 'cscnn[docs]'")
    from website.formulas import letter, with_mathml

    page = r'<p>a <span class="arithmatex">\(\rho(g) &lt; \mathbb R\)</span> b</p>'
    html = with_mathml(page)
    assert html.startswith("<p>a <math")
    assert "ℝ" in html
    assert "&#x0003C;" in html or "&lt;" in html
    block = with_mathml('<div class="arithmatex">\\[\nx\n\\]</div>')
    assert 'display="block"' in block
    with pytest.raises(ValueError, match="no MathML"):
        with_mathml(r'<span class="arithmatex">\(\nonsense\)</span>')
    assert letter("bold", "E") == "𝐄"


@pytest.mark.external
def test_docstrings_become_markdown():
    pytest.importorskip("griffe", reason="pip install 'cscnn[docs]'")
    from website.docstrings import to_markdown

    text = """A kernel of `Edges`, not ``Edges``, as in::

        K(v)

    Args:
        c_in, c_out: channels,
            many.
    Example:
        >>> 1
    """
    links = {"Edges": "cscnn.geometry.Edges"}
    assert to_markdown(text, links) == (
        """A kernel of [`Edges`][cscnn.geometry.Edges], not ``Edges``, as in:

        K(v)

    Args:
        c_in: channels,
            many.
        c_out: channels,
            many.
    Examples:
        >>> 1
    """
    )
