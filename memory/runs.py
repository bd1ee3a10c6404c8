"""Runs of replay, as the ledger knows them: what was asked for, which steps are done, who is at work, what came of it.

A step is noted in the transaction that does its work. So a run that was killed is taken up where it stopped, and doing a
step again does nothing. One run of an owner is under way at a time: whoever is at work holds a claim, which runs out, or
ends with its process.
"""

import json
import os
import socket
import sys
import time
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from sharpwave.memory import ledger
from sharpwave.memory.errors import StoreError
from sharpwave.memory.ledger import from_timestamp
from sharpwave.memory.records import Record, new_id
from sharpwave.memory.sql import fetch, fetch_one

LEASE = 60.0
"""Seconds that a claim lasts, unless it is renewed: each step renews it."""


class UnderWay(StoreError):
    """Somebody else replays the same owner's memories at this moment."""


class Run(Record):
    """A run of replay."""

    run: str
    begun_at: datetime
    ended_at: datetime | None = None
    asked: dict[str, Any]
    result: dict[str, Any] | None = None


class Begun(NamedTuple):
    """A run that has begun, or has been taken up."""

    run: Run
    resumed: bool


def claimant() -> str:
    """Return a name for somebody who is at work in this process."""
    return f"{socket.gethostname()}:{os.getpid()}:{new_id()}"


def begin(
    connection: Connection, owner: int, asked: dict[str, Any], by: str, at: datetime, run: str | None = None
) -> Begun:
    """Begin a run, or take one up that was asked for in the same way and has not ended.

    Args:
        connection: inside a write transaction.
        owner: the owner's number.
        asked: what is asked for.
        by: who is at work; see `claimant`.
        at: the present.
        run: its id, for one that may have begun before. It goes on as it was asked for then.

    Raises:
        UnderWay: somebody else is at work for this owner.
    """
    open_ = [_run(row) for row in fetch(connection, f"{_SELECT} AND ended_at IS NULL ORDER BY begun_at", (owner,))]
    for one in open_:
        _claim(connection, owner, one.run, by)
    known = find(connection, owner, run) if run else next((one for one in open_ if one.asked == asked), None)
    for one in open_:
        if known is None or one.run != known.run:
            finish(connection, owner, one, {"partial": "given up: another run was asked for"}, at)
    if known is not None:
        return Begun(known, True)
    new = Run(run=run or new_id(), begun_at=at, asked=asked)
    values = {"owner": owner, "run": new.run, "begun_at": at.timestamp(), "asked": json.dumps(asked)}
    ledger.insert_row(connection, "replays", values | {"claimed_by": by, "claimed_until": time.time() + LEASE})
    return Begun(new, False)


def _claim(connection: Connection, owner: int, run: str, by: str) -> None:
    _check(connection, owner, run, by)
    connection.exec_driver_sql(
        "UPDATE replays SET claimed_by = ?, claimed_until = ? WHERE owner = ? AND run = ?",
        (by, time.time() + LEASE, owner, run),
    )


def _check(connection: Connection, owner: int, run: str, by: str) -> None:
    statement = "SELECT claimed_by, claimed_until FROM replays WHERE owner = ? AND run = ?"
    (holder, until), *_ = fetch(connection, statement, (owner, run)) or [(None, None)]
    # A claim that lasts longer than any can was made by a clock that has been set back since.
    if holder not in (None, by) and time.time() < until < time.time() + 2 * LEASE and _lives(holder):
        raise UnderWay(
            "A replay for this user is under way, in another process or thread. Try again when it has ended."
        )


def _lives(holder: str) -> bool:
    """Return whether somebody may still be at work: True where that cannot be told."""
    host, process, _ = holder.rsplit(":", 2)
    if host != socket.gethostname() or sys.platform == "win32":  # there, asking a process would end it
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def step(connection: Connection, owner: int, run: str, by: str, name: str) -> dict[str, Any] | None:
    """Return what came of a step, None where it is still to be done; renews the claim of who is at work.

    Raises:
        UnderWay: somebody else has taken the run up.
    """
    _check(connection, owner, run, by)
    # Not taken anew: of several steps at the same time one may have failed, and let go of the run.
    connection.exec_driver_sql(
        "UPDATE replays SET claimed_until = ? WHERE owner = ? AND run = ? AND claimed_by = ?",
        (time.time() + LEASE, owner, run, by),
    )
    statement = "SELECT result FROM replay_steps WHERE owner = ? AND run = ? AND step = ?"
    found = fetch_one(connection, statement, (owner, run, name))
    return None if found is None else dict(json.loads(found))


