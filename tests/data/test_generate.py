"""Generation: the same bytes whatever happens to it."""

import dataclasses
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cscnn.data import FieldFile
from cscnn.data.files import find_damage, trajectory_bytes
from cscnn.data.generate import Plan, generate, plans
from cscnn.data.merge import merge
from cscnn.data.simulators import NavierStokes, create
from tests.data.command import command
from tests.forks import fork, needs_fork

SMOKE = NavierStokes(grid=(12, 12), frames=2, warmup=1, every=1)


def make(folder: Path, count: int = 10, **options: object) -> list[Plan]:
    keep = {k: options.pop(k) for k in ("workers", "batch", "progress") if k in options}
    chosen = plans(SMOKE, folder, {"train": count}, **options)
    generate(chosen, **keep)
    return chosen


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    return make(folder)[0].path


def test_workers_batches_and_order_do_not_matter(tmp_path: Path, undisturbed: Path) -> None:
    for name, options in {
        "one": {"batch": 1},
        "many": {"batch": 10},
        "two": {"workers": 2},
    }.items():
        (plan,) = make(tmp_path / name, **options)
        assert digest(plan.path) == digest(undisturbed), name
        assert list(plan.path.parent.iterdir()) == [plan.path]
    assert list(find_damage(undisturbed)) == []


def test_seeds_and_splits_matter(tmp_path: Path, undisturbed: Path) -> None:
    (other,) = make(tmp_path, seed=1)
    assert digest(other.path) != digest(undisturbed)
    chosen = plans(SMOKE, tmp_path / "splits", {"train": 2, "test": 2})
    generate(chosen)
    first, second = (FieldFile(plan.path).read(0)["smoke"] for plan in chosen)
    assert (first != second).any()


def test_more_trajectories_begin_with_the_same(tmp_path: Path, undisturbed: Path) -> None:
    (longer,) = make(tmp_path, count=12)
    a, b = FieldFile(longer.path), FieldFile(undisturbed)
    assert all((a.read(i)["velocity"] == b.read(i)["velocity"]).all() for i in range(10))


def test_shards_merge_to_the_whole(tmp_path: Path, undisturbed: Path) -> None:
    paths = [make(tmp_path, shard=(i, 3))[0].path for i in range(3)]
    assert [p.name for p in paths] == [f"train.shard-{i}-of-3.h5" for i in range(3)]
    assert sorted(i for p in paths for i in FieldFile(p).indices) == list(range(10))
    merge(paths, tmp_path / "train.h5")
    assert digest(tmp_path / "train.h5") == digest(undisturbed)


def test_complete_files_are_left_alone(tmp_path: Path) -> None:
    (plan,) = make(tmp_path)
    before = plan.path.stat().st_mtime_ns
    assert generate([plan]) == {plan.path: False}
    assert plan.path.stat().st_mtime_ns == before


def test_other_data_are_not_overwritten(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(ValueError, match="seed is 0, not 5; choose another folder"):
        make(tmp_path, seed=5)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "train.h5").write_text("precious")
    with pytest.raises(ValueError, match=r"train\.h5 is no HDF5 file .* --overwrite"):
        make(tmp_path / "other")
    assert (tmp_path / "other" / "train.h5").read_text() == "precious"
    with pytest.raises(ValueError, match="exists with 10 trajectories, not 11"):
        make(tmp_path, count=11)
    with pytest.raises(ValueError, match="dtype is float32, not float64"):
        make(tmp_path, dtype="float64")
    changed = plans(NavierStokes(grid=(12, 12), frames=2, warmup=1, every=1, viscosity=0.02),
                    tmp_path, {"train": 10})  # fmt: skip
    with pytest.raises(ValueError, match=r"viscosity is 0.01, not 0.02; .* --overwrite"):
        generate(changed)
    assert generate(changed, overwrite=True) == {changed[0].path: True}
    assert FieldFile(changed[0].path).header.parameters["viscosity"] == 0.02
    assert generate(changed, overwrite=True) == {changed[0].path: False}  # it is what was asked for


def test_parts_of_other_data_can_be_replaced(tmp_path: Path, undisturbed: Path) -> None:
    plan = interrupted(tmp_path, 4)
    other = dataclasses.replace(plan, seed=1)
    with pytest.raises(ValueError, match=r"seed is 0, not 1; .* --overwrite"):
        generate([other])
    generate([other], overwrite=True)
    with pytest.raises(ValueError, match=r"seed is 1, not 0; .* --overwrite"):
        generate([plan])
    generate([plan], overwrite=True)
    assert digest(plan.path) == digest(undisturbed)


