"""Merging: of memories that say the same, one is kept, and confirmed by the others.

What is merged leaves the current view (status `merged`, `superseded_by` the one that is kept) and stays in the ledger. The
event MERGE about it can be undone, and it can be restored; what was taken back so is never merged again. What the kept one
gains follows from that event as one of its own (ABSORB), which goes back with it.
"""

import json
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from sharpwave.memory import alike, cascade, ledger, semantic
from sharpwave.memory.applying import CONFIRMATION
from sharpwave.memory.records import Memory
from sharpwave.memory.sql import fetch

POLICY = "merge/1"
COMPARED = 32
"""Kept memories of one value of one slot that a further one is compared with, the foremost."""


def groups(memories: Iterable[Memory], apart: frozenset[str] = frozenset()) -> list[tuple[Memory, list[Memory]]]:
    """Return the memories to keep, each with those that it says all of. The order of `memories` makes no difference.

    Args:
        memories: live ones of one owner.
        apart: ids of those that are left alone.
    """
    blocks: dict[Hashable, list[Memory]] = defaultdict(list)
    absorbed: dict[str, list[Memory]] = {}
    kept: dict[str, Memory] = {}
    for memory in sorted((one for one in memories if one.id not in apart), key=alike.order):
        keys = alike.keys(memory)
        near = (one for key in keys for one in blocks[key][:COMPARED])
        into = next((one for one in near if alike.covers(one, memory)), None)
        if into is not None:
            absorbed.setdefault(into.id, []).append(memory)
            continue
        kept[memory.id] = memory
        for key in keys:
            blocks[key].append(memory)
    return [(kept[one], others) for one, others in absorbed.items()]


def apart(connection: Connection, owner: int, among: Sequence[str] | None = None) -> frozenset[str]:
    """Return the ids of what was merged before, and is live again because somebody wanted it so; `among` these, if given."""
    few = "" if among is None else "AND e.memory_id IN (SELECT value FROM json_each(?))"
    statement = f"""
        SELECT DISTINCT e.memory_id FROM events e JOIN memories m ON m.owner = e.owner AND m.id = e.memory_id AND m.{semantic.LIVE}
        WHERE e.owner = ? AND e.op = 'MERGE' {few}
    """
    values = (owner,) if among is None else (owner, json.dumps(list(among)))
    return frozenset(one for (one,) in fetch(connection, statement, values))


def merge(connection: Connection, owner: int, ids: Sequence[str], at: datetime, run: str | None = None) -> list[str]:
    """Merge memories into the first of `ids`, as far as it still says all that they do; returns the ids of what was merged.

    Args:
        connection: inside a write transaction.
        owner: the owner's number.
        ids: the memory that is kept, then those that are merged into it.
        at: when this is written.
        run: the run it belongs to, for the log.
    """
    kept = semantic.get(connection, owner, ids[0])
    taken_back = apart(connection, owner, ids)
    done = []
    for one in ids[1:]:
        other = semantic.get(connection, owner, one)
        if kept is None or other is None or {kept.id, one} & taken_back or kept.id == one:
            continue
        if kept.status == other.status == "active" and alike.says_all(kept, other):
            kept = _merged(connection, owner, kept, other, at, run)
            done.append(one)
    if done:
        ledger.raise_revision(connection, owner)
    return done


def _merged(connection: Connection, owner: int, kept: Memory, other: Memory, at: datetime, run: str | None) -> Memory:
    gone = other.model_copy(
        update={"status": "merged", "superseded_by": kept.id, "valid_to": max(at, other.valid_from)}
    )
    semantic.rewrite(connection, owner, gone)
    seq = ledger.append_event(
        connection,
        owner,
        "MERGE",
        at=at,
        policy=POLICY,
        reason=f"says no more than {kept.text!r} ({kept.id})",
        memory=gone,
        before=other,
        detail={"into": kept.id, "run": run},
    )
    gained = dict(_gains(kept, other))
    cascade.note(connection, owner, "ABSORB", kept, gained, f"{other.text!r} says the same", seq, at, policy=POLICY)
    return kept.model_copy(update=gained)


def _gains(kept: Memory, other: Memory) -> Iterator[tuple[str, Any]]:
    """Yield what the kept memory has from the other: its evidence, its weight, and a confirmation."""
    for name, more in (
        ("derived_from", (other.id, *other.derived_from)),
        ("depends_on", other.depends_on),
    ):
        yield name, tuple(one for one in dict.fromkeys((*getattr(kept, name), *more)) if one != kept.id)
    yield "confidence", min(1.0, round(kept.confidence + CONFIRMATION, 6))
    yield "importance", max(kept.importance, other.importance)
    confirmed = [m for one in (kept, other) for m in (one.last_confirmed_at, one.source.said_at) if m is not None]
    yield "last_confirmed_at", max(confirmed, default=None)
