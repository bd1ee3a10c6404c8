"""Several processes and threads on one folder, and processes that are killed."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings

from sharpwave.memory import ledger, semantic
from sharpwave.memory.records import Message, Turn
from sharpwave.memory.store import MemoryStore

WORKER = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from datetime import UTC, datetime
from fakes import HashEmbeddings
from sharpwave.memory import indexing
from sharpwave.memory.records import Memory
from sharpwave.memory.store import MemoryStore

indexing.INDEXED_FROM = 1  # each write is followed by its vectors, so that these meet as often as can be
stores, start = {}, datetime(2026, 3, 2, tzinfo=UTC)

def opened(home):
    stores[home] = MemoryStore.open(home, embeddings=HashEmbeddings(64), collections=1)
    return "open"

def fill(home, owner, texts):
    records = [Memory(owner=owner, text=text, recorded_at=start, valid_from=start) for text in texts]
    return stores[home].put_memories(owner, records, "import")

def add(home, owner, texts):
    return [stores[home].add(owner, text).memory_id for text in texts]

def edit(home, owner, memory_id, text):
    return stores[home].edit(owner, memory_id, text).version

def delete(home, owner, memory_id):
    return stores[home].delete(owner, memory_id).op

def recall(home, owner, query):
    return [hit.text for hit in stores[home].recall(owner, query, k=5, floor=-9, stores=("semantic",))]

def say(home, owner, text, times):
    from sharpwave.graphs import Context, build_agent
    agent = build_agent(memory=stores[home]).compile()
    for _ in range(times):
        agent.invoke({"messages": [("user", text)]}, context=Context(user_id=owner))

def die_before_indexing(home):
    stores[home]._indexing._batch = lambda *_: os._exit(9)

def die_in_the_middle(home):
    stores[home].index.wrote = lambda *_: os._exit(9)

for line in sys.stdin:
    name, *arguments = json.loads(line)
    try:
        answer = {"answer": globals()[name](*arguments)}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
"""


class Worker:
    """Another process, which does what it is told, one thing at a time."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", WORKER, str(Path(__file__).parent)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, *words: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()

    def hear(self) -> Any:
        assert self.process.stdout
        answer = json.loads(self.process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["answer"]

    def ask(self, *words: Any) -> Any:
        self.tell(*words)
        return self.hear()

    def end(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def workers() -> Iterator[list[Worker]]:
    """Three processes that the tests of this file share; each test has a folder of its own."""
    made = [Worker() for _ in range(3)]
    yield made
    for worker in made:
        worker.end()


@pytest.fixture(autouse=True)
def vectors_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each write be followed by its vectors here too."""
    monkeypatch.setattr("sharpwave.memory.indexing.INDEXED_FROM", 1)


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path / "home")


def here(home: str) -> MemoryStore:
    return MemoryStore.open(home, embeddings=HashEmbeddings(64), collections=1)


