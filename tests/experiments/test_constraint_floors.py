"""How much constraints change true states."""

import re
from pathlib import Path

from cscnn.data.simulators import NavierStokes
from experiments.constraint_floors import SCHEMES, floors, main

BOX = NavierStokes(grid=(16, 16), size=(8.0, 8.0))


def test_stored_velocities_obey_staggered_differences():
    measured = floors(BOX, 1, 1)
    titles = list(SCHEMES)
    assert measured[titles[0]] < 1e-6
    assert min(measured[title] for title in titles[1:]) > 1e-3


def test_coarse_cells_obey_no_law_exactly():
    assert min(floors(BOX, 2, 1)[title] for title in SCHEMES) > 1e-3


def test_the_table(capsys):
    assert main(["--points", "8", "--trajectories", "1"]) == 0
    head, _, row = capsys.readouterr().out.splitlines()
    assert head.startswith("| data | `staggered` |")
    assert re.match(r"\| 8², as stored \| \*\*\d\.\de-\d+\*\* \|", row)
    assert main(["--trajectories", "0"]) == 1
    assert "at least 1" in capsys.readouterr().err


def test_the_documentation_has_its_columns():
    page = Path(__file__).parents[2] / "docs" / "guides" / "calculus.md"
    assert f"| data | {' | '.join(SCHEMES)} |" in page.read_text(encoding="utf-8")
