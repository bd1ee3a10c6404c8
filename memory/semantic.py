"""The semantic store: versions of memories, each a row with its vector and its keywords.

A row is `current` when it is the newest version of its id, and live when it is current and active besides.
"""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, select

from sharpwave.memory import keywords, linking
from sharpwave.memory.errors import OwnershipError
from sharpwave.memory.ledger import add_statistics, from_timestamp, insert_row
from sharpwave.memory.records import Memory
from sharpwave.memory.schema import memories
from sharpwave.memory.slots import aliases
from sharpwave.memory.sql import fetch

VIEW = "memory_terms"
LIVE = "current AND status = 'active'"
CORE = "core:"
"""What the tag of a core memory block begins with: it says where a memory is shown, not what it is about."""
FOUND_AS = "found_as"
"""Key of `metadata`: a list of words that a memory is found by beside those of its text; see `repair`."""
BELIEVED = 0.5
"""Least confidence of what is in the current view. What is doubted more stays live, and may be confirmed again."""


def folded(text: str) -> str:
    """Return `text` without case, accents, spacing and punctuation: equal for statements that say the same letter by letter."""
    return re.sub(r"[\W_]+", " ", keywords.fold(text)).strip() or text.strip()


def written_date(at: datetime) -> str:
    """Return a date as people write it in a sentence, `8 May 2023`."""
    return f"{at.day} {at:%B %Y}"


def _dates(memory: Memory) -> str:
    """Return when a memory was said, and the time it tells of as exactly as that is known, as people write it."""
    said, event = written_date(memory.source.said_at or memory.valid_from), memory.event_time
    if event is None:
        return said
    middle = event.start + timedelta(hours=12)  # the day of the speaker, whose midnight is elsewhere in UTC
    if event.precision == "year":
        return f"{said} {middle.year}"
    return f"{said} {middle:%B %Y}" if event.precision in ("month", "season") else f"{said} {written_date(middle)}"


def index_terms(memory: Memory) -> list[str]:
    """Return the terms a memory is found by: its dates, its words, its subject, the words for its slot, and `FOUND_AS`."""
    subject = "" if memory.subject == "user" else memory.subject
    slot = aliases(memory.attribute) if memory.attribute else ""
    tags = " ".join(tag for tag in memory.tags if not tag.startswith(CORE))
    words = " ".join(found_as(memory))
    return keywords.terms(f"{_dates(memory)} {subject} {memory.text} {memory.value or ''} {slot} {tags} {words}")


def found_as(memory: Memory) -> list[str]:
    """Return the words of `FOUND_AS`."""
    words = memory.metadata.get(FOUND_AS)
    return [word for word in words if isinstance(word, str)] if isinstance(words, list) else []


def put(connection: Connection, owner: int, memory: Memory, vector: np.ndarray) -> None:
    """Write a version, and whom it names; whatever version of its id was current no longer is. The row waits to be indexed."""
    statement = "UPDATE memories SET current = 0, indexed = 0 WHERE owner = ? AND id = ? AND current"
    connection.exec_driver_sql(statement, (owner, memory.id))
    found = index_terms(memory)
    values = {
        "id": memory.id,
        "version": memory.version,
        "owner": owner,
        "current": True,
        "term_count": len(found),
        "vector": vector.astype(np.float16).tobytes(),
        "indexed": False,
        **_columns(memory),
    }
    row = insert_row(connection, "memories", values)
    keywords.index(connection, VIEW, [(row, owner, found)])
    add_statistics(connection, owner, VIEW, 1, len(found))
    linking.note(connection, owner, memory)


def rewrite(connection: Connection, owner: int, memory: Memory) -> None:
    """Change what a version that exists says of itself (its interval, status, confirmation), never its text."""
    connection.execute(
        memories.update()
        .where(memories.c.owner == owner, memories.c.id == memory.id, memories.c.version == memory.version)
        # The index knows of all this only whether a version is live.
        .values(indexed=memories.c.indexed & (memories.c.status == memory.status), **_columns(memory))
    )


def reword(connection: Connection, owner: int, memory: Memory) -> None:
    """Change by which words (`FOUND_AS`) a version that exists is found."""
    rewrite(connection, owner, memory)
    key = (memories.c.owner == owner, memories.c.id == memory.id, memories.c.version == memory.version)
    row, before = connection.execute(select(memories.c.row, memories.c.term_count).where(*key)).one()
    found = index_terms(memory)
    connection.execute(memories.update().where(memories.c.row == row).values(term_count=len(found)))
    keywords.index(connection, VIEW, [(row, owner, found)])
    add_statistics(connection, owner, VIEW, 0, len(found) - before)


def _columns(memory: Memory) -> dict[str, Any]:
    return {
        "status": memory.status,
        "kind": memory.kind,
        "subject": memory.subject,
        "attribute": memory.attribute,
        "folded": folded(memory.text),
        "recorded_at": memory.recorded_at.timestamp(),
        "valid_from": memory.valid_from.timestamp(),
        "valid_to": memory.valid_to.timestamp() if memory.valid_to else None,
        "record": memory.model_dump_json(),
    }


