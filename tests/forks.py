"""Processes that tests may kill or give limits of their own."""

import os
import warnings
from collections.abc import Callable

import pytest
import torch

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes as POSIX does")


def fork(function: Callable[[], object]) -> int:
    """Call it in a child; returns the number of the process, which exits with 1 after an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        code = 1
        torch.set_num_threads(1)  # OpenMP would wait for threads that only the parent has
        try:
            function()
            code = 0
        finally:
            os._exit(code)
    return pid
