"""Processes that end together."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import sys
import threading
import time

#: Seconds between two looks at the parent.
LOOK = 0.2


def end_with_parent(parent: int) -> None:
    """End this process soon after its parent, however that one ended.

    A process that is killed cannot tell its children. So they watch it, in a thread: they end even
    while they wait for something that will never come. Nothing is cleaned up, so files must be
    written whole or not at all, as `cscnn._util.files` does.

    Call it in a child that was started by ``subprocess`` or by ``multiprocessing``, whatever its
    start method, e.g. as the initializer of a pool of processes.

    Args:
        parent: ``os.getpid()`` of the parent, asked by the parent itself. A child that asks for it
            may be too late: if the parent is gone, it is told the number of another process.
    """

    def watch() -> None:
        _wait_for_end(parent)
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()


def _wait_for_end(parent: int) -> None:
    """Return when the parent of this process is gone."""
    if sys.platform == "win32":  # where the number of the parent stays what it was
        import ctypes

        synchronize, forever = 0x00100000, 0xFFFFFFFF
        handle = ctypes.windll.kernel32.OpenProcess(synchronize, False, parent)
        if handle:
            ctypes.windll.kernel32.WaitForSingleObject(handle, forever)
        return
    while os.getppid() == parent:
        time.sleep(LOOK)
    # a fork server starts processes for another one, of which multiprocessing knows the end
    starter = multiprocessing.parent_process()
    if starter is not None and starter.pid == parent:
        multiprocessing.connection.wait([starter.sentinel])
