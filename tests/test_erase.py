"""Erasing a user or a memory: nothing of theirs is left in any file, everything of the others' is."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from fakes import HashEmbeddings
from langchain_core.messages import AIMessage
from talking import say

from sharpwave import cli
from sharpwave.checkpoints import erase_conversations, open_checkpointer
from sharpwave.commands import erase as command
from sharpwave.commands import memories as memory_commands
from sharpwave.graphs import build_agent, threads_of
from sharpwave.memory import doctor, erase, file_search, traces
from sharpwave.memory.errors import InputError, NotFoundError, StoreError
from sharpwave.memory.records import Memory, Message, Turn, Utterance
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.verify import verify

START = datetime(2026, 3, 1, tzinfo=UTC)

WRITER = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from fakes import HashEmbeddings
from sharpwave.memory.store import MemoryStore
told = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), told.set()), daemon=True).start()
with MemoryStore.open(sys.argv[2], embeddings=HashEmbeddings(16), collections=4) as store:
    number = 0
    while not told.is_set():
        store.add(sys.argv[3], f"Far away fact {number}")
        assert store.recall(sys.argv[3], f"Far away fact {number}", k=1, floor=-9)
        number += 1
        print(number, flush=True)
"""
KILLED = """
import os, sys
sys.path.insert(0, sys.argv[1])
from fakes import HashEmbeddings
from sharpwave.memory import erase
from sharpwave.memory.store import MemoryStore
setattr(erase, sys.argv[3], lambda *_: os.kill(os.getpid(), 9))
with MemoryStore.open(sys.argv[2], embeddings=HashEmbeddings(16), collections=4) as store:
    erase.erase(store, "ana")
"""


def opened(home: Path) -> MemoryStore:
    return MemoryStore.open(home, embeddings=HashEmbeddings(16), collections=4)


def fill(store: MemoryStore, owner: str, words: list[str]) -> None:
    """Keep words as memories and as messages, and let one turn wait."""
    records = [Memory(owner=owner, text=f"{owner} owns a {w}", recorded_at=START, valid_from=START) for w in words]
    store.put_memories(owner, records, "test")
    lines = [
        Utterance(
            owner=owner,
            thread="t1",
            message_id=f"message-{i}",
            position=i,
            role="user",
            speaker="user",
            text=f"Look, {word}!",
            said_at=START,
            recorded_at=START,
        )
        for i, word in enumerate(words)
    ]
    store.put_utterances(owner, lines)
    waiting = Message(id="waiting", role="user", text=f"{words[0]} once more")
    store.queue([Turn(owner=owner, thread="t1", messages=(waiting,), said_at=START)])
    store.edit(owner, store.memories(owner)[0].id, f"{words[0]} was sold")
    store.index_pending()


def files_with(home: Path, *words: str) -> list[tuple[str, str]]:
    # In a process of its own: closing a database file here would drop the locks that SQLite holds on it.
    found = subprocess.run(
        [sys.executable, "-c", FILES_WITH, str(home), *words], capture_output=True, check=True, text=True
    )
    return [(word, name) for word, name in json.loads(found.stdout)]


FILES_WITH = """
import json, pathlib, sys
held = {path: path.read_bytes().lower() for path in pathlib.Path(sys.argv[1]).rglob("*") if path.is_file()}
print(json.dumps([(word, path.name) for path, data in held.items() for word in sys.argv[2:] if word.encode() in data]))
"""


def everything(store: MemoryStore, owner: str) -> list[str]:
    kept = [*store.memories(owner, statuses=()), *store.utterances(owner), *store.events(owner)]
    return [record.model_dump_json() for record in kept]


def markers(prefix: str, count: int) -> list[str]:
    return [f"zq{prefix}{number:02d}wk" for number in range(count)]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def store(home: Path) -> Iterator[MemoryStore]:
    with opened(home) as store:
        yield store


@contextmanager
def writing(home: Path, owner: str) -> Iterator[list[int]]:
    """Have another process write for an owner and recall, throughout; the list then holds how many memories it wrote."""
    arguments = [sys.executable, "-c", WRITER, str(Path(__file__).parent), str(home), owner]
    written: list[int] = []
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout and process.stdout.readline() == "1\n"
        yield written
        process.stdin.close()
        written.append(int(process.stdout.read().split()[-1]))
        assert process.wait(60) == 0


