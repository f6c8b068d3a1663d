"""Exit codes and messages of commands."""

import subprocess
import sys

import pytest

from cscnn._util.command import run_command

PROGRAM = """
import sys
from cscnn._util.command import run_command
def work():
    print("x" * {size})
    return 0
code = run_command("program", work)
print("told", file=sys.stderr)  # the caller has its streams still
sys.exit(code)
"""


def test_a_lost_connection_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    """Only if nobody reads the output any more."""

    def work() -> int:
        print("begun")
        raise BrokenPipeError("a worker has gone")

    assert run_command("program", work) == 1
    assert capsys.readouterr() == ("begun\n", "program: error: a worker has gone\n")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("size", [10, 1_000_000])  # seen when Python ends, or while it works
def test_readers_that_have_seen_enough(size: int, buffered: bool) -> None:
    options = [] if buffered else ["-u"]
    process = subprocess.Popen(
        [sys.executable, *options, "-c", PROGRAM.format(size=size)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == "told\n"
    assert process.wait() == 0