def columns_of(memory: Memory) -> list[Any]:
    """Return what the columns beside the record repeat of it, in the order of the table."""
    return [value for name, value in _columns(memory).items() if name != "record"]


class Row(NamedTuple):
    """A version as it is kept, with its use counters."""

    row: int
    id: str
    owner: int
    subject: str
    confidence: float
    record: str
    vector: bytes
    recalled: int | None
    last_recalled_at: float | None
    cited: int | None
    last_cited_at: float | None
    rehearsed: str | None
    """JSON: strength, replayed, last_replayed_at, stability, difficulty, due_at; None for what was never replayed."""


_READ = """
SELECT m.row, m.id, m.owner, m.subject, json_extract(m.record, '$.confidence'), m.record, m.vector,
    u.recalled, u.last_recalled_at, u.cited, u.last_cited_at,
    CASE WHEN u.replayed > 0 THEN json_array(u.strength, u.replayed, u.last_replayed_at, u.stability, u.difficulty, u.due_at) END
FROM memories m LEFT JOIN uses u ON u.owner = m.owner AND u.memory_id = m.id WHERE m.owner = ?
"""
_READ_FEW = _READ.replace("WHERE m.owner", "WHERE +m.owner")
"""The same by row numbers: with the plus, SQLite looks those up, and does not go through all of the owner's rows for them."""
_AMONG = "(SELECT value FROM json_each(?))"
_VALID_AT = "valid_from <= ? AND (valid_to IS NULL OR valid_to > ?) AND status != 'quarantined'"


def _rows(connection: Connection, condition: str, owner: int, *values: Any) -> list[Row]:
    return [Row._make(row) for row in fetch(connection, f"{_READ} AND {condition}", (owner, *values))]


def read_row(row: Row, owner: int) -> Memory:
    """Return the record in `row`, with its use counters; a row of somebody else raises `OwnershipError`."""
    if row.owner != owner:
        raise OwnershipError("A memory of another owner was about to be returned; the call was stopped.")
    memory = Memory.model_validate_json(row.record)
    if row.recalled is None:
        return memory
    last = {"last_recalled_at": row.last_recalled_at, "last_cited_at": row.last_cited_at}
    times = {key: from_timestamp(at) for key, at in last.items() if at is not None}
    uses = {"recalled": row.recalled, "cited": row.cited, **times}
    return memory.model_copy(update={**uses, **(_rehearsed(row.rehearsed) if row.rehearsed else {})})


def _rehearsed(columns: str) -> dict[str, Any]:
    strength, replayed, last, stability, difficulty, due = json.loads(columns)
    return {
        "strength": strength,
        "replayed": replayed,
        "last_replayed_at": from_timestamp(last),
        "stability": stability,
        "difficulty": difficulty,
        "due_at": from_timestamp(due),
    }


def get(connection: Connection, owner: int, memory_id: str) -> Memory | None:
    """Return the current version of a memory, whatever its status, or None."""
    rows = _rows(connection, "m.id = ? AND current", owner, memory_id)
    return read_row(rows[0], owner) if rows else None


