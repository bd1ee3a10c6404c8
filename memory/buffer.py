"""The replay buffer of an owner: which records may be replayed, and what is known of them beside what they say.

It holds memories, episodes, and what the user said, a bounded number of them. What a record gains by being used and
replayed stands in a row of `uses`, not in the record: that makes no new version of it.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection

from sharpwave.memory.ledger import from_timestamp
from sharpwave.memory.priority import Buffer, priority
from sharpwave.memory.rehearsal import RATE, Curve, rehearsed, strengthened
from sharpwave.memory.sql import fetch, fetch_one

SIZE = 1000
"""Traces that the buffer of an owner holds."""
COMPARED = 1000
"""How many of the records before it the surprise of a new one is measured against: comparing with all would take ever longer."""
UTTERED = 0.3
"""Importance of what was said, as such; what it tells is in memories of their own."""
UNKNOWN = 0.5
"""Success of what neither went well nor badly."""
FIRST_STRENGTH = 0.5
"""Strength of what does not say how strong it is."""

_SUCCESS: Mapping[str, float] = {"success": 1.0, "partial": 0.5, "failure": 0.0, "abandoned": 0.0}
_UNSEEN = "NOT EXISTS (SELECT 1 FROM uses u WHERE u.owner = ?1 AND u.memory_id = m.id AND u.store IS NOT NULL)"
_NEW: Mapping[str, str] = {
    "semantic": f"""
        SELECT m.id, m.valid_from, json_extract(m.record, '$.importance'), json_extract(m.record, '$.strength'), NULL, m.vector
        FROM memories m WHERE m.owner = ?1 AND m.current AND m.status = 'active' AND {_UNSEEN} ORDER BY m.valid_from, m.row
    """,
    "episodic": f"""
        SELECT m.id, m.said_at, {UTTERED}, {FIRST_STRENGTH}, NULL, m.vector
        FROM utterances m WHERE m.owner = ?1 AND m.role = 'user' AND {_UNSEEN} ORDER BY m.said_at, m.row
    """,
    "episode": f"""
        SELECT m.id, m.at, json_extract(m.record, '$.importance'), json_extract(m.record, '$.strength'), m.key, m.vector
        FROM records m WHERE m.owner = ?1 AND m.kind = 'episode' AND m.status = 'active' AND {_UNSEEN} ORDER BY m.at, m.row
    """,
}
_VECTORS: Mapping[str, str] = {
    "semantic": "SELECT vector FROM memories WHERE owner = ? AND current ORDER BY row DESC LIMIT ?",
    "episodic": "SELECT vector FROM utterances WHERE owner = ? ORDER BY row DESC LIMIT ?",
    "episode": "SELECT vector FROM records WHERE owner = ? AND kind = 'episode' AND vector IS NOT NULL ORDER BY row DESC LIMIT ?",
}


class Trace(NamedTuple):
    """One record in the buffer, as it is replayed."""

    store: str
    """`semantic` for a memory, `episodic` for an utterance, `episode`."""
    id: str
    strength: float
    replayed: int
    last_replayed_at: datetime | None
    stability: float | None
    difficulty: float | None
    asked: int
    missed: int


def take_in(connection: Connection, owner: int, now: datetime, size: int = SIZE) -> int:
    """Take what was written since the last time into the buffer, and let go of what is too much; returns how many are new.

    What leaves has the least priority of all: little surprise left, of little use, found when it was asked for, and replayed
    lately. It leaves the buffer, not the memory.
    """
    new = 0
    for store in _NEW:
        found = fetch(connection, _NEW[store], (owner,))
        surprises = _surprises([row[5] for row in found], _before(connection, owner, store, len(found)))
        rows = [
            (owner, record_id, store, at, importance, _SUCCESS.get(outcome, UNKNOWN), float(surprise), strength)
            for (record_id, at, importance, strength, outcome, _), surprise in zip(found, surprises, strict=True)
        ]
        if rows:
            connection.exec_driver_sql(_PUT, rows)
        new += len(rows)
    _let_go(connection, owner)
    _evict(connection, owner, now, size)
    return new


def waiting(connection: Connection, owner: int) -> int:
    """Return how many records the next taking in finds new."""
    return sum(fetch_one(connection, f"SELECT count(*) FROM ({found})", (owner,)) for found in _NEW.values())


def new_vectors(connection: Connection, owner: int) -> np.ndarray:
    """Return the vectors of what the next taking in finds new (float32, unit length, a row each)."""
    return _matrix([row[5] for found in _NEW.values() for row in fetch(connection, found, (owner,)) if row[5]])


_PUT = """
    INSERT INTO uses (owner, memory_id, store, lived_at, importance, success, surprise, strength, buffered, recalled, cited)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, 0, 0)
    ON CONFLICT (owner, memory_id) DO UPDATE SET store = excluded.store, lived_at = excluded.lived_at,
        importance = excluded.importance, success = excluded.success, surprise = excluded.surprise,
        strength = coalesce(uses.strength, excluded.strength), buffered = 1
