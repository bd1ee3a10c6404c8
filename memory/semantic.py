"""The semantic store: versions of memories, each a row with its vector and its keywords.

A row is `current` when it is the newest version of its id, and live when it is current and active besides.
"""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection, RowMapping, Select, func, select

from sharpwave.memory import keywords
from sharpwave.memory.errors import OwnershipError
from sharpwave.memory.ledger import add_statistics, from_timestamp, insert_row
from sharpwave.memory.records import Memory
from sharpwave.memory.schema import memories, owners, uses
from sharpwave.memory.slots import aliases

VIEW = "memory_terms"
LIVE = "current AND status = 'active'"


def folded(text: str) -> str:
    """Return `text` without case, accents, spacing and punctuation: equal for statements that say the same letter by letter."""
    return re.sub(r"[\W_]+", " ", keywords.fold(text)).strip() or text.strip()


def written_date(at: datetime) -> str:
    """Return a date as people write it in a sentence, `8 May 2023`."""
    return f"{at.day} {at:%B %Y}"


def index_terms(memory: Memory) -> list[str]:
    """Return the terms a memory is found by: its date, its words, its subject, and the words for its slot."""
    subject = "" if memory.subject == "user" else memory.subject
    slot = aliases(memory.attribute) if memory.attribute else ""
    tags = " ".join(memory.tags)
    return keywords.terms(f"{written_date(memory.valid_from)} {subject} {memory.text} {memory.value or ''} {slot} {tags}")


def put(connection: Connection, owner: int, memory: Memory, vector: np.ndarray) -> None:
    """Write a version; whatever version of its id was current no longer is. The row waits to be indexed."""
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


def rewrite(connection: Connection, owner: int, memory: Memory) -> None:
    """Change what a version that exists says of itself (its interval, status, confirmation), never its text."""
    connection.execute(
        memories.update()
        .where(memories.c.owner == owner, memories.c.id == memory.id, memories.c.version == memory.version)
        .values(indexed=False, **_columns(memory))
    )


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


def _select(owner: int) -> Select[Any]:
    return (
        select(
            memories.c.row,
            memories.c.owner,
            memories.c.subject,
            memories.c.valid_from,
            memories.c.record,
            memories.c.vector,
            func.json_extract(memories.c.record, "$.importance").label("importance"),
            func.json_extract(memories.c.record, "$.strength").label("strength"),
            uses.c.recalled,
            uses.c.last_recalled_at,
            uses.c.cited,
            uses.c.last_cited_at,
        )
        .select_from(memories.outerjoin(uses, (memories.c.owner == uses.c.owner) & (memories.c.id == uses.c.memory_id)))
        .where(memories.c.owner == owner)
    )


def read_row(row: RowMapping, owner: int) -> Memory:
    """Return the record in `row`, with its use counters; a row of somebody else raises `OwnershipError`."""
    if row["owner"] != owner:
        raise OwnershipError("A memory of another owner was about to be returned; the call was stopped.")
    memory = Memory.model_validate_json(row["record"])
    if row["recalled"] is None:
        return memory
    last = {k: from_timestamp(row[k]) for k in ("last_recalled_at", "last_cited_at") if row[k] is not None}
    return memory.model_copy(update={"recalled": row["recalled"], "cited": row["cited"], **last})


def get(connection: Connection, owner: int, memory_id: str) -> Memory | None:
    """Return the current version of a memory, whatever its status, or None."""
    statement = _select(owner).where(memories.c.id == memory_id, memories.c.current)
    row = connection.execute(statement).mappings().first()
    return read_row(row, owner) if row else None


def vector_of(connection: Connection, owner: int, memory: Memory) -> np.ndarray:
    """Return the stored vector of a version (float32)."""
    key = (memories.c.owner == owner, memories.c.id == memory.id, memories.c.version == memory.version)
    return np.frombuffer(connection.execute(select(memories.c.vector).where(*key)).scalar_one(), np.float16).astype(np.float32)


def versions(connection: Connection, owner: int, memory_id: str) -> list[Memory]:
    """Return all versions of a memory, oldest first."""
    statement = _select(owner).where(memories.c.id == memory_id).order_by(memories.c.version)
    return [read_row(row, owner) for row in connection.execute(statement).mappings()]


