"""Runs the Python of one page in a process of its own, and keeps what each block shows.

    python -m website.runner < blocks.json > outputs.json

A block shows what it prints, and the value of its last line: figures and paths of pictures as
pictures, everything else as text. Blocks share their names, as in a notebook.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import sys
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

PICTURES = {".png", ".gif", ".svg"}
DPI = 110


def main() -> None:
    """Read blocks from standard input, write their outputs to standard output."""
    import matplotlib

    matplotlib.use("Agg")
    warnings.simplefilter("error")  # pages show no warnings
    warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"torch|lightning")
    page = sys.modules["__main__"] = ModuleType("__main__")  # classes of the page can be pickled
    names = vars(page)
    outputs = []
    for number, code in enumerate(json.load(sys.stdin), 1):
        try:
            outputs.append(run_block(code, names, f"<block {number}>"))
        except BaseException:
            message = traceback.format_exc(limit=-3)
            sys.exit(f"block {number}:\n{code}\n{message}")
    json.dump(outputs, sys.stdout)


def run_block(code: str, names: dict[str, Any], title: str) -> dict[str, Any]:
    """Run one block.

    Args:
        code: its text.
        names: of this and other blocks; changed by running it.
        title: for error messages.

    Returns:
        ``text`` that is shown, and ``pictures``: pairs of a suffix and base64 of a file.
    """
    tree = ast.parse(code, title)
    last = tree.body[-1] if tree.body else None
    expression = None
    if isinstance(last, ast.Expr):
        tree.body.pop()
        expression = compile(ast.Expression(last.value), title, "eval")
    written = io.StringIO()
    with redirect_stdout(written), redirect_stderr(io.StringIO()):
        exec(compile(tree, title, "exec"), names)
        value = eval(expression, names) if expression else None
    pictures = [picture(figure) for figure in _open_figures()]
    text = written.getvalue()
    if _is_figure(value) or (isinstance(value, Path) and value.suffix in PICTURES):
        if not pictures:
            pictures.append(picture(value))
    elif value is not None:
        text += f"{value!r}\n"
    return {"text": text, "pictures": pictures}


def picture(value: Any) -> tuple[str, str]:
    """Suffix and content of a figure or of a file with a picture, in base64."""
    if isinstance(value, Path):
        return value.suffix, base64.b64encode(value.read_bytes()).decode()
    data = io.BytesIO()
    value.savefig(data, format="png", dpi=DPI, bbox_inches="tight", metadata={"Software": None})
    return ".png", base64.b64encode(data.getvalue()).decode()


def _is_figure(value: Any) -> bool:
    from matplotlib.figure import Figure

    return isinstance(value, Figure)


def _open_figures() -> list[Any]:
    """Figures of pyplot that the block has left open; they are closed."""
    from matplotlib import pyplot

    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    pyplot.close("all")
    return figures


if __name__ == "__main__":
    main()
