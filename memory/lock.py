"""The lock between the processes that share a folder, and between the threads of this one.

Writers exclude everybody. Readers of the vectors exclude writers alone: Chroma reads its files lazily, and a file that
another process is writing can end the reading process.

It is taken before a transaction of the ledger is begun. Who waits for it with a view of the ledger open would wait for an
erasure that holds it, which waits for all such views to end.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from sharpwave.memory.errors import StoreError

TIMEOUT = 60
"""Seconds to wait for others that write."""
POLL = 0.005
"""Seconds between two looks whether the lock is free."""


class FolderLock:
    """The lock of one folder. All stores of a process on one folder share it; see `of`.

    Whoever wants it waits in a second file first, alone: so one who lets go of it and wants it again is not before those
    who waited meanwhile.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._gate = path.with_name(f"{path.name}.next")
        self._threads = threading.Lock()
        self._file = FileLock(path, poll_interval=POLL)
        self._writer: int | None = None
        self._reading = threading.local()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock for writing. Taken and released by one thread, which may take it again meanwhile.

        Raises:
            StoreError: others have held it for more than `TIMEOUT` seconds.
        """
        if self._writer == threading.get_ident():
            yield
            return
        with self._waiting() as deadline, ExitStack() as held:
            if not self._threads.acquire(timeout=TIMEOUT):
                raise Timeout(str(self.path))
            held.callback(self._threads.release)
            with _flock(self._gate, deadline):
                held.enter_context(self._file.acquire(timeout=max(0.0, deadline - time.monotonic())))
            self._writer = threading.get_ident()
            held.callback(setattr, self, "_writer", None)
            yield

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the lock for reading the vectors; a thread that holds it already may read.

        Raises:
            StoreError: as `exclusive`.
        """
        if self._writer == threading.get_ident() or getattr(self._reading, "now", False):
            yield
        elif sys.platform == "win32":
            with self.exclusive():
                yield
        else:
            with self._waiting() as deadline, ExitStack() as held:
                with _flock(self._gate, deadline):
                    held.enter_context(_flock(self.path, deadline, shared=True))
                self._reading.now = True
                held.callback(setattr, self._reading, "now", False)
                yield

    @contextmanager
    def _waiting(self) -> Iterator[float]:
        """Yield when to stop waiting, and say what happened where that came."""
        try:
            yield time.monotonic() + TIMEOUT
        except Timeout as error:
            raise StoreError(
                f"Another process has been writing to {self.path.parent} for more than {TIMEOUT} s. Try again, or end it."
            ) from error


@contextmanager
def _flock(path: Path, deadline: float, *, shared: bool = False) -> Iterator[None]:
    if sys.platform == "win32":  # there, whoever comes next is left to chance
        yield
        return
    import fcntl

    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while not _taken(handle, kind | fcntl.LOCK_NB):
            if time.monotonic() > deadline:
                raise Timeout(str(path))
            time.sleep(POLL)
        yield
    finally:
        os.close(handle)  # which lets go of it


def _taken(handle: int, how: int) -> bool:
    import fcntl

    try:
        fcntl.flock(handle, how)
    except BlockingIOError:
        return False
    return True


_folders: dict[Path, FolderLock] = {}
_guard = threading.Lock()


def of(path: Path) -> FolderLock:
    """Return this process's one lock on `path`."""
    with _guard:
        return _folders.setdefault(path, FolderLock(path))
