"""Applying decisions: what each one does to the rows, and the event that says so.

Nothing is destroyed here. UPDATE closes the old version's interval and opens a new one under the same id; DELETE leaves a
tombstone with a reason; both keep the rows before and after in the event, which is what undo goes back to.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection

from sharpwave.memory import cascade, ledger, semantic
from sharpwave.memory.errors import NotFoundError
from sharpwave.memory.phrases import stems
from sharpwave.memory.records import Candidate, Decision, Memory, Record, Source, Turn
from sharpwave.memory.slots import FORMER
from sharpwave.memory.when import ends

Embed = Callable[[str], np.ndarray]
"""Returns the vector of a text; called inside a transaction, so it must have it at hand."""
CONFIRMATION = 0.1
"""How much a confirmation adds to confidence, up to 1."""
CONTRADICTION = 0.2
"""How much a contradiction takes from the confidence of what stays, down to 0; see `semantic.BELIEVED`."""


class Applied(Record):
    """One thing that was done to memory."""

    op: str
    memory_id: str | None
    version: int | None
    text: str
    reason: str
    policy: str
    quote: str | None = None
    before: str | None = None
    """The text that was replaced or retracted."""
    event: int


def apply(
    connection: Connection,
    owner: int,
    turn: Turn,
    decisions: Sequence[Decision],
    embed: Embed,
    at: datetime,
    shown: Sequence[str] = (),
) -> list[Applied]:
    """Carry out decisions on one owner's memories, in order, and return what was done.

    Args:
        connection: inside the write transaction that keeps all of it or nothing.
        owner: the owner's number.
        turn: where the decisions come from.
        decisions: what to do; the guard has passed them.
        embed: gives the vector of each new text.
        at: when this is written.
        shown: ids of the memories that the policy saw, for the log.
    """
    done = [OPERATIONS[d.op](Context(connection, owner, turn, d, embed, at, list(shown))) for d in decisions]
    if any(item.op != "NOOP" for item in done):
        ledger.raise_revision(connection, owner)
    return done


class Context:
    """What carrying out one decision needs."""

    def __init__(
        self,
        connection: Connection,
        owner: int,
        turn: Turn,
        decision: Decision,
        embed: Embed,
        at: datetime,
        shown: list[str],
    ) -> None:
        self.connection, self.owner, self.turn = connection, owner, turn
        self.decision, self.embed, self.at, self.shown = decision, embed, at, shown

    def target(self) -> Memory:
        """Return the live memory that the decision is about."""
        memory = semantic.get(self.connection, self.owner, self.decision.target or "")
        if memory is None or memory.status != "active":
            raise NotFoundError(f"{self.decision.op} names a memory that is not there: {self.decision.target!r}.")
        return memory

    def known(self, memory_id: str | None) -> Memory | None:
        """Return the current version of a memory that the decision names beside its target, if any."""
        return semantic.get(self.connection, self.owner, memory_id) if memory_id else None

    def put(self, memory: Memory) -> Memory:
        """Write a version, with its vector."""
        semantic.put(self.connection, self.owner, memory, self.embed(memory.text))
        return memory

    def log(self, memory: Memory | None, before: Memory | None) -> Applied:
        """Append the event and return what was done."""
        decision = self.decision
        detail: dict[str, Any] = {
            "quote": decision.candidate.quote,
            "said": decision.model_dump(mode="json", exclude={"reason", "policy", "guarded"}),
            "guarded": decision.guarded,
            "shown": self.shown,
        }
        seq = ledger.append_event(
            self.connection,
            self.owner,
            decision.op,
            at=self.at,
            policy=decision.policy,
            reason=decision.reason,
            memory=memory,
            before=before,
            turn=self.turn,
            detail=detail,
        )
        subject = memory or before
        self._follow_up(memory, before, seq)
        return Applied(
            op=decision.op,
            memory_id=subject.id if subject else None,
            version=subject.version if subject else None,
            text=subject.text if subject else decision.candidate.text,
            reason=decision.reason if decision.guarded is None else f"{decision.reason} (guard: {decision.guarded})",
            policy=decision.policy,
            quote=decision.candidate.quote,
            before=before.text if before and decision.op in ("UPDATE", "DELETE") else None,
            event=seq,
        )

    def _follow_up(self, memory: Memory | None, before: Memory | None, seq: int) -> None:
        """Do what follows from a change: doubt what it contradicts, and have what rests on it reviewed."""
        doubted = self.known(self.decision.contradicts)
        if doubted is not None and doubted.status == "active" and not doubted.pinned:
            less = {
                "confidence": max(0.0, round(doubted.confidence - CONTRADICTION, 6)),
                "contradictions": doubted.contradictions + 1,
                "last_contradicted_at": self.turn.said_at,
            }
            reason = f"contradicted by {self.decision.candidate.text!r}"
            cascade.note(self.connection, self.owner, "CONTRADICT", doubted, less, reason, seq, self.at)
        cascade.follow(self.connection, self.owner, before, memory, because=seq, at=self.at, said=self.turn.said_at)


def _add(context: Context) -> Applied:
    memory = new_memory(context.turn, context.decision, context.at)
    newer = context.known(context.decision.outdated_by)
    memory = (
        cascade.linked(context.connection, context.owner, memory)
        if newer is None
        else _outdated(memory, newer, context)
    )
    return context.log(context.put(memory), None)


def _outdated(memory: Memory, newer: Memory, context: Context) -> Memory:
    """Return `memory` as what held until `newer`, or a version of it, took its place: past from the start."""
    starts = [m.valid_from for m in semantic.versions(context.connection, context.owner, newer.id)]
    until = min((start for start in starts if start > memory.valid_from), default=memory.valid_from)
    return memory.model_copy(update={"valid_to": until, "status": "superseded", "superseded_by": newer.id})


def _update(context: Context) -> Applied:
    old, candidate = context.target(), context.decision.candidate
    fresh = new_memory(context.turn, context.decision, context.at)
    contradicts = old.attribute is not None and (old.subject, old.attribute) == (candidate.subject, candidate.attribute)
    since = fresh.valid_from if fresh.valid_from > old.valid_from else max(context.turn.said_at, old.valid_from)
    memory = fresh.model_copy(
        update={
            "id": old.id,
            "version": old.version + 1,
            "valid_from": since,
            "attribute": candidate.attribute or old.attribute,
            "value": candidate.value or _still_said(old, fresh.text),
            "importance": max(old.importance, fresh.importance),
            "contradictions": old.contradictions + contradicts,
            "last_contradicted_at": context.turn.said_at if contradicts else old.last_contradicted_at,
            **_marks(old, candidate),
            "derived_from": old.derived_from,
            "event_time": fresh.event_time or (old.event_time if old.text in fresh.text else None),
        }
    )
    close(context.connection, context.owner, old, since)
    memory = cascade.linked(context.connection, context.owner, memory)
    return context.log(context.put(memory), old)


def _still_said(old: Memory, text: str) -> str | None:
    """Return the value of a memory if a text that takes its place still says it."""
    return old.value if old.value is not None and stems(old.value) <= stems(text) else None


def _delete(context: Context) -> Applied:
    old = context.target()
    gone = retracted(context.connection, context.owner, old, max(context.turn.said_at, old.valid_from))
    return context.log(gone, old)


def _noop(context: Context) -> Applied:
    if context.decision.target is None:
        return context.log(None, None)
    old = context.target()
    confirmed = old.model_copy(
        update={
            "confidence": min(1.0, round(old.confidence + CONFIRMATION, 6)),
            "last_confirmed_at": max(context.turn.said_at, old.last_confirmed_at or context.turn.said_at),
            "needs_review": False,
            **_marks(old, context.decision.candidate),
        }
    )
    semantic.rewrite(context.connection, context.owner, confirmed)
    return context.log(confirmed, old)


def _marks(old: Memory, candidate: Candidate) -> dict[str, Any]:
    """Return the tags of a memory and whether it is pinned, with what a candidate about it brings along."""
    return {"tags": tuple(dict.fromkeys([*old.tags, *candidate.tags])), "pinned": old.pinned or candidate.pinned}


OPERATIONS: dict[str, Callable[[Context], Applied]] = {"ADD": _add, "UPDATE": _update, "DELETE": _delete, "NOOP": _noop}


def new_memory(turn: Turn, decision: Decision, at: datetime) -> Memory:
    """Return the memory that an ADD or UPDATE writes."""
    candidate = decision.candidate
    attribute = candidate.attribute
    if candidate.history and attribute and not attribute.startswith(FORMER) and decision.outdated_by is None:
        # A statement about the past is kept, and never stands in the slot of the present. (What was the present when it was
        # said, and is outdated, stands there as an earlier version would.)
        attribute = f"{FORMER}{attribute}"
    since, until = holds(turn, candidate)
    return Memory(
        owner=turn.owner,
        kind=candidate.kind,
        text=decision.text or candidate.text,
        subject=candidate.subject,
        attribute=attribute,
        value=candidate.value,
        importance=candidate.importance,
        confidence=candidate.confidence,
        strength=candidate.importance,
        source=_source(turn, candidate),
        event_time=candidate.event_time,
        recorded_at=at,
        valid_from=since,
        valid_to=until,
        last_confirmed_at=turn.said_at,
        tags=candidate.tags,
        pinned=candidate.pinned,
        status="quarantined" if (decision.guarded or "").startswith("quarantined") else "active",
    )


def _source(turn: Turn, candidate: Candidate) -> Source:
    return Source(
        kind=candidate.source_kind,
        thread=turn.thread,
        message_id=candidate.message_id,
        quote=candidate.quote,
        said_at=turn.said_at,
    )


def holds(turn: Turn, candidate: Candidate) -> tuple[datetime, datetime | None]:
    """Return since when and until when a statement holds: since the past time it names, else since it was said.

    What is told of the past holds over the time it names and no longer. An event, and a time that only ends something
    ("until 2019"), say nothing of a beginning.
    """
    named = candidate.event_time
    if named is None or candidate.kind == "event" or named.start >= turn.said_at or ends(named):
        return turn.said_at, None
    return named.start, named.end if candidate.history and named.end < turn.said_at else None


def close(connection: Connection, owner: int, memory: Memory, until: datetime) -> None:
    """End the interval of a version that another one takes the place of."""
    semantic.rewrite(connection, owner, memory.model_copy(update={"valid_to": until, "status": "superseded"}))


def retracted(connection: Connection, owner: int, memory: Memory, until: datetime) -> Memory:
    """Leave a tombstone: the version stays, and says that it no longer holds."""
    gone = memory.model_copy(update={"valid_to": until, "status": "retracted"})
    semantic.rewrite(connection, owner, gone)
    return gone


def succeed(connection: Connection, owner: int, memory: Memory, at: datetime) -> datetime:
    """Make room for a version after `memory`, from `at` on: end its interval, and return when the next one starts."""
    since = max(at, memory.valid_to or memory.valid_from)
    if memory.status == "active":
        close(connection, owner, memory, since)
    return since
