"""The queue of turns that are written later: what waits, and who is at work on it.

A turn is claimed before a model is asked about it. The claim is a lease in its row: while it lasts, nobody else takes a
turn of the same owner, in whichever thread or process; that of a dead process runs out. A turn that failed too often is
`failed`: it no longer holds up the later ones, and waits until somebody has it tried again.
"""

import time

from sharpwave.memory import ledger, secrets, times
from sharpwave.memory.ledger import Ledger, check_owner
from sharpwave.memory.records import Turn
from sharpwave.memory.sql import fetch, fetch_one

WAITS = ledger.WAITS


class TurnQueue:
    """The queue in a ledger. Every call is a transaction of its own.

    Args:
        ledger: where the queue is.
        name: of the one who claims turns by this object; no two share one.
    """

    def __init__(self, ledger: Ledger, name: str = "") -> None:
        self.ledger, self.name = ledger, name

    def put(self, turn: Turn) -> str:
        """Queue a turn durably, or complete one that waits by what has answered it since; returns its state.

        `pending`, `failed`, or `done` where it was written before. Nothing is embedded; secrets are masked.
        """
        with self.ledger.read() as connection:
            masks = ledger.masks_secrets(connection, check_owner(turn.owner))
        turn = secrets.mask(turn)[0] if masks else turn
        statement = """
            INSERT INTO turns (owner, thread, message_id, state, turn, queued_at, attempts)
            VALUES (?, ?, ?, 'pending', ?, ?, 0)
            ON CONFLICT (owner, thread, message_id) DO UPDATE SET turn = excluded.turn
            WHERE state = 'pending' AND length(excluded.turn) > length(turns.turn)
        """
        with self.ledger.write() as connection:
            number = ledger.enlist_owner(connection, check_owner(turn.owner))
            values = (number, turn.thread, turn.message_id, turn.model_dump_json(), times.now().timestamp())
            connection.exec_driver_sql(statement, values)
            return ledger.turn_state(connection, number, turn.thread, turn.message_id) or "pending"

    def claim(self, owner: str, seconds: float) -> tuple[Turn, int] | None:
        """Claim the owner's oldest turn for so long; returns it with its failed attempts.

        None when none waits, or somebody else is at work for this owner.
        """
        now = time.time()
        with self.ledger.write() as connection:
            number = ledger.owner_number(connection, owner)
            others = f"SELECT 1 FROM turns WHERE {WAITS} AND owner = ? AND claimed_until > ? AND claimed_by != ?"
            if number is None or fetch_one(connection, others, (number, now, self.name)):
                return None
            oldest = f"SELECT rowid, turn, attempts FROM turns WHERE {WAITS} AND owner = ? ORDER BY rowid LIMIT 1"
            rows = fetch(connection, oldest, (number,))
            if not rows:
                return None
            row, turn, attempts = rows[0]
            connection.exec_driver_sql(
                "UPDATE turns SET claimed_by = ?, claimed_until = ? WHERE rowid = ?", (self.name, now + seconds, row)
            )
        return Turn.model_validate_json(turn), attempts

    def holds(self, turn: Turn) -> bool:
        """Return whether a turn that was claimed still waits and nobody else has claimed it since."""
        with self.ledger.read() as connection:
            number = ledger.owner_number(connection, turn.owner)
            statement = f"SELECT claimed_by FROM turns WHERE {WAITS} AND owner = ? AND thread = ? AND message_id = ?"
            return bool(fetch_one(connection, statement, (number, turn.thread, turn.message_id)) == self.name)

    def renew(self, seconds: float) -> None:
        """Make what this object has claimed last so long from now on."""
        with self.ledger.write() as connection:
            connection.exec_driver_sql(
                f"UPDATE turns SET claimed_until = ? WHERE {WAITS} AND claimed_by = ?",
                (time.time() + seconds, self.name),
            )

    def release(self) -> None:
        """Let go of what this object has claimed."""
        with self.ledger.write() as connection:
            connection.exec_driver_sql(
                f"UPDATE turns SET claimed_until = NULL, claimed_by = NULL WHERE {WAITS} AND claimed_by = ?",
                (self.name,),
            )

    def give_up(self, turn: Turn, error: str) -> None:
        """Take a turn for dead: it stays, with the reason, and holds up nothing any more."""
        with self.ledger.write() as connection:
            number = ledger.owner_number(connection, turn.owner)
            connection.exec_driver_sql(
                "UPDATE turns SET state = 'failed', error = ?, claimed_until = NULL, claimed_by = NULL "
                "WHERE state != 'done' AND owner = ? AND thread = ? AND message_id = ?",
                (error, number, turn.thread, turn.message_id),
            )

    def put_off(self, turn: Turn, reason: str) -> None:
        """Let a turn wait, for a reason that is no failure, and let go of it."""
        with self.ledger.write() as connection:
            number = ledger.owner_number(connection, turn.owner)
            connection.exec_driver_sql(
                f"UPDATE turns SET error = ?, claimed_until = NULL, claimed_by = NULL WHERE {WAITS} "
                "AND owner = ? AND thread = ? AND message_id = ?",
                (reason, number, turn.thread, turn.message_id),
            )

    def failed(self, owner: str, patience: int) -> list[Turn]:
        """Return the owner's turns that wait and have failed, though fewer than `patience` times, oldest first."""
        statement = f"SELECT turn FROM turns WHERE {WAITS} AND owner = ? AND attempts BETWEEN 1 AND ? ORDER BY rowid"
        with self.ledger.read() as connection:
            number = ledger.owner_number(connection, owner)
            return [Turn.model_validate_json(turn) for (turn,) in fetch(connection, statement, (number, patience - 1))]

    def revive(self, owner: str | None = None) -> int:
        """Let turns that were given up wait again, with all their attempts; returns how many there were."""
        with self.ledger.write() as connection:
            statement = "UPDATE turns SET state = 'pending', attempts = 0 WHERE state != 'done' AND state = 'failed'"
            if owner is None:
                return connection.exec_driver_sql(statement).rowcount
            number = ledger.owner_number(connection, check_owner(owner))
            return connection.exec_driver_sql(f"{statement} AND owner = ?", (number,)).rowcount

    def owners(self) -> list[str]:
        """Return whose turns wait."""
        statement = f"SELECT owner FROM owners WHERE id IN (SELECT owner FROM turns WHERE {WAITS})"
        with self.ledger.read() as connection:
            return [row[0] for row in fetch(connection, statement)]

    def claimed(self) -> set[str]:
        """Return for whom somebody else is at work."""
        statement = f"""
            SELECT owner FROM owners WHERE id IN
            (SELECT owner FROM turns WHERE {WAITS} AND claimed_until > ? AND claimed_by != ?)
        """
        with self.ledger.read() as connection:
            return {row[0] for row in fetch(connection, statement, (time.time(), self.name))}
