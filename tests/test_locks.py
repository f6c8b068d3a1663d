"""Locks exclude other processes, and end with theirs."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cscnn._util import locks
from cscnn._util.locks import locked
from cscnn.data.generate import generate, plans
from cscnn.data.simulators import NavierStokes
from tests.forks import needs_fork

SMOKE = NavierStokes(grid=(12, 12), frames=2, warmup=1, every=1)

HOLDER = """
import os, sys, time
from pathlib import Path
from cscnn._util.locks import locked
with locked(Path(sys.argv[1]), "it"):
    if sys.argv[2] == "share" and os.fork() == 0:
        time.sleep(0.5)
        os._exit(0)
    print("ready", flush=True)
    time.sleep(60)
"""


@needs_fork
@pytest.mark.parametrize("sharing", ["alone", "share"])
def test_other_processes_are_named_and_their_death_frees(tmp_path: Path, sharing: str) -> None:
    """Also if a child, which has the lock too, ends a little later."""
    lock = tmp_path / ".lock"
    arguments = [sys.executable, "-c", HOLDER, str(lock), sharing]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        if sharing == "alone":
            with (
                pytest.raises(
                    BlockingIOError, match=rf"runs/a is in use by process {other.pid} on .+: wait"
                ),
                locked(lock, "runs/a"),
            ):
                pass
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert lock.exists()
        with locked(lock, "runs/a"):
            assert lock.read_text().startswith(f"process {os.getpid()} on ")
    assert not lock.exists()


def test_a_lock_that_is_removed_while_one_waits(tmp_path: Path) -> None:
    """Who waits must not be content with the file that its owner has removed."""
    lock = tmp_path / ".lock"
    with locked(lock, "it"):
        lock.unlink()
        with locked(lock, "it"):
            assert lock.exists()


def test_file_systems_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def unknown(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unknown)
    with locked(tmp_path / ".lock", "it"):
        pass


def test_two_that_generate_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.0)
    (whole,) = plans(SMOKE, tmp_path, {"train": 2})
    shards = [plans(SMOKE, tmp_path, {"train": 2}, shard=(i, 2))[0] for i in range(2)]
    with locked(tmp_path / ".train.shard-0-of-2.h5.lock", "it"):
        generate([whole, shards[1]])  # other files
        with pytest.raises(BlockingIOError, match=r"train\.shard-0-of-2\.h5 is in use by process"):
            generate([shards[0]])
        assert not shards[0].path.exists()
    generate([shards[0]])
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"train.h5", "train.shard-0-of-2.h5", "train.shard-1-of-2.h5"}
