"""The chat's checkpointer: conversations in one SQLite file of the home folder, each kept to its latest states."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver

from sharpwave.graphs import threads_of
from sharpwave.memory.erase import compact
from sharpwave.memory.errors import StoreError
from sharpwave.memory.sql import BUSY_SECONDS, write_ahead
from sharpwave.memory.traces import holder

FILE = "checkpoints.sqlite3"

_STALE = """
DELETE FROM checkpoints WHERE (thread_id, checkpoint_ns, checkpoint_id) IN (
    SELECT thread_id, checkpoint_ns, checkpoint_id FROM (
        SELECT thread_id, checkpoint_ns, checkpoint_id,
               row_number() OVER (PARTITION BY thread_id, checkpoint_ns ORDER BY checkpoint_id DESC) AS age
        FROM checkpoints WHERE :thread IS NULL OR thread_id = :thread
    ) WHERE age > :keep
)
"""
_ORPHANS = """
DELETE FROM writes WHERE (:thread IS NULL OR thread_id = :thread) AND NOT EXISTS (
    SELECT 1 FROM checkpoints
    WHERE checkpoints.thread_id = writes.thread_id AND checkpoints.checkpoint_ns = writes.checkpoint_ns
      AND checkpoints.checkpoint_id = writes.checkpoint_id
)
"""


@contextmanager
def open_checkpointer(home: Path) -> Iterator[SqliteSaver]:
    """Open the checkpointer of a home folder, for the length of a block. Its thread ids come from `thread_config`.

    It serves `invoke` and `stream`; the async forms of a graph need LangGraph's async saver.

    Raises:
        StoreError: the file cannot be opened, read or written; also for what goes wrong with it inside the block.
    """
    path = home / FILE
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)  # SQLite gives its companions the mode of the file
    except OSError as error:
        raise StoreError(f"{path} cannot be used: {error.strerror}. Choose another folder with --home.") from error
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)) as connection:
            write_ahead(connection)
            saver = SqliteSaver(connection)
            saver.setup()
            yield saver
    except sqlite3.Error as error:
        raise StoreError(
            f"The conversations in {path} cannot be read or written: {error}. Free the disk or end what holds the file; "
            "a damaged file may be moved away: memories are kept elsewhere."
        ) from error


def erase_conversations(
    home: Path, user: str, holding: set[bytes] | None = None, *, dry_run: bool = False
) -> dict[str, int]:
    """Erase the conversations of a user, or only those that hold any of some pieces of text, down to the bytes.

    Returns:
        How many rows that are, by table; with `dry_run` they stay.
    """
    if not (home / FILE).exists():
        return {"checkpoints": 0, "writes": 0}
    with open_checkpointer(home) as saver, saver.lock, saver.conn as connection:
        threads = _threads(connection, threads_of(user), holding)
        counts = {table: 0 for table in ("checkpoints", "writes")}
        for table in counts:
            for thread in threads:
                verb = "SELECT count(*)" if dry_run else "DELETE"
                done = connection.execute(f"{verb} FROM {table} WHERE thread_id = ?", (thread,))
                counts[table] += int(done.fetchone()[0]) if dry_run else done.rowcount
    if not dry_run:
        compact(home / FILE)
    return counts


def _threads(connection: sqlite3.Connection, prefix: str, holding: set[bytes] | None) -> list[str]:
    """Return a user's threads; with `holding`, those in which any of these pieces stands."""
    whose = f"WHERE substr(thread_id, 1, {len(prefix)}) = ?"
    data = (("checkpoints", "checkpoint"), ("checkpoints", "metadata"), ("writes", "value"))
    statement = " UNION ALL ".join(f"SELECT thread_id, {column} FROM {table} {whose}" for table, column in data)
    hit = holder(holding or set())
    rows = connection.execute(statement, (prefix,) * len(data))
    return sorted({thread for thread, kept in rows if holding is None or hit(_bytes(kept))})


def _bytes(kept: bytes | str | None) -> bytes:
    return kept.encode("utf-8", "surrogatepass") if isinstance(kept, str) else kept or b""


def prune(saver: SqliteSaver, keep: int, thread_id: str | None = None) -> int:
    """Drop all but the latest `keep` states of a thread, or of each, with their writes; returns how many states went."""
    with saver.lock, saver.conn as connection:
        connection.execute("BEGIN IMMEDIATE")
        gone = connection.execute(_STALE, {"thread": thread_id, "keep": keep}).rowcount
        connection.execute(_ORPHANS, {"thread": thread_id})
    return gone
