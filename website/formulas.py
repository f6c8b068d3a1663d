r"""TeX to MathML, when the site is built: browsers show it without a script and without a network.

Pages write ``$\rho(g)$`` or, on lines of their own, ``$$ ... $$``.
"""

from __future__ import annotations

import html
import re
import unicodedata

#: What pymdownx.arithmatex makes of formulas.
INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
#: Letters of an alphabet that browsers know by their code points only, not by this attribute.
LETTER = re.compile(r'<mi mathvariant="(double-struck|bold)">([A-Za-z])</mi>')
BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def with_mathml(page: str) -> str:
    """The HTML of a page with MathML in place of its formulas."""
    page = BLOCK.sub(lambda match: f'<p class="formula">{mathml(match[1], "block")}</p>', page)
    return INLINE.sub(lambda match: mathml(match[1], "inline"), page)


def mathml(formula: str, display: str) -> str:
    """A formula of TeX, as it stands in HTML, in MathML.

    Args:
        formula: with ``&lt;`` and the like.
        display: ``"inline"`` or ``"block"``.
    """
    from latex2mathml.converter import convert

    converted = convert(html.unescape(formula).strip(), display=display)
    converted = LETTER.sub(lambda match: f"<mi>{letter(match[1], match[2])}</mi>", converted)
    if "\\" in re.sub(r"<[^>]*>", "", converted):
        raise ValueError(f"no MathML for a command in the formula {formula!r}: {converted}")
    return converted


def letter(alphabet: str, plain: str) -> str:
    """A letter of a mathematical alphabet.

    Example:
        >>> letter("double-struck", "R"), letter("bold", "E")
        ('ℝ', '𝐄')
    """
    name = f"{alphabet} {'capital' if plain.isupper() else 'small'} {plain}".upper()
    for full in (name, f"MATHEMATICAL {name}"):
        try:
            return unicodedata.lookup(full)
        except KeyError:
            continue
    raise ValueError(f"there is no {alphabet} {plain}")
