"""The rows as the events make them: replayed from the log, and compared with those that are there."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from sharpwave.memory import semantic
from sharpwave.memory.ledger import get_meta
from sharpwave.memory.records import Memory, Record

COUNTERS = (
    *("recalled", "last_recalled_at", "cited", "last_cited_at"),
    *("strength", "replayed", "last_replayed_at", "stability", "difficulty", "due_at"),
)
"""Fields that tell of uses and rehearsals: no events of one memory."""

Rows = dict[tuple[str, int], dict[str, Any]]
"""Records by id and version."""


class Difference(Record):
    """Something that is not as the log makes it."""

    where: str
    what: str

    def told(self) -> str:
        """Return it as one sentence."""
        return f"{self.where}: {self.what}"


def differences(connection: Connection) -> list[Difference]:
    """Return how the rows of everybody differ from what the events make them, and which events are gone."""
    found = list(_lost_events(connection))
    for number, owner in connection.exec_driver_sql("SELECT id, owner FROM owners ORDER BY owner").all():
        problems: list[Difference] = []
        expected = _replayed(connection, number, owner, problems)
        found += problems
        found += _compared(connection, number, owner, expected)
    return found


def _lost_events(connection: Connection) -> Iterator[Difference]:
    written = connection.exec_driver_sql("SELECT seq FROM sqlite_sequence WHERE name = 'events'").scalar() or 0
    kept = connection.exec_driver_sql("SELECT count(*) FROM events").scalar_one()
    lost = written - kept - int(get_meta(connection, "erased_events") or 0)
    if lost:
        yield Difference(where="events", what=f"{lost} of {written} events are gone, beyond those of erased users")


def _replayed(connection: Connection, number: int, owner: str, problems: list[Difference]) -> Rows:
    """Return the rows that the events of one owner make; where an event found other rows than those, that is a problem."""
    rows: Rows = {}
    befores: dict[int, dict[str, Any]] = {}
    statement = "SELECT seq, op, detail FROM events WHERE owner = ? ORDER BY seq"
    for seq, op, text in connection.exec_driver_sql(statement, (number,)):
        detail = json.loads(text)
        before, after = _plain(detail.get("before")), _plain(detail.get("after"))
        if before:
            befores[seq] = before
            kept = rows.get(_key(before))
            changed = _fields(kept, before)
            if changed:
                what = f"event {seq} ({op}) found it otherwise than the events before left it ({changed})"
                problems.append(Difference(where=_where(owner, _key(before)), what=what))
        if after:
            _close(rows, op, before, after, befores.get(detail.get("undoes") or 0))
            rows[_key(after)] = after
    return rows


def _close(
    rows: Rows, op: str, before: dict[str, Any] | None, after: dict[str, Any], undone: dict[str, Any] | None
) -> None:
    """End the version that a new one takes the place of, as `applying` does."""
    if before is None or after["version"] == before["version"]:
        return
    if op == "UNDO":  # what is taken back never held, and neither did what it was put in the place of
        for version in (before, undone):
            if version is not None:
                rows[_key(version)] = {**version, "valid_to": version["valid_from"], "status": "superseded"}
    elif before["status"] == "active":
        until = max(before["valid_from"], after["valid_from"], key=datetime.fromisoformat)
        rows[_key(before)] = {**before, "valid_to": until, "status": "superseded"}


def _compared(connection: Connection, number: int, owner: str, expected: Rows) -> Iterator[Difference]:
    statement = """
        SELECT id, version, current, record, status, kind, subject, attribute, folded, recorded_at, valid_from, valid_to
        FROM memories WHERE owner = ? ORDER BY id, version
    """
    newest: dict[str, int] = {}
    for memory_id, version in expected:
        newest[memory_id] = max(version, newest.get(memory_id, 0))
    missing = dict.fromkeys(expected)
    for memory_id, version, current, record, *columns in connection.exec_driver_sql(statement, (number,)):
        key = (memory_id, version)
        missing.pop(key, None)
        if key not in expected:
            yield Difference(where=_where(owner, key), what="no event made this version")
            continue
        changed = _fields(expected[key], _plain(json.loads(record)))
        if changed:
            yield Difference(where=_where(owner, key), what=f"not as the events left it ({changed})")
        elif [*columns] != semantic.columns_of(Memory.model_validate_json(record)):
            yield Difference(where=_where(owner, key), what="its columns do not say what its record says")
        if bool(current) != (version == newest[memory_id]):
            yield Difference(where=_where(owner, key), what=f"version {newest[memory_id]} should be the current one")
    for key in missing:
        yield Difference(where=_where(owner, key), what="the row is gone")


def _plain(record: dict[str, Any] | None) -> dict[str, Any] | None:
    return record and {name: value for name, value in record.items() if name not in COUNTERS}


def _key(record: dict[str, Any]) -> tuple[str, int]:
    return record["id"], record["version"]


def _where(owner: str, key: tuple[str, int]) -> str:
    return f"memory {key[0]}, version {key[1]} of {owner!r}"


def _fields(one: dict[str, Any] | None, other: dict[str, Any] | None) -> str:
    """Return the names of the fields in which two records differ."""
    if one is None or other is None:
        return "" if one is other else "no event made it"
    return ", ".join(sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)))
