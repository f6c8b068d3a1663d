"""Files are whole, and errors say what went wrong with which."""

import errno
import os
from pathlib import Path

import pytest

from cscnn.atomic import remove_leftovers, replacing, write_text


def test_errors_keep_their_number_and_kind(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="cannot write") as caught:
        write_text(tmp_path / "absent" / "file.txt", "x")
    assert caught.value.errno == errno.ENOENT
    path = tmp_path / "file.txt"
    write_text(path, "before")
    with pytest.raises(OSError, match=r"the one from before is intact: No space") as caught, \
            replacing(path):  # fmt: skip
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.errno == errno.ENOSPC
    assert path.read_text() == "before"


def test_errors_without_a_number(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"^cannot write .*: encoder error$"), \
            replacing(tmp_path / "image.png"):  # fmt: skip
        raise OSError("encoder error")


def test_errors_about_other_files_stay_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "copy.txt") as temporary:
        temporary.write_text((tmp_path / "original.txt").read_text())
    assert caught.value.filename == str(tmp_path / "original.txt")
    assert "cannot write" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_leftovers_of_killed_processes(tmp_path: Path) -> None:
    mine, other = tmp_path / "state.ckpt", tmp_path / "evaluation.json"
    kept = [tmp_path / name for name in (".state.notes.tmp.ckpt", "state.ckpt", ".hidden")]
    with replacing(mine) as left, replacing(other) as others:
        for path in (left, others, *kept):
            path.write_text("x")
        remove_leftovers(mine)
        assert not left.exists()
        assert all(path.exists() for path in (others, *kept))
        left.write_text("x")
