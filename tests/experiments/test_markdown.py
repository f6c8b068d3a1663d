"""Pages that programs write have lines that a person can read."""

from __future__ import annotations

from experiments.markdown import WIDTH, page_text


def test_only_prose_is_broken() -> None:
    words, code = "word " * 30, "`python -m experiments.paper --preset small`"
    lines = ["# " + words, words, "- " + words, "| " + words, "![" + words + "](a.png)", ""]
    text = page_text([*lines, "x" * (WIDTH - 20) + f" {code} end", "", ""])
    long = [line for line in text.split("\n") if len(line) > WIDTH]
    assert [line[0] for line in long] == ["#", "|", "!"]
    assert " ".join(text.split()).count("word") == 30 * 5
    assert "\n  word" in text  # the second line of the item of a list
    assert f"\n{code} end\n" in text
    assert text.endswith("end\n")
