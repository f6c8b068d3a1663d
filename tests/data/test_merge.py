"""Files of one data set, joined."""

from pathlib import Path

import pytest

from cscnn.data.merge import merge
from tests.data.test_files import HEADER, change, empty, make


def test_merge_puts_shards_in_order(tmp_path: Path) -> None:
    whole = make(tmp_path / "whole.h5", range(5))
    shards = [make(tmp_path / f"{i}.h5", r) for i, r in enumerate((range(3, 5), range(0, 3)))]
    assert merge(shards, tmp_path / "merged.h5") == 5
    assert (tmp_path / "merged.h5").read_bytes() == whole.read_bytes()


def test_merge_refuses_what_does_not_belong_together(tmp_path: Path) -> None:
    first, out = make(tmp_path / "a.h5", range(2)), tmp_path / "out.h5"
    with pytest.raises(ValueError, match=r"trajectory 1 is in both .*a\.h5 and .*b\.h5"):
        merge([first, make(tmp_path / "b.h5", range(1, 3))], out)
    with pytest.raises(ValueError, match="1 of 4 trajectories are missing, the first is 2"):
        merge([first, make(tmp_path / "c.h5", range(3, 4))], out)
    other = make(tmp_path / "d.h5", range(2, 3), HEADER.replace(seed=1))
    with pytest.raises(ValueError, match="differ in seed"):
        merge([first, other], out)
    with pytest.raises(ValueError, match="holds float64"):
        merge([first, make(tmp_path / "e.h5", range(2, 3), dtype="float64")], out)
    with pytest.raises(ValueError, match=r"a\.h5 is one of the files to merge"):
        merge([first], first)
    nothing = make(tmp_path / "nothing.h5")
    change(nothing, empty)
    with pytest.raises(ValueError, match=r"nothing\.h5: it holds no trajectories"):
        merge([nothing], out)
    with pytest.raises(ValueError, match="no files to merge"):
        merge([], out)
    change(first, lambda f: f["grade0/heat"].__setitem__((0, 0, 0, 0), 3.0))
    with pytest.raises(ValueError, match=r"a\.h5: trajectory 0 is damaged"):
        merge([first], out)
    assert not out.exists()


def test_merge_misses_shards_by_their_names(tmp_path: Path) -> None:
    shards = [make(tmp_path / f"train.shard-{i}-of-3.h5", range(2 * i, 2 * i + 2)) for i in (0, 1)]
    with pytest.raises(ValueError, match="1 of 3 shards are missing, the first is number 2"):
        merge(shards, tmp_path / "train.h5")
