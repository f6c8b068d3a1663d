"""The processes of a run: they start together, and end together with one message."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.strategies.launchers import _SubprocessScriptLauncher

from cscnn._util.processes import end_with_parent

#: Environment variable of processes that `Launcher` starts: the number of their parent.
PARENT = "CSCNN_TRAIN_PARENT"

#: Seconds in which the first process of a run shall tell an error that all of them have.
TELL = 5.0


class Terminated(SystemExit):
    """SIGTERM asked the run to end."""

    EXIT = 128 + signal.SIGTERM  #: what a shell gives for it

    def __init__(self) -> None:
        super().__init__(self.EXIT)


class Launcher(_SubprocessScriptLauncher):
    """Starts a process for each further device of a machine, which ends with the first one.

    Signals are for the first process. Ctrl-C goes to all, so the others have it blocked from their
    very start; a mask is inherited, a handler is not.
    """

    def launch(self, function: Any, *args: Any, trainer: Any = None, **kwargs: Any) -> Any:
        try:
            return super().launch(function, *args, trainer=trainer, **kwargs)
        except (KeyboardInterrupt, Terminated):
            self._end_children()
            raise

    def _end_children(self) -> None:
        """End what waits for this process, as it might for them while it cleans up."""
        children = list(self.procs)
        self.procs.clear()  # Lightning watches this list, and ends all if one of them ended
        for process in children:
            process.kill()
        for process in children:
            process.wait()

    def _call_children_scripts(self) -> None:
        os.environ[PARENT] = str(os.getpid())
        try:
            with _interrupts_blocked():
                super()._call_children_scripts()
        finally:
            del os.environ[PARENT]


def launcher_for(strategy: Any) -> Any:
    """What a strategy of Lightning starts processes with: `Launcher` in place of its own."""
    if not isinstance(strategy.launcher, _SubprocessScriptLauncher):
        return strategy.launcher
    return Launcher(strategy.cluster_environment, strategy.num_processes, strategy.num_nodes)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Ctrl-C waits; processes that are started meanwhile never hear of it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def started_by() -> int | None:
    """The process whose `Launcher` started this one."""
    parent = os.environ.get(PARENT)
    return None if parent in (None, str(os.getpid())) else int(str(parent))


def follow_parent() -> None:
    """A process that `Launcher` has started shall end with the first one."""
    if (parent := started_by()) is not None:
        end_with_parent(parent)


def let_parent_tell() -> None:
    """Wait a while, so that an error of all processes is told once, by the first."""
    if started_by() is not None:
        time.sleep(TELL)


def start_loader(parent: int, number: int) -> None:
    """Called in a process that loads data: it ignores Ctrl-C, and ends with its parent.

    Errors of loading go to the parent. What is left to report here is that it has gone away.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.excepthook = without_lost_connections(sys.excepthook)
    end_with_parent(parent)


def without_lost_connections(report: Callable[..., Any]) -> Callable[..., Any]:
    """A hook for uncaught exceptions that is silent if another process ended."""

    def hook(kind: type[BaseException], *rest: Any) -> None:
        if not issubclass(kind, ConnectionError | EOFError):
            report(kind, *rest)

    return hook


class Signals(Callback):
    """Ends a run by Ctrl-C (KeyboardInterrupt) or SIGTERM (`Terminated`), wherever it is.

    An exception that a signal raises while an object is deleted is lost; the next batch raises it
    again. Lightning's own handler sends messages between processes, which may be waiting for other
    ones: a run then hangs.
    """

    def __init__(self) -> None:
        self.received: BaseException | None = None

    @contextmanager
    def installed(self, trainer: lightning.Trainer) -> Iterator[None]:
        """Handle signals while a trainer works; handlers of the user's own stay."""
        trainer._signal_connector.register_signal_handlers = lambda: None  # type: ignore[method-assign]
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        if started_by() is None:
            if before[signal.SIGINT] is signal.default_int_handler:
                signal.signal(signal.SIGINT, self._interrupt)
            if before[signal.SIGTERM] is signal.SIG_DFL:
                signal.signal(signal.SIGTERM, self._terminate)
        try:
            yield
        finally:  # Lightning ignores further Ctrl-C after the first
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _interrupt(self, *_: Any) -> None:
        self.received = self.received or KeyboardInterrupt()
        raise self.received

    def _terminate(self, *_: Any) -> None:
        self.received = Terminated()
        raise self.received

    def on_train_batch_start(self, *_: Any) -> None:
        if self.received is not None:
            raise self.received

    def on_validation_batch_start(self, *_: Any) -> None:
        if self.received is not None:
            raise self.received
