"""Erasing an owner, or one memory: the one thing that destroys, and proves it.

Chroma does not wipe what it deletes, and neither does SQLite. So the rows go first; then each collection that held vectors
of theirs is deleted and built anew from the ledger; the files are vacuumed and abandoned folders removed; and at last every
file in the folder is searched for what was erased. Each step may be done twice, so an erasure that was interrupted goes on
where it is asked for again; a note in the folder holds what it has to search for.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from pydantic import computed_field
from sqlalchemy import Connection

from sharpwave.memory import chroma_files, keywords, ledger, purge, rebuild, traces
from sharpwave.memory.errors import NotFoundError, StoreError
from sharpwave.memory.index import StoreName
from sharpwave.memory.ledger import check_owner
from sharpwave.memory.records import Record
from sharpwave.memory.traces import Finding, Marks

if TYPE_CHECKING:
    from sharpwave.memory.store import MemoryStore

NOTE = "erasing.json"
TIMEOUT = 60
"""Seconds to wait for others who read or write a file."""

Outside = Callable[[Marks, bool], dict[str, int]]
"""Removes what is kept outside of the store, such as checkpoints; is given what will be searched for, and whether to count
only; returns rows by table."""


def _nothing(_marks: Marks, _dry_run: bool) -> dict[str, int]:
    return {}


class Erasure(Record):
    """What an erasure removes, or removed, and what a search of all files found afterwards."""

    owner: str
    memory: str | None = None
    """The id of the memory, where only one goes."""
    dry_run: bool
    rows: dict[str, int]
    threads: tuple[str, ...]
    collections: tuple[str, ...]
    files: tuple[str, ...]
    """The files that are rewritten, or were searched."""
    bytes_searched: int = 0
    searched_for: dict[str, int]
    """How many pieces, by kind: `text`, `id`, `vector`."""
    used_elsewhere: int = 0
    """How many of them other records hold too, which is no finding."""
    findings: tuple[Finding, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def complete(self) -> bool:
        """Whether it has been done and nothing was left."""
        return not self.dry_run and not self.findings


class _Note(NamedTuple):
    owner: str
    memory: str | None
    rows: dict[str, int]
    threads: tuple[str, ...]
    marks: Marks


def preview(store: "MemoryStore", owner: str, memory_id: str | None = None, *, outside: Outside = _nothing) -> Erasure:
    """Return what `erase` or `purge_memory` would remove."""
    plan = _plan(store, check_owner(owner), memory_id)
    return Erasure(
        owner=owner,
        memory=memory_id,
        dry_run=True,
        searched_for={},
        rows={**plan.rows, **outside(plan.marks, True)},
        threads=plan.threads,
        collections=_collections(store, owner),
        files=tuple(sorted(str(p.relative_to(store.home)) for p in store.home.rglob("*") if p.is_file())),
    )


def erase(store: "MemoryStore", owner: str, *, outside: Outside = _nothing) -> Erasure:
    """Purge everything of one owner and search the folder for what is left of it. Others may write meanwhile.

    What a conversation of the owner that is under way writes afterwards is new; end it first. Chroma writes parts of the
    memory of its process into files: end what has worked with the owner's memories for long, and erase again. The lock
    between processes is held to the end: others' writes to the index wait.

    Args:
        store: the open store.
        owner: whose; everybody else's stays.
        outside: removes what is kept outside of the store, before the search.

    Raises:
        InputError: `owner` is blank or no text.
        StoreError: another process holds the files for too long, or another erasure was interrupted; says what to do.
    """
    return _carry_out(store, check_owner(owner), None, outside)


def purge_memory(store: "MemoryStore", owner: str, memory_id: str, *, outside: Outside = _nothing) -> Erasure:
    """Purge one memory: all its versions, what was derived from it, the messages that it was taken from or that repeat it, and
    the contents of the events about it.

    Raises:
        NotFoundError: there is none with this id, or it is somebody else's.
        StoreError: as `erase`.
    """
    return _carry_out(store, check_owner(owner), memory_id, outside)


def interrupted(home: Path) -> tuple[str, str | None] | None:
    """Return whose erasure, and of which memory if it is of one, was begun in a folder and not finished."""
    note = _read(home)
    return (note.owner, note.memory) if note else None


def _carry_out(store: "MemoryStore", owner: str, memory_id: str | None, outside: Outside) -> Erasure:
    with store.locked():
        rebuild.resume(store)
        note = _begin(store, owner, memory_id)
        _purge_rows(store, owner, memory_id)
        _renew_collections(store, owner)
        counts = outside(note.marks, False)
        _compact_index(store)
        _compact_ledger(store)
        found = traces.search(store.home, note.marks, store.home / NOTE)
        findings, elsewhere = _judge(store, note.marks, found)
        if not findings:
            (store.home / NOTE).unlink()
    return Erasure(
        owner=owner,
        memory=memory_id,
        dry_run=False,
        rows={**note.rows, **counts},
        threads=note.threads,
        collections=_collections(store, owner),
        files=found.files,
        bytes_searched=found.size,
        searched_for={kind: len(pieces) for kind, pieces in note.marks.items()},
        used_elsewhere=elsewhere,
        findings=findings,
    )


def _plan(store: "MemoryStore", owner: str, memory_id: str | None) -> _Note:
    with store.ledger.read() as connection:
        number = ledger.owner_number(connection, owner) or 0
        if memory_id is None:
            return _Note(owner, None, *purge.of_owner(connection, number, owner))
        about = purge.about(connection, number, memory_id)
        earlier = _read(store.home)
        if not about.memories and (earlier is None or earlier.memory != memory_id or earlier.owner != owner):
            raise NotFoundError(
                f"There is no memory {memory_id!r} for this user. `sharpwave memories list` shows the ids."
            )
        return _Note(owner, memory_id, *purge.of_memory(connection, number, about))


def _begin(store: "MemoryStore", owner: str, memory_id: str | None) -> _Note:
    """Note what has to be searched for in the end, with what an interrupted erasure of the same noted."""
    note, earlier = _plan(store, owner, memory_id), _read(store.home)
    if earlier is not None:
        if earlier.owner != owner or memory_id not in (None, earlier.memory):
            raise StoreError(
                f"An earlier erasure was interrupted. Finish it first: {advice(earlier.owner, earlier.memory)}."
            )
        note = note._replace(
            rows={**earlier.rows, **{name: max(count, earlier.rows.get(name, 0)) for name, count in note.rows.items()}},
            threads=tuple(sorted({*note.threads, *earlier.threads})),
            marks={kind: pieces | earlier.marks[kind] for kind, pieces in note.marks.items()},
        )
    _write(store.home, note)
    return note


def advice(owner: str, memory_id: str | None) -> str:
    """Return the command that finishes an erasure."""
    if memory_id is None:
        return f"`sharpwave erase {quote(owner)}`"
    return f"`sharpwave memories delete {memory_id} --purge --user {quote(owner)}`"


def _purge_rows(store: "MemoryStore", owner: str, memory_id: str | None) -> None:
    with store.ledger.write() as connection:
        number = ledger.owner_number(connection, owner)
        if number is not None and memory_id is None:
            purge.owner(connection, number, owner)
        elif number is not None and memory_id is not None:
            about = purge.about(connection, number, memory_id)
            if about.memories:
                purge.memory(connection, number, owner, about)
        _wait_for_index(store, connection, owner)
        ledger.set_meta(connection, "indexing", "1")
        ledger.raise_generation(connection)
    store.forget_vectors()


def _wait_for_index(store: "MemoryStore", connection: Connection, owner: str) -> None:
    """Mark what shares a collection with the owner as waiting to be indexed: the collection is about to go."""
    touched = set(_collections(store, owner))
    for name in ledger.all_owners(connection):
        if touched & set(_collections(store, name)):
            number = ledger.owner_number(connection, name)
            for table in ("memories", "utterances"):
                connection.exec_driver_sql(f"UPDATE {table} SET indexed = 0 WHERE owner = ?", (number,))


def _collections(store: "MemoryStore", owner: str) -> tuple[str, ...]:
    stores: tuple[StoreName, ...] = ("semantic", "episodic")
    return tuple(store.index.collection_name(name, owner) for name in stores)


def _renew_collections(store: "MemoryStore", owner: str) -> None:
    with store.ledger.read() as connection:
        current = ledger.generation(connection)
    store.index.drop(_collections(store, owner), current)
    store.index_pending()


def _compact_index(store: "MemoryStore") -> None:
    store.index.forget()
    database = store.index.path / "chroma.sqlite3"
    if database.exists():
        compact(database)
        with closing(sqlite3.connect(database, timeout=TIMEOUT)) as connection:
            live = {row[0] for row in connection.execute("SELECT id FROM segments")}
        for folder in store.index.path.iterdir():
            if folder.is_dir() and folder.name not in live:
                shutil.rmtree(folder)
            elif folder.is_dir():
                chroma_files.wipe_unused(folder)
    with store.ledger.write() as connection:
        ledger.set_meta(connection, "indexing", "0")
        ledger.raise_generation(connection)


def _compact_ledger(store: "MemoryStore") -> None:
    # FTS5 keeps deleted terms until its segments are merged.
    compact(store.ledger.path, *(f"INSERT INTO {view}({view}) VALUES ('optimize')" for view in keywords.TABLES))


def compact(database: Path, *before: str) -> None:
    """Wipe what deleting left in a SQLite file and its write-ahead log.

    Args:
        database: the file; others may have it open.
        before: statements to run first.

    Raises:
        StoreError: others hold it for too long.
    """
    try:
        with closing(sqlite3.connect(database, isolation_level=None, timeout=TIMEOUT)) as connection:
            for statement in ("PRAGMA secure_delete = ON", *before, "VACUUM"):
                connection.execute(statement)
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.OperationalError as error:
        raise StoreError(
            f"{database} could not be compacted: {error}. Ask for the erasure again; it goes on from here."
        ) from error
    if busy:
        raise StoreError(
            f"{database} was read for more than {TIMEOUT} s, so what was deleted is still in its log. Ask for the erasure again."
        )


def _judge(store: "MemoryStore", marks: Marks, found: traces.Search) -> tuple[tuple[Finding, ...], int]:
    """Return what is left of the erased, and how much of what was found belongs to others."""
    suspects = {piece for pieces in found.found.values() for piece in pieces}
    with store.ledger.read() as connection:
        known = traces.held(connection, suspects)
    findings = {
        (file, kind)
        for file, pieces in found.found.items()
        for kind, wanted in marks.items()
        if (wanted & set(pieces)) - known
    }
    return tuple(Finding(file=file, what=kind) for file, kind in sorted(findings)), len(known)


def _write(home: Path, note: _Note) -> None:
    marks = {kind: sorted(piece.hex() for piece in pieces) for kind, pieces in note.marks.items()}
    fresh = home / f"{NOTE}.new"
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump({**note._asdict(), "marks": marks}, file)
        file.flush()
        os.fsync(handle)
    fresh.replace(home / NOTE)


def _read(home: Path) -> _Note | None:
    path = home / NOTE
    if not path.exists():
        return None
    kept = json.loads(path.read_text(encoding="utf-8"))
    marks = {kind: {bytes.fromhex(piece) for piece in pieces} for kind, pieces in kept["marks"].items()}
    return _Note(kept["owner"], kept["memory"], kept["rows"], tuple(kept["threads"]), marks)
