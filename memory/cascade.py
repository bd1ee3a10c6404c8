"""Cascades: what rests on a memory, and what becomes of it when that memory changes.

A link is made when a memory is written, never guessed later: where it is about a thing that follows from a slot
(`DEPENDS`: a commute from the home and the employer), or names its ground itself ("because I live in Lisbon", "near my
office"). When the ground changes, what rests on it needs review: it stays, ranks lower, and says that it may be out of date,
until it is confirmed, changed, or the ground is put back. What follows from an event is an event of its own (REVIEW,
CONTRADICT, ABSORB, SETTLE), whose `detail["because"]` names that one; undoing that one takes it back.
"""

import json
import re
from collections.abc import Collection, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection

from sharpwave.memory import ledger, semantic
from sharpwave.memory.records import Memory
from sharpwave.memory.schema import LINKED
from sharpwave.memory.sql import fetch

_HOME = ("home_city", "address")
_WORK = ("employer", "job")

DEPENDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "commute": (*_HOME, "employer"),
        "rent": _HOME,
        "landlord": _HOME,
        "flatmate": _HOME,
        "roommate": _HOME,
        "neighbour": _HOME,
        "neighbor": _HOME,
        "gym": _HOME,
        "salary": _WORK,
        "boss": _WORK,
        "manager": _WORK,
        "office": _WORK,
    }
)
"""What follows from which slots of the same subject, by a word of its text or attribute."""

_GROUNDS = (
    (re.compile(r"\b(?:because|since|as) (?:I|we)(?:'m| am| are|'re)? (?:live|living|based)\b", re.IGNORECASE), _HOME),
    (
        re.compile(r"\b(?:because|since|as) (?:I|we)(?:'m| am| are|'re)? (?:work|working|employed)\b", re.IGNORECASE),
        _WORK,
    ),
    (
        re.compile(
            r"\b(?:near|close to|next to|around the corner from) (?:my|our) (?:home|house|flat|place)\b", re.IGNORECASE
        ),
        _HOME,
    ),
    (
        re.compile(
            r"\b(?:near|close to|next to|around the corner from) (?:my|our) (?:office|work|job)\b", re.IGNORECASE
        ),
        _WORK,
    ),
)
_WORD = re.compile(r"[^\W\d_]+")


def grounds(memory: Memory) -> tuple[str, ...]:
    """Return the attributes that `memory` rests on, by its words."""
    words = {word.casefold() for word in _WORD.findall(f"{memory.text} {memory.attribute or ''}")}
    found = [
        attribute for word, attributes in DEPENDS.items() if words & {word, f"{word}s"} for attribute in attributes
    ]
    found += [attribute for pattern, attributes in _GROUNDS if pattern.search(memory.text) for attribute in attributes]
    return tuple(dict.fromkeys(attribute for attribute in found if attribute != memory.attribute))


def linked(connection: Connection, owner: int, memory: Memory) -> Memory:
    """Return `memory` with the ids of the live memories that it rests on."""
    ids = [
        found.id
        for attribute in grounds(memory)
        for found in semantic.holding(connection, owner, memory.subject, attribute)
        if found.id != memory.id
    ]
    return memory.model_copy(update={"depends_on": tuple(dict.fromkeys([*memory.depends_on, *ids]))}) if ids else memory


_DEPENDENTS = f"""
SELECT id FROM memories WHERE owner = ?1 AND {LINKED} AND {semantic.LIVE}
AND (EXISTS (SELECT 1 FROM json_each(record, '$.depends_on') WHERE value IN (SELECT value FROM json_each(?2)))
  OR EXISTS (SELECT 1 FROM json_each(record, '$.derived_from') WHERE value IN (SELECT value FROM json_each(?2))))
"""
_MERGED = """
SELECT id FROM memories WHERE owner = ? AND id IN (SELECT value FROM json_each(?)) AND current AND status = 'merged'
"""


