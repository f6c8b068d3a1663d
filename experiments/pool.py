"""Several trainings at a time, each in a process with its share of the cores."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

import torch

T = TypeVar("T")

GRACE = 10.0  #: seconds in which a process that is asked to end may do so


def threads_for(workers: int) -> int:
    """Threads of each of a number of trainings."""
    if workers == 1:
        return torch.get_num_threads()
    return max(1, (os.cpu_count() or 1) // workers)


def run_all(work: Callable[..., T], jobs: Sequence[tuple[Any, ...]], workers: int) -> Iterator[T]:
    """Results of jobs, in the order in which they are finished.

    Args:
        work: a function of a module, called with the arguments of a job.
        jobs: arguments, which can be pickled.
        workers: how many at a time; one works in this process.
    """
    if workers == 1:
        yield from (work(*job) for job in jobs)
        return
    pool = ProcessPoolExecutor(
        min(workers, len(jobs)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=start_worker,
        initargs=(threads_for(workers),),
    )
    try:
        futures = [pool.submit(work, *job) for job in jobs]
        for future in as_completed(futures):
            yield future.result()
    except BaseException:  # do not wait for trainings to end
        processes = list(pool._processes.values())
        for process in processes:
            process.terminate()
        for process in processes:  # one may wait for ever for a lock of another that has ended
            process.join(GRACE)
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def start_worker(threads: int) -> None:
    """Settings of a process that trains. It ends with the one that started it."""
    torch.set_num_threads(threads)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)  # what has been trained is kept; nobody waits for more

    threading.Thread(target=follow, daemon=True).start()
