"""The ledger: one SQL database that is the truth about what is remembered and how it came to be.

It holds the append-only decision log (`events`), the rows of the semantic and episodic stores with their vectors and
keywords, and the queue of turns. Everything here runs on a connection inside one transaction; `read()` and `write()`
make them.
"""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, literal_column, select
from sqlalchemy.exc import DatabaseError, OperationalError

from sharpwave.memory import schema
from sharpwave.memory.errors import InputError, StoreError
from sharpwave.memory.records import Memory, Record, Turn, Usage
from sharpwave.memory.schema import events, owners, turns
from sharpwave.memory.sql import fetch, fetch_one


class Event(Record):
    """One line of the decision log."""

    seq: int
    at: datetime
    op: str
    memory_id: str | None
    version: int | None
    thread: str | None
    message_id: str | None
    policy: str
    reason: str
    detail: dict[str, Any]
    """`before` and `after` (records), `quote`, and where a policy decided: `shown`, `said`, `guarded`."""


def timestamp(value: datetime | None) -> float | None:
    """Return seconds since 1970 UTC, as times are kept in SQL."""
    return None if value is None else value.timestamp()


def from_timestamp(value: float) -> datetime:
    """Return the UTC time that `timestamp` made a number of."""
    return datetime.fromtimestamp(value, UTC)


class Ledger:
    """The database in one folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._engine = schema.connect(path)
        schema.migrate(self._engine)
        os.chmod(path, 0o600)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One consistent view of the ledger."""
        with self._transaction(writes=False) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction: all of it is kept, or none."""
        with self._transaction(writes=True) as connection:
            yield connection

    @contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[Connection]:
        try:
            with self._engine.connect() as connection:
                if writes:
                    connection.execution_options(writes=True)
                with connection.begin():
                    yield connection
        except (OperationalError, sqlite3.OperationalError) as error:
            raise StoreError(_explain(self.path, str(getattr(error, "orig", error)))) from error
        except (DatabaseError, sqlite3.DatabaseError) as error:
            cause = getattr(error, "orig", error)
            raise StoreError(f"The ledger {self.path} is damaged or refused a write: {cause}.") from error
        except UnicodeEncodeError as error:
            raise InputError(
                f"This text holds halves of surrogate pairs and cannot be kept: {error.object[:80]!r}."
            ) from error


def _explain(path: Path, cause: str) -> str:
    if "locked" in cause:
        return f"The ledger {path} is locked by another process for more than 30 s. Try again, or close the other one."
    if "readonly" in cause or "read-only" in cause:
        return f"The ledger {path} is read-only. Check the permissions of the folder, or use another with --home."
    if "full" in cause:
        return f"The disk with {path} is full; nothing of this write was kept. Free some space and try again."
    return f"The ledger {path} failed: {cause}."


def check_owner(owner: object) -> str:
    """Return `owner` when it names somebody; there is no shared space to fall back on.

    Raises:
        InputError: it is missing, blank, or no text.
    """
    if not isinstance(owner, str) or not owner.strip():
        raise InputError(f"A user id must be text that is not blank; got {owner!r}.")
    if "\x00" in owner or not is_unicode(owner):
        raise InputError(f"A user id must not hold NUL characters or halves of surrogate pairs; got {owner!r}.")
    return owner


def is_unicode(value: str) -> bool:
    """Return whether a text can be written as UTF-8; Python's own strings may hold halves of surrogate pairs."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def owner_number(connection: Connection, owner: str) -> int | None:
    """Return the number that stands for `owner` in the rows, or None for somebody unknown."""
    number: int | None = fetch_one(connection, "SELECT id FROM owners WHERE owner = ?", (owner,))
    return number


def enlist_owner(connection: Connection, owner: str) -> int:
    """Return the number of `owner`, giving one to somebody new."""
    number = owner_number(connection, owner)
    if number is None:
        number = connection.execute(owners.insert().values(owner=owner, revision=0)).lastrowid
    return int(number)


def all_owners(connection: Connection) -> list[str]:
    """Return everybody that has ever been written for, by name."""
    return list(connection.execute(select(owners.c.owner).order_by(owners.c.owner)).scalars())


def revision(connection: Connection, owner: int) -> int:
    """Return how often what this owner remembers has changed."""
    return int(fetch_one(connection, "SELECT revision FROM owners WHERE id = ?", (owner,)))


def raise_revision(connection: Connection, owner: int) -> None:
    """Count a change of what this owner remembers."""
    connection.exec_driver_sql("UPDATE owners SET revision = revision + 1 WHERE id = ?", (owner,))


def get_meta(connection: Connection, key: str) -> str | None:
    """Return a value kept about the ledger itself."""
    value: str | None = fetch_one(connection, "SELECT value FROM meta WHERE key = ?", (key,))
    return value


