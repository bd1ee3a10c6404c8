"""Changes by hand: the same rows and events as decisions make, with a person as the policy."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError
from sqlalchemy import Connection

from sharpwave.memory import applying, cascade, ledger, linking, semantic, times, undoing
from sharpwave.memory.applying import Applied, Embed
from sharpwave.memory.errors import InputError, NotFoundError
from sharpwave.memory.ledger import Event
from sharpwave.memory.records import Memory, Source


def current(connection: Connection, owner: int, memory_id: str) -> Memory:
    """Return the current version of a memory; raises `NotFoundError` alike for an unknown id and somebody else's."""
    memory = semantic.get(connection, owner, memory_id)
    if memory is None:
        raise NotFoundError(f"There is no memory {memory_id!r} for this user. `sharpwave memories list` shows the ids.")
    return memory


def _checked(text: str) -> str:
    if not text.strip():
        raise InputError("A memory needs a text that is not blank.")
    return text.strip()


def add(
    connection: Connection,
    owner: int,
    name: str,
    text: str,
    fields: Mapping[str, Any],
    embed: Embed,
    *,
    reason: str = "added by hand",
    policy: str = "user",
) -> Applied:
    """Add a memory; `fields` are those of `Memory`."""
    at = times.now()
    defaults = {"recorded_at": at, "valid_from": at, "last_confirmed_at": at, "source": Source(quote=_checked(text))}
    try:
        memory = Memory.model_validate({**defaults, **fields, "owner": name, "text": _checked(text)})
        memory.model_dump_json()
    except PydanticSerializationError as error:
        raise InputError(f"The memory cannot be added: its metadata must be JSON: {error}.") from error
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        raise InputError(f"The memory cannot be added: {problem['loc'][-1]}: {problem['msg']}.") from error
    if memory.version != 1 or semantic.get(connection, owner, memory.id) is not None:
        raise InputError(
            f"Memory {memory.id!r} is there already, or was given a version; edit it instead of adding it."
        )
    memory = cascade.linked(connection, owner, memory)
    semantic.put(connection, owner, memory, embed(memory.text))
    return _log(connection, owner, "ADD", memory, None, reason, at, policy)


def edit(connection: Connection, owner: int, memory_id: str, text: str, embed: Embed) -> Applied:
    """Give a memory a new text, as a new version; a slot whose value the text no longer holds is given up."""
    at = times.now()
    old = current(connection, owner, memory_id)
    keeps = old.value is not None and semantic.folded(old.value) in semantic.folded(text)
    memory = old.model_copy(
        update={
            "version": old.version + 1,
            "text": _checked(text),
            "attribute": old.attribute if keeps else None,
            "value": old.value if keeps else None,
            "status": "active",
            "valid_from": applying.succeed(connection, owner, old, at),
            "valid_to": None,
            "recorded_at": at,
            "last_confirmed_at": at,
            "needs_review": False,
            "source": old.source.model_copy(update={"said_at": at}),
            "metadata": {name: value for name, value in old.metadata.items() if name != semantic.FOUND_AS},
            "event_time": old.event_time if old.event_time and (old.event_time.phrase or "") in text else None,
        }
    )
    memory = cascade.linked(connection, owner, memory.model_copy(update={"depends_on": ()}))
    semantic.put(connection, owner, memory, embed(memory.text))
    return _log(connection, owner, "UPDATE", memory, old, "edited by hand", at)


def delete(connection: Connection, owner: int, memory_id: str, reason: str) -> Applied:
    """Retract a memory."""
    at = times.now()
    old = current(connection, owner, memory_id)
    if old.status == "retracted":
        raise InputError(f"Memory {memory_id} is deleted already; `sharpwave memories restore` brings it back.")
    gone = applying.retracted(connection, owner, old, max(at, old.valid_from))
    return _log(connection, owner, "DELETE", gone, old, reason, at)


def restore(connection: Connection, owner: int, memory_id: str, version: int | None, embed: Embed) -> Applied:
    """Make an earlier version current again, as a new version."""
    at = times.now()
    now = current(connection, owner, memory_id)
    past = semantic.versions(connection, owner, memory_id)
    if version is not None:
        chosen = [memory for memory in past if memory.version == version]
    else:
        chosen = past[-1:] if now.status != "active" else past[-2:-1]
    if not chosen:
        numbers = ", ".join(str(memory.version) for memory in past)
        raise InputError(f"Memory {memory_id} has no such version to restore; it has {numbers}.")
    restored = undoing.reopen(connection, owner, now, chosen[0], embed, at)
    return _log(connection, owner, "RESTORE", restored, now, f"version {chosen[0].version} restored by hand", at)


def pin(connection: Connection, owner: int, memory_id: str, pinned: bool) -> Applied:
    """Pin or unpin a memory."""
    old = current(connection, owner, memory_id)
    memory = old.model_copy(update={"pinned": pinned})
    semantic.rewrite(connection, owner, memory)
    return _log(connection, owner, "PIN", memory, old, "pinned by hand" if pinned else "unpinned by hand", times.now())


