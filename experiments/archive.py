"""Files of records: what trainings of a study gave, with all that it depends on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from cscnn._util.files import write_text
from cscnn._util.jsonform import from_json, read_json, to_json


class Recorded(Protocol):
    """A record, a dataclass.

    Attributes:
        name: of the training.
        plan: all that the result depends on, as JSON.
    """

    @property
    def name(self) -> str: ...

    @property
    def plan(self) -> dict[str, Any]: ...


R = TypeVar("R", bound=Recorded)


def save(path: Path, records: Iterable[Recorded], version: int) -> None:
    """Write a JSON file with a line for each record, whole or not at all."""
    lines = [json.dumps(to_json(record), allow_nan=False) for record in records]
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f'{{"format": {version}, "records": [\n' + ",\n".join(lines) + "\n]}\n"
    write_text(path, text)


def load(path: Path, kind: type[R], version: int) -> list[R]:
    """Read what `save` wrote; none if there is no file."""
    if not path.is_file():
        return []
    data = read_json(path)
    found = data.get("format") if isinstance(data, dict) else None
    if found != version:
        raise ValueError(f"{path}: the format of records must be {version}, got {found!r}")
    return [from_json(kind, row, str(path)) for row in data["records"]]


class Store(Generic[R]):
    """Records of a study: those in its folder, and those of an earlier one.

    Args:
        folder: of the files.
        kind: class of the records.
        version: of their form.
        known: records of an earlier study, used where their plan is the same.
    """

    def __init__(self, folder: Path, kind: type[R], version: int, known: Iterable[R] = ()):
        self.folder, self.kind, self.version = folder, kind, version
        self.known = {record.name: record for record in known}

    def file(self, name: str) -> Path:
        """Where a record is kept."""
        return self.folder / f"{name}.json"

    def keep(self, record: R) -> None:
        """Write a record."""
        save(self.file(record.name), [record], self.version)

    def find(self, name: str, plan: dict[str, Any]) -> R | None:
        """The record of a training of this plan, if it has been run."""
        for record in (*load(self.file(name), self.kind, self.version), self.known.get(name)):
            if record is not None and record.plan == plan:
                return record
        return None
