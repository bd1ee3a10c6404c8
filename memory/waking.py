"""What calls for a replay: what came in since the last one, what is due, what went wrong; and how replay stands."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection

from sharpwave.memory import buffer, metrics, runs, times
from sharpwave.memory.ledger import from_timestamp
from sharpwave.memory.sql import fetch, fetch_one
from sharpwave.memory.store import MemoryStore

ABOUT = 0.5
"""Cosine from which something new is about a cue."""


class News(NamedTuple):
    """What has come of one owner since the last replay."""

    new: int
    """Memories, episodes, and things that the user said."""
    troubles: int
    """Episodes that failed, and contradictions that were seen."""
    ended: int
    """Sessions that ended."""
    due: int
    """Records in the buffer whose forgetting curve says so."""
    last: datetime | None
    """When something came of this owner last."""


def news(connection: Connection, owner: int, now: datetime) -> News:
    """Return what has come of an owner, by number, since the last replay."""
    since = "SELECT coalesce(max(seq), 0) FROM events WHERE owner = ?1 AND op = 'REPLAY'"
    happened = f"""
        SELECT coalesce(sum(op != 'END'), 0), coalesce(sum(op = 'END'), 0) FROM events WHERE owner = ?1 AND seq > ({since})
        AND (op IN ('CONTRADICT', 'END') OR op = 'EPISODE' AND json_extract(detail, '$.row_after.outcome') = 'failure')
    """
    due = "SELECT count(*) FROM uses WHERE owner = ? AND buffered AND due_at <= ?"
    last = """
        SELECT max(at) FROM (SELECT max(queued_at) AS at FROM turns WHERE owner = ?1 UNION ALL
        SELECT max(at) FROM events WHERE owner = ?1 AND op NOT IN ('REPLAY', 'EXPIRE', 'PROBE', 'REPAIR'))
    """
    at = fetch_one(connection, last, (owner,))
    ((troubles, ended),) = fetch(connection, happened, (owner,))
    return News(
        new=buffer.waiting(connection, owner),
        troubles=troubles,
        ended=ended,
        due=int(fetch_one(connection, due, (owner, now.timestamp()))),
        last=None if at is None else from_timestamp(at),
    )


def about(connection: Connection, owner: int, cue: np.ndarray, least: float = ABOUT) -> bool:
    """Return whether something that came of an owner since the last replay is about a cue (a unit vector)."""
    vectors = buffer.new_vectors(connection, owner)
    return bool(len(vectors)) and float((vectors @ cue).max()) >= least


Marks = tuple[int, int, int]
"""How far a look at the ledger has come."""


def changed(connection: Connection, since: Marks) -> tuple[list[str], Marks]:
    """Return of whom something has been written since a look, the first being `(0, 0, 0)`, and how far this one has come."""
    tables = (("events", "seq"), ("utterances", "row"), ("records", "row"))
    marks: Any = tuple(
        fetch_one(connection, f"SELECT coalesce(max({column}), 0) FROM {table}") for table, column in tables
    )
    which = " UNION ".join(f"SELECT owner FROM {table} WHERE {column} > ?" for table, column in tables)
    found = fetch(connection, f"SELECT owner FROM owners WHERE id IN ({which}) ORDER BY id", since)
    return [owner for (owner,) in found], marks


class Status(NamedTuple):
    """How replay stands for one owner."""

    runs: int
    """Runs that have ended."""
    unfinished: list[str]
    buffer: int
    """Records that may be replayed."""
    buffer_size: int
    """Most of them."""
    new: int
    """Records that the next run takes in."""
    due: int
    mean_strength: float | None
    mean_replayed: float | None
    memories: int
    """Memories that are live."""
    used: float | None
    """Share of them, 0..1, that was ever recalled or cited."""
    bytes: int
    """Size of all files in the folder, everybody's."""
    last_run: datetime | None
    history: list[dict[str, Any]]
    """The latest runs, the newest first: `run`, `at`, `strategy`, `ids`, and what came of them."""


def status(store: MemoryStore, owner: str, *, last: int = 10, now: Callable[[], datetime] = times.now) -> Status:
    """Return how replay stands for an owner, with the `last` runs."""
    means = "SELECT count(*), avg(replayed) FROM uses WHERE owner = ? AND buffered"
    with store.transaction(owner) as (connection, number):
        ((held, replayed),) = fetch(connection, means, (number,))
        latest = runs.history(connection, number, last)
        came = news(connection, number, now())
        ended = runs.count(connection, number)
    done = [run for run in latest if run.ended_at is not None]
    return Status(
        runs=ended,
        unfinished=[run.run for run in latest if run.ended_at is None],
        buffer=held,
        buffer_size=buffer.SIZE,
        new=came.new,
        due=came.due,
        mean_replayed=replayed,
        **metrics.take(store, owner),
        last_run=done[0].ended_at if done else None,
        history=[{"run": run.run, "at": run.begun_at.isoformat(), **(run.result or {})} for run in done],
    )