def dependents(connection: Connection, owner: int, memory: Memory) -> list[Memory]:
    """Return the live memories that depend on a memory, or on one that was merged into it, or are derived from it."""
    merged = fetch(connection, _MERGED, (owner, json.dumps(memory.derived_from)))
    ids = json.dumps([memory.id, *(one for (one,) in merged)])
    rows = [row for row in fetch(connection, _DEPENDENTS, (owner, ids)) if row[0] != memory.id]
    found = [semantic.get(connection, owner, dependent) for (dependent,) in rows]
    return [memory for memory in found if memory is not None]


def changed(before: Memory, after: Memory) -> bool:
    """Whether what `before` said no longer holds: it is over, or its value (without one, its text) is another."""
    if after.status != "active":
        return before.status == "active"
    if before.value is not None and before.attribute == after.attribute:
        return semantic.folded(before.value) != semantic.folded(after.value or "")
    return semantic.folded(before.text) != semantic.folded(after.text)


def follow(
    connection: Connection,
    owner: int,
    before: Memory | None,
    after: Memory | None,
    *,
    because: int,
    at: datetime,
    said: datetime | None = None,
    but: Collection[str] = (),
) -> None:
    """Mark what rests on a memory that event `because` changed as needing review.

    Not what was `said` with the change or after it, nor the ids in `but`.
    """
    if before is None or after is None or not changed(before, after):
        return
    for dependent in dependents(connection, owner, after):
        fresh = said is not None and dependent.last_confirmed_at is not None and dependent.last_confirmed_at >= said
        if fresh or dependent.needs_review or dependent.id in but:
            continue
        note(
            connection,
            owner,
            "REVIEW",
            dependent,
            {"needs_review": True},
            f"it rests on {before.text!r}, which has changed",
            because,
            at,
        )


_FOLLOWED = """
SELECT op, memory_id, json_extract(detail, '$.before'), json_extract(detail, '$.after') FROM events
WHERE owner = ? AND seq > ? AND op IN ('REVIEW', 'CONTRADICT', 'ABSORB') AND json_extract(detail, '$.because') = ? ORDER BY seq DESC
"""
_PUT_BACK = {"REVIEW": ("needs_review",), "CONTRADICT": ("confidence", "contradictions", "last_contradicted_at")}
_GAINED = ("derived_from", "depends_on")


def take_back(connection: Connection, owner: int, undone: int, at: datetime) -> set[str]:
    """Take back what followed from event `undone` (marks for review, changed confidence); returns the ids of what it was."""
    settled = set()
    for op, memory_id, before, after in fetch(connection, _FOLLOWED, (owner, undone, undone)):
        memory, was = semantic.get(connection, owner, memory_id), Memory.model_validate_json(before)
        if memory is not None and memory.status == "active":
            absorbed = op == "ABSORB"
            back = (
                _without(memory, was, Memory.model_validate_json(after))
                if absorbed
                else {name: getattr(was, name) for name in _PUT_BACK[op]}
            )
            note(connection, owner, "SETTLE", memory, back, f"undo of event {undone}", undone, at)
            settled |= set() if absorbed else {memory_id}
    return settled


def _without(memory: Memory, was: Memory, became: Memory) -> dict[str, Any]:
    """Return what a memory says of itself without what it gained from one that was merged into it, others' gains aside."""
    back: dict[str, Any] = {
        name: tuple(
            one for one in getattr(memory, name) if one in getattr(was, name) or one not in getattr(became, name)
        )
        for name in _GAINED
    }
    back["confidence"] = max(0.0, round(memory.confidence - (became.confidence - was.confidence), 6))
    for name in ("importance", "last_confirmed_at"):
        if getattr(memory, name) == getattr(became, name):
            back[name] = getattr(was, name)
    return back


def note(
    connection: Connection,
    owner: int,
    op: str,
    memory: Memory,
    update: Mapping[str, Any],
    reason: str,
    because: int,
    at: datetime,
    policy: str = "cascade",
) -> None:
    """Change what a live memory says of itself, as an event that follows from event `because`."""
    after = memory.model_copy(update=update)
    semantic.rewrite(connection, owner, after)
    ledger.append_event(
        connection,
        owner,
        op,
        at=at,
        policy=policy,
        reason=reason,
        memory=after,
        before=memory,
        detail={"because": because},
    )
