"""Small forecasters that come with the package: weights that our own commands have trained.

``Forecaster.from_pretrained("zoo:navier_stokes")`` loads one. They are for tutorials and tests:
each was trained for about two minutes on one core. ``make zoo`` makes them again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cscnn._util.files import check_folder
from cscnn._util.jsonform import from_json, read_json, to_json, write_json
from cscnn._util.suggest import check_known

if TYPE_CHECKING:
    from cscnn.forecasting.runs import Run

__all__ = ["Entry", "entry", "folder", "names"]

FOLDER = Path(__file__).parent  #: of the entries
INDEX = "index.json"
PREFIX = "zoo:"  #: of names where a path could be too


@dataclass(frozen=True)
class Entry:
    """What is known of a forecaster.

    Attributes:
        summary: what it forecasts.
        sha256: file -> its checksum.
        bytes: of the weights.
        parameters: of the network.
        commands: that made it.
        one_step: errors of one step on the test split, see `cscnn.forecasting.evaluation.metrics`.
        persistence: those of the persistence forecast.
        scaled_mse: mean square error of one step in the units of the forecaster.
        correlation: of rollouts with the truth, by step.
        translation, point_group: symmetry errors.
    """

    summary: str
    sha256: dict[str, str]
    bytes: int
    parameters: int
    commands: tuple[str, ...]
    one_step: dict[str, float]
    persistence: dict[str, float]
    scaled_mse: float
    correlation: tuple[float, ...]
    translation: float
    point_group: float

    @property
    def relative_error(self) -> float:
        """Root mean square error of one step, as a fraction of that of the persistence forecast."""
        return math.sqrt(self.one_step["mse"] / self.persistence["mse"])


def names() -> tuple[str, ...]:
    """All forecasters, in alphabetical order.

    Example:
        >>> names()
        ('maxwell3d', 'navier_stokes', 'sine_gordon')
    """
    return tuple(sorted(_index(FOLDER)))


def entry(name: str) -> Entry:
    """What is known of a forecaster, or an error that suggests a name."""
    return from_json(Entry, _index(FOLDER)[check_known("forecaster of the zoo", name, names())])


def folder(name: str) -> Path:
    """Where its weights and its card are, of which the checksums are right."""
    expected, path = entry(name).sha256, FOLDER / name
    for file, checksum in expected.items():
        if not (path / file).is_file():
            raise FileNotFoundError(
                f"the zoo has no file {path / file}: install cscnn again, or run make zoo in a "
                "checkout"
            )
        if _sha256(path / file) != checksum:
            raise ValueError(f"{path / file} is damaged: its checksum is wrong. Copy it again")
    return path


def add(name: str, run: Run, into: Path, *, summary: str, commands: Sequence[str]) -> None:
    """Write an entry of a run that was evaluated.

    Args:
        name: of the entry.
        run: which was evaluated.
        into: folder of all entries.
        summary: what it forecasts.
        commands: that made it.
    """
    from cscnn.forecasting.hub.card import About
    from cscnn.forecasting.hub.pretrained import FILES, WEIGHTS

    about = About.of_run(run, title=f"The zoo: {name}", summary=summary)
    if (evaluation := about.evaluation) is None:
        raise ValueError(f"{run.path} has no evaluation.json: run cscnn evaluate {run.path}")
    check_folder(into, f"to write {name} into", create=True)
    target, forecaster = into / name, run.forecaster()
    card = asdict(about) | {"data": about.data, "config": about.config, "evaluation": evaluation}
    forecaster.save_pretrained(
        target, repo_id=f"{PREFIX}{name}", model_card_kwargs=card, overwrite=True
    )
    new = Entry(
        summary=summary,
        sha256={file: _sha256(target / file) for file in FILES},
        bytes=(target / WEIGHTS).stat().st_size,
        parameters=forecaster.n_parameters(),
        commands=tuple(commands),
        one_step=evaluation.one_step.total,
        persistence=evaluation.one_step.persistence,
        scaled_mse=evaluation.one_step.scaled_mse,
        correlation=tuple(evaluation.rollout.correlation),
        translation=evaluation.symmetry.translation,
        point_group=evaluation.symmetry.point_group,
    )
    entries = _index(into) if (into / INDEX).exists() else {}
    write_json(into / INDEX, dict(sorted({**entries, name: to_json(new)}.items())))


def _index(path: Path) -> dict[str, object]:
    file = path / INDEX
    if not file.is_file():
        raise FileNotFoundError(
            f"the zoo has no file {file}: install cscnn again, or run make zoo in a checkout"
        )
    return dict(read_json(file))


def _sha256(path: Path) -> str:
    """Of a file; text files are the same with the line ends of any system."""
    content = path.read_bytes()
    if path.suffix != ".safetensors":
        content = content.replace(b"\r\n", b"\n")
    return hashlib.sha256(content).hexdigest()
