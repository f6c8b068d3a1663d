"""Imports run one way: every room of the library imports only rooms before it.

The files are parsed, not run, so that imports inside functions count, as do names of modules in
strings, which tables and ``import_module`` take.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "cscnn"

#: The library, in order. Rooms may import those before them, and `_util`.
LIBRARY = ("algebra", "nn", "kernels", "geometry", "conv", "calculus", "networks")
#: These may import all of the library, each other too.
AROUND = ("testing", "interop")
#: The application: room -> rooms of the application that it may import beside the library.
APPLICATION = {
    "data": (),
    "forecasting": ("data",),
    "viz": ("data", "forecasting"),
    "cli": ("data", "forecasting", "viz"),
    "__main__": ("cli",),
}
ROOMS = (*LIBRARY, *AROUND, *APPLICATION, "_util")
#: Folders beside the package, which it does not know.
OUTSIDE = ("benchmarks", "experiments", "tests", "examples")

MODULE_NAME = re.compile(r"(?:cscnn|benchmarks|experiments)(?:\.\w+)+(?::\w+)?")


class Import(NamedTuple):
    """A module or name that a file uses, and the line where it does."""

    target: str
    line: int


def allowed(room: str) -> set[str]:
    """Rooms that a room may import, itself among them."""
    if room == "_util":
        return {"_util"}
    if room in LIBRARY:
        return {*LIBRARY[: LIBRARY.index(room) + 1], "_util"}
    library = {*LIBRARY, *AROUND, "_util"}
    return library if room in AROUND else {room, *APPLICATION[room], *library}


def imports(path: Path, package: tuple[str, ...]) -> Iterator[Import]:
    """All that a file imports, wherever it does so, and names of modules in its strings.

    Args:
        path: the file.
        package: of the file, for relative imports.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    aliases = [a for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names]
    roots = {"cscnn", *(a.asname for a in aliases if a.name == "cscnn")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join([*parents, *([node.module] if node.module else [])])
            for alias in node.names:
                yield Import(f"{module}.{alias.name}", node.lineno)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in roots:  # reaches rooms by cscnn.__getattr__
                yield Import(f"cscnn.{node.attr}", node.lineno)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in documentation and MODULE_NAME.fullmatch(node.value):
                yield Import(node.value.partition(":")[0], node.lineno)
        elif isinstance(node, ast.JoinedStr) and node.values:
            yield from _formatted(node)


def _formatted(node: ast.JoinedStr) -> Iterator[Import]:
    """``f"cscnn.{name}"``: any room; ``f"cscnn.data.{name}"``: that one."""
    first = node.values[0]
    if isinstance(first, ast.Constant) and re.fullmatch(r"cscnn\.(?:\w+\.)*", str(first.value)):
        yield Import(f"{first.value}*", node.lineno)


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Those of a module, those under ``if TYPE_CHECKING`` too."""
    for node in tree.body:
        yield from node.body if isinstance(node, ast.If) else [node]


def exports(root: Path) -> dict[str, str]:
    """Names that the package itself offers -> the modules that they come from, or itself."""
    names = {}
    for node in _statements(ast.parse((root / "__init__.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Assign):
            names.update({t.id: "cscnn" for t in node.targets if isinstance(t, ast.Name)})
    return names


def room_of(target: str, names: dict[str, str]) -> str | None:
    """The room of a module or name ``cscnn.x...``; None for other packages and for the root."""
    top, _, rest = target.partition(".")
    if top != "cscnn" or not rest:
        return None
    room = rest.partition(".")[0]
    return room_of(names[room], {}) if room in names and room not in ROOMS else room


def violations(root: Path) -> list[str]:
    """Imports against the order, as ``file:line: room imports room``."""
    names, problems = exports(root), []
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        room = relative.parts[0].removesuffix(".py")
        if room == "__init__":
            problems += _root_violations(path)
            continue
        if room not in ROOMS:
            problems.append(f"{relative}: {room} has no place in the order of rooms")
            continue
        for target, line in imports(path, ("cscnn", *relative.parts[:-1])):
            place = f"{relative}:{line}: {room} imports"
            other = room_of(target, names)
            if target.partition(".")[0] in OUTSIDE:
                problems.append(f"{place} {target}, which is outside the package")
            elif other is not None and other not in allowed(room):
                problems.append(f"{place} {other if other in ROOMS else target}")
    return problems


def _root_violations(path: Path) -> list[str]:
    """The package itself imports the library only; rooms that it names must exist.

    To type checkers, which do not run ``__getattr__``, it may name all rooms.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    checkers = [
        s for s in tree.body if isinstance(s, ast.If) and "TYPE_CHECKING" in ast.dump(s.test)
    ]
    for_checkers = {id(node) for branch in checkers for node in branch.body}
    problems = []
    for node in _statements(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "cscnn" and id(node) in for_checkers:
                continue
            targets = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        else:
            continue
        rooms = {room_of(target, {}) for target in targets}
        for room in sorted(rooms - {None, *LIBRARY, *AROUND, "_util"}, key=str):
            problems.append(f"__init__.py:{node.lineno}: the package imports {room}")
    for function in (node for node in _statements(tree) if isinstance(node, ast.FunctionDef)):
        if function.name == "__getattr__":
            problems += _missing_rooms(function, path.parent)
    return problems


def _missing_rooms(function: ast.FunctionDef, root: Path) -> list[str]:
    """Names in ``name in ("testing", "viz")`` that are no rooms."""
    compared = [node for node in ast.walk(function) if isinstance(node, ast.Compare)]
    constants = [n for test in compared for n in ast.walk(test) if isinstance(n, ast.Constant)]
    return [
        f"__init__.py:{node.lineno}: __getattr__ offers {node.value}, which does not exist"
        for node in constants
        if not ((root / str(node.value)).is_dir() or (root / f"{node.value}.py").is_file())
    ]


def test_imports_run_one_way():
    problems = violations(SOURCE)
    assert not problems, "imports against the order of rooms:\n" + "\n".join(problems)


# --- the walker itself ----------------------------------------------------------------------------


def tree(root: Path, **files: str) -> Path:
    """A package with files ``room__module``."""
    root.mkdir(exist_ok=True)
    (root / "__init__.py").write_text(files.pop("__init__", ""))
    for name, text in files.items():
        path = root / (name.replace("__", "/") + ".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("conv__a", "from cscnn.viz import plot", "conv imports viz"),
        ("conv__a", "def f():\n    from cscnn.viz import plot", "conv imports viz"),
        ("conv__a", "def f():\n    import cscnn.forecasting.task", "conv imports forecasting"),
        ("conv__a", "def f():\n    from cscnn import data", "conv imports data"),
        ("conv__a", "import cscnn\ndef f():\n    cscnn.viz.plot()", "conv imports viz"),
        ("conv__a", "import cscnn as c\ndef f():\n    c.viz.plot()", "conv imports viz"),
        ("conv__a", "def f():\n    from ..viz import plot", "conv imports viz"),
        ("conv__a", "def f():\n    from .. import viz", "conv imports viz"),
        ("conv__a", "if TYPE_CHECKING:\n    from cscnn.cli import main", "conv imports cli"),
        ("conv__a", 'def f():\n    import_module("cscnn.data.files")', "conv imports data"),
        ("conv__a", 'TABLE = {"a": "cscnn.forecasting.runs:Run"}', "conv imports forecasting"),
        ("conv__a", 'import_module(f"cscnn.{name}")', "conv imports cscnn.*"),
        ("conv__a", 'import_module(f"cscnn.viz.{name}")', "conv imports viz"),
        ("conv__a", "from cscnn.networks import CSResNet", "conv imports networks"),
        ("conv__a", "import cscnn.bench", "conv imports cscnn.bench"),
        ("algebra__a", "from cscnn.nn import MVLinear", "algebra imports nn"),
        ("algebra__a", "from cscnn import MVLinear", "algebra imports nn"),
        ("kernels__a", "from cscnn.geometry import Edges", "kernels imports geometry"),
        ("networks__a", "from cscnn.testing import conformance", "networks imports testing"),
        ("testing__a", "from cscnn.data import files", "testing imports data"),
        ("_util__a", "from cscnn.algebra import CliffordAlgebra", "_util imports algebra"),
        ("data__a", "from cscnn.forecasting import Task", "data imports forecasting"),
        ("forecasting__a", "from cscnn.viz import plot", "forecasting imports viz"),
        ("viz__a", "from cscnn.cli import main", "viz imports cli"),
        ("viz__a", "import benchmarks.zoo", "imports benchmarks.zoo, which is outside"),
        ("cli", "def f():\n    from experiments import a", "experiments.a, which is outside"),
        ("cli", 'import_module("experiments.study")', "experiments.study, which is outside"),
        ("bench__a", "", "bench has no place in the order of rooms"),
        ("__init__", "from cscnn.data import files", "the package imports data"),
        ("__init__", "from cscnn import data", "the package imports data"),
        ("__init__", "if TYPE_CHECKING:\n    from cscnn.data import files", "imports data"),
        ("__init__", "def __getattr__(name):\n    return name in ('viz',)", "offers viz"),
        ("__init__", "if a:\n  def __getattr__(name):\n    return name in ('viz',)", "offers viz"),
    ],
)  # fmt: skip
def test_the_walker_sees(tmp_path, name, text, problem):
    files = {"__init__": "from cscnn.nn import MVLinear", "conv__b": "", name: text}
    problems = violations(tree(tmp_path / "cscnn", **files))
    assert len(problems) == 1, problems
    assert problem in problems[0]
    assert problems[0].startswith(name.replace("__", "/") if "__" not in name[:2] else name[:2])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("conv__a", '"""See cscnn.viz."""\nfrom cscnn.kernels import Complete'),
        ("conv__a", 'def f():\n    """Example:\n        >>> from cscnn.viz import plot\n    """'),
        ("conv__a", "from cscnn import CliffordAlgebra, __version__"),
        ("conv__a", "from .b import conv\nfrom cscnn._util.checks import check_int"),
        ("conv__a", "import torch.viz, math\nraise ValueError('see cscnn.viz for pictures')"),
        ("testing__a", "from cscnn import interop, networks"),
        ("interop__a", "from cscnn.testing import relative_error"),
        ("viz__a", "from cscnn.forecasting import Task\nfrom cscnn.data import files"),
        ("forecasting__a", "def f():\n    from cscnn.data import files\n    import cscnn.networks"),
        ("cli", 'import cscnn\nimport_module("cscnn.viz.commands")\ncscnn.viz.plot()'),
        ("__init__", "from cscnn.algebra import CliffordAlgebra\nfrom cscnn import kernels, nn"),
        ("__init__", "if TYPE_CHECKING:\n    from cscnn import data as data"),
        ("__init__", "def __getattr__(name):\n    return name in ('conv',)"),
    ],
)
def test_the_walker_lets_pass(tmp_path, name, text):
    root = "from cscnn.algebra import CliffordAlgebra\n__version__ = '1'"
    assert (
        violations(tree(tmp_path / "cscnn", **{"__init__": root, "conv__b": "", name: text})) == []
    )
