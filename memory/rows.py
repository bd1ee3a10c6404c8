"""Rows of the records beside memories and utterances: found by kind, time, thread, key and status; written with an event.

There are hundreds or thousands of them an owner, not hundreds of thousands: their vectors are compared one by one, exactly,
and no index has to be kept in step.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import Connection

from sharpwave.memory import keywords, ledger
from sharpwave.memory.errors import NotFoundError, OwnershipError
from sharpwave.memory.kinds import KINDS, Kept
from sharpwave.memory.records import Turn
from sharpwave.memory.retrace import Difference
from sharpwave.memory.sql import fetch, fetch_one

ALL = 1 << 30
"""As `k`: however many there are."""

K = TypeVar("K", bound=Kept)

Embed = Callable[[str], np.ndarray]
"""Returns the vector of a text; called inside a transaction, so it should have it at hand."""


def put(
    connection: Connection,
    owner: int,
    record: Kept,
    *,
    op: str,
    at: datetime,
    policy: str,
    reason: str,
    embed: Embed,
    turn: Turn | None = None,
) -> int:
    """Write a record, new or in the place of the one with its id, and the event that says so; returns the event's number.

    Args:
        connection: inside a write transaction.
        owner: the owner's number.
        record: what is kept.
        op: what was done, for the log (`EPISODE`, `REFLECT`, `MERGE`, …).
        at: when this is written.
        policy: who decided it.
        reason: why, for people.
        embed: gives the vector of the text that similar ones are found by.
        turn: the turn it comes from, if any.
    """
    statement = "SELECT record FROM records WHERE owner = ? AND kind = ? AND id = ?"
    before = fetch_one(connection, statement, (owner, record.kind, record.id))
    values = {
        "owner": owner,
        "kind": record.kind,
        "id": record.id,
        "at": record.moment.timestamp(),
        "thread": record.place,
        "key": record.key,
        "agent": record.of,
        "status": record.status,
        "record": record.model_dump_json(),
        "vector": embed(record.searched).astype(np.float16).tobytes() if record.searched else None,
        "terms": _hashes(sorted(keywords.with_singles(keywords.terms(record.worded or "")))).tobytes(),
    }
    names = ", ".join(values)
    changes = ", ".join(f"{name} = excluded.{name}" for name in values)
    connection.exec_driver_sql(
        f"INSERT INTO records ({names}) VALUES ({', '.join(f':{name}' for name in values)}) "
        f"ON CONFLICT (owner, kind, id) DO UPDATE SET {changes}",
        values,
    )
    return ledger.append_event(
        connection,
        owner,
        op,
        at=at,
        policy=policy,
        reason=reason,
        turn=turn,
        about=record.id,
        detail={
            "kind": record.kind,
            "row_before": json.loads(before) if before else None,
            "row_after": record.model_dump(mode="json"),
        },
    )


def get(connection: Connection, owner: int, name: str, kind: type[K], record_id: str) -> K:
    """Return the record with this id.

    Raises:
        NotFoundError: the owner has none; somebody else's looks the same.
    """
    statement = "SELECT record FROM records WHERE owner = ? AND kind = ? AND id = ?"
    found = fetch_one(connection, statement, (owner, kind.kind, record_id))
    if found is None:
        raise NotFoundError(f"There is no {kind.kind} {record_id!r} for this user.")
    return _checked(kind, found, name)


def known(connection: Connection, owner: int, record: Kept) -> bool:
    """Return whether the owner has a record of this kind and id."""
    statement = "SELECT 1 FROM records WHERE owner = ? AND kind = ? AND id = ?"
    return bool(fetch_one(connection, statement, (owner, record.kind, record.id)))


def find(
    connection: Connection,
    owner: int,
    name: str,
    kind: type[K],
    *,
    statuses: Sequence[str] = (),
    key: str | None = None,
    thread: str | None = None,
    agent: str | None = None,
    tags: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    ids: Sequence[str] | None = None,
    last: int | None = None,
) -> list[K]:
    """Return records of a kind in the order of their time.

    Args:
        connection: a view of the ledger.
        owner: the owner's number.
        name: the owner.
        kind: which kind.
        statuses: which; none is all.
        key: those with this key only.
        thread: those of this thread only.
        agent: those of this agent only.
        tags: those that have all of these tags only.
        since: those of this moment and later.
        until: those before this moment.
        ids: those with these ids only.
        last: so many at most, the latest.
    """
    condition, values = _condition(owner, kind, statuses, key, thread, agent, tags, since, until)
    if ids is not None:
        condition, values = f"{condition} AND id IN (SELECT value FROM json_each(?))", [*values, json.dumps(list(ids))]
    statement = f"SELECT record FROM records WHERE {condition} ORDER BY at DESC, row DESC LIMIT ?"
    found = fetch(connection, statement, (*values, -1 if last is None else last))
    return [_checked(kind, record, name) for (record,) in reversed(found)]


def entered(connection: Connection, owner: int, kind: type[Kept]) -> dict[str, datetime]:
    """Return when each record of a kind entered the store, or was brought back, by id and the machine's clock."""
    statement = """
        SELECT memory_id, coalesce(max(CASE WHEN op = 'RESTORE' THEN at END), min(at)) FROM events
        WHERE owner = ? AND json_extract(detail, '$.kind') = ? GROUP BY memory_id
    """
    return {one: ledger.from_timestamp(at) for one, at in fetch(connection, statement, (owner, kind.kind))}


