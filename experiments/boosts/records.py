"""What a training at rest gave, typed, with one JSON form."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cscnn._util.files import write_text
from cscnn._util.jsonform import from_json, read_json, to_json

FORMAT = 1  #: of files; raised when entries change their meaning


@dataclass(frozen=True)
class Record:
    """The result of a trial.

    Attributes:
        name: of the trial.
        task, model: keys.
        plan: all that the result depends on, see `Trial.plan`.
        spacing: distance of points.
        displacement: by how much the forecast is later, in units of length.
        variant, padding, rate, seed: see `Trial`.
        machine: on which it ran, with versions.
        seconds: of training and measuring.
        parameters: of the network.
        options: with which it was built.
        valid: least error on the validation split, at rest; None if training diverged.
        rapidities: of the observers.
        errors: relative error of new events, for each observer.
        persistence: that of the forecast that the last known frame stays.
        diverged: why there are no errors, if so.
    """

    name: str
    task: str
    model: str
    plan: dict[str, Any]
    spacing: float
    displacement: float
    variant: str
    padding: str
    rate: float
    seed: int
    machine: dict[str, str]
    seconds: float = 0.0
    parameters: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    valid: float | None = None
    rapidities: tuple[float, ...] = ()
    errors: tuple[float, ...] = ()
    persistence: tuple[float, ...] = ()
    diverged: str = ""

    def error(self, rapidity: float) -> float:
        """For an observer; infinite if training diverged."""
        if not self.errors:
            return math.inf
        if rapidity not in self.rapidities:
            raise ValueError(f"{self.name} has rapidities {self.rapidities}, got {rapidity}")
        return self.errors[self.rapidities.index(rapidity)]


@dataclass(frozen=True)
class Archive:
    """A file of records."""

    format: int
    records: list[Record]


def save(path: Path, records: Iterable[Record]) -> None:
    """Write a JSON file with a line for each record, whole or not at all."""
    lines = [json.dumps(to_json(record), allow_nan=False) for record in records]
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f'{{"format": {FORMAT}, "records": [\n' + ",\n".join(lines) + "\n]}\n"
    write_text(path, text)


def load(path: Path) -> list[Record]:
    """Read what `save` wrote; none if there is no file."""
    if not path.is_file():
        return []
    data = read_json(path)
    version = data.get("format") if isinstance(data, dict) else None
    if version != FORMAT:
        raise ValueError(f"{path}: the format of records must be {FORMAT}, got {version!r}")
    return from_json(Archive, data, str(path)).records
