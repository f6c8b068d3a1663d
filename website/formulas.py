r"""TeX to MathML, when the site is built: browsers show it without a script and without a network.

Pages write ``$\rho(g)$`` or, on lines of their own, ``$$ ... $$``.
"""

from __future__ import annotations

import html
import re

#: What pymdownx.arithmatex makes of formulas.
INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
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
    if "\\" in re.sub(r"<[^>]*>", "", converted):
        raise ValueError(f"no MathML for a command in the formula {formula!r}: {converted}")
    return converted
