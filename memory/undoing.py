"""Going back: a version that says again what an earlier one said, and taking back what a decision did, by a new event."""

from datetime import datetime

from sqlalchemy import Connection

from sharpwave.memory import applying, cascade, ledger, semantic
from sharpwave.memory.applying import Applied, Embed
from sharpwave.memory.errors import InputError, NotFoundError
from sharpwave.memory.records import Memory


def reopen(connection: Connection, owner: int, memory: Memory, like: Memory, embed: Embed, at: datetime) -> Memory:
    """Write a new version of `memory` that says again, from `at` on, what `like`, an earlier one, said."""
    restored = like.model_copy(
        update={
            "version": memory.version + 1,
            "status": "active",
            "valid_from": applying.succeed(connection, owner, memory, at),
            "valid_to": None,
            "recorded_at": at,
            "superseded_by": None,
        }
    )
    semantic.put(connection, owner, restored, embed(restored.text))
    return restored


def take_back(connection: Connection, owner: int, memory: Memory, before: Memory, embed: Embed, at: datetime) -> Memory:
    """Write a new version that is what `before` was, interval and status included; the two before it then never held."""
    for version in {memory.version: memory, before.version: before}.values():
        applying.close(connection, owner, version, version.valid_from)
    again = before.model_copy(update={"version": memory.version + 1, "recorded_at": at})
    semantic.put(connection, owner, again, embed(again.text))
    return again


UNDOABLE = ("ADD", "UPDATE", "DELETE", "NOOP", "RESTORE", "PIN", "KEEP", "RELEASE", "EXPIRE", "MERGE", "REPAIR")
"""Operations that can be taken back."""


def undo(connection: Connection, owner: int, event: ledger.Event, embed: Embed, at: datetime) -> Applied:
    """Take back one event by a new one.

    Raises:
        InputError: the event changed no memory, or a later one about the same memory has to be undone first.
    """
    if event.memory_id is None or event.op not in UNDOABLE:
        raise InputError(f"Event {event.seq} ({event.op}) changed no memory, so there is nothing to undo.")
    if ledger.standing_event(connection, owner, event.memory_id) != event.seq:
        raise InputError(
            f"Event {event.seq} is not the latest about memory {event.memory_id}; undo the later ones first."
        )
    current = semantic.get(connection, owner, event.memory_id)
    if current is None:
        raise NotFoundError(f"Memory {event.memory_id} of event {event.seq} is no longer there.")
    before = event.detail["before"]
    if before is None:
        result = applying.retracted(connection, owner, current, current.valid_from)
    elif (
        Memory(**before).text == current.text
        and before["status"] == current.status
        and before["version"] == current.version
    ):
        result = Memory(**before).model_copy(update={"needs_review": before["needs_review"] or current.needs_review})
        (semantic.reword if event.op == "REPAIR" else semantic.rewrite)(connection, owner, result)
    else:
        result = take_back(connection, owner, current, Memory(**before), embed, at)
    ledger.raise_revision(connection, owner)
    reason = f"undo of event {event.seq} ({event.op}: {event.reason})"
    seq = ledger.append_event(
        connection,
        owner,
        "UNDO",
        at=at,
        policy="user",
        reason=reason,
        memory=result,
        before=current,
        detail={"undoes": event.seq},
    )
    settled = cascade.take_back(connection, owner, event.seq, at)
    cascade.follow(connection, owner, current, result, because=seq, at=at, but=settled)
    return Applied(
        op="UNDO",
        memory_id=result.id,
        version=result.version,
        text=result.text,
        reason=reason,
        policy="user",
        before=current.text,
        event=seq,
    )