def vectors_of(connection: Connection, owner: int, ids: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the stored vectors of the current versions of memories (float32), by id; of unknown ids none."""
    statement = f"SELECT id, vector FROM memories WHERE owner = ? AND current AND id IN {_AMONG}"
    found = fetch(connection, statement, (owner, json.dumps(list(ids))))
    return {memory_id: np.frombuffer(vector, np.float16).astype(np.float32) for memory_id, vector in found}


def all_versions(connection: Connection, owner: int) -> list[Memory]:
    """Return all versions of all memories of an owner, in the order they were recorded."""
    return [read_row(row, owner) for row in _rows(connection, "1 ORDER BY recorded_at, m.row", owner)]


def versions(connection: Connection, owner: int, memory_id: str) -> list[Memory]:
    """Return all versions of a memory, oldest first."""
    return [read_row(row, owner) for row in _rows(connection, "m.id = ? ORDER BY m.version", owner, memory_id)]


def find(
    connection: Connection,
    owner: int,
    *,
    statuses: Sequence[str] = ("active",),
    kinds: Sequence[str] = (),
    as_of: float | None = None,
) -> list[Memory]:
    """Return current memories in the order they were recorded; with `as_of`, the versions that were valid then."""
    condition = "current" if as_of is None else _VALID_AT
    values: list[Any] = [] if as_of is None else [as_of, as_of]
    if as_of is None and statuses:
        condition, values = f"{condition} AND status IN {_AMONG}", [*values, json.dumps(list(statuses))]
    if kinds:
        condition, values = f"{condition} AND kind IN {_AMONG}", [*values, json.dumps(list(kinds))]
    found = _rows(connection, f"{condition} ORDER BY recorded_at, m.row", owner, *values)
    return [read_row(row, owner) for row in found]


def said(
    connection: Connection,
    owner: int,
    condition: str,
    values: Sequence[Any],
    *,
    limit: int,
    as_of: datetime | None = None,
) -> list[Memory]:
    """Return up to `limit` live memories, or those that were valid at `as_of`, that fit a condition in SQL on `m`, with its order."""
    when = LIVE if as_of is None else _VALID_AT
    at = [] if as_of is None else [as_of.timestamp()] * 2
    return [
        read_row(row, owner) for row in _rows(connection, f"{when} AND {condition} LIMIT ?", owner, *at, *values, limit)
    ]


def rows_of(connection: Connection, owner: int, ids: Sequence[str]) -> list[int]:
    """Return the row numbers of all versions of these memories."""
    statement = f"SELECT row FROM memories WHERE owner = ? AND id IN {_AMONG}"
    return [row for (row,) in fetch(connection, statement, (owner, json.dumps(list(ids))))]


def live_among(connection: Connection, rows: Sequence[int]) -> set[int]:
    """Return which of these row numbers are those of live memories."""
    statement = f"SELECT row FROM memories INDEXED BY memories_ranked WHERE row IN {_AMONG} AND {LIVE}"
    return {row for (row,) in fetch(connection, statement, (json.dumps(list(rows)),))}


def live_rows(connection: Connection, owner: int, memory_id: str) -> list[int]:
    """Return the row number of a memory, if it is live."""
    statement = f"SELECT row FROM memories WHERE owner = ? AND id = ? AND {LIVE}"
    return [row for (row,) in fetch(connection, statement, (owner, memory_id))]


def slot_rows(connection: Connection, owner: int, subject: str, attribute: str) -> list[int]:
    """Return the row numbers of live memories that hold this slot."""
    statement = f"SELECT row FROM memories WHERE owner = ? AND subject = ? AND attribute = ? AND {LIVE}"
    return [row for (row,) in fetch(connection, statement, (owner, subject, attribute))]


def holding(connection: Connection, owner: int, subject: str, attribute: str) -> list[Memory]:
    """Return the live memories that hold this slot."""
    found = _rows(connection, f"m.subject = ? AND m.attribute = ? AND {LIVE} ORDER BY m.row", owner, subject, attribute)
    return [read_row(row, owner) for row in found]


def same_text_rows(connection: Connection, owner: int, text: str) -> list[int]:
    """Return the row numbers of live memories whose words are those of `text`, letter by letter."""
    statement = f"SELECT row FROM memories WHERE owner = ? AND folded = ? AND {LIVE}"
    return [row for (row,) in fetch(connection, statement, (owner, folded(text)))]


def vector_id(owner: int, memory_id: str, version: int) -> str:
    """Return the id of a version's vector; two owners may hold memories of the same id, by import."""
    return f"{owner}:{memory_id}:{version}"


def by_vector_id(connection: Connection, owner: int, ids: Iterable[str], *, live: bool = False) -> dict[str, int]:
    """Return the row numbers of those vector ids that are the owner's, and of live memories if only those are wanted."""
    own = {vector for vector in ids if vector.startswith(f"{owner}:")}
    names = json.dumps([vector.partition(":")[2].rpartition(":")[0] for vector in own])
    statement = f"SELECT row, id, version FROM memories WHERE owner = ? AND id IN {_AMONG}"
    found = {
        vector_id(owner, name, version): row for row, name, version in fetch(connection, statement, (owner, names))
    }
    kept = live_among(connection, [*found.values()]) if live else None
    return {vector: found[vector] for vector in own & found.keys() if kept is None or found[vector] in kept}


def load(
    connection: Connection, owner: int, rows: Sequence[int], *, as_of: float | None = None, history: bool = False
) -> list[Row]:
    """Return the rows with these numbers, ascending: live ones, or those valid at `as_of`, or with `history` all versions; what is in quarantine never."""
    condition, values = (
        (_VALID_AT, [as_of, as_of]) if as_of is not None else ("status != 'quarantined'" if history else LIVE, [])
    )
    statement = f"{_READ_FEW} AND m.row IN {_AMONG} AND {condition} ORDER BY m.row"
    return [Row._make(row) for row in fetch(connection, statement, (owner, json.dumps(list(rows)), *values))]


def pending(connection: Connection, limit: int | None = None) -> list[tuple[int, str, str, np.ndarray, dict[str, Any]]]:
    """Return the rows that wait to be indexed: (row, owner, vector id, vector, metadata)."""
    statement = f"""
        SELECT m.row, o.owner, m.owner, m.id, m.version, m.vector, {LIVE}, m.valid_from
        FROM memories m JOIN owners o ON o.id = m.owner WHERE m.indexed = 0 ORDER BY m.row LIMIT ?
    """
    return [
        (
            row,
            name,
            vector_id(owner, memory_id, version),
            np.frombuffer(vector, np.float16),
            {"live": bool(live), "at": at},
        )
        for row, name, owner, memory_id, version, vector, live, at in fetch(
            connection, statement, (-1 if limit is None else limit,)
        )
    ]
