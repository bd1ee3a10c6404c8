"""The log of decisions recomputed: what it says a store should hold, and how a store that differs is told apart."""

import json
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer
from fakes import HashEmbeddings

from sharpwave import cli
from sharpwave.commands import memories
from sharpwave.memory import erase, portability, rebuild, retrace
from sharpwave.memory.records import Candidate, Decision, Memory, Message, Turn
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.verify import verify

START = datetime(2026, 3, 1, tzinfo=UTC)
UNLOCK = "INSERT INTO meta VALUES ('erasing', '1')"


def opened(home: Path) -> MemoryStore:
    return MemoryStore.open(home, embeddings=HashEmbeddings(64), collections=2)


def put(store: MemoryStore, owner: str, number: int, op: str, text: str, target: str | None = None) -> None:
    message = Message(id=f"m{number}", role="user", text=text)
    turn = Turn(owner=owner, thread="t1", messages=(message,), said_at=START + timedelta(days=number))
    candidate = Candidate(text=text, quote=text, message_id=message.id)
    decision = Decision(op=op, candidate=candidate, target=target, reason="because", policy="test/1")  # type: ignore[arg-type]
    store.queue([turn])
    store.apply(turn, [decision], revision=None, recalled=[target] if target else [])


def live_through(store: MemoryStore, owner: str) -> None:
    """Make every kind of change there is."""
    put(store, owner, 1, "ADD", f"{owner} lives in Oslo")
    put(store, owner, 2, "ADD", f"{owner} likes jazz")
    put(store, owner, 3, "ADD", f"{owner} has a 猫 named Pixel")
    first, second, third = (memory.id for memory in store.memories(owner))
    put(store, owner, 4, "UPDATE", f"{owner} lives in Lisbon", first)
    put(store, owner, 5, "NOOP", f"{owner} likes jazz", second)
    put(store, owner, 6, "DELETE", f"{owner} has no cat", third)
    store.undo(owner)
    store.undo(owner, turn=("t1", "m4"))
    store.edit(owner, second, f"{owner} likes blues")
    store.delete(owner, second)
    store.restore(owner, second)
    store.undo(owner, last=2)
    store.pin(owner, first)
    store.edit(owner, second, f"{owner} likes folk")
    newer = store.get(owner, first).model_copy(update={"version": 9, "text": f"{owner} lives in Rome"})
    store.put_memories(owner, [newer], "imported")
    summary = Memory(
        owner=owner, text=f"{owner}, a cat person", recorded_at=START, valid_from=START, derived_from=(third,)
    )
    store.put_memories(owner, [summary], "imported")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("whole") / "home"
    with opened(home) as store:
        for owner in ("ana", "bo", "cy"):
            live_through(store, owner)
    return home


@pytest.fixture
def home(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "home"))


@pytest.fixture
def store(home: Path) -> Iterator[MemoryStore]:
    with opened(home) as store:
        yield store


def differences(store: MemoryStore) -> list[str]:
    with store.ledger.read() as connection:
        return [difference.told() for difference in retrace.differences(connection)]


@pytest.mark.slow
def test_whatever_is_done_to_a_store_its_log_agrees(store: MemoryStore) -> None:
    found = verify(store)
    assert found.healthy, found.differences
    assert found.events > 40 and found.rows > 30
    lines = [json.dumps(line) for line in portability.export(store, "ana")]
    portability.load(store, "dee", lines)
    rebuild.reindex(store)
    memory = next(m for m in store.memories("bo", statuses=()) if "cat" in m.text or "猫" in m.text)
    erase.purge_memory(store, "bo", memory.id)
    erase.erase(store, "ana")
    found = verify(store)
    assert found.healthy, found.differences


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE memories SET record = json_set(record, '$.text', 'Owes me money') WHERE row = 2", "(text)"),
        ("UPDATE memories SET record = json_set(record, '$.status', 'active') WHERE row = 1", "(status)"),
        ("UPDATE memories SET status = 'quarantined' WHERE row = 2", "columns"),
        ("UPDATE memories SET current = 0 WHERE row = (SELECT max(row) FROM memories)", "should be the current one"),
        ("DELETE FROM memories WHERE row = 3", "the row is gone"),
        ("UPDATE memories SET id = 'x' WHERE row = 1", "no event made this version"),
        ("DELETE FROM events WHERE seq = 1", "1 of"),
        ("DELETE FROM events WHERE seq = 1", "event 4 (UPDATE) found it otherwise"),
        ("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)", "no event made this version"),
        ("DELETE FROM events WHERE op = 'NOOP'", "found it otherwise than the events before left it (confidence"),
        ("UPDATE events SET detail = json_set(detail, '$.after.value', 'x') WHERE seq = 2", "(value)"),
    ],
)
def test_what_was_changed_behind_the_log_is_named(store: MemoryStore, statement: str, told: str) -> None:
    with store.ledger.write() as connection:
        connection.exec_driver_sql(UNLOCK)
        connection.exec_driver_sql(statement)
    found = differences(store)
    assert any(told in one for one in found), found


def test_wrong_words_and_vectors_are_found_and_rebuilt(store: MemoryStore) -> None:
    with store.ledger.write() as connection:
        body = connection.exec_driver_sql("SELECT body FROM utterance_terms WHERE rowid = 2").scalar_one()
        for table in ("memory_terms", "window_terms"):
            connection.exec_driver_sql(f"DELETE FROM {table} WHERE rowid = 1")
            connection.exec_driver_sql(f"INSERT INTO {table}(rowid, body) VALUES (1, ?)", (body,))
        connection.exec_driver_sql("UPDATE utterances SET vector = zeroblob(128) WHERE row = 1")
    found = {difference.where for difference in verify(store).differences}
    assert {"memory_terms, row 1 of 'ana'", "window_terms, row 1 of 'ana'", "index"} <= found
    rebuild.reindex(store)
    assert verify(store).healthy


def test_the_command_says_what_differs(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer()
    app.callback()(cli.options)
    memories.register(app)
    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setattr(cli, "_register", lambda: None)
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: HashEmbeddings(64))

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["sharpwave", "--home", str(home), "ledger", "--verify", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return int(ended.value.code or 0), capsys.readouterr().out

    code, printed = run()
    assert code == 0 and "all is well" in printed
    with opened(home) as store, store.ledger.write() as connection:
        connection.exec_driver_sql("UPDATE memories SET record = json_set(record, '$.text', 'Changed') WHERE row = 2")
    code, printed = run("--json")
    assert code == 1 and any("(text)" in one["what"] for one in json.loads(printed)["differences"])
    code, printed = run()
    assert code == 1 and "(text)" in printed and "they differ" in printed
