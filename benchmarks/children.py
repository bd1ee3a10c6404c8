"""Child processes of the benchmarks that kill: each does one piece of work and sends what it has done."""

import multiprocessing
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 600.0
"""Seconds after which a child that is to end by itself counts as hung."""

# The parent never opens a store: a process with Chroma's threads, or with a SQLite file open, must not fork.
_processes = multiprocessing.get_context("fork")


class Child:
    """A process that does `work`, which is given a pipe to send to, and then `given`. It does not outlive its parent."""

    def __init__(self, work: Callable[..., None], *given: Any) -> None:
        self._pipe, there = _processes.Pipe(duplex=False)
        self._process = _processes.Process(target=work, args=(there, *given), daemon=True)
        self._process.start()
        there.close()

    def heard(self) -> list[Any]:
        """Return what it has sent since this was last asked."""
        sent: list[Any] = []
        try:
            while self._pipe.poll():
                sent.append(self._pipe.recv())
        except (EOFError, OSError):  # the end, or a message that a kill cut off
            pass
        return sent

    def runs(self) -> bool:
        """Return whether it is still at work."""
        return self._process.exitcode is None

    def kill(self, seconds: float = 0.0) -> None:
        """Kill it (kill -9) after so many seconds, unless it has ended by then."""
        self._process.join(seconds)
        self._process.kill()
        self._process.join()

    def finished(self) -> bool:
        """Return whether a child that runs no more came to its end, rather than being killed.

        Raises:
            RuntimeError: it failed.
        """
        if self._process.exitcode not in (0, -9):
            raise RuntimeError(f"A child ended with exit code {self._process.exitcode} before it was killed.")
        return self._process.exitcode == 0

    def result(self) -> Any:
        """Wait for its end and return the last thing that it sent.

        Raises:
            RuntimeError: it failed, or took longer than `PATIENCE`.
        """
        answer, deadline = None, time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self._pipe.poll(deadline - time.monotonic()):
            try:
                answer = self._pipe.recv()
            except EOFError:
                break
        self._process.join(max(0.0, deadline - time.monotonic()))
        if self._process.exitcode != 0:
            self.kill()
            raise RuntimeError(f"A child that was left alone ended with exit code {self._process.exitcode}.")
        return answer