class Stop(Exception):
    pass


def interrupted(folder: Path, after: int) -> Plan:
    """An attempt that ends after some trajectories."""

    def progress(what: str, done: int, total: int) -> None:
        if done >= after:
            raise Stop

    (plan,) = plans(SMOKE, folder, {"train": 10})
    with pytest.raises(Stop):
        generate([plan], batch=1, progress=progress)
    assert not plan.path.exists()
    return plan


def test_resumes_where_it_stopped(tmp_path: Path, undisturbed: Path) -> None:
    plan = interrupted(tmp_path, 6)
    seen = []
    generate([plan], batch=3, progress=lambda what, done, total: seen.append((what, done)))
    assert seen[:2] == [("train", 6), ("train", 9)]
    assert digest(plan.path) == digest(undisturbed)


def test_damaged_parts_are_made_again(tmp_path: Path, undisturbed: Path) -> None:
    plan = interrupted(tmp_path, 6)
    first, second, third, *_ = sorted(plan.parts.glob("*.h5"))
    whole = bytearray(third.read_bytes())
    whole[-100] ^= 1  # among the numbers
    third.write_bytes(whole)
    first.write_bytes(first.read_bytes()[:1000])
    second.write_bytes(b"")
    generate([plan])
    assert digest(plan.path) == digest(undisturbed)


def test_parts_of_another_run_are_not_mixed_in(tmp_path: Path) -> None:
    interrupted(tmp_path, 4)
    with pytest.raises(ValueError, match="holds other data than asked for: seed is 0, not 1"):
        make(tmp_path, seed=1)


@needs_fork
def test_twenty_kills(tmp_path: Path, undisturbed: Path) -> None:
    """SIGKILL at random moments, while simulating and while joining."""
    (plan,) = plans(SMOKE, tmp_path, {"train": 10})
    chance = random.Random(0)
    kills = 0
    while kills < 20 and not plan.path.exists():
        pid = fork(lambda: generate([plan], batch=1, progress=lambda *_: time.sleep(0.01)))
        time.sleep(chance.uniform(0, 0.12))
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        kills += os.WIFSIGNALED(status)
        if plan.path.exists():  # what has its name is complete
            assert digest(plan.path) == digest(undisturbed)
    assert kills == 20
    generate([plan], batch=1)
    assert digest(plan.path) == digest(undisturbed)
    assert list(tmp_path.iterdir()) == [plan.path]


@needs_fork
def test_a_full_disk_loses_nothing(tmp_path: Path, undisturbed: Path) -> None:
    """A limit on the size of files stops the joining, as a full disk would."""
    (plan,) = plans(SMOKE, tmp_path, {"train": 10})
    report = tmp_path.parent / f"{tmp_path.name}.txt"

    def limited() -> None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limit = undisturbed.stat().st_size - 1000
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            generate([plan], batch=1)
        except OSError as error:
            report.write_text(str(error))
            raise

    pid = fork(limited)
    _, status = os.waitpid(pid, 0)
    assert os.WEXITSTATUS(status) == 1
    assert "cannot write" in report.read_text()
    assert not plan.path.exists()
    assert len(list(plan.parts.glob("*.h5"))) == 10  # the parts are below the limit
    generate([plan])
    assert digest(plan.path) == digest(undisturbed)


@needs_fork
def test_the_command_survives_kills_of_all_its_processes(tmp_path: Path) -> None:
    arguments = [
        "generate", "navier_stokes", "--out", str(tmp_path), "--split", "train=80",
        "--set", "grid=12,12", "frames=2", "--batch", "1", "--workers", "2",
    ]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.data.command", *arguments],
        cwd=Path(__file__).parents[2],
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    parts = tmp_path / ".train.h5.parts"
    deadline = time.monotonic() + 120
    while len(list(parts.glob("*.h5"))) < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "train.h5").exists()
    assert len(list(parts.glob("*.h5"))) >= 5
    assert command(*arguments[:-2]) == 0
    (expected,) = plans(
        create("navier_stokes", grid=(12, 12), frames=2), tmp_path / "x", {"train": 80}
    )
    generate([expected])
    assert digest(tmp_path / "train.h5") == digest(expected.path)