def set_meta(connection: Connection, key: str, value: str) -> None:
    """Keep a value about the ledger itself."""
    connection.exec_driver_sql("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))


def generation(connection: Connection) -> int:
    """Return the index generation: how often any process has written vectors."""
    return int(get_meta(connection, "index_generation") or 0)


def raise_generation(connection: Connection) -> int:
    """Announce a write to the vectors; returns the new generation."""
    new = generation(connection) + 1
    set_meta(connection, "index_generation", str(new))
    return new


def masks_secrets(connection: Connection, owner: str) -> bool:
    """Return whether secrets of `owner` are masked before they are written: so it is, unless the owner's policy says no."""
    statement = "SELECT p.mask_secrets FROM policies p JOIN owners o ON o.id = p.owner WHERE o.owner = ?"
    return fetch_one(connection, statement, (owner,)) in (None, 1)


def set_policy(connection: Connection, owner: int, mask_secrets: bool, at: datetime) -> None:
    """Keep an owner's policy, and log the change."""
    statement = "INSERT OR REPLACE INTO policies (owner, mask_secrets) VALUES (?, ?)"
    connection.exec_driver_sql(statement, (owner, mask_secrets))
    reason = f"masking of secrets turned {'on' if mask_secrets else 'off'}"
    append_event(connection, owner, "POLICY", at=at, policy="user", reason=reason)


def append_event(
    connection: Connection,
    owner: int,
    op: str,
    *,
    at: datetime,
    policy: str,
    reason: str,
    memory: Memory | None = None,
    before: Memory | None = None,
    turn: Turn | None = None,
    about: str | None = None,
    detail: dict[str, Any] | None = None,
) -> int:
    """Append one event and return its number. `memory` is the row after, `before` the row before; where it is about no memory,
    `about` is the id of the record that it is about."""
    subject = memory or before
    record = {
        "before": before.model_dump(mode="json") if before else None,
        "after": memory.model_dump(mode="json") if memory else None,
        **(detail or {}),
    }
    values = {
        "at": at.timestamp(),
        "owner": owner,
        "op": op,
        "memory_id": subject.id if subject else about,
        "version": subject.version if subject else None,
        "thread": turn.thread if turn else None,
        "message_id": turn.message_id if turn else None,
        "policy": policy,
        "reason": reason,
        "detail": json.dumps(record, ensure_ascii=False),
    }
    return insert_row(connection, "events", values)


def insert_row(connection: Connection, table: str, values: dict[str, Any]) -> int:
    """Insert one row and return its number."""
    # Not built from the table's description: that costs more than the insert, and this runs several times a turn.
    statement = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join(f':{name}' for name in values)})"
    return int(connection.exec_driver_sql(statement, values).lastrowid)


def read_events(
    connection: Connection,
    owner: int,
    *,
    memory_id: str | None = None,
    turn: tuple[str, str] | None = None,
    last: int | None = None,
) -> list[Event]:
    """Return events of one owner in order; `last` keeps the newest, `turn` is (thread, message id)."""
    statement = select(events).where(events.c.owner == owner).order_by(events.c.seq.desc())
    if memory_id is not None:
        statement = statement.where(events.c.memory_id == memory_id)
    if turn is not None:
        statement = statement.where(events.c.thread == turn[0], events.c.message_id == turn[1])
    rows = connection.execute(statement.limit(last) if last is not None else statement).mappings().all()
    return [
        Event(
            **{k: row[k] for k in ("seq", "op", "memory_id", "version", "thread", "message_id", "policy", "reason")},
            at=from_timestamp(row["at"]),
            detail=json.loads(row["detail"]),
        )
        for row in reversed(rows)
    ]


WAITS = "state != 'done' AND state = 'pending'"
"""Condition on turns that wait to be written; its first half is what lets SQLite use the index of those."""


def turn_state(connection: Connection, owner: int, thread: str, message_id: str) -> str | None:
    """Return `pending`, `failed` or `done` for a turn that was queued, None for one that never was."""
    statement = "SELECT state FROM turns WHERE owner = ? AND thread = ? AND message_id = ?"
    state: str | None = fetch_one(connection, statement, (owner, thread, message_id))
    return state


def queue_turn(connection: Connection, owner: int, turn: Turn, at: datetime, state: str = "pending") -> bool:
    """Put a turn into the queue; returns False when it is there already (idempotent by owner, thread, message id)."""
    statement = """
        INSERT INTO turns (owner, thread, message_id, state, turn, queued_at, attempts) VALUES (?, ?, ?, ?, ?, ?, 0)
        ON CONFLICT DO NOTHING
    """
    values = (owner, turn.thread, turn.message_id, state, turn.model_dump_json(), at.timestamp())
    return connection.exec_driver_sql(statement, values).rowcount == 1


