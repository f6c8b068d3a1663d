"""Edges of the points of a file, computed once and kept on disk beside it.

``train.h5.edges/<key>.npz`` holds the pairs of points of one set. The key is a checksum of
positions, neighbour search and of the version of this file, so other positions or options have
other names. A second checksum guards the pairs themselves. What is damaged is computed again.
The folder can be removed at any time.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from cscnn._util.files import write_bytes
from cscnn._util.jsonform import to_json
from cscnn.data.source import FieldSource
from cscnn.geometry.edges import Edges
from cscnn.geometry.search import NeighbourSearch

VERSION = 1  #: raised when the same points and options have other edges
SUFFIX = ".edges"  #: of the folder, after the name of the file
MOST = 1 << 24  #: edges that a process keeps in memory


def edges_key(search: NeighbourSearch, positions: np.ndarray) -> str:
    """Hexadecimal digits that depend on positions and on the options of the neighbour search."""
    options = {**to_json(search), "weighted": None, "version": VERSION}
    used = search.radius if search.by == "radius" else search.neighbours
    options |= {"radius": None, "neighbours": None, "reach": used}
    digest = hashlib.blake2b(json.dumps(options, sort_keys=True).encode(), digest_size=16)
    digest.update(str(positions.shape).encode())
    digest.update(np.ascontiguousarray(positions, np.float64).data)
    return digest.hexdigest()


class EdgeStore:
    """Edges of the trajectories of a source, from memory, disk, or computed.

    Args:
        source: data on points.
        search: how neighbours are found.
        on_disk: keep them beside the files of the source. If that cannot be written, a warning is
            logged once and they stay in memory.
    """

    def __init__(self, source: FieldSource, search: NeighbourSearch, on_disk: bool = True):
        self.source, self.search, self.on_disk = source, search, on_disk
        self._kept: dict[int, Edges] = {}

    def edges(self, number: int) -> Edges:
        """Of a trajectory, in float64."""
        if number in self._kept:
            return self._kept[number]
        place = self.source.place(number)
        positions = torch.from_numpy(place["positions"])
        weights = torch.from_numpy(place["weights"]) if "weights" in place else None
        edges = self._pairs(number, positions).weighted(weights)
        while self._kept and sum(map(len, self._kept.values())) + len(edges) > MOST:
            del self._kept[next(iter(self._kept))]
        self._kept[number] = edges
        return edges

    def _pairs(self, number: int, positions: Tensor) -> Edges:
        """Edges without weights."""
        if not self.on_disk:
            return self.search.edges(positions)
        file, _ = self.source.locate(number)
        folder = file.path.with_name(file.path.name + SUFFIX)
        path = folder / f"{edges_key(self.search, positions.numpy())}.npz"
        pairs = read_pairs(path, len(positions))
        if pairs is not None:
            return self.search.joining(positions, *pairs)
        edges = self.search.edges(positions)
        try:
            folder.mkdir(exist_ok=True)
            write_pairs(path, edges)
        except OSError as error:
            self.on_disk = False
            logging.getLogger("cscnn").warning(
                "edges cannot be kept in %s and are computed again by every process: %s",
                folder, error,
            )  # fmt: skip
        return edges


def write_pairs(path: Path, edges: Edges) -> None:
    """Write receivers and senders, completely or not at all."""
    pairs = torch.stack([edges.receiver, edges.sender]).int().numpy()
    packed = io.BytesIO()
    np.savez(packed, pairs=pairs, checksum=_checksum(path, pairs))
    write_bytes(path, packed.getvalue())


def read_pairs(path: Path, points: int) -> tuple[Tensor, Tensor] | None:
    """Receivers and senders among a number of points; None if the file is missing or damaged.

    Args:
        path: what `write_pairs` has written.
        points: in the set.
    """
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            pairs, checksum = stored["pairs"], stored["checksum"]
    except Exception:  # there is no such file, or whatever a damaged one leads to
        return None
    if pairs.dtype != np.int32 or pairs.ndim != 2 or len(pairs) != 2:
        return None
    if not np.array_equal(checksum, _checksum(path, pairs)):
        return None
    if pairs.size and not 0 <= pairs.min() <= pairs.max() < points:
        return None
    receiver, sender = torch.from_numpy(pairs.astype(np.int64))
    return receiver, sender


def _checksum(path: Path, pairs: np.ndarray) -> np.ndarray:
    """Of pairs and of the name of their file: a copy under another name is not taken for it."""
    digest = hashlib.blake2b(path.name.encode(), digest_size=16)
    digest.update(str(pairs.shape).encode())
    digest.update(np.ascontiguousarray(pairs).data)
    return np.frombuffer(digest.digest(), np.uint8)