@pytest.mark.slow
def test_one_of_fifty_users_is_erased_while_the_others_write(home: Path, store: MemoryStore) -> None:
    others = [f"user-{number}" for number in range(47)]
    for owner in others:
        store.put_memories(
            owner, [Memory(owner=owner, text=f"{owner} is here", recorded_at=START, valid_from=START)], "x"
        )
    words = markers("gone", 20)
    fill(store, "ana", words)
    assert {word for word, _ in files_with(home, *words)} == set(words)
    stop = threading.Event()
    written = dict.fromkeys(others[:3], 0)

    def write(owner: str) -> None:
        while not stop.is_set():
            store.add(owner, f"{owner} adds {written[owner]}")
            assert store.recall(owner, f"{owner} adds {written[owner]}", k=1, floor=-9)
            written[owner] += 1
            message = Message(id=f"w{written[owner]}", role="user", text=f"{owner} says {written[owner]}")
            store.queue([Turn(owner=owner, thread="t1", messages=(message,), said_at=START)])

    with writing(home, "far") as far, writing(home, "away") as away, ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(write, owner) for owner in written]
        try:
            done = erase.erase(store, "ana")
        finally:
            stop.set()
        for writer in writers:
            writer.result()
    assert done.complete and done.rows["memories"] == 21 and done.searched_for["text"] > 40, done.findings
    assert files_with(home, *(word[:-2] for word in words)) == []
    assert store.owners() == sorted([*others, "far", "away"])
    assert [len(store.memories(owner)) for owner in ("far", "away")] == [*far, *away]
    for owner, count in written.items():
        assert len(store.memories(owner)) == 1 + count and len(store.utterances(owner)) == count
        assert store.recall(owner, f"{owner} adds {count - 1}", k=1, floor=-9)
    found = verify(store)
    assert found.healthy, found.differences