def check_vectors(store: MemoryStore, owner: str) -> int:
    """Check that each vector of an owner is kept as it is in the ledger and finds itself; returns how many there are.

    It is looked for among its 200 nearest, since the search is approximate.
    """
    with store.ledger.read() as connection:
        generation, number = ledger.generation(connection), ledger.owner_number(connection, owner) or 0
        rows = connection.exec_driver_sql(
            "SELECT id, version, text FROM (SELECT id, version, record ->> 'text' AS text FROM memories WHERE owner = ?)",
            (number,),
        ).all()
        assert semantic.pending(connection, 1) == []
    held = store.index.vectors(
        "semantic", owner, [semantic.vector_id(number, row.id, row.version) for row in rows], generation
    )
    assert len(held) == len(rows)
    some = list(held.items())[:: 1 + len(held) // 100]
    lost = [key for key, v in some if key not in store.index.nearest("semantic", owner, v, 200, generation, live=False)]
    assert lost == []
    return len(rows)


@pytest.mark.slow
def test_two_processes_that_write_in_turns_destroy_no_vectors(workers: list[Worker], home: str) -> None:
    for worker in workers[:2]:
        worker.ask("opened", home)
    numbers = itertools.count()
    for _ in range(2):
        for name, worker in zip("ab", workers[:2], strict=True):
            texts = [
                f"{name} {next(numbers) * 7919 % 104729:x} is what {next(numbers):o} stands for" for _ in range(300)
            ]
            assert worker.ask("fill", home, "ana", texts) == 300
            assert worker.ask("recall", home, "ana", texts[0])[0] == texts[0]
    with here(home) as store:
        assert check_vectors(store, "ana") == 1200


def test_a_reader_sees_what_another_process_adds_changes_and_deletes(workers: list[Worker], home: str) -> None:
    writer = workers[0]
    with here(home) as store:
        gone, changed = store.add("ana", "Keeps bees").memory_id, store.add("ana", "Lives in Oslo").memory_id
        assert {hit.text for hit in store.recall("ana", "bees in Oslo", floor=-9)} == {"Keeps bees", "Lives in Oslo"}
        writer.ask("opened", home)
        writer.ask("delete", home, "ana", gone)
        writer.ask("add", home, "ana", ["Plays the cello"])
        writer.ask("edit", home, "ana", changed, "Lives in Lisbon")
        found = store.recall("ana", "zzz", floor=-9)  # by vectors alone
        assert {hit.text for hit in found} == {"Plays the cello", "Lives in Lisbon"}
        assert store.get("ana", changed).version == 2
        store.edit("ana", changed, "Lives in Porto")
        assert set(writer.ask("recall", home, "ana", "zzz")) == {"Plays the cello", "Lives in Porto"}
        assert check_vectors(store, "ana") == 5


def test_writing_what_needs_no_vectors_makes_no_stale_client_a_fresh_one(workers: list[Worker], home: str) -> None:
    with here(home) as store:
        store.add("ana", "Keeps bees")
        workers[0].ask("opened", home)
        workers[0].ask("add", home, "ana", ["Plays the cello"])
        message = Message(id="m1", role="user", text="Thanks!")
        turn = Turn(owner="ana", thread="t1", messages=(message,), said_at=datetime(2026, 3, 2, tzinfo=UTC))
        assert store.apply(turn, [], revision=None) == []
        assert {hit.text for hit in store.recall("ana", "zzz", floor=-9)} == {"Keeps bees", "Plays the cello"}
        store.add("ana", "Has a dog")
        assert check_vectors(store, "ana") == 3
    with here(home) as store:
        assert check_vectors(store, "ana") == 3


def test_three_processes_open_a_new_folder_and_write_at_once(workers: list[Worker], home: str) -> None:
    for worker in workers:
        worker.tell("opened", home)
    assert [worker.hear() for worker in workers] == ["open"] * 3
    for n, worker in enumerate(workers):
        worker.tell("add", home, "ana", [f"Writer {n} has said {i}" for i in range(12)])
    assert sum(len(worker.hear()) for worker in workers) == 36
    with here(home) as store:
        assert check_vectors(store, "ana") == 36
        assert len({m.text for m in store.memories("ana")}) == 36
        assert len(store.events("ana")) == 36


def test_two_processes_that_are_told_the_same_keep_it_once(workers: list[Worker], home: str) -> None:
    for worker in workers[:2]:
        worker.ask("opened", home)
        worker.tell("say", home, "ana", "I really like coffee", 4)
    for worker in workers[:2]:
        worker.hear()
    with here(home) as store:
        assert [memory.text for memory in store.memories("ana")] == ["I really like coffee"]
        assert sorted(event.op for event in store.events("ana")) == ["ADD"] + ["NOOP"] * 7
        assert store.pending() == []


def test_eight_threads_that_write_and_read_get_in_nobodys_way(home: str) -> None:
    errors: list[BaseException] = []

    def work(store: MemoryStore, n: int) -> None:
        try:
            for i in range(6):
                kept = store.add(f"user-{n % 3}", f"Thread {n} has said {i}")
                assert kept.text in {hit.text for hit in store.recall(f"user-{n % 3}", kept.text, k=9)}
                if i % 2:
                    store.edit(f"user-{n % 3}", kept.memory_id or "", f"Thread {n} has changed {i}")
        except BaseException as error:  # noqa: BLE001 - handed to the main thread
            errors.append(error)

    with here(home) as store:
        threads = [threading.Thread(target=work, args=(store, n)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert sum(check_vectors(store, f"user-{n}") for n in range(3)) == 8 * 9
        assert sum(len(store.memories(f"user-{n}")) for n in range(3)) == 48


@pytest.mark.parametrize("how", ["die_before_indexing", "die_in_the_middle"])
def test_a_process_that_dies_between_ledger_and_index_loses_and_doubles_nothing(home: str, how: str) -> None:
    worker = Worker()
    worker.ask("opened", home)
    worker.ask("add", home, "ana", ["Lives in Oslo"])
    with here(home) as store:
        assert len(store.recall("ana", "Oslo", floor=-9)) == 1
        worker.ask(how, home)
        worker.tell("add", home, "ana", ["Likes jazz"])
        assert worker.process.wait(30) == 9
        found = [hit.text for hit in store.recall("ana", "Likes jazz", floor=-9)]
        assert sorted(found) == ["Likes jazz", "Lives in Oslo"]
        store.add("ana", "Has a dog")
        assert check_vectors(store, "ana") == 3
    with here(home) as store:
        assert check_vectors(store, "ana") == 3
        assert store.index_pending() == 0
    worker.end()


def test_a_process_that_is_killed_while_writing_leaves_a_store_that_opens(home: str) -> None:
    worker = Worker()
    worker.ask("opened", home)
    worker.tell("add", home, "ana", [f"Fact number {i}" for i in range(500)])
    with here(home) as store:
        while len(store.memories("ana")) < 5:
            time.sleep(0.02)
        os.kill(worker.process.pid, signal.SIGKILL)
        worker.process.wait(30)
        texts = [m.text for m in store.memories("ana")]
        assert texts == [f"Fact number {i}" for i in range(len(texts))]
        store.add("ana", "Has a dog")
        assert check_vectors(store, "ana") == len(texts) + 1
    worker.process.stdout.close()  # type: ignore[union-attr]
    with contextlib.suppress(BrokenPipeError):
        worker.process.stdin.close()  # type: ignore[union-attr]


QUIET = """
import socket, sys
sys.path.insert(0, sys.argv[2])
tried = []
def refuse(*arguments, **_):
    tried.append(arguments[1:])
    raise OSError("no network here")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = socket.create_connection = refuse
from fakes import HashEmbeddings
from sharpwave.memory.store import MemoryStore
with MemoryStore.open(sys.argv[1], embeddings=HashEmbeddings(16)) as store:
    store.add("ana", "Lives in Oslo")
    assert store.recall("ana", "Oslo")
assert not tried, tried
"""


def test_the_store_prints_nothing_and_calls_nobody(home: str) -> None:
    environment = {k: v for k, v in os.environ.items() if "TELEMETRY" not in k}
    command = [sys.executable, "-W", "error", "-c", QUIET, home, str(Path(__file__).parent)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
