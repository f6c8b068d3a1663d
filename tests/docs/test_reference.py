"""The API reference has a place for every public object; pages ask for what exists."""

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("h5py")  # public modules of the application need it

from website.reference import MARKER, PAGES, describe, homes, public_names

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "src" / "cscnn"


def modules_with_exports():
    """Packages that say what they export."""
    for path in PACKAGE.rglob("__init__.py"):
        if re.search(r"^__all__ = ", path.read_text(encoding="utf-8"), re.MULTILINE):
            yield ".".join(("cscnn", *path.parent.relative_to(PACKAGE).parts))


def test_every_public_module_has_a_page():
    assert set(modules_with_exports()) == set(PAGES)
    marked = {}
    for path in sorted((DOCS / "api").glob("*.md")):
        for module in MARKER.findall(path.read_text(encoding="utf-8")):
            marked[module] = path.stem
    assert marked == PAGES


@pytest.mark.parametrize("module", PAGES)
def test_every_public_name_is_described(module):
    """By a directive of its own, or by a link to one; submodules have pages."""
    loaded, text = import_module(module), describe(module)
    for name in loaded.__all__:
        value = getattr(loaded, name)
        if isinstance(value, ModuleType):
            assert value.__name__ in PAGES
        else:
            assert re.search(rf"^(::: [\w.]*\.{name}$|- `{module}\.{name}`: )", text, re.MULTILINE)


def test_an_object_is_described_once():
    described = [
        path for module in PAGES for path in re.findall(r"^::: (.*)$", describe(module), re.M)
    ]
    assert len(described) == len(set(described))
    assert set(described) == set(homes().values())


def test_names_that_are_imported_when_used_have_a_home():
    assert "train" in public_names("cscnn.forecasting")
    assert homes()["cscnn.forecasting", "train"] == "cscnn.forecasting.training.train.train"
    assert homes()["cscnn", "CliffordAlgebra"] == "cscnn.algebra.CliffordAlgebra"


def test_pages_in_the_navigation_exist():
    """And none is left out, which mkdocs would only say when it builds."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    listed = set(re.findall(r"([\w/]+\.md)$", text, re.MULTILINE))
    assert listed == {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
