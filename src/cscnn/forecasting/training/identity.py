"""What a run remembers of its data, so that it does not go on with other ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cscnn._util.jsonform import to_json
from cscnn.data import FieldSource, JoinedFiles
from cscnn.data.files import FieldFile
from cscnn.data.header import Header
from cscnn.data.paths import Paths, spelled


@dataclass(frozen=True)
class FileIdentity:
    """The trajectories of a split, apart from the place of their file and its compression.

    Attributes:
        header: what they are.
        trajectories: how many.
        checksum: of the numbers, if the file has checksums, else empty; of several files, that of
            all these checksums and headers.
    """

    header: Header
    trajectories: int
    checksum: str = ""

    @classmethod
    def of(cls, source: FieldSource) -> FileIdentity:
        """Of open files. Stored checksums are read, not the numbers."""
        digest = hashlib.blake2b(digest_size=16)
        checksum = ""
        if isinstance(source, JoinedFiles):
            for file in source.files:
                part = json.dumps(to_json(cls.of(file)), sort_keys=True)
                file.close()  # there may be thousands
                digest.update(part.encode())
            checksum = digest.hexdigest()
        elif isinstance(source, FieldFile):
            for number in range(len(source)):
                digest.update(source.checksum(number).tobytes())
            checksum = digest.hexdigest()
        return cls(source.header, len(source), checksum)

    def differences(self, other: FileIdentity) -> Iterator[str]:
        """What another file has instead, e.g. ``"spacing is (2.0,), not (1.0,)"``."""
        for name in self.header.differences(other.header):
            mine, theirs = (getattr(x.header, name) for x in (self, other))
            yield f"{name} is {to_json(theirs)}, not {to_json(mine)}"
        if self.trajectories != other.trajectories:
            yield f"it has {other.trajectories} trajectories, not {self.trajectories}"
        if self.checksum != other.checksum:
            yield f"the checksum of its numbers is {other.checksum}, not {self.checksum}"


@dataclass(frozen=True)
class DataIdentity:
    """Training and validation data of a run."""

    train: FileIdentity
    valid: FileIdentity | None = None

    def check(self, other: DataIdentity, folder: Path, train: Paths, valid: Paths) -> None:
        """Raise unless a run in a folder, which has learned from these data, may go on with others.

        Args:
            other: of the files that are given now.
            folder: of the run.
            train, valid: the files, for the message.
        """
        for path, before, now in (
            (train, self.train, other.train),
            (valid, self.valid, other.valid),
        ):
            if before is None or now is None:  # a change of the configuration, which is refused
                continue
            if difference := next(before.differences(now), ""):
                raise ValueError(
                    f"{spelled(path)} is not the data from which the run in {folder} has learned: "
                    f"{difference}; give them back, or choose another --out"
                )
