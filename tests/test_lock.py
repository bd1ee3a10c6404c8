"""The lock on a folder: whoever waits gets it, or hears why not."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fakes import HashEmbeddings

from sharpwave.memory import erase, lock
from sharpwave.memory.errors import StoreError
from sharpwave.memory.records import Candidate, Message, Turn
from sharpwave.memory.store import MemoryStore

GREEDY = """
import sys, threading, time
from pathlib import Path
from sharpwave.memory import lock
folder, kind = lock.of(Path(sys.argv[1])), sys.argv[2]
def hold():
    while True:
        with getattr(folder, kind)():
            time.sleep(0.02)
threads = [threading.Thread(target=hold, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
print("holding", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("kind", ["exclusive", "shared"])
def test_one_who_waits_gets_the_lock_from_a_process_that_never_pauses(tmp_path: Path, kind: str) -> None:
    arguments = [sys.executable, "-c", GREEDY, str(tmp_path / "lock"), kind]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout and process.stdout.readline() == "holding\n"
        folder, longest = lock.FolderLock(tmp_path / "lock"), 0.0
        for _ in range(5):
            begun = time.monotonic()
            with folder.exclusive():
                longest = max(longest, time.monotonic() - begun)
        process.stdin.close()
    assert longest < 2


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings(16), collections=2) as store:
        store.add("ana", "Lives in Oslo")
        yield store


def recall(store: MemoryStore) -> bool:
    return bool(store.recall("ana", "Oslo", floor=-9))


TURN = Turn(
    owner="ana",
    thread="t1",
    messages=(Message(id="m1", role="user", text="I live in Oslo."),),
    said_at=datetime(2026, 3, 1, tzinfo=UTC),
)


def known(store: MemoryStore) -> bool:
    return bool(store.known(TURN))


def neighbours(store: MemoryStore) -> bool:
    return bool(store.neighbours("ana", [Candidate(text="Lives in Oslo", quote="I live in Oslo.", message_id="m1")])[0])


@pytest.mark.parametrize("search", [recall, known, neighbours])
def test_a_search_that_waits_for_the_lock_keeps_nobody_from_emptying_the_log(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, search: Callable[[MemoryStore], bool]
) -> None:
    monkeypatch.setattr(erase, "TIMEOUT", 1)
    waits, take = threading.Event(), lock.FolderLock.shared

    @contextmanager
    def shared(self: lock.FolderLock) -> Iterator[None]:
        waits.set()
        with take(self):
            yield

    monkeypatch.setattr(lock.FolderLock, "shared", shared)
    with ThreadPoolExecutor(1) as pool:
        with store.locked():
            found = pool.submit(search, store)
            assert waits.wait(10)
            erase.compact(store.ledger.path)
            assert not found.done()
        assert found.result(10)


@pytest.mark.parametrize("kind", ["exclusive", "shared"])
def test_waiting_for_the_lock_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(lock, "TIMEOUT", 0.1)
    folder, other = lock.FolderLock(tmp_path / "lock"), lock.FolderLock(tmp_path / "lock")

    def wait(on: lock.FolderLock) -> None:
        with getattr(on, kind)():
            raise AssertionError("the lock was had by two")

    with ThreadPoolExecutor(1) as pool, folder.exclusive():
        for one in (folder, other):
            with pytest.raises(StoreError, match=r"writing to .* for more than 0\.1 s"):
                pool.submit(wait, one).result(10)


def test_the_thread_that_holds_the_lock_may_take_it_again_and_read(tmp_path: Path) -> None:
    folder = lock.FolderLock(tmp_path / "lock")
    for _ in range(2):
        with folder.exclusive(), folder.shared(), folder.exclusive():
            pass
        with folder.shared(), folder.shared():
            pass