def test_memory_does_not_grow_with_the_number_of_trajectories(tmp_path: Path) -> None:
    import tracemalloc

    simulator = NavierStokes(grid=(48, 48), frames=2, warmup=0, every=1)
    peaks = []
    for count in (8, 40):
        tracemalloc.start()
        generate(plans(simulator, tmp_path / str(count), {"train": count}), batch=4)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    trajectory = 2 * 48 * 48 * 3 * 4  # bytes
    assert peaks[0] > trajectory
    assert peaks[1] - peaks[0] < 4 * trajectory


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shard": (3, 3)}, "0 <= i < n, got 3/3"),
        ({"shard": (0, 20)}, r"shard 0/20 of 10 trajectories \(train\) is empty"),
        ({"dtype": "float16"}, "float16"),
        ({"compression": "rar"}, "rar"),
        ({"workers": 0}, "workers must be .* got 0"),
        ({"batch": 0}, "batch must be .* got 0"),
        ({"count": 0}, "trajectories of split train"),
        (
            {"count": 2**63},
            r"trajectories of split train must be below 2\^63, got 9223372036854775808",
        ),
        ({"seed": -1}, r"seed must be at least 0 and below 2\^63, got -1"),
        ({"seed": 2**63}, r"seed must be at least 0 and below 2\^63, got 9223372036854775808"),
    ],
)
def test_impossible_plans(tmp_path: Path, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_the_largest_seed(tmp_path: Path) -> None:
    (plan,) = make(tmp_path, count=1, seed=2**63 - 1)
    assert FieldFile(plan.path).header.seed == 2**63 - 1


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_job_without_room_on_the_disk_is_not_begun(tmp_path: Path, compression: str) -> None:
    folder = tmp_path / "not yet"
    chosen = plans(SMOKE, folder, {"valid": 2, "train": 10**15}, compression=compression)
    with pytest.raises(OSError, match=r"train\.h5 with the parts .* TB of disk, but .* free"):
        generate(chosen)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_already_needs_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: Path
) -> None:
    """Room for the result is enough where its parts are there: else twice that is needed."""
    plan = interrupted(tmp_path, 6)
    trajectory = trajectory_bytes(SMOKE.header(), "float32")
    usage = shutil.disk_usage(tmp_path)
    for free, fits in ((9 * trajectory, False), (11 * trajectory, True)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, n=free: usage._replace(free=n))
        if fits:
            generate([plan])
        else:
            with pytest.raises(OSError, match="with the parts that it is joined of needs"):
                generate([plan])
    assert digest(plan.path) == digest(undisturbed)


@pytest.mark.parametrize("options", [{"workers": 10**6, "batch": 1}, {"batch": 10**9}])
def test_a_job_without_enough_memory_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, int]
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=2**80)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(
        MemoryError, match=r"--workers \d+ with batches of \d+ .* TB of memory, but"
    ):
        generate(plans(SMOKE, tmp_path, {"train": 10**9}), **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes through /proc")
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_the_command(tmp_path: Path, number: signal.Signals) -> None:
    """Within seconds, whatever they are doing, and without a word of their own."""
    seen, out = tmp_path / "seen", tmp_path / "data"
    seen.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.data.sleeping", "generate", "sleeping", "--out", str(out),
         "--set", f"folder={seen}", "--split", "train=4", "--batch", "2", "--workers", "2"],
        cwd=Path(__file__).parents[2], start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while len(workers := [int(path.name) for path in seen.iterdir()]) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert all(map(alive, workers))
    if number == signal.SIGINT:  # as a terminal sends it, to all of them
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    output, errors = process.communicate(timeout=10)  # they have the same streams: all have ended
    assert not any(map(alive, workers))
    assert "Traceback" not in errors
    if number == signal.SIGINT:
        assert (process.returncode, errors) == (130, "")
        assert output.strip().startswith("interrupted: what is finished is kept")


def alive(process: int) -> bool:
    """Whether a process is there and no zombie."""
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_bad_names_of_splits(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"name such as train, got '../x'"):
        plans(SMOKE, tmp_path, {"../x": 1})
    with pytest.raises(ValueError, match="no splits"):
        plans(SMOKE, tmp_path, {})
