"""Files are written whole or not at all, and follow no planted link."""

import errno
import os
import re
import stat
import sys
from pathlib import Path

import pytest

from cscnn._util.files import (
    check_output,
    remove_leftovers,
    replacing,
    write_bytes,
    write_text,
)


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


def test_errors_of_other_things_stay_as_they_are(tmp_path: Path) -> None:
    """Not all that is an OSError tells of the disk."""
    for error in (TimeoutError("no answer"), ConnectionResetError(errno.ECONNRESET, "gone")):
        with pytest.raises(type(error)) as caught, replacing(tmp_path / "file.txt"):
            raise error
        assert caught.value is error


def test_errors_about_other_files_stay_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "copy.txt") as temporary:
        temporary.write_text((tmp_path / "original.txt").read_text())
    assert caught.value.filename == str(tmp_path / "original.txt")
    assert "cannot write" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_other_errors_leave_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    write_bytes(path, b"before")

    def interrupted() -> None:
        with replacing(path) as temporary:
            temporary.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_leftovers_of_killed_processes(tmp_path: Path) -> None:
    mine, other = tmp_path / "state.ckpt", tmp_path / "evaluation.json"
    kept = [tmp_path / name for name in (".state.ckpt.notes.tmp", "state.ckpt", ".hidden")]
    with replacing(mine) as left, replacing(other) as others:
        for path in (left, others, *kept):
            path.write_text("x")
        remove_leftovers(mine)
        assert not left.exists()
        assert all(path.exists() for path in (others, *kept))
        left.parent.mkdir()
        left.write_text("x")


@pytest.mark.skipif(sys.platform == "win32", reason="makes links, which Windows may forbid")
def test_links_at_guessed_names_are_not_followed(tmp_path: Path) -> None:
    """Names of temporary files were made of the name and the number of the process."""
    path, victim = tmp_path / "file.txt", tmp_path / "victim.txt"
    victim.write_text("precious")
    (tmp_path / f".file.{os.getpid()}.tmp.txt").symlink_to(victim)
    with replacing(path) as temporary:
        assert stat.S_IMODE(temporary.parent.stat().st_mode) == 0o700  # nobody can add another
        assert not list(temporary.parent.iterdir())
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert victim.read_text() == "precious"


@pytest.mark.skipif(sys.platform == "win32", reason="makes links, which Windows may forbid")
def test_links_and_permissions_stay(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    path, target = tmp_path / "file.txt", tmp_path / "store" / "0001"
    target.write_text("before")
    target.chmod(0o600)
    path.symlink_to(target)
    with replacing(path) as temporary:
        assert temporary.name == path.name  # whose ending may tell how to write
        temporary.write_text("new")
    assert path.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(tmp_path.rglob("*")) == sorted([path, target, target.parent])
    leftover = target.parent / ".0001.abcdefgh.tmp"
    leftover.mkdir()
    remove_leftovers(path)
    assert not leftover.exists()


def test_files_are_on_the_disk_before_they_have_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power failure a renamed file could be empty."""
    path, written = tmp_path / "file.txt", []
    monkeypatch.setattr(
        os, "fsync", lambda fd: written.append((os.fstat(fd).st_size, path.exists()))
    )
    write_text(path, "12345")
    assert written == [(5, False)]
    assert path.read_text() == "12345"


def test_files_can_be_read_by_those_who_may(tmp_path: Path) -> None:
    """The private folder of the temporary file does not make the file private."""
    (tmp_path / "plain.txt").write_text("x")
    write_text(tmp_path / "ours.txt", "x")
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_outputs(tmp_path: Path) -> None:
    new, old = tmp_path / "new.txt", tmp_path / "old.txt"
    old.write_text("x")
    check_output(new, inputs=[old])
    check_output(old, overwrite=True)
    with pytest.raises(FileExistsError, match=r"old\.txt exists: .* add --overwrite"):
        check_output(old)
    (tmp_path / "folder").mkdir()
    other_name = tmp_path / "folder" / ".." / "old.txt"
    with pytest.raises(ValueError, match=r"old\.txt is read here and cannot be replaced"):
        check_output(other_name, inputs=[old], overwrite=True)
    with pytest.raises(IsADirectoryError, match="is a folder: give the name of a file"):
        check_output(tmp_path, overwrite=True)
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*absent to write x into"):
        check_output(tmp_path / "absent" / "x")
    with pytest.raises(NotADirectoryError, match=r"old\.txt is a file, not a folder to write x"):
        check_output(old / "x")
    if Path(os.devnull).exists():
        with pytest.raises(ValueError, match="is a device"):
            check_output(Path(os.devnull), overwrite=True)


def test_read_only_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever runs the test, also root
    with pytest.raises(PermissionError, match=f"folder {re.escape(str(tmp_path))} is read-only"):
        check_output(tmp_path / "x")
