"""What was known at a time in the past: the second axis beside what was true then.

A version counts from its `recorded_at` on, which is the clock of the machine that wrote it, also for turns that were said
at another time (imported or simulated ones). What later events changed about it is read back from their rows before.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from sqlalchemy import Connection

from sharpwave.memory import semantic
from sharpwave.memory.records import Memory
from sharpwave.memory.sql import fetch

_LATER = """
SELECT memory_id, json_extract(detail, '$.before') FROM events
WHERE owner = ? AND at > ? AND memory_id IN (SELECT value FROM json_each(?)) ORDER BY seq
"""


def _before(connection: Connection, owner: int, ids: Iterable[str], at: datetime) -> dict[tuple[str, int], Memory]:
    """Return, for each version that an event after `at` changed, what it was before the first such event."""
    found: dict[tuple[str, int], Memory] = {}
    for memory_id, before in fetch(connection, _LATER, (owner, at.timestamp(), json.dumps(sorted(set(ids))))):
        if before is not None:
            memory = Memory.model_validate_json(before)
            found.setdefault((memory_id, memory.version), memory)
    return found


def as_known(
    connection: Connection, owner: int, versions: Sequence[Memory], at: datetime, as_of: datetime | None = None
) -> Iterator[tuple[int, Memory]]:
    """Yield those of `versions` that were the view of the owner's memories at `at`, as they were known, with their places.

    Args:
        connection: in a transaction.
        owner: the owner's number.
        versions: all versions of some memories.
        at: what was recorded later is not there yet.
        as_of: what was then known to have held at this time; without it, what was known to hold at `at`.
    """
    newest: dict[str, int] = {}
    for memory in versions:
        if memory.recorded_at <= at:
            newest[memory.id] = max(memory.version, newest.get(memory.id, 0))
    before = _before(connection, owner, newest, at)
    for place, stored in enumerate(versions):
        latest = newest.get(stored.id, 0)
        if stored.version > latest:
            continue
        memory = before.get((stored.id, stored.version), stored) if stored.version == latest else stored
        if _holds(memory, memory.version == latest, as_of):
            yield place, memory


def _holds(memory: Memory, latest: bool, as_of: datetime | None) -> bool:
    if as_of is None:
        return latest and memory.status == "active" and memory.confidence >= semantic.BELIEVED
    ended = memory.valid_to is not None and memory.valid_to <= as_of
    return memory.valid_from <= as_of and not ended and memory.status != "quarantined"


def find(connection: Connection, owner: int, at: datetime, as_of: datetime | None = None) -> list[Memory]:
    """Return the owner's memories as they were known at `at`, in the order they were recorded; see `as_known`."""
    versions = semantic.all_versions(connection, owner)
    return [memory for _, memory in as_known(connection, owner, versions, at, as_of)]


def load(
    connection: Connection, owner: int, rows: Sequence[int], at: datetime, *, as_of: datetime | None, history: bool
) -> list[semantic.Row]:
    """Return the rows among these that were known at `at`, as they were; with `history`, all that were recorded by then."""
    loaded = semantic.load(connection, owner, rows, history=True)
    ids = {semantic.read_row(row, owner).id for row in loaded}
    others = [memory for memory_id in ids for memory in semantic.versions(connection, owner, memory_id)]
    if history:
        return [row for row in loaded if semantic.read_row(row, owner).recorded_at <= at]
    known = {(m.id, m.version): m for _, m in as_known(connection, owner, others, at, as_of)}
    kept = []
    for row in loaded:
        memory = semantic.read_row(row, owner)
        if (as_then := known.get((memory.id, memory.version))) is not None:
            kept.append(row._replace(record=as_then.model_dump_json()))
    return kept
