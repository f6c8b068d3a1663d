"""What command lines share: errors as one line, exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable

#: Errors whose messages are written for users; others are told with their type.
EXPECTED = (ValueError, TypeError, LookupError, ArithmeticError, OSError, ImportError)


def run_command(program: str, command: Callable[[], int], *, debug: bool = False) -> int:
    """The exit code of a command, with its errors told in one line.

    Args:
        program: what the user typed, for the message.
        command: does the work and returns an exit code.
        debug: show the traceback instead.
    """
    try:
        return command()
    except BrokenPipeError:  # the reader, e.g. head, has seen enough
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if debug:
            raise
        text = str(error)
        if not isinstance(error, EXPECTED):
            text = f"{type(error).__name__}: {' '.join(text.split())} (--debug shows where)"
        print(f"{program}: error: {text}", file=sys.stderr)
        return 1
