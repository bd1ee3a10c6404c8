"""Bringing the vector index after the ledger, and asking it, as one of several processes that do so.

A row says whether it waits to be indexed; so a process may end at any instant, and whoever opens the folder next goes on.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from sharpwave.memory import episodic, ledger, lock, rebuild, semantic
from sharpwave.memory.candidates import Nearest
from sharpwave.memory.index import StoreName, damaged, share
from sharpwave.memory.ledger import Ledger

BATCH = 1000
"""Rows of a store that are indexed at once, under one hold of the lock."""
INDEXED_FROM = 64
"""Rows that wait before they are indexed. It is the call that takes Chroma its time, more than the rows: indexing after each
turn cost a turn 18 ms. A recall scores what waits exactly, from the ledger; 63 rows add about 1 ms to it."""


class Indexing:
    """The index of one folder, with the lock between the processes that share it."""

    def __init__(self, book: Ledger, home: Path, collections: int) -> None:
        self.ledger = book
        self.index, self.close = share(home / "chroma", collections)
        self.lock = lock.of(home / "lock")

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the lock between processes; yields the index generation. The client is fresh when the block starts."""
        with self.lock.exclusive():
            with self.ledger.read() as connection:
                current = ledger.generation(connection)
                interrupted = ledger.get_meta(connection, "indexing") == "1"
            if interrupted:
                self.index.forget()  # a writer died in the middle: what this client holds may be older than the files
            yield current

    def nearest(self, connection: Connection, owner: str, *, live: bool) -> Nearest:
        """Return what asks the index for an owner's vector ids; `live` leaves out what is no longer current.

        The caller holds the shared lock, and has held it since before this view: the view so is as new as the files.
        """
        current, number = ledger.generation(connection), ledger.owner_number(connection, owner) or 0

        def own(store: StoreName, ids: Sequence[str]) -> set[str]:
            if store == "semantic":
                return {*semantic.by_vector_id(connection, number, ids, live=live)}
            return {*episodic.by_vector_id(connection, number, ids)}

        return lambda store, vector, k: self.index.nearest(store, owner, vector, k, current, live=live, own=own)

    def run(self, progress: Callable[[int], None] | None = None) -> int:
        """Index what waits, in batches, and return how many rows that were; `progress` hears of each batch.

        As many rows as wait now: others may write more all the while, faster than they can be indexed.
        """
        done, waiting = 0, self._waiting()
        while done < waiting:
            with self.locked() as current:
                with self.ledger.write() as connection:
                    announced = _announce(connection)
                indexed = self._batch(current, announced)
            if not indexed:  # somebody else did
                break
            done += indexed
            if progress:
                progress(done)
        return done

    def _waiting(self) -> int:
        with self.ledger.read() as connection:
            return rebuild.waiting(connection)

    def _batch(self, before: int, announced: int) -> int:
        with self.ledger.read() as connection:
            waiting: dict[StoreName, Any] = {
                "semantic": semantic.pending(connection, BATCH),
                "episodic": episodic.pending(connection, BATCH),
            }
        self._upsert(waiting, before)
        self.index.wrote(before, announced)
        with self.ledger.write() as connection:
            for store, rows in waiting.items():
                _mark_indexed(connection, store, rows)
            ledger.set_meta(connection, "indexing", "0")
            after = ledger.raise_generation(connection)
        self.index.wrote(announced, after)
        return sum(len(rows) for rows in waiting.values())

    def _upsert(self, waiting: dict[StoreName, Any], generation: int) -> None:
        from chromadb.errors import ChromaError

        try:
            for store, rows in waiting.items():
                if rows:
                    self.index.upsert(store, [row[1:] for row in rows], generation)
        except ChromaError as error:
            raise damaged(self.index.path, error) from error


def _announce(connection: Connection) -> int:
    # Raised before the vectors are written and again after: a reader in between opens anew twice rather than never.
    ledger.set_meta(connection, "indexing", "1")
    return ledger.raise_generation(connection)


def _mark_indexed(connection: Connection, store: StoreName, rows: Sequence[Any]) -> None:
    if rows and store == "episodic":
        connection.exec_driver_sql("UPDATE utterances SET indexed = 1 WHERE row = ?", [(row[0],) for row in rows])
    elif rows:  # a version that ended while its vector was written waits again
        statement = f"UPDATE memories SET indexed = 1 WHERE row = ? AND ({semantic.LIVE}) = ?"
        connection.exec_driver_sql(statement, [(row[0], row[4]["live"]) for row in rows])
