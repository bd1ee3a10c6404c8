"""Merging: of memories that say the same, one is kept, and confirmed by the others.

What is merged leaves the current view (status `merged`, `superseded_by` the one that is kept) and stays in the ledger. The
event MERGE about it can be undone, and it can be restored; what was taken back so is never merged again. What the kept one
gains follows from that event as one of its own (ABSORB), which goes back with it.
"""

import json
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
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


Group = tuple[Memory, list[Memory]]
"""A memory that is kept, and those that it says all of."""


def groups(memories: Iterable[Memory], apart: frozenset[str] = frozenset()) -> list[Group]:
    """Return what is to be merged, in the order in which it has to be done. That of `memories` makes no difference.

    A memory that was confirmed by a merge may be sure enough for another one: so it goes on until there is nothing left.

    Args:
        memories: live ones of one owner.
        apart: ids of those that are left alone.
    """
    left = {memory.id: memory for memory in memories if memory.id not in apart}
    keys = {one: alike.keys(memory) for one, memory in left.items()}
    holders: dict[Hashable, list[str]] = defaultdict(list)
    for one, some in keys.items():
        for key in some:
            holders[key].append(one)
    touched = {one for some in holders.values() if len(some) > 1 for one in some}
    done: list[Group] = []
    while found := _round([left[one] for one in touched if one in left], keys):
        for kept, others in found:
            done.append((kept, others))
            for other in others:
                left[kept.id] = left[kept.id].model_copy(update=dict(_gains(left[kept.id], other)))
                del left[other.id]
        touched = {one for kept, _ in found for key in keys[kept.id] for one in holders[key]}
    return done


def _round(memories: Iterable[Memory], keys: Mapping[str, Sequence[Hashable]]) -> list[Group]:
    blocks: dict[Hashable, list[Memory]] = defaultdict(list)
    absorbed: dict[str, list[Memory]] = {}
    kept: dict[str, Memory] = {}
    for memory in sorted(memories, key=alike.order):
        near = (one for key in keys[memory.id] for one in blocks[key][:COMPARED])
        into = next((one for one in near if alike.covers(one, memory)), None)
        if into is not None:
            absorbed.setdefault(into.id, []).append(memory)
            continue
        kept[memory.id] = memory
        for key in keys[memory.id]:
            blocks[key].append(memory)
    return [(kept[one], others) for one, others in absorbed.items()]


def connected(found: Sequence[Group]) -> list[list[Group]]:
    """Return groups with those that they have a memory in common with, in their order: what can be done independently."""
    whole: dict[str, list[Group]] = {}
    for group in found:
        ids = [group[0].id, *(other.id for other in group[1])]
        before = {id(whole[one]): whole[one] for one in ids if one in whole}
        together = [*(one for some in before.values() for one in some), group]
        for kept, others in together:
            whole.update(dict.fromkeys([kept.id, *(other.id for other in others)], together))
    return list({id(one): one for one in whole.values()}.values())


def apart(connection: Connection, owner: int, among: Sequence[str] | None = None) -> frozenset[str]:
    """Return the ids of what was merged before, and is live again because somebody wanted it so; `among` these, if given."""
    few = "" if among is None else "AND e.memory_id IN (SELECT value FROM json_each(?))"
    statement = f"""
        SELECT DISTINCT e.memory_id FROM events e JOIN memories m ON m.owner = e.owner AND m.id = e.memory_id AND m.{semantic.LIVE}
        WHERE {"+" if few else ""}e.owner = ? AND e.op = 'MERGE' {few}
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
