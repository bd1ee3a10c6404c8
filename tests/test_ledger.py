"""The ledger: append-only, one version of its tables, private, and clear about what is wrong with its file."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fakes import HashEmbeddings, being_made
from sqlalchemy import Connection, event
from sqlalchemy.exc import IntegrityError

from sharpwave.memory import ledger, schema
from sharpwave.memory.errors import StoreError
from sharpwave.memory.ledger import Ledger
from sharpwave.memory.store import MemoryStore

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite3"


def note(opened: Ledger, reason: str) -> None:
    with opened.write() as connection:
        number = ledger.enlist_owner(connection, "ana")
        ledger.append_event(connection, number, "ADD", at=AT, policy="test", reason=reason)


def reasons(opened: Ledger) -> list[str]:
    with opened.read() as connection:
        return [event.reason for event in ledger.read_events(connection, 1)]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET reason = 'other'",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events SELECT seq, at, owner, op, memory_id, version, thread, message_id, policy, 'x', detail FROM events",
        "REPLACE INTO events (seq, at, owner, op, policy, reason, detail) VALUES (1, 0, 1, 'ADD', 'x', 'x', '{}')",
    ],
)
def test_what_is_in_the_log_can_be_neither_changed_nor_removed(path: Path, statement: str) -> None:
    opened = Ledger(path)
    note(opened, "because")
    with pytest.raises(StoreError, match="append-only"), opened.write() as connection:
        connection.exec_driver_sql(statement)
    assert reasons(opened) == ["because"]
    opened.close()


def test_event_numbers_are_never_used_again(path: Path) -> None:
    opened = Ledger(path)
    note(opened, "first")
    with pytest.raises(ZeroDivisionError), opened.write() as connection:
        ledger.append_event(connection, 1, "ADD", at=AT, policy="test", reason="lost")
        raise ZeroDivisionError
    note(opened, "second")
    assert reasons(opened) == ["first", "second"]
    with opened.read() as connection:
        assert [e.seq for e in ledger.read_events(connection, 1)] == [1, 2]
        assert ledger.read_events(connection, 1, last=0) == []
        assert [e.reason for e in ledger.read_events(connection, 1, last=1)] == ["second"]
    opened.close()


def test_a_ledger_is_in_wal_mode_and_waits_for_others(path: Path) -> None:
    opened = Ledger(path)
    with opened.read() as connection:
        values = {
            p: connection.exec_driver_sql(f"PRAGMA {p}").scalar()
            for p in ("journal_mode", "busy_timeout", "synchronous")
        }
    assert values == {"journal_mode": "wal", "busy_timeout": 30_000, "synchronous": 2}
    opened.close()


def test_a_ledger_that_another_one_holds_is_named_as_locked(path: Path) -> None:
    opened = Ledger(path)

    opened._engine.dispose()

    @event.listens_for(opened._engine, "connect")
    def impatient(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA busy_timeout = 50")

    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match=r"ledger.sqlite3 is locked by another process"):
        note(opened, "never")
    holder.execute("ROLLBACK")
    holder.close()
    note(opened, "now")
    assert reasons(opened) == ["now"]
    opened.close()


def test_reading_goes_on_while_another_one_writes(path: Path) -> None:
    opened = Ledger(path)
    note(opened, "first")
    with opened.write() as writing:
        ledger.append_event(writing, 1, "ADD", at=AT, policy="test", reason="second")
        assert reasons(opened) == ["first"]
    assert reasons(opened) == ["first", "second"]
    opened.close()


# Versions of the tables


def add_colour(connection: Connection) -> None:
    connection.exec_driver_sql("CREATE TABLE colours (name TEXT NOT NULL)")
    connection.exec_driver_sql("INSERT INTO colours SELECT 'blue' FROM events")


def test_an_older_ledger_is_brought_forward_once_and_keeps_what_it_holds(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Ledger(path)
    note(opened, "because")
    opened.close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, add_colour))
    for _ in range(2):
        opened = Ledger(path)
        assert reasons(opened) == ["because"]
        with opened.read() as connection:
            assert connection.exec_driver_sql("SELECT name FROM colours").scalars().all() == ["blue"]
            assert ledger.get_meta(connection, "schema_version") == str(len(schema.MIGRATIONS))
        opened.close()


def test_a_migration_that_fails_leaves_the_ledger_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Ledger(path)
    note(opened, "because")
    opened.close()

    def half(connection: Connection) -> None:
        add_colour(connection)
        raise IntegrityError("half-way", None, Exception("half-way"))

    known = schema.MIGRATIONS
    monkeypatch.setattr(schema, "MIGRATIONS", (*known, half))
    with pytest.raises(StoreError, match="half-way"):
        Ledger(path)
    monkeypatch.setattr(schema, "MIGRATIONS", known)
    opened = Ledger(path)
    assert reasons(opened) == ["because"]
    with opened.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM sqlite_master WHERE name = 'colours'").scalar() == 0
    opened.close()


def test_a_ledger_of_a_newer_version_is_refused_untouched(path: Path) -> None:
    opened = Ledger(path)
    with opened.write() as connection:
        ledger.set_meta(connection, "schema_version", "99")
    opened.close()
    with pytest.raises(StoreError, match=r"schema version 99; this Sharpwave knows \d+\. Upgrade"):
        Ledger(path)
    with sqlite3.connect(path) as raw:
        assert raw.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone() == ("99",)
    raw.close()


# Files that are not what they should be


def a_text_file(path: Path) -> None:
    path.write_text("Dear diary, this is no database.\n" * 100)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_broken_database(path: Path) -> None:
    Ledger(path).close()
    content = bytearray(path.read_bytes())
    content[100:4000] = b"\x00" * 3900
    path.write_bytes(content)


@pytest.mark.parametrize("make", [a_text_file, a_folder, a_broken_database])
def test_a_file_that_is_no_ledger_is_refused_by_name_and_kept(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "ledger.sqlite3"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError) as caught:
        MemoryStore.open(tmp_path, embeddings=HashEmbeddings(16))
    assert str(path) in str(caught.value) and "--home" in str(caught.value) and "\n" not in str(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_an_empty_file_becomes_a_ledger(path: Path) -> None:
    path.touch()
    opened = Ledger(path)
    note(opened, "because")
    assert reasons(opened) == ["because"]
    opened.close()


def test_a_new_file_that_another_process_is_making_is_waited_for(path: Path) -> None:
    with being_made(path):
        opened = Ledger(path)
    note(opened, "because")
    assert reasons(opened) == ["because"]
    opened.close()


def test_a_home_that_cannot_be_a_folder_is_refused_by_name(tmp_path: Path) -> None:
    file, loop = tmp_path / "file", tmp_path / "loop"
    file.write_text("x")
    loop.symlink_to(loop)
    for home in (file, file / "below", loop, tmp_path / ("x" * 300), tmp_path / "nul\x00"):
        with pytest.raises(StoreError) as caught:
            MemoryStore.open(home, embeddings=HashEmbeddings(16))
        assert "cannot be used" in str(caught.value) and "--home" in str(caught.value)
    assert file.read_text() == "x"


READ_ONLY = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from fakes import HashEmbeddings, being_made
from sharpwave.memory.errors import StoreError
from sharpwave.memory.store import MemoryStore
import chromadb
if os.getuid() == 0:
    os.setuid(65534)
try:
    MemoryStore.open(Path(sys.argv[1]), embeddings=HashEmbeddings(16))
except StoreError as error:
    print(error)
"""


def test_a_home_that_may_not_be_written_is_refused_by_name(tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    parent.mkdir(mode=0o500)
    folder = parent
    while folder != folder.parent and os.getuid() == 0:  # a child without rights must be able to come this far
        folder = folder.parent
        if not folder.stat().st_mode & 0o001:
            os.chmod(folder, folder.stat().st_mode | 0o011)
    command = [sys.executable, "-c", READ_ONLY, str(parent / "home"), str(Path(__file__).parent)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "cannot be used: Permission denied. Choose another with --home." in run.stdout, run.stderr


def test_a_full_disk_keeps_nothing_of_a_write(path: Path) -> None:
    opened = Ledger(path)
    note(opened, "first")

    @event.listens_for(opened._engine, "begin", insert=True)
    def narrow(connection: Connection) -> None:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(StoreError, match=r"disk with .*ledger.sqlite3 is full; nothing of this write was kept"):
        note(opened, "long " * 100_000)
    assert reasons(opened) == ["first"]
    opened.close()
