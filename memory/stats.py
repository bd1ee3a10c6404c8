"""How much there is: counts of what a store, or one owner in it, holds, and the size of its files."""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Table, func, select

from sharpwave.memory import ledger
from sharpwave.memory.ledger import check_owner
from sharpwave.memory.records import Record
from sharpwave.memory.schema import events, memories, owners, turns, utterances

if TYPE_CHECKING:
    from sharpwave.memory.store import MemoryStore


class Stats(Record):
    """What there is."""

    owners: int
    memories: dict[str, int]
    """Memories by status, each counted once, as its current version has it."""
    versions: int
    utterances: int
    threads: int
    events: int
    pending_turns: int
    failed_turns: int
    """Of the pending ones, those that were tried."""
    unindexed: int
    usage: dict[str, dict[str, int]]
    """Model calls and tokens by purpose, over all time."""
    bytes: dict[str, int]
    """Size on disk of the whole store, by part."""


def count(store: "MemoryStore", owner: str | None = None) -> Stats:
    """Count what `owner` has, or everybody; somebody unknown has nothing."""
    with store.ledger.read() as connection:
        number = None if owner is None else ledger.owner_number(connection, check_owner(owner)) or 0
        return Stats(
            owners=connection.execute(select(func.count()).select_from(owners)).scalar_one()
            if owner is None
            else int(number != 0),
            memories=_by_status(connection, number),
            versions=_rows(connection, memories, number),
            utterances=_rows(connection, utterances, number),
            threads=_threads(connection, number),
            events=_rows(connection, events, number),
            pending_turns=_rows(connection, turns, number, turns.c.state != "done"),
            failed_turns=_rows(connection, turns, number, turns.c.state != "done", turns.c.error.is_not(None)),
            unindexed=sum(
                _rows(connection, table, number, table.c.indexed.is_(False)) for table in (memories, utterances)
            ),
            usage=ledger.read_usage(connection, number),
            bytes={"ledger": _size(store.home, "ledger.sqlite3*"), "index": _size(store.index.path, "**/*")},
        )


def _rows(connection: Connection, table: Table, number: int | None, *conditions: object) -> int:
    statement = select(func.count()).select_from(table).where(*conditions)  # type: ignore[arg-type]
    return int(
        connection.execute(statement if number is None else statement.where(table.c.owner == number)).scalar_one()
    )


def _by_status(connection: Connection, number: int | None) -> dict[str, int]:
    statement = select(memories.c.status, func.count()).where(memories.c.current).group_by(memories.c.status)
    if number is not None:
        statement = statement.where(memories.c.owner == number)
    return {status: count for status, count in connection.execute(statement.order_by(memories.c.status))}


def _threads(connection: Connection, number: int | None) -> int:
    threads = select(utterances.c.owner, utterances.c.thread).distinct()
    if number is not None:
        threads = threads.where(utterances.c.owner == number)
    return int(connection.execute(select(func.count()).select_from(threads.subquery())).scalar_one())


def size(home: Path) -> int:
    """Return the size of all files of a store, in bytes."""
    return _size(home, "**/*")


def _size(folder: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in folder.glob(pattern) if path.is_file())