"""


def _before(connection: Connection, owner: int, store: str, new: int) -> np.ndarray:
    """Return vectors of the records that were there before the `new` ones, the latest of them."""
    found = [vector for (vector,) in fetch(connection, _VECTORS[store], (owner, new + COMPARED))]
    return _matrix(found[new:][::-1])


def _surprises(vectors: Sequence[bytes], before: np.ndarray) -> np.ndarray:
    """Return, for each new record in order, 1 - the largest cosine to one of those before it, 0..1."""
    if not vectors:
        return np.empty(0)
    new = _matrix([vector for vector in vectors if vector])
    known = np.concatenate([before, new]) if len(before) else new
    offset = len(before)
    found = np.ones(len(new))
    for start in range(0, len(new), COMPARED):
        end = min(start + COMPARED, len(new))
        first = max(0, offset + start - COMPARED)
        cosines = new[start:end] @ known[first : offset + end].T
        places, own = np.arange(first, offset + end)[None, :], np.arange(offset + start, offset + end)[:, None]
        earlier = (places < own) & (places >= own - COMPARED)
        nearest = np.where(earlier, cosines, -1.0).max(axis=1, initial=-1.0)
        found[start:end] = np.clip(1 - nearest, 0.0, 1.0)
    surprises = np.full(len(vectors), 0.5)
    surprises[[place for place, vector in enumerate(vectors) if vector]] = found
    return surprises


def _matrix(vectors: Sequence[bytes]) -> np.ndarray:
    if not vectors:
        return np.empty((0, 0), np.float32)
    return np.frombuffer(b"".join(vectors), np.float16).reshape(len(vectors), -1).astype(np.float32)


def _let_go(connection: Connection, owner: int) -> None:
    """Take out what is no longer in the current view: replay strengthens nothing that was taken back."""
    kept = {
        "semantic": "SELECT id FROM memories WHERE owner = ?1 AND current AND status = 'active'",
        "episode": "SELECT id FROM records WHERE owner = ?1 AND kind = 'episode' AND status = 'active'",
        "episodic": "SELECT id FROM utterances WHERE owner = ?1",
    }
    for store, there in kept.items():  # without a store they come in again, should they be restored
        statement = (
            f"UPDATE uses SET buffered = 0, store = NULL WHERE owner = ?1 AND store = ?2 AND memory_id NOT IN ({there})"
        )
        connection.exec_driver_sql(statement, (owner, store))


def _evict(connection: Connection, owner: int, now: datetime, size: int) -> None:
    buffer = load(connection, owner)
    excess = len(buffer) - size
    if excess > 0:
        least = np.argsort(priority(buffer, now.timestamp()), kind="stable")[:excess]
        statement = "UPDATE uses SET buffered = 0 WHERE owner = ? AND memory_id = ?"
        connection.exec_driver_sql(statement, [(owner, str(buffer.ids[place])) for place in least])


_COLUMNS = """
    memory_id, lived_at, importance, success, surprise, recalled, cited, asked, missed, strength, replayed,
    last_replayed_at, due_at
