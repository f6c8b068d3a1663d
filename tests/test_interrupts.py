"""Ctrl-C ends the program with one line, whenever it comes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cscnn._util.command import interruptible, run_command

ROOT = Path(__file__).parents[1]

#: Runs ``cscnn ARGUMENTS``; Ctrl-C comes when a module is about to be imported.
PROGRAM = """
import os, runpy, signal, sys
from importlib.abc import MetaPathFinder

signal.signal(signal.SIGINT, signal.default_int_handler)  # the one who tests may ignore it

class Interrupting(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(1000):  # the interpreter looks for signals between its steps
                    pass
            except KeyboardInterrupt:
                if not {swallowed}:
                    raise

sys.meta_path.insert(0, Interrupting())
sys.argv = ["cscnn", {arguments}]
runpy.run_module("cscnn.cli", run_name="__main__")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals as POSIX does")
@pytest.mark.parametrize(
    ("module", "swallowed", "command"),
    [
        ("torch", False, "info"),
        ("torch", True, "info"),
        ("cscnn.data.commands", True, "data info nothing.h5"),
        ("h5py", True, "data info nothing.h5"),
    ],
)
def test_during_imports(module: str, swallowed: bool, command: str, tmp_path: Path) -> None:
    """Also if what is being imported swallows it, as parts of torch do."""
    (tmp_path / "nothing.h5").write_text("nothing")
    arguments = ", ".join(map(repr, command.split()))
    code = PROGRAM.format(module=module, swallowed=swallowed, arguments=arguments)
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert (ended.returncode, ended.stderr, ended.stdout) == (130, "cscnn: interrupted\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals as POSIX does")
def test_elsewhere() -> None:
    """Commands get their KeyboardInterrupt, and may tell what is kept."""

    def work() -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return 0

    class Deaf:
        def __del__(self) -> None:  # errors in here are ignored
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0)

    def work_with_a_deaf_part() -> int:
        part = Deaf()
        del part
        for _ in range(1000):  # ten seconds
            time.sleep(0.01)
        return 0

    original = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with interruptible("program"):
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
            assert run_command("program", work) == 130
            assert run_command("program", work_with_a_deaf_part) == 130
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, original)
