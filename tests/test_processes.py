"""Processes that end with those that started them."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PARENT = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid())])
print(child.pid, flush=True)
time.sleep(60)
"""

CHILD = """
import importlib.util, os, sys, threading
spec = importlib.util.spec_from_file_location("processes", {file!r})  # without all of cscnn
processes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(processes)
if {watch}:
    processes.end_with_parent(int(sys.argv[1]))
print("ready", flush=True)
threading.Event().wait(60)
"""

STARTER = """
import multiprocessing, os, sys, time
import child
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    process = context.Process(target=child.work, args=(os.getpid(),))
    process.start()
    print(process.pid, flush=True)
    time.sleep(60)
"""

STARTED = """
import importlib.util, threading
def work(parent):
    spec = importlib.util.spec_from_file_location("processes", {file!r})
    processes = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(processes)
    processes.end_with_parent(parent)
    print("ready", flush=True)
    threading.Event().wait(60)
"""

FILE = Path(__file__).parents[1] / "src/cscnn/_util/processes.py"


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks processes up in /proc"
)


@needs_proc
@pytest.mark.parametrize("watch", [True, False])
def test_a_child_ends_with_its_killed_parent(watch: bool) -> None:
    child = CHILD.format(file=str(FILE), watch=watch)
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, child], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    with parent.stdout:
        words = {parent.stdout.readline().strip() for _ in range(2)}
    pid = int((words - {"ready"}).pop())
    assert alive(pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + (10 if watch else 0.6)
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert alive(pid) is not watch
    if not watch:  # the control: it would go on
        os.kill(pid, signal.SIGKILL)


@needs_proc
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_children_of_multiprocessing(method: str, tmp_path: Path) -> None:
    """They live as long as the process that asked for them, also if a fork server started them."""
    (tmp_path / "starter.py").write_text(STARTER)
    (tmp_path / "child.py").write_text(STARTED.format(file=str(FILE)))
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "starter.py"), method], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    with parent.stdout:
        words = {parent.stdout.readline().strip() for _ in range(2)}
    pid = int((words - {"ready"}).pop())
    time.sleep(0.6)  # three looks at the parent
    lived = alive(pid)
    parent.kill()
    parent.wait()
    assert lived
    deadline = time.monotonic() + 10
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(pid)
