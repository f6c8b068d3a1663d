"""Processes that end with those that started them."""

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

FILE = Path(__file__).parents[1] / "src/cscnn/_util/processes.py"


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc")
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
