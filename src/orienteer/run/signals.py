"""Ctrl-C, SIGTERM, SIGHUP and SIGUSR1 during a run: the current step may end, but only within a short time.

The first signal is noted.  A step that does not end within a share of the notice is abandoned, which does no
harm: the last checkpoint is on the disk.  A second Ctrl-C leaves at once.  A signal before the first step
leaves at once as well.  Between the steps, in the code of the caller, signals act as they always do.  Batch
systems send SIGUSR1 some time before they take a node away.

One rank of several cannot leave a step alone: if the step does not end in time, the whole job ends.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

# A batch system or an impatient user waits this long: one share for the step, and one for the checkpoint.
NOTICE_S = 10.0
STEP_SHARE = SAVING_SHARE = 0.4
# Wrappers such as "make" pass on a Ctrl-C that the terminal has sent already; such an echo is ignored.
_ECHO_S = 0.3
# Further signals within this time are ignored: the first one has been noted.
_IMPATIENCE_S = 2.0


class RunStopped(BaseException):
    """The run was stopped by a signal and can be resumed.

    message : one sentence; hint : how to resume; exit_status : that a command should exit with.
    """

    exit_status = 1

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}"


class RunInterrupted(RunStopped, KeyboardInterrupt):
    """Stopped by Ctrl-C."""

    exit_status = 130


class RunTerminated(RunStopped, SystemExit):
    """Stopped by SIGTERM, SIGHUP or SIGUSR1; a script that does not catch it exits with 143, 129 or 138."""

    def __init__(self, message: str, hint: str, number: int = signal.SIGTERM) -> None:
        super().__init__(message, hint)
        self.code = self.exit_status = 128 + number


class StepAbandoned(BaseException):
    """Raised inside a step that took too long to end."""


class LeaveAtOnce(KeyboardInterrupt):
    """Raised wherever the program is when the user presses Ctrl-C a second time."""


_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
_heard_at_s = -math.inf


def was_heard() -> bool:
    """Whether a signal was noted within the last seconds, so that another one adds nothing."""
    return time.monotonic() - _heard_at_s < _IMPATIENCE_S


@contextmanager
def stopping_at_once(
    message: str, hint: str, end_job: Callable[[RunStopped], None] | None = None
) -> Iterator[None]:
    """Inside the block a signal ends the work at once, with this message and hint.

    end_job : ends all ranks if there are several; None: a ``RunStopped`` is raised.
    """

    def stop(number: int, _: FrameType | None) -> None:
        if not was_heard():
            _hear()
            stopped = _stopped(number, message, hint)
            if end_job is not None:
                end_job(stopped)
            raise stopped

    replaced = _replace_handlers(stop)
    try:
        yield
    finally:
        _put_back(replaced)


def _hear() -> None:
    global _heard_at_s
    _heard_at_s = time.monotonic()


def _stopped(number: int, message: str, hint: str) -> RunStopped:
    if number == signal.SIGINT:
        return RunInterrupted(message, hint)
    return RunTerminated(message, hint, number)


def _replace_handlers(handler: Callable[[int, FrameType | None], None]) -> dict[int, Any]:
    """Install the handler, and return the earlier handlers; does nothing outside of the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    # Left alone: signals that are ignored, as in background jobs, or whose handler Python did not install.
    theirs = [n for n in _NUMBERS if signal.getsignal(n) not in (signal.SIG_IGN, None)]
    return {number: signal.signal(number, handler) for number in theirs}


def _put_back(replaced: dict[int, Any]) -> None:
    for number, handler in replaced.items():
        signal.signal(number, handler)


class StopRequests:
    """Notes signals inside the ``with`` block; outside of the main thread it notes none.

    notice_s : time between a signal and the moment at which the process must have ended.
    give_up : ends all ranks, from any thread; None: this process is alone, and abandons its step instead.
    """

    def __init__(self, notice_s: float = NOTICE_S, give_up: Callable[[], None] | None = None) -> None:
        self.number: int | None = None
        self._grace_s = notice_s * STEP_SHARE
        self._give_up = give_up
        self._since = 0.0
        self._is_stepping = self._is_late = self._is_leaving = self._has_ended = self._is_overdue = False
        self._guard = threading.Lock()
        self._timer: threading.Timer | None = None
        self._replaced: dict[int, Any] = {}

    @property
    def is_requested(self) -> bool:
        """Whether a signal has asked the run to stop."""
        return self.number is not None

    def hear(self, number: int) -> None:
        """Note a signal that another rank has received."""
        if self.number is None:
            self.number = number

    def exception(self, message: str, hint: str) -> RunStopped:
        """The exception that ends the run, by the kind of the signal."""
        return _stopped(self.number or signal.SIGINT, message, hint)

    def __enter__(self) -> Self:
        self._replaced = _replace_handlers(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._guard:
            self._has_ended = True
        _put_back(self._replaced)

    @contextmanager
    def step(self) -> Iterator[None]:
        """Inside this block StepAbandoned may be raised."""
        self._is_stepping = True
        if self._is_overdue and self._give_up is not None:
            self._give_up()
        try:
            yield
        finally:
            self._is_stepping = False

    def _note(self, number: int, _: FrameType | None) -> None:
        if self._is_late:
            self._is_late = False
            if self._is_stepping:
                self._is_stepping = False
                raise StepAbandoned
        elif self.number is None:
            _hear()
            self.number = number
            self._since = time.monotonic()
            self._timer = threading.Timer(self._grace_s, self._press)
            self._timer.daemon = True
            self._timer.start()
        elif number == signal.SIGINT and not self._is_leaving and time.monotonic() - self._since > _ECHO_S:
            _hear()
            self.number = number
            self._is_leaving = True
            if self._give_up is not None:
                self._give_up()
            raise LeaveAtOnce

    def _press(self) -> None:
        """The time for the step is over: end all ranks, or interrupt the main thread by a second signal."""
        if self._give_up is not None:
            self._is_overdue = True
            if self._is_stepping:
                self._give_up()
            return
        with self._guard:
            main = threading.main_thread().ident
            if not self._has_ended and self.number is not None and main is not None:
                self._is_late = True
                signal.pthread_kill(main, self.number)
