"""What is concluded from several sources: a memory of kind fact, summary or insight that keeps them as its evidence.

It is written as any memory is (ADD, UPDATE), so that it can be undone, corrected and traced. What somebody deleted is not
concluded again from the same sources.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from sharpwave.memory import applying, ledger, semantic
from sharpwave.memory.applying import Embed
from sharpwave.memory.records import Memory, Source
from sharpwave.memory.sql import fetch

MOST = 0.9
"""Confidence that no conclusion exceeds: what was said outright is surer."""


def confidence(support: int) -> float:
    """Return how sure `support` sources (2 or more) make a conclusion: n / (n + 1), at most 0.9.

    Laplace's rule of succession after n - 1 repetitions of a first telling: 0.67 of two, 0.75 of three, 0.9 of nine.
    """
    return min(MOST, round(support / (support + 1), 2))


def conclude(
    connection: Connection,
    owner: int,
    memory: Memory,
    known: Memory | None,
    *,
    policy: str,
    reason: str,
    embed: Embed,
    run: str | None = None,
) -> Memory:
    """Write a conclusion, in the place of what `known` said if that is given, and return it.

    Args:
        connection: inside a write transaction.
        owner: the owner's number.
        memory: what was concluded, with its sources in `derived_from`.
        known: the live memory of which it is a new version.
        policy: what concluded it, for the log.
        reason: why, for people.
        embed: gives the vector of its text.
        run: the run it belongs to, for the log.
    """
    if known is not None:
        again = {"id": known.id, "version": known.version + 1, "pinned": known.pinned}
        since = applying.succeed(connection, owner, known, memory.recorded_at)
        memory = memory.model_copy(update={**again, "valid_from": since})
    semantic.put(connection, owner, memory, embed(memory.text))
    ledger.append_event(
        connection,
        owner,
        "ADD" if known is None else "UPDATE",
        at=memory.recorded_at,
        policy=policy,
        reason=reason,
        memory=memory,
        before=known,
        detail={"quote": memory.source.quote, "run": run},
    )
    ledger.raise_revision(connection, owner)
    return memory


def concluded(owner: str, text: str, sources: Sequence[str], at: datetime, **fields: Any) -> Memory:
    """Return a new memory that was concluded from `sources` (ids) at a time."""
    defaults = {"recorded_at": at, "valid_from": at, "last_confirmed_at": at, "source": Source(kind="inferred")}
    return Memory.model_validate(
        {**defaults, **fields, "owner": owner, "text": text, "derived_from": tuple(dict.fromkeys(sources))}
    )


def consider(connection: Connection, owner: int, what: str, ids: Sequence[str], at: datetime) -> None:
    """Note that records were looked at and taught nothing, so that they are not looked at for the same again."""
    reason = f"{len(ids)} looked at for {what}, and nothing concluded"
    seen = {"considered": what, "ids": list(ids)}
    ledger.append_event(connection, owner, "CONSIDER", at=at, policy="consolidate/1", reason=reason, detail=seen)


def considered(connection: Connection, owner: int, what: str) -> set[str]:
    """Return the ids of what was looked at for `what`, and taught nothing."""
    statement = """
        SELECT DISTINCT i.value FROM events, json_each(detail, '$.ids') i
        WHERE owner = ? AND op = 'CONSIDER' AND json_extract(detail, '$.considered') = ?
    """
    return {one for (one,) in fetch(connection, statement, (owner, what))}