def test_more_rows_than_chroma_takes_in_one_call_are_erased_and_the_others_stay(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryStore.open(home, embeddings=HashEmbeddings(16), collections=1) as store:
        monkeypatch.setattr(type(store.index._chroma()), "get_max_batch_size", lambda client: 20)
        fill(store, "ana", markers("gone", 30))
        fill(store, "bo", markers("kept", 30))
        before = everything(store, "bo")
        assert erase.erase(store, "ana").complete
        assert everything(store, "bo") == before and verify(store).healthy
        assert len(store.recall("bo", "zzz", k=40, floor=-9, stores=("semantic",), budget=10_000)) >= 30


def test_indexing_ends_though_others_write_all_the_while(store: MemoryStore) -> None:
    heard: list[int] = []

    def say_more(done: int) -> None:
        heard.append(done)
        assert len(heard) < 5
        message = Message(id=f"m{done}", role="user", text=f"and {done} more")
        store.queue([Turn(owner="ana", thread="t1", messages=(message,), said_at=START)])

    say_more(0)
    assert store.index_pending(say_more) == 1
    assert heard == [0, 1] and store.index_pending() == 1


STEPS = ("_purge_rows", "_renew_collections", "_compact_index", "_compact_ledger", "_judge")


class Stopped(Exception):
    """The erasure ended in the middle."""


@pytest.mark.parametrize("step", STEPS)
def test_an_erasure_that_stops_anywhere_goes_on_when_asked_again(
    home: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    words = markers("stop", 3)
    with opened(home) as store:
        fill(store, "ana", words)
        fill(store, "bo", ["bicycle", "kettle"])
        kept = everything(store, "bo")

        def stop(*_: Any) -> None:
            raise Stopped

        with monkeypatch.context() as patched:
            patched.setattr(erase, step, stop)
            with pytest.raises(Stopped):
                erase.erase(store, "ana")
    with opened(home) as store:
        assert erase.interrupted(home) == ("ana", None)
        check = doctor._erasure(store)
        assert not check.ok and "'ana'" in check.found and "sharpwave erase ana" in (check.advice or "")
        assert everything(store, "bo") == kept
        assert store.recall("bo", "bicycle", k=1, floor=-9)
        with pytest.raises(StoreError, match="Finish it first: `sharpwave erase ana`"):
            erase.erase(store, "bo")
        done = erase.erase(store, "ana")
        assert done.complete and done.rows["memories"] == 4, done
        assert everything(store, "bo") == kept
        assert store.recall("bo", "bicycle", k=1, floor=-9)
    assert erase.interrupted(home) is None
    assert files_with(home, *(word[:-2] for word in words)) == []


def test_an_erasure_that_is_killed_goes_on_when_asked_again(home: Path) -> None:
    words = markers("kill", 3)
    with opened(home) as store:
        fill(store, "ana", words)
        fill(store, "bo", ["bicycle"])
        kept = everything(store, "bo")
    arguments = [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(home), "_compact_index"]
    assert subprocess.run(arguments, timeout=120, check=False).returncode == -signal.SIGKILL
    with opened(home) as store:
        assert erase.erase(store, "ana").complete
        assert everything(store, "bo") == kept
    assert files_with(home, *(word[:-2] for word in words)) == []


def test_the_search_finds_what_is_left(home: Path, store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store, "ana", ["zeppelin made of tin"])
    with store.ledger.read() as connection:
        vector = connection.exec_driver_sql("SELECT vector FROM memories LIMIT 1").scalar_one()
    (home / "notes.log").write_text("ana said: Look, zeppelin made of tin!")
    (home / "copy.bin").write_bytes(b"x" * (file_search.BLOCK - 9) + vector)
    done = erase.erase(store, "ana")
    assert not done.complete
    assert {(f.file, f.what) for f in done.findings} == {("notes.log", "text"), ("copy.bin", "vector")}
    assert erase.interrupted(home) == ("ana", None)
    (home / "notes.log").unlink()
    (home / "copy.bin").unlink()
    assert erase.erase(store, "ana").complete and erase.interrupted(home) is None


def test_words_that_others_use_too_are_no_finding(store: MemoryStore) -> None:
    for owner in ("ana", "bo"):
        store.add(owner, "Likes walking along the river in the evening")
    done = erase.erase(store, "ana")
    assert done.complete and done.used_elsewhere
    assert [memory.text for memory in store.memories("bo")] == ["Likes walking along the river in the evening"]


def test_a_dry_run_lists_and_changes_nothing(home: Path, store: MemoryStore) -> None:
    fill(store, "ana", ["bicycle", "kettle"])
    before = everything(store, "ana")
    found = erase.preview(store, "ana")
    assert found.dry_run and not found.complete
    assert {"memories": 3, "utterances": 3, "turns": 1}.items() <= found.rows.items()
    assert found.threads == ("t1",) and "ledger.sqlite3" in found.files and len(found.collections) == 2
    assert everything(store, "ana") == before and not (home / erase.NOTE).exists()
    assert erase.preview(store, "nobody").rows["memories"] == 0


@pytest.mark.parametrize("owner", ["", " ", None])
def test_erasing_nobody_is_refused(store: MemoryStore, owner: Any) -> None:
    store.add("ana", "Lives in Oslo")
    for work in (erase.erase, erase.preview):
        with pytest.raises(InputError, match="user id"):
            work(store, owner)
    with pytest.raises(InputError, match="user id"):
        erase.purge_memory(store, owner, "x")
    assert len(store.memories("ana")) == 1


def test_a_purged_memory_is_in_no_file_and_takes_its_summary_and_messages_along(home: Path, store: MemoryStore) -> None:
    def talk(*texts: str) -> None:
        with open_checkpointer(home) as saver:
            agent = build_agent(memory=store).compile(checkpointer=saver)
            for text in texts:
                say(agent, text)

    talk("My passport number is CANARY-7731.", "I live in Lisbon.", "What is my passport number?")
    fact = next(memory for memory in store.memories("ana") if "7731" in memory.text)
    summary = Memory(owner="ana", text="Has passport CANARY-7731", recorded_at=START, valid_from=START)
    store.put_memories("ana", [summary.model_copy(update={"derived_from": (fact.id,)})], "consolidated")
    assert files_with(home, "canary-7731")

    def conversations(marks: traces.Marks, dry_run: bool) -> dict[str, int]:
        return erase_conversations(home, "ana", marks["text"], dry_run=dry_run)

    with pytest.raises(NotFoundError):
        erase.purge_memory(store, "bo", fact.id)
    planned = erase.preview(store, "ana", fact.id, outside=conversations)
    assert planned.rows["memories"] == 2 and planned.rows["utterances"] >= 1 and planned.rows["checkpoints"] > 0
    done = erase.purge_memory(store, "ana", fact.id, outside=conversations)
    assert done.complete, done.findings
    assert files_with(home, "canary", "7731") == []
    assert [memory.text for memory in store.memories("ana")] == ["I live in Lisbon."]
    with pytest.raises(NotFoundError):
        store.history("ana", fact.id)
    assert {event.op for event in store.events("ana") if event.memory_id in (fact.id, summary.id)} == {"PURGED"}
    assert store.events("ana")[-1].op == "PURGE"
    found = verify(store)
    assert found.healthy, found.differences


# The command line


@pytest.fixture
def run(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    app = typer.Typer()
    app.callback()(cli.options)
    for module in (command, memory_commands):
        module.register(app)
    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setattr(cli, "_register", lambda: None)
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: HashEmbeddings(16))
    monkeypatch.setenv("SHARPWAVE_COLLECTIONS", "4")

    def once(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sharpwave", "--home", str(home), *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return once


def test_the_command_erases_conversations_too_and_reports(home: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    words = markers("talk", 2)
    with opened(home) as store, open_checkpointer(home) as saver:
        agent = build_agent(memory=store).compile(checkpointer=saver)
        for owner in ("ana", "ana2"):
            say(agent, f"I own a {words[0] if owner == 'ana' else 'kettle'}.", who=owner)
        kept = everything(store, "ana2")
    code, printed, _ = run("erase", "ana", "--dry-run", "--json")
    planned = json.loads(printed)
    assert code == 0 and planned["dry_run"] and planned["rows"]["checkpoints"] > 0
    code, printed, complaint = run("erase", "ana")
    assert code == 2 and printed == "" and "--yes" in complaint
    assert run("erase", "", "--yes")[0] == 2
    assert run("erase", "ana", "--dry-run")[1].startswith("Would be erased: ana")
    code, printed, _ = run("erase", "ana", "--yes", "--json")
    report = json.loads(printed)
    assert code == 0 and report["complete"] and report["rows"]["checkpoints"] > 0
    assert files_with(home, words[0][:-2], threads_of("ana")) == []
    with opened(home) as store, open_checkpointer(home) as saver:
        assert everything(store, "ana2") == kept and store.owners() == ["ana2"]
        agent = build_agent(memory=store).compile(checkpointer=saver)
        assert [type(m) for m in say(agent, "Hello", who="ana2")["messages"]].count(AIMessage) == 2
    code, printed, _ = run("erase", "ana", "--yes")
    assert code == 0 and "Nothing is left." in printed


def test_deleting_names_the_way_to_purge_and_purging_leaves_nothing(
    home: Path, run: Callable[..., tuple[int, str, str]]
) -> None:
    added = json.loads(run("memories", "add", "My code is CANARY-4412", "--user", "ana", "--json")[1])
    _, printed, _ = run("memories", "delete", added["memory_id"], "--user", "ana")
    assert f"memories delete {added['memory_id']} --purge" in printed
    assert files_with(home, "canary-4412")
    assert run("memories", "delete", added["memory_id"], "--purge", "--user", "bo", "--yes")[0] == 2
    assert run("memories", "delete", added["memory_id"], "--purge", "--user", "ana")[0] == 2
    code, printed, _ = run("memories", "delete", added["memory_id"][:12], "--purge", "--user", "ana", "--yes")
    assert code == 0 and "Nothing is left." in printed and "messages that it was taken from" in printed
    assert files_with(home, "canary", "4412") == []