def find(
    connection: Connection,
    owner: int,
    *,
    statuses: Sequence[str] = ("active",),
    kinds: Sequence[str] = (),
    as_of: float | None = None,
) -> list[Memory]:
    """Return current memories in the order they were recorded; with `as_of`, the versions that were valid then."""
    statement = _select(owner).order_by(memories.c.recorded_at, memories.c.row)
    statement = statement.where(*valid_at(as_of)) if as_of is not None else statement.where(memories.c.current)
    if as_of is None and statuses:
        statement = statement.where(memories.c.status.in_(statuses))
    if kinds:
        statement = statement.where(memories.c.kind.in_(kinds))
    return [read_row(row, owner) for row in connection.execute(statement).mappings()]


def valid_at(at: float) -> tuple[Any, ...]:
    """Return the conditions for versions that were held true at `at` (seconds since 1970)."""
    return (
        memories.c.valid_from <= at,
        (memories.c.valid_to.is_(None)) | (memories.c.valid_to > at),
        memories.c.status != "quarantined",
    )


def live_rows(connection: Connection, owner: int, memory_id: str) -> list[int]:
    """Return the row number of a memory, if it is live."""
    statement = f"SELECT row FROM memories WHERE owner = ? AND id = ? AND {LIVE}"
    return [row[0] for row in connection.exec_driver_sql(statement, (owner, memory_id))]


def slot_rows(connection: Connection, owner: int, subject: str, attribute: str) -> list[int]:
    """Return the row numbers of live memories that hold this slot."""
    statement = f"SELECT row FROM memories WHERE owner = ? AND subject = ? AND attribute = ? AND {LIVE}"
    return [row[0] for row in connection.exec_driver_sql(statement, (owner, subject, attribute)).fetchall()]


def same_text_rows(connection: Connection, owner: int, text: str) -> list[int]:
    """Return the row numbers of live memories whose words are those of `text`, letter by letter."""
    statement = f"SELECT row FROM memories WHERE owner = ? AND folded = ? AND {LIVE}"
    return [row[0] for row in connection.exec_driver_sql(statement, (owner, folded(text))).fetchall()]


def vector_id(owner: int, memory_id: str, version: int) -> str:
    """Return the id of a version's vector; two owners may hold memories of the same id, by import."""
    return f"{owner}:{memory_id}:{version}"


def rows_by_vector_id(connection: Connection, owner: int, ids: Iterable[str]) -> list[int]:
    """Return the row numbers behind vector ids; unknown ones are left out."""
    wanted = set()
    for vector in ids:
        number, _, rest = vector.partition(":")
        memory_id, _, version = rest.rpartition(":")
        if number == str(owner):
            wanted.add((memory_id, int(version)))
    statement = select(memories.c.row, memories.c.id, memories.c.version).where(
        memories.c.owner == owner, memories.c.id.in_([memory_id for memory_id, _ in wanted])
    )
    return [row for row, memory_id, version in connection.execute(statement) if (memory_id, version) in wanted]


_LOAD = f"""
SELECT m.row, m.owner, m.subject, m.valid_from, m.record, m.vector, u.recalled, u.last_recalled_at, u.cited, u.last_cited_at,
    json_extract(m.record, '$.importance') AS importance, json_extract(m.record, '$.strength') AS strength
FROM memories m LEFT JOIN uses u ON u.owner = m.owner AND u.memory_id = m.id
WHERE m.owner = ? AND m.row IN (SELECT value FROM json_each(?)) AND {LIVE} ORDER BY m.row
"""


def load(
    connection: Connection, owner: int, rows: Sequence[int], *, as_of: float | None = None, history: bool = False
) -> list[RowMapping]:
    """Return the rows with these numbers, ascending: live ones, or those valid at `as_of`, or with `history` all versions."""
    if as_of is None and not history:
        return list(connection.exec_driver_sql(_LOAD, (owner, json.dumps(list(rows)))).mappings().fetchall())
    statement = _select(owner).where(memories.c.row.in_(rows)).order_by(memories.c.row)
    if as_of is not None:
        statement = statement.where(*valid_at(as_of))
    return list(connection.execute(statement).mappings())


def pending(connection: Connection, limit: int | None = None) -> list[tuple[int, str, str, np.ndarray, dict[str, Any]]]:
    """Return the rows that wait to be indexed: (row, owner, vector id, vector, metadata)."""
    statement = (
        select(memories, owners.c.owner.label("name"))
        .join(owners, owners.c.id == memories.c.owner)
        .where(memories.c.indexed.is_(False))
        .order_by(memories.c.row)
        .limit(limit)
    )
    return [
        (
            row["row"],
            row["name"],
            vector_id(row["owner"], row["id"], row["version"]),
            np.frombuffer(row["vector"], np.float16),
            {"live": bool(row["current"] and row["status"] == "active"), "at": row["valid_from"]},
        )
        for row in connection.execute(statement).mappings()
    ]