def finish_turn(connection: Connection, owner: int, turn: Turn) -> None:
    """Mark a queued turn as written; its text stays with the utterances, so the queue lets go of it."""
    statement = (
        "UPDATE turns SET state = 'done', turn = '', error = NULL WHERE owner = ? AND thread = ? AND message_id = ?"
    )
    connection.exec_driver_sql(statement, (owner, turn.thread, turn.message_id))


def fail_turn(connection: Connection, owner: int, turn: Turn, error: str) -> None:
    """Keep a turn in the queue and note why it could not be written."""
    key = (turns.c.owner == owner, turns.c.thread == turn.thread, turns.c.message_id == turn.message_id)
    connection.execute(turns.update().where(*key).values(attempts=turns.c.attempts + 1, error=error))


def pending_turns(
    connection: Connection, owner: int | None = None, state: str = "pending"
) -> list[tuple[Turn, int, str | None]]:
    """Return queued turns in order, each with its attempts and last error; of everybody when `owner` is None."""
    statement = select(turns).where(turns.c.state != "done", turns.c.state == state)
    statement = statement.order_by(literal_column("turns.rowid"))
    if owner is not None:
        statement = statement.where(turns.c.owner == owner)
    return [
        (Turn.model_validate_json(r["turn"]), r["attempts"], r["error"])
        for r in connection.execute(statement).mappings()
    ]


def count_use(connection: Connection, owner: int, ids: list[str], at: datetime, column: str) -> None:
    """Count that memories were `recalled` or `cited`."""
    other = "cited" if column == "recalled" else "recalled"
    statement = f"""
        INSERT INTO uses (owner, memory_id, {column}, last_{column}_at, {other}) VALUES (?, ?, 1, ?, 0)
        ON CONFLICT (owner, memory_id) DO UPDATE SET {column} = {column} + 1, last_{column}_at = excluded.last_{column}_at
    """
    rows = [(owner, memory_id, at.timestamp()) for memory_id in dict.fromkeys(ids)]
    if rows:
        connection.exec_driver_sql(statement, rows)


def add_statistics(connection: Connection, owner: int, view: str, records: int, terms: int) -> None:
    """Keep count of an owner's records and terms in one keyword view; numbers may be negative."""
    statement = """
        INSERT INTO term_statistics (owner, view, records, terms) VALUES (?, ?, ?, ?)
        ON CONFLICT (owner, view) DO UPDATE SET records = records + excluded.records, terms = terms + excluded.terms
    """
    connection.exec_driver_sql(statement, (owner, view, records, terms))


def statistics(connection: Connection, owner: int, view: str) -> tuple[int, float]:
    """Return how many records the owner has in a keyword view, and their mean length in terms."""
    statement = "SELECT records, terms FROM term_statistics WHERE owner = ? AND view = ?"
    rows = fetch(connection, statement, (owner, view))
    return (rows[0][0], rows[0][1] / max(rows[0][0], 1)) if rows else (0, 0.0)


def standing_event(connection: Connection, owner: int, memory_id: str) -> int:
    """Return the number of the newest event about a memory that is not undone, 0 where there is none.

    What followed from the change of another memory (it names that event as `because`) is not counted.
    """
    about = read_events(connection, owner, memory_id=memory_id)
    undone = {event.detail["undoes"] for event in about if event.op == "UNDO"}
    return max(
        (
            event.seq
            for event in about
            if event.op != "UNDO" and "because" not in event.detail and event.seq not in undone
        ),
        default=0,
    )


def add_usage(connection: Connection, owner: int, day: str, spent: Usage) -> None:
    """Add what model calls have cost on a day (`2026-03-01`, UTC), by purpose."""
    statement = """
        INSERT INTO usage (owner, day, purpose, calls, prompt_tokens, completion_tokens) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (owner, day, purpose) DO UPDATE SET calls = calls + excluded.calls,
            prompt_tokens = prompt_tokens + excluded.prompt_tokens,
            completion_tokens = completion_tokens + excluded.completion_tokens
    """
    rows = [
        (owner, day, purpose, row["llm_calls"], row["prompt_tokens"], row["completion_tokens"])
        for purpose, row in spent.by_purpose.items()
    ]
    if rows:
        connection.exec_driver_sql(statement, rows)


def read_usage(connection: Connection, owner: int | None = None, day: str | None = None) -> dict[str, dict[str, int]]:
    """Return what model calls have cost, by purpose; of everybody without an owner, over all days without a day."""
    statement = """
        SELECT purpose, sum(calls), sum(prompt_tokens), sum(completion_tokens) FROM usage
        WHERE (?1 IS NULL OR owner = ?1) AND (?2 IS NULL OR day = ?2) GROUP BY purpose ORDER BY purpose
    """
    names = ("llm_calls", "prompt_tokens", "completion_tokens")
    return {
        purpose: dict(zip(names, counts, strict=True))
        for purpose, *counts in fetch(connection, statement, (owner, day))
    }