def nearest(
    connection: Connection,
    owner: int,
    name: str,
    kind: type[K],
    vector: np.ndarray,
    *,
    k: int,
    terms: Sequence[str] = (),
    floor: float = -1.0,
    statuses: Sequence[str] = (),
    key: str | None = None,
    thread: str | None = None,
    agent: str | None = None,
    tags: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
) -> Iterator[tuple[K, float]]:
    """Yield up to `k` records that are nearest to a question, each with its score, best first.

    The score is the cosine (-1..1) of the vectors and half the share (0..1) of `terms` that the record holds, in which
    rare words count more (see `keywords.idf`), as memories are found. They are read as they are asked for, inside the view.

    Args:
        connection: a view of the ledger.
        owner: the owner's number.
        name: the owner.
        kind: which kind.
        vector: of the question (unit length).
        k: so many at most.
        terms: index terms of the question; none leaves words out of account.
        floor: least score.
        statuses, key, thread, agent, tags, since, until: as of `find`.
    """
    condition, values = _condition(owner, kind, statuses, key, thread, agent, tags, since, until)
    found = fetch(
        connection, f"SELECT row, vector, terms FROM records WHERE {condition} AND vector IS NOT NULL", values
    )
    if not found or k < 1:
        return
    matrix = np.frombuffer(b"".join(row[1] for row in found), np.float16).reshape(len(found), -1).astype(np.float32)
    scores = matrix @ vector + _covered([row[2] for row in found], terms) / 2
    best = [i for i in np.argsort(-scores, kind="stable")[:k] if scores[i] >= floor]
    statement = "SELECT row, record FROM records WHERE row IN (SELECT value FROM json_each(?))"
    for at in range(0, len(best), READ_AT_ONCE):  # to read one costs more than to score it
        some = best[at : at + READ_AT_ONCE]
        texts = dict(fetch(connection, statement, (json.dumps([found[i][0] for i in some]),)))
        for i in some:
            yield _checked(kind, texts[found[i][0]], name), float(scores[i])


READ_AT_ONCE = 10


def _covered(held: Sequence[bytes], terms: Sequence[str]) -> np.ndarray:
    """Return which share of `terms`, by weight, each row holds; `held` are the hashes of the terms of each."""
    covered = np.zeros(len(held), np.float32)
    asked = _hashes(sorted({*terms}))
    if not len(asked):
        return covered
    all_held = np.frombuffer(b"".join(held), np.uint32)
    row_of = np.repeat(np.arange(len(held)), [len(one) // all_held.itemsize for one in held])
    whole = 0.0
    for term in asked:
        holding = row_of[all_held == term]
        weight = keywords.idf(len(held), len(holding))
        covered[holding] += weight
        whole += weight
    return covered / whole


def _hashes(terms: Sequence[str]) -> np.ndarray:
    """Return a number (32 bits) for each term: compared all at once, as comparing words takes five times as long."""
    return np.array([zlib.crc32(term.encode()) for term in terms], np.uint32)


def _condition(
    owner: int,
    kind: type[Kept],
    statuses: Sequence[str],
    key: str | None,
    thread: str | None,
    agent: str | None,
    tags: Sequence[str],
    since: datetime | None,
    until: datetime | None,
) -> tuple[str, list[Any]]:
    parts: list[tuple[str, Any]] = [("owner = ?", owner), ("kind = ?", kind.kind)]
    if statuses:
        parts.append(("status IN (SELECT value FROM json_each(?))", json.dumps(list(statuses))))
    given = (("key = ?", key), ("thread = ?", thread), ("agent = ?", agent))
    parts += [(condition, value) for condition, value in given if value is not None]
    times = (("at >= ?", since), ("at < ?", until))
    parts += [(condition, moment.timestamp()) for condition, moment in times if moment is not None]
    tagged = "EXISTS (SELECT 1 FROM json_each(record, '$.tags') WHERE value = ?)"
    parts += [(tagged, tag) for tag in tags]
    return " AND ".join(condition for condition, _ in parts), [value for _, value in parts]


def _checked(kind: type[K], record: str, name: str) -> K:
    read = kind.model_validate_json(record)
    if read.owner != name:
        raise OwnershipError(f"A record ({kind.kind}) of another owner was about to be returned; the call was stopped.")
    return read


def differences(connection: Connection) -> Iterator[Difference]:
    """Yield how these rows, of everybody, differ from what the newest event about each says."""
    statement = """
        SELECT owner, json_extract(detail, '$.kind'), memory_id, json_extract(detail, '$.row_after') FROM events
        WHERE json_extract(detail, '$.row_after') IS NOT NULL ORDER BY seq
    """
    expected = {(owner, kind, id_): json.loads(after) for owner, kind, id_, after in fetch(connection, statement)}
    held = fetch(connection, "SELECT owner, kind, id, record FROM records")
    for owner, kind, record_id, record in held:
        made = expected.pop((owner, kind, record_id), None)
        where = f"{kind} {record_id}"
        if made is None:
            yield Difference(where=where, what="no event made this row")
        elif KINDS[kind].model_validate(made) != KINDS[kind].model_validate_json(record):
            yield Difference(where=where, what="not as the events left it")
    for _, kind, record_id in expected:
        yield Difference(where=f"{kind} {record_id}", what="the row is gone")