def expire(connection: Connection, owner: int, memory_id: str, reason: str, policy: str = "forget/1") -> Applied | None:
    """Forget a memory: it leaves the current view. None, and nothing done, where it has left that already or is pinned."""
    old = semantic.get(connection, owner, memory_id)
    if old is None or old.status != "active" or old.pinned:
        return None
    at = times.now()
    gone = old.model_copy(update={"status": "expired", "valid_to": max(at, old.valid_from)})
    semantic.rewrite(connection, owner, gone)
    return _log(connection, owner, "EXPIRE", gone, old, reason, at, policy=policy)


def release(connection: Connection, owner: int, memory_id: str) -> Applied:
    """Let a memory out of quarantine."""
    old = _quarantined(connection, owner, memory_id)
    memory = old.model_copy(update={"status": "active"})
    semantic.rewrite(connection, owner, memory)
    linking.note(connection, owner, memory)
    return _log(connection, owner, "RELEASE", memory, old, "released from quarantine by hand", times.now())


def drop(connection: Connection, owner: int, memory_id: str) -> Applied:
    """Retract a memory that is in quarantine; no past in which it held remains."""
    old = _quarantined(connection, owner, memory_id)
    gone = applying.retracted(connection, owner, old, old.valid_from)
    return _log(connection, owner, "DELETE", gone, old, "dropped from quarantine by hand", times.now())


def _quarantined(connection: Connection, owner: int, memory_id: str) -> Memory:
    memory = current(connection, owner, memory_id)
    if memory.status != "quarantined":
        raise InputError(
            f"Memory {memory_id} is {memory.status}, not in quarantine; `sharpwave memories quarantine list` shows what is."
        )
    return memory


def keep(connection: Connection, owner: int, memory_id: str) -> Applied:
    """Settle the review of a memory: it still holds, and is confirmed as of now."""
    at = times.now()
    old = current(connection, owner, memory_id)
    if old.status != "active":
        raise InputError(f"Memory {memory_id} is {old.status}; only a memory that holds can be kept.")
    memory = old.model_copy(update={"needs_review": False, "last_confirmed_at": at})
    semantic.rewrite(connection, owner, memory)
    return _log(connection, owner, "KEEP", memory, old, "still holds, said by hand", at)


def undoable(connection: Connection, owner: int, *, last: int, turn: tuple[str, str] | None) -> list[Event]:
    """Return the events to take back, newest first.

    Events that were undone, and undoing itself, are passed over.

    Raises:
        InputError: there is nothing to undo.
    """
    if last < 1:
        raise InputError(f"The number of changes to undo must be at least 1; got {last}.")
    events = ledger.read_events(connection, owner)
    undone = {event.detail["undoes"] for event in events if event.op == "UNDO"}
    chosen = [
        e
        for e in reversed(events)
        if e.op in undoing.UNDOABLE and e.seq not in undone and (e.detail.get("before") or e.detail.get("after"))
    ]
    if turn is not None:
        chosen = [event for event in chosen if (event.thread, event.message_id) == turn]
    else:
        chosen = chosen[:last]
    if not chosen:
        raise InputError("There is nothing to undo." if turn is None else f"The turn {turn[1]!r} changed nothing.")
    return chosen


def take_over(
    connection: Connection, owner: int, name: str, records: Sequence[Memory], reason: str, embed: Embed
) -> int:
    """Write the versions of memories from elsewhere; versions that are there already are left alone."""
    at = times.now()
    new = 0
    for record in sorted(records, key=lambda memory: (memory.id, memory.version)):
        known = semantic.get(connection, owner, record.id)
        if known is not None and known.version >= record.version:
            continue
        if known is not None and known.status == "active":
            applying.close(connection, owner, known, max(record.valid_from, known.valid_from))
        memory = record.model_copy(update={"owner": name})
        semantic.put(connection, owner, memory, embed(memory.text))
        ledger.append_event(
            connection, owner, "IMPORT", at=at, policy="user", reason=reason, memory=memory, before=known
        )
        new += 1
    if new:
        ledger.raise_revision(connection, owner)
    return new


def _log(
    connection: Connection,
    owner: int,
    op: str,
    memory: Memory,
    before: Memory | None,
    reason: str,
    at: datetime,
    policy: str = "user",
) -> Applied:
    ledger.raise_revision(connection, owner)
    seq = ledger.append_event(
        connection,
        owner,
        op,
        at=at,
        policy=policy,
        reason=reason,
        memory=memory,
        before=before,
        detail={"quote": memory.source.quote},
    )
    if op != "EXPIRE":  # what is forgotten is no less true: nothing that rests on it has to be reviewed
        cascade.follow(connection, owner, before, memory, because=seq, at=at)
    return Applied(
        op=op,
        memory_id=memory.id,
        version=memory.version,
        text=memory.text,
        reason=reason,
        policy=policy,
        before=before.text if before else None,
        event=seq,
    )