"""


def load(connection: Connection, owner: int, *, vectors: bool = False) -> Buffer:
    """Return the buffer in chronological order; with `vectors` where what is replayed depends on what it says."""
    statement = f"SELECT {_COLUMNS} FROM uses WHERE owner = ? AND buffered ORDER BY lived_at, memory_id"
    found = fetch(connection, statement, (owner,))
    columns = list(zip(*found, strict=True)) or [()] * 13
    ids = np.array(columns[0], dtype=object)
    numbers = [np.array(column, dtype=float) for column in columns[1:]]
    at, importance, success, surprise, recalled, cited, asked, missed, strength, replayed, last, due = numbers
    return Buffer(
        ids=ids,
        at=at,
        importance=importance,
        success=success,
        surprise=surprise,
        usefulness=1 - np.exp(-(recalled + 2 * cited) / 3),
        failures=missed / np.maximum(asked, 1),
        strength=strength,
        replayed=replayed,
        last=last,
        due=due,
        vectors=_vectors_of(connection, owner, ids) if vectors else None,
    )


def _vectors_of(connection: Connection, owner: int, ids: np.ndarray) -> np.ndarray | None:
    statement = """
        SELECT id, vector FROM memories WHERE owner = ?1 AND current AND id IN (SELECT value FROM json_each(?2))
        UNION ALL SELECT id, vector FROM utterances WHERE owner = ?1 AND id IN (SELECT value FROM json_each(?2))
        UNION ALL SELECT id, vector FROM records WHERE owner = ?1 AND kind = 'episode' AND id IN (SELECT value FROM json_each(?2))
    """
    known: dict[str, bytes] = dict(fetch(connection, statement, (owner, json.dumps([str(one) for one in ids]))))
    if not known:
        return None
    size = len(next(iter(known.values())))
    return np.frombuffer(b"".join(known.get(one) or bytes(size) for one in ids), np.float16).reshape(len(ids), -1)


def traces(connection: Connection, owner: int, ids: Sequence[str]) -> list[Trace]:
    """Return these records of the buffer, in the order of `ids`; those that are not in it are left out."""
    statement = """
        SELECT store, memory_id, strength, replayed, last_replayed_at, stability, difficulty, asked, missed FROM uses
        WHERE owner = ? AND buffered AND memory_id IN (SELECT value FROM json_each(?))
    """
    found = {row[1]: _trace(row) for row in fetch(connection, statement, (owner, json.dumps(list(ids))))}
    return [found[one] for one in ids if one in found]


def strongest(connection: Connection, owner: int, n: int) -> list[Trace]:
    """Return the `n` strongest records of the buffer, the strongest first."""
    statement = """
        SELECT memory_id FROM uses WHERE owner = ? AND buffered
        ORDER BY strength DESC, replayed DESC, importance DESC, lived_at DESC LIMIT ?
    """
    return traces(connection, owner, [one for (one,) in fetch(connection, statement, (owner, max(0, n)))])


def _trace(row: Sequence[Any]) -> Trace:
    last = None if row[4] is None else from_timestamp(row[4])
    return Trace._make([*row[:4], last, *row[5:]])


def rehearse(
    connection: Connection, owner: int, chosen: Sequence[tuple[Trace, float]], now: datetime, rate: float = RATE
) -> float:
    """Replay traces with their weights: strengthen them and renew their forgetting curves; returns the mean gain in strength.

    Raises:
        InputError: a rate outside of (0, 1].
    """
    rows: list[tuple[Any, ...]] = []
    gains: list[float] = []
    for trace, weight in chosen:
        strength = strengthened(trace.strength, weight, rate)
        gains.append(strength - trace.strength)
        curve: Curve = rehearsed(trace.stability, trace.difficulty, trace.last_replayed_at, now)
        rows.append(
            (
                strength,
                now.timestamp(),
                curve.stability,
                curve.difficulty,
                curve.due_at.timestamp(),
                owner,
                trace.id,
            )
        )
    if rows:
        connection.exec_driver_sql(
            "UPDATE uses SET strength = ?, replayed = replayed + 1, last_replayed_at = ?, stability = ?, difficulty = ?, "
            "due_at = ? WHERE owner = ? AND memory_id = ?",
            rows,
        )
    return sum(gains) / len(gains) if gains else 0.0
