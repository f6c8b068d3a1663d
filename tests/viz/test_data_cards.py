"""The data cards say what the code does."""

import dataclasses
import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("h5py")

from cscnn.data.simulators import SIMULATORS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location(
        "data_figures", ROOT / "examples" / "data_figures.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", SIMULATORS)
def test_cards_are_up_to_date(script, name, tmp_path):
    card = ROOT / "docs" / "data" / f"{name}.md"
    copy = tmp_path / card.name
    copy.write_bytes(card.read_bytes())
    parts = script.computed(name)
    script.update(copy, parts)
    assert copy.read_text("utf-8") == card.read_text("utf-8"), "run make figures"
    options = [option.name for option in dataclasses.fields(SIMULATORS[name])]
    assert all(f"| `{option}` |" in parts["parameters"] for option in options)
    assert f"cscnn generate {name} " in card.read_text("utf-8")
    picture = card.parent.parent / "figures" / f"data_{name}.png"
    assert 10_000 < picture.stat().st_size < 300_000


def test_a_card_without_the_part_is_an_error(script, tmp_path):
    (tmp_path / "card.md").write_text("# Card\n")
    with pytest.raises(ValueError, match=r"card\.md needs one part <!-- sizes -->.*has 0"):
        script.update(tmp_path / "card.md", {"sizes": "none"})
