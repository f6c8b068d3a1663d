"""Make data sets: in parallel, in any order, with the same result however often it is interrupted.

Finished trajectories are kept in small files, each written whole or not at all, in a hidden folder
beside the result. When all are there they are joined into one file, and the folder is removed. A
trajectory depends on (simulator, its options, seed, split, index) only; every process computes with
one thread. So the bytes of the result do not depend on workers, batches or restarts.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import shutil
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

import torch

from cscnn._util.checks import check_choice, check_int
from cscnn._util.files import remove_leftovers
from cscnn._util.jsonform import to_json
from cscnn._util.locks import locked
from cscnn._util.processes import end_with_parent
from cscnn._util.resources import check_disk, check_memory
from cscnn.data.files import (
    COMPRESSIONS,
    DTYPES,
    FieldFile,
    Progress,
    find_damage,
    silent,
    trajectory_bytes,
    write,
)
from cscnn.data.header import Header
from cscnn.data.merge import merge
from cscnn.data.simulators import Simulator, stream

PROCESS = 100_000_000  #: bytes of one that has imported torch, at least
LIMIT = 2**63  #: of seeds and indices, which files keep in 64 bits


@dataclass(frozen=True)
class Plan:
    """One file to make.

    Attributes:
        simulator: what computes it.
        path: the file.
        split: its name.
        count: trajectories of the whole split.
        seed: of the random numbers.
        shard: (i, n) for the i-th of n parts of the split, counted from 0.
        dtype, compression: see `cscnn.data.files.write`.
        device: where to simulate.
    """

    simulator: Simulator
    path: Path
    split: str
    count: int
    seed: int = 0
    shard: tuple[int, int] = (0, 1)
    dtype: str = "float32"
    compression: str = "none"
    device: str = "cpu"

    @property
    def header(self) -> Header:
        """Of the file."""
        return self.simulator.describe(self.seed, self.split)

    @property
    def indices(self) -> range:
        """Trajectories of this shard."""
        i, n = self.shard
        return range(i * self.count // n, (i + 1) * self.count // n)

    @property
    def parts(self) -> Path:
        """Folder of what is finished so far."""
        return self.path.with_name(f".{self.path.name}.parts")


def plans(
    simulator: Simulator,
    folder: Path,
    splits: Mapping[str, int],
    *,
    seed: int = 0,
    shard: tuple[int, int] = (0, 1),
    dtype: str = "float32",
    compression: str = "none",
    device: str = "cpu",
) -> list[Plan]:
    """One plan for each split; a shard of split s goes to ``s.shard-i-of-n.h5``."""
    i, n = shard
    if not 0 <= i < n:
        raise ValueError(f"shard i/n needs 0 <= i < n, got {i}/{n}")
    if not splits:
        raise ValueError("there are no splits to generate, e.g. train=512")
    check_choice("compression", compression, COMPRESSIONS)
    check_choice("dtype", dtype, DTYPES)
    if not 0 <= seed < LIMIT:
        raise ValueError(f"seed must be at least 0 and below 2^63, got {seed}")
    suffix = "" if n == 1 else f".shard-{i}-of-{n}"
    result = []
    for split, count in splits.items():
        if check_int(f"trajectories of split {split}", count, low=1) >= LIMIT:
            raise ValueError(f"trajectories of split {split} must be below 2^63, got {count}")
        if not split.isidentifier():
            raise ValueError(f"a split needs a name such as train, got {split!r}")
        plan = Plan(
            simulator, folder / f"{split}{suffix}.h5", split, count, seed, shard, dtype,
            compression, device,
        )  # fmt: skip
        if not plan.indices:
            raise ValueError(f"shard {i}/{n} of {count} trajectories ({split}) is empty")
        result.append(plan)
    return result


def generate(
    plans: Iterable[Plan],
    *,
    workers: int = 1,
    batch: int | None = None,
    overwrite: bool = False,
    progress: Progress = silent,
) -> dict[Path, bool]:
    """Make files, or go on where an earlier attempt stopped.

    Args:
        plans: which.
        workers: processes.
        batch: trajectories that are simulated and stored together.
        overwrite: replace files and parts of other data, which are an error otherwise.
        progress: told what is going on.

    Returns:
        path -> whether it was made; it was already there if not.
    """
    if batch is not None:
        check_int("batch", batch, low=1)
    check_int("workers", workers, low=1)
    jobs = [(plan, not _is_complete(plan, overwrite)) for plan in plans]
    _check_room([plan for plan, new in jobs if new], workers, batch)
    made = {}
    with ExitStack() as locks, _Workers(workers) as pool:
        for plan, new in jobs:
            if new:
                plan.path.parent.mkdir(parents=True, exist_ok=True)
                lock = plan.path.with_name(f".{plan.path.name}.lock")
                locks.enter_context(locked(lock, str(plan.path)))
        for plan, new in jobs:
            made[plan.path] = new and not _is_complete(plan, overwrite)  # by another one meanwhile
            if made[plan.path]:
                _generate(plan, pool, batch or plan.simulator.batch, overwrite, progress)
            shutil.rmtree(plan.parts, ignore_errors=True)
    return made


def _check_room(plans: Sequence[Plan], workers: int, batch: int | None) -> None:
    """Raise if disk or memory cannot hold what is to be made; the estimates are low ones."""
    kept = peak = 0
    for plan in plans:
        count, trajectory = len(plan.indices), trajectory_bytes(plan.header, plan.dtype)
        there = sum(path.stat().st_size for path in plan.parts.glob("*.h5"))
        joined = count * trajectory if plan.compression == "none" else 0
        peak = max(peak, kept + max(count * trajectory - there, 0) + joined)
        kept += joined
        check_disk(plan.path.parent, peak, f"{plan.path} with the parts that it is joined of")
        together = min(batch or plan.simulator.batch, count)
        processes = min(workers, math.ceil(count / together))
        memory = processes * (together * trajectory + PROCESS * (processes > 1))
        check_memory(memory, f"--workers {workers} with batches of {together} trajectories")


def _generate(plan: Plan, pool: _Workers, batch: int, overwrite: bool, progress: Progress) -> None:
    remove_leftovers(plan.path)
    plan.parts.mkdir(exist_ok=True)
    parts = _finished(plan, overwrite)
    done = {i for indices in parts.values() for i in indices}
    total = len(plan.indices)
    progress(plan.split, len(done), total)
    missing = [i for i in plan.indices if i not in done]
    tasks = [missing[i : i + batch] for i in range(0, len(missing), batch)]
    count = len(done)
    for path, indices in pool.run(plan, tasks):
        parts[path] = indices
        count += len(indices)
        progress(plan.split, count, total)
    _join(plan, list(parts), progress)


def _is_complete(plan: Plan, overwrite: bool) -> bool:
    """Whether the file is there; raise if a file of other data is, unless it is to be replaced."""
    return plan.path.exists() and _is_usable(plan, plan.path, overwrite)


def _is_usable(plan: Plan, path: Path, overwrite: bool) -> bool:
    """Whether a file, or a part of it, is of the plan; raise if not, unless it is replaced."""
    try:
        with FieldFile(path) as file:
            _check_same(plan, file)
            if path == plan.path and file.indices != tuple(plan.indices):
                count = len(plan.indices)
                raise ValueError(f"{path} exists with {len(file)} trajectories, not {count}")
    except ValueError as error:
        if overwrite:
            return False
        raise ValueError(f"{error}; choose another folder, or add --overwrite") from error
    return True


def _check_same(plan: Plan, file: FieldFile) -> None:
    """Raise if a file is not what the plan would make, naming the first difference."""
    old, new = file.header.to_dict(), plan.header.to_dict()
    # older files lack options that did not exist; they have what is now the default
    defaults = {f.name: to_json(f.default) for f in fields(plan.simulator)}
    old["parameters"] = {**defaults, **old["parameters"]}
    for stored, planned in (
        (old.pop("parameters"), new.pop("parameters")),
        (old, new),
        ({"dtype": file.dtype}, {"dtype": plan.dtype}),
    ):
        for name in {**planned, **stored}:
            if stored.get(name) != planned.get(name):
                raise ValueError(
                    f"{file.path} holds other data than asked for: {name} is {stored.get(name)}, "
                    f"not {planned.get(name)}"
                )


def _finished(plan: Plan, overwrite: bool) -> dict[Path, list[int]]:
    """The usable parts and their indices; parts of other data are removed or an error."""
    parts: dict[Path, list[int]] = {}
    seen: set[int] = set()
    for path in sorted(plan.parts.glob("[0-9]*.h5")):  # hidden ones are not finished
        if any(find_damage(path)) or not _is_usable(plan, path, overwrite):
            path.unlink(missing_ok=True)  # damaged by something else, or to be replaced
            continue
        with FieldFile(path) as file:
            if seen.isdisjoint(file.indices) and set(file.indices) <= set(plan.indices):
                parts[path] = list(file.indices)
                seen.update(file.indices)
    return parts


class _Workers:
    """Processes that simulate, started when there is work for more than one."""

    def __init__(self, count: int):
        self.count = count
        self.pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.pool is None:
            return
        if kind is not None:  # what is finished is kept: do not wait for the rest
            for process in list(self.pool._processes.values()):
                process.terminate()
        self.pool.shutdown(wait=True, cancel_futures=True)

    def run(self, plan: Plan, tasks: list[list[int]]) -> Iterator[tuple[Path, list[int]]]:
        """Do the tasks and tell of each that is finished."""
        if self.count == 1 or (self.pool is None and len(tasks) <= 1):
            with _one_thread():
                for indices in tasks:
                    yield _simulate(plan, indices), indices
            return
        if self.pool is None:
            self.pool = ProcessPoolExecutor(
                self.count,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_start_worker,
                initargs=(os.getpid(),),
            )
        running: dict[Future[Path], list[int]] = {}
        try:
            for indices in tasks:
                running[self.pool.submit(_simulate, plan, indices)] = indices
                if len(running) >= 2 * self.count:
                    yield from _collect(running)
            while running:
                yield from _collect(running)
        except BrokenProcessPool as error:
            raise OSError(
                "a worker process died (out of memory?); what is finished is kept: run the same "
                "command again, with fewer workers or a smaller batch"
            ) from error


def _start_worker(parent: int) -> None:
    """Settings of a process that simulates: one thread, and its parent decides when it ends."""
    end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)


def _collect(running: dict[Future[Path], list[int]]) -> Iterator[tuple[Path, list[int]]]:
    finished, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in finished:
        indices = running.pop(future)
        yield future.result(), indices


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread here as in the workers: the last bit may depend on their number."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _simulate(plan: Plan, indices: list[int]) -> Path:
    """Simulate these trajectories and keep them in a part."""
    rngs = [stream(plan.simulator.name, plan.seed, plan.split, i) for i in indices]
    try:
        with torch.no_grad():
            arrays = {
                name: [row.cpu().numpy() for row in x]
                for name, x in plan.simulator.simulate(rngs, plan.device).items()
            }
    except (ValueError, ArithmeticError, RuntimeError) as error:
        several = f"trajectories {indices[0]} to {indices[-1]}"
        name = several if len(indices) > 1 else f"trajectory {indices[0]}"
        raise type(error)(f"{name}: {error}") from error
    path = plan.parts / f"{indices[0]:08d}-{len(indices)}-{os.getpid()}.h5"
    rows = ({name: a[i] for name, a in arrays.items()} for i in range(len(indices)))
    write(path, plan.header, rows, indices, dtype=plan.dtype)
    return path


def _join(plan: Plan, parts: list[Path], progress: Progress) -> None:
    def counted(label: str, done: int, total: int) -> None:
        progress(f"{plan.split}: {label}", done, total)

    merge(parts, plan.path, indices=plan.indices, compression=plan.compression, progress=counted)
