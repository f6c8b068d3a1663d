"""What command lines share: errors as one line, interrupts, exit codes."""

from __future__ import annotations

import _thread
import io
import os
import select
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TextIO

from cscnn._util.parser import one_line

#: Errors whose messages are written for users; others are told with their type.
EXPECTED = (ValueError, TypeError, LookupError, ArithmeticError, OSError, ImportError, MemoryError)


def run_command(program: str, command: Callable[[], int], *, debug: bool = False) -> int:
    """The exit code of a command, with its errors told in one line.

    Args:
        program: what the user typed, for the message.
        command: does the work and returns an exit code.
        debug: show the traceback instead.
    """
    for stream in (sys.stdout, sys.stderr):  # terminals that know ASCII alone
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        with _told_in_a_line(program):
            code = command()
        _end_output()
        return code
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _end_output():
            return 0
        if debug:
            raise
        text = one_line(str(error)) or type(error).__name__
        if not isinstance(error, EXPECTED):
            text = f"{type(error).__name__}: {text} (--debug shows where)"
        print(f"{program}: error: {text}", file=sys.stderr)
        return 1


@contextmanager
def _told_in_a_line(program: str) -> Iterator[None]:
    """Warnings for users look like errors: without a file and its line."""
    show = warnings.showwarning

    def tell(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if category is UserWarning:
            print(f"{program}: warning: {one_line(str(message))}", file=sys.stderr, flush=True)
        else:
            show(message, category, *rest, **more)

    warnings.showwarning = tell
    try:
        yield
    finally:
        warnings.showwarning = show


def _end_output() -> bool:
    """Whether nobody reads what was printed, e.g. as head has seen enough; then it is dropped."""
    stream = sys.stdout
    try:
        stream.flush()
        return _is_deserted(stream)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # where Python writes the rest when it ends
        os.close(nowhere)
        return True


def _is_deserted(stream: TextIO) -> bool:
    """Whether a pipe has lost its reader; without a buffer, flushing does not tell."""
    try:
        number = stream.fileno()
    except OSError:  # it is no file
        return False
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(number, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


@contextmanager
def interruptible(program: str) -> Iterator[None]:
    """Ctrl-C is heard whenever it comes.

    Modules being imported may swallow a KeyboardInterrupt, or make another error of it, and imports
    take seconds. So during an import it ends the process at once, with one line and status 130.
    Elsewhere it raises KeyboardInterrupt as usual; where Python would ignore that, as in a method
    ``__del__``, it is raised again a moment later.
    """
    ours = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not ours or before is not signal.default_int_handler:  # e.g. ignored, as nohup asks
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        caller = frame
        while caller is not None:
            if caller.f_code.co_filename.startswith("<frozen importlib"):
                os.write(2, f"{program}: interrupted\n".encode())
                os._exit(130)
            caller = caller.f_back
        signal.default_int_handler(number, frame)

    def again(ignored: sys.UnraisableHookArgs) -> None:
        if ignored.exc_type is KeyboardInterrupt:
            threading.Timer(0.05, _thread.interrupt_main).start()
        else:
            hook(ignored)

    hook = sys.unraisablehook
    sys.unraisablehook = again
    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = hook
