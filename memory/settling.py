"""Settling what needs review, where it is clear by rule; all else is left for the user (`sharpwave memories review`).

A memory needs review when something that it rests on has changed (see `cascade`). It is kept when everything that it rests on
says again what it said when the memory was last stated, or when the memory was confirmed after the change. It expires when
it was derived from other memories alone, and all of them were retracted.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from sqlalchemy import Connection

from sharpwave.memory import cascade, edits, ledger, semantic
from sharpwave.memory.ledger import Event
from sharpwave.memory.records import Memory

POLICY = "settle/1"
_STATED = ("ADD", "UPDATE", "NOOP", "KEEP", "RESTORE", "IMPORT")
"""Operations by which somebody says what a memory says, and that it holds."""


class Verdict(NamedTuple):
    """What becomes of a memory that needs review."""

    op: Literal["keep", "expire"]
    reason: str


def settle(connection: Connection, owner: int, memory_id: str, at: datetime) -> Verdict | None:
    """Settle the review of a memory if that is clear, by an event, and return how; None where nothing was to be done."""
    memory = semantic.get(connection, owner, memory_id)
    found = verdict(connection, owner, memory) if memory else None
    if memory is None or found is None:
        return None
    if found.op == "expire":
        return found if edits.expire(connection, owner, memory_id, found.reason, POLICY) else None
    because = _review(ledger.read_events(connection, owner, memory_id=memory_id))
    cascade.note(
        *(connection, owner, "SETTLE", memory, {"needs_review": False}, found.reason),
        because.seq if because else 0,
        at,
        policy=POLICY,
    )
    ledger.raise_revision(connection, owner)
    return found


def verdict(connection: Connection, owner: int, memory: Memory) -> Verdict | None:
    """Return what becomes of a memory that needs review; None where that is not clear, or it needs none."""
    if not memory.needs_review or memory.status != "active":
        return None
    grounds = [semantic.get(connection, owner, one) for one in (*memory.depends_on, *memory.derived_from)]
    known = [one for one in grounds if one is not None and one.superseded_by != memory.id]
    events = ledger.read_events(connection, owner, memory_id=memory.id)
    stated = max((event.seq for event in events if event.op in _STATED), default=0)
    changed = [one for one in known if _changed(connection, owner, one, stated)]
    if known and not changed:
        return Verdict("keep", f"{_listed(known)} says again what it said before")
    since = max((_changed_at(one) for one in changed), default=None)
    if since is not None and memory.last_confirmed_at is not None and memory.last_confirmed_at > since:
        return Verdict("keep", "confirmed after what it rests on had changed")
    evidence = [one for one in memory.derived_from if not _absorbed(connection, owner, one, memory.id)]
    derived = [one for one in known if one.id in evidence]
    if evidence and len(derived) == len(evidence) and all(one.status == "retracted" for one in derived):
        return (
            Verdict("expire", f"derived from {_listed(derived)} alone, which was retracted")
            if not memory.pinned
            else None
        )
    return None


def _absorbed(connection: Connection, owner: int, one: str, into: str) -> bool:
    found = semantic.get(connection, owner, one)
    return found is not None and found.superseded_by == into


def _changed(connection: Connection, owner: int, ground: Memory, since: int) -> bool:
    """Whether a memory says something else than it did at event `since`; so it counts where that is not known."""
    about = ledger.read_events(connection, owner, memory_id=ground.id)
    then = next((e.detail["after"] for e in reversed(about) if e.seq <= since and e.detail.get("after")), None)
    return then is None or cascade.changed(Memory.model_validate(then), ground)


def _changed_at(ground: Memory) -> datetime:
    """Return when a memory came to say what it says, or ceased to hold."""
    if ground.status != "active" and ground.valid_to is not None:
        return ground.valid_to
    return max(ground.valid_from, ground.source.said_at or ground.valid_from)


def _review(events: Sequence[Event]) -> Event | None:
    return next((event for event in reversed(events) if event.op == "REVIEW"), None)


def _listed(grounds: Sequence[Memory]) -> str:
    return ", ".join(repr(ground.text) for ground in grounds[:3])
