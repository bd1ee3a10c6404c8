"""The lock between the processes that share a folder, and between the threads of this one.

Writers exclude everybody. Readers of the vectors exclude writers alone: Chroma reads its files lazily, and a file that
another process is writing can end the reading process.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from sharpwave.memory.errors import StoreError

TIMEOUT = 60
"""Seconds to wait for another process that writes."""


class FolderLock:
    """The lock of one folder. All stores of a process on one folder share it; see `of`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._threads = threading.RLock()
        self._file = FileLock(path, timeout=TIMEOUT)
        self._holder: int | None = None

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock for writing. Taken and released by one thread, which may take it again meanwhile."""
        with self._threads:
            outer = self._holder
            try:
                with self._file:
                    self._holder = threading.get_ident()
                    try:
                        yield
                    finally:
                        self._holder = outer
            except Timeout as error:
                raise StoreError(
                    f"Another process has been writing to {self.path.parent} for more than {TIMEOUT} s. Try again, or end it."
                ) from error

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the lock for reading the vectors; the thread that writes may read."""
        if self._holder == threading.get_ident():
            yield
        elif sys.platform == "win32":
            with self.exclusive():
                yield
        else:
            with _flock(self.path):
                yield


@contextmanager
def _flock(path: Path) -> Iterator[None]:
    import fcntl

    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)  # which lets go of it


_folders: dict[Path, FolderLock] = {}
_guard = threading.Lock()


def of(path: Path) -> FolderLock:
    """Return this process's one lock on `path`."""
    with _guard:
        return _folders.setdefault(path, FolderLock(path))
