"""House rules that a parser can check: sizes of files, functions and constructors; private torch.

Records (dataclasses) may have more fields than a constructor has parameters.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "benchmarks", "experiments", "website", "tools")
SOURCES = tuple(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
#: The one file that may use private parts of torch.
PRIVATE = ROOT / "src" / "cscnn" / "_util" / "torch_private.py"

MAX_FILE, MAX_FUNCTION, MAX_PARAMETERS = 400, 60, 10


def too_large(text: str) -> Iterator[str]:
    """What is larger than it should be in a source."""
    if (lines := len(text.splitlines())) > MAX_FILE:
        yield f"1: {lines} lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            if lines > MAX_FUNCTION:
                yield f"{node.lineno}: {node.name} has {lines} lines"
            arguments = node.args
            count = len([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]) - 1
            if node.name == "__init__" and count > MAX_PARAMETERS:
                yield f"{node.lineno}: a constructor has {count} parameters"


def private_torch(text: str) -> Iterator[str]:
    """Private parts of torch that a source uses."""
    for node in ast.walk(ast.parse(text)):
        names = []
        if isinstance(node, ast.Attribute):
            names = [ast.unparse(node)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if re.fullmatch(r"torch(\.\w+)*?\._[a-zA-Z]\w*(\.\w+)*", name):
                yield f"{node.lineno}: {name}"


#: Where modules keep their members and hooks; everybody may have attributes of these names.
INSIDE_MODULES = ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks")


def inside_of_modules(text: str) -> Iterator[str]:
    """Private attributes of modules that a source reads, except through self."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in INSIDE_MODULES:
            owner = ast.unparse(node.value)
            if owner != "self":
                yield f"{node.lineno}: {owner}.{node.attr}"


def violations(check, paths) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{problem}"
        for path in sorted(paths)
        for problem in check(path.read_text(encoding="utf-8"))
    ]


def test_nothing_is_too_large():
    assert not violations(too_large, SOURCES)


@pytest.mark.parametrize("check", [private_torch, inside_of_modules])
def test_private_torch_is_in_one_place(check):
    assert not violations(check, set(SOURCES) - {PRIVATE})
    assert violations(check, [PRIVATE])  # the walker sees it


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("\n" * 401, "401 lines"),
        ("def f():\n" + "    pass\n" * 60, "1: f has 61 lines"),
        (f"class A:\n def __init__(self, {', '.join('abcdefghijk')}): pass", "has 11 parameters"),
        (f"class A:\n def __init__(self, a, *, {', '.join('bcdefghijk')}): pass", "11 parameters"),
    ],
)
def test_the_walker_sees_large_things(text, problem):
    (message,) = too_large(text)
    assert problem in message


@pytest.mark.parametrize(
    "text",
    ["\n" * 400, "def f():\n" + "    pass\n" * 59, "class A:\n def __init__(self, a, **b): pass"],
)
def test_the_walker_lets_small_things_pass(text):
    assert not list(too_large(text))


@pytest.mark.parametrize(
    ("text", "private"),
    [
        ("import torch\ntorch._C._functions", True),
        ("from torch._dynamo import reset", True),
        ("from torch.utils import _pytree", True),
        ("import torch._dynamo.config", True),
        ("import torch\ntorch.__version__\nself._C\ntorch.nn.Module", False),
        ("from torchvision import _internal", False),
    ],
)
def test_the_walker_knows_private_torch(text, private):
    assert bool(list(private_torch(text))) == private


@pytest.mark.parametrize(
    ("text", "private"),
    [
        ("module._parameters", True),
        ("network.layer[0]._forward_pre_hooks.values()", True),
        ("self._buffers['x']\nmodule.buffers()\nmodule._bufferscope", False),
    ],
)
def test_the_walker_knows_the_inside_of_modules(text, private):
    assert bool(list(inside_of_modules(text))) == private