def note(connection: Connection, owner: int, run: str, name: str, result: dict[str, Any]) -> None:
    """Note that a step is done, and what came of it."""
    values = {"owner": owner, "run": run, "step": name, "result": json.dumps(result)}
    ledger.insert_row(connection, "replay_steps", values)


def steps(connection: Connection, owner: int, run: str) -> dict[str, dict[str, Any]]:
    """Return what came of the steps that are done."""
    found = fetch(connection, "SELECT step, result FROM replay_steps WHERE owner = ? AND run = ?", (owner, run))
    return {name: json.loads(result) for name, result in found}


def finish(connection: Connection, owner: int, run: Run, result: dict[str, Any], at: datetime) -> None:
    """End a run, with the one event that tells of it; a run that has ended stays as it is."""
    told = {"run": run.run, "asked": run.asked, "result": result, "steps": steps(connection, owner, run.run)}
    ended = connection.exec_driver_sql(
        "UPDATE replays SET ended_at = ?, result = ?, claimed_by = NULL, claimed_until = NULL "
        "WHERE owner = ? AND run = ? AND ended_at IS NULL",
        (at.timestamp(), json.dumps(result), owner, run.run),
    ).rowcount
    if ended:
        reason = f"replayed {result.get('replayed', 0)} records ({result.get('strategy', 'unknown')})"
        ledger.append_event(connection, owner, "REPLAY", at=at, policy="replay/1", reason=reason, detail=told)
        connection.exec_driver_sql("DELETE FROM replay_steps WHERE owner = ? AND run = ?", (owner, run.run))


def release(connection: Connection, owner: int, run: str, by: str) -> None:
    """Let go of a run that has not ended, so that anybody may take it up."""
    statement = (
        "UPDATE replays SET claimed_by = NULL, claimed_until = NULL WHERE owner = ? AND run = ? AND claimed_by = ?"
    )
    connection.exec_driver_sql(statement, (owner, run, by))


_SELECT = "SELECT run, begun_at, ended_at, asked, result FROM replays WHERE owner = ?"


def _run(row: Any) -> Run:
    run, begun, ended, asked, result = row
    return Run(
        run=run,
        begun_at=from_timestamp(begun),
        ended_at=None if ended is None else from_timestamp(ended),
        asked=json.loads(asked),
        result=None if result is None else json.loads(result),
    )


def find(connection: Connection, owner: int, run: str) -> Run | None:
    """Return the run with this id, None where the owner has none."""
    rows = fetch(connection, f"{_SELECT} AND run = ?", (owner, run))
    return _run(rows[0]) if rows else None


def history(connection: Connection, owner: int, last: int = 20) -> list[Run]:
    """Return the latest runs, the newest first."""
    return [_run(row) for row in fetch(connection, f"{_SELECT} ORDER BY begun_at DESC LIMIT ?", (owner, last))]


def count(connection: Connection, owner: int) -> int:
    """Return how many runs have ended."""
    return int(fetch_one(connection, "SELECT count(*) FROM replays WHERE owner = ? AND ended_at IS NOT NULL", (owner,)))


def unfinished(connection: Connection) -> list[tuple[str, Run]]:
    """Return the runs that have not ended, of everybody, each with its owner."""
    statement = """
        SELECT o.owner, r.run, r.begun_at, r.ended_at, r.asked, r.result
        FROM replays r JOIN owners o ON o.id = r.owner WHERE r.ended_at IS NULL ORDER BY r.begun_at
    """
    return [(owner, _run(row)) for owner, *row in fetch(connection, statement)]


def new_turns(connection: Connection, owner: int, since: datetime) -> bool:
    """Return whether turns wait to be written that were queued since then, and have not failed."""
    statement = f"SELECT 1 FROM turns WHERE {ledger.WAITS} AND owner = ? AND queued_at > ? AND error IS NULL LIMIT 1"
    return bool(fetch(connection, statement, (owner, since.timestamp())))
