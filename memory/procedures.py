"""Procedures (procedural memory): strategies that worked, how often, and how sure that makes them.

One that was learned from a single episode is a candidate until it has worked again. The keyless way to learn is extractive:
the calls of the episode that did not fail, in order, as they were made. A chat model may put them in general terms.
"""

import bisect
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from langchain_core.language_models.chat_models import BaseChatModel
from sqlalchemy import Connection

from sharpwave.memory import ledger, rows, times
from sharpwave.memory.errors import InputError, OwnershipError
from sharpwave.memory.kinds import Episode, Procedure
from sharpwave.memory.ledger import Event
from sharpwave.memory.practice import action_of, drafted, followed, has_calls, task_of
from sharpwave.memory.records import Record
from sharpwave.memory.wilson import lower_bound

if TYPE_CHECKING:
    from sharpwave.memory.store import MemoryStore

SIMILAR = 0.3
"""Least cosine between what is asked and what a procedure is for, for it to apply (all-MiniLM-L6-v2: tasks of one sort have
0.32 to 0.87, others 0.02 to 0.10)."""
CONFIDENT = 0.3
"""Least Wilson lower bound of a procedure that is active: two successes, or three with one failure."""
COUNTED = 50
"""Ids of episodes that a procedure remembers, so that none of them counts twice."""

Standing = Literal["candidate", "active", "demoted"]


class Applicable(Record):
    """A procedure that applies to a situation."""

    procedure: Procedure
    similarity: float
    """Cosine (-1..1) between the situation and what the procedure is for."""


def _fits(one: Applicable) -> float:
    return one.similarity * one.procedure.confidence


def standing(successes: int, failures: int) -> Standing:
    """Return the status that this record earns: active from a lower bound of `CONFIDENT` on, and below it demoted by any
    failure, else a candidate."""
    if lower_bound(successes, failures) >= CONFIDENT:
        return "active"
    return "demoted" if failures else "candidate"


class Procedures:
    """The procedures in a store; usable without any graph."""

    def __init__(self, store: "MemoryStore") -> None:
        self._store = store

    # Reading

    def find(self, owner: str, *, agent: str | None = None, statuses: Sequence[str] = ()) -> list[Procedure]:
        """Return the owner's procedures, the one used last at the end; of one agent, of some statuses."""
        with self._store.transaction(owner) as (connection, number):
            return rows.find(connection, number, owner, Procedure, agent=agent, statuses=statuses)

    def get(self, owner: str, procedure_id: str) -> Procedure:
        """Return a procedure; raises `NotFoundError` where the owner has none with this id."""
        with self._store.transaction(owner) as (connection, number):
            return rows.get(connection, number, owner, Procedure, procedure_id)

    def history(self, owner: str, procedure_id: str) -> list[Event]:
        """Return everything that happened to a procedure, in order, with its row before and after (`detail`); raises
        `NotFoundError`."""
        with self._store.transaction(owner) as (connection, number):
            rows.get(connection, number, owner, Procedure, procedure_id)
            return ledger.read_events(connection, number, memory_id=procedure_id)

    def applicable(self, owner: str, context: str, *, agent: str = "agent", k: int = 5) -> list[Applicable]:
        """Return up to `k` active procedures for a situation told in words, by similarity times confidence, best first."""
        if not context.strip() or not self._any_active(owner, agent):
            return []
        vector, fit = self._store.embed_query(context), list[Applicable]()
        with self._store.transaction(owner) as (connection, number):
            for procedure, similarity in rows.nearest(
                *(connection, number, owner, Procedure, vector),
                k=10 * k,
                floor=SIMILAR,
                agent=agent,
                statuses=("active",),
            ):
                if len(fit) >= k and similarity < _fits(fit[k - 1]):
                    break  # the rest cannot fit better, however sure it is
                if procedure.confidence >= CONFIDENT:
                    bisect.insort(
                        fit, Applicable(procedure=procedure, similarity=similarity), key=lambda one: -_fits(one)
                    )
        return fit[:k]

    def _any_active(self, owner: str, agent: str) -> bool:
        with self._store.transaction(owner) as (connection, number):
            return bool(rows.find(connection, number, owner, Procedure, agent=agent, statuses=("active",), last=1))

    # Writing

    def add(
        self,
        owner: str,
        name: str,
        conditions: str,
        steps: Sequence[str],
        *,
        agent: str = "agent",
        successes: int = 0,
        failures: int = 0,
    ) -> Procedure:
        """Keep a procedure by hand. Where the agent has one of this name, it becomes a new version of that, and its counts
        begin anew.

        Args:
            owner: whose.
            name: what it is called, in any case.
            conditions: when it applies.
            steps: what to do, in order.
            agent: which of the owner's agents it is for.
            successes: how often it is known to have worked.
            failures: how often it is known to have failed.

        Raises:
            InputError: a part is blank, or a count is negative.
        """
        name, conditions, lines = self._store.masked(
            owner, (name.strip(), conditions.strip(), [s.strip() for s in steps])
        )
        if not (name and conditions and lines and all(lines)):
            raise InputError("A procedure needs a name, conditions and at least one step, none of them blank.")
        if successes < 0 or failures < 0:
            raise InputError(f"A procedure cannot have {successes} successes and {failures} failures; count from 0.")
        made = Procedure(
            owner=owner,
            name=name,
            agent=agent,
            conditions=conditions,
            steps=tuple(lines),
            actions=tuple(action_of(step) for step in lines),
            successes=successes,
            failures=failures,
            status=standing(successes, failures),
            created_at=times.now(),
        )
        self._store.embed([made.searched])
        with self._store.transaction(owner, writes=True) as (connection, number):
            known = rows.find(connection, number, owner, Procedure, key=made.key)
            if not known:
                return self._put(connection, number, made, "PROCEDURE", "user", "added by hand")
            kept = {"id": known[0].id, "version": known[0].version + 1, "pinned": known[0].pinned}
            return self._put(connection, number, made.model_copy(update=kept), "REVISE", "user", "changed by hand")

    def count(self, owner: str, procedure_id: str, success: bool, reason: str = "counted by hand") -> Procedure:
        """Count one use of a procedure, and raise or demote it by that; raises `NotFoundError`."""
        return self._change(
            owner, procedure_id, lambda kept: _counted(kept, success, None, times.now()), "user", reason
        )

    def retire(self, owner: str, procedure_id: str, reason: str = "retired by hand") -> Procedure:
        """Take a procedure out of use for good: what is learned later does not bring it back. Raises `NotFoundError`."""
        return self._change(
            owner, procedure_id, lambda kept: kept.model_copy(update={"status": "expired"}), "user", reason
        )

    def learn(self, owner: str, episode: Episode, model: BaseChatModel | None = None) -> Procedure | None:
        """Learn from an episode: count it for the procedure that it used, or else keep what worked as a candidate.

        A success used a procedure of its agent when the calls that did not fail are that one's, in order; a failure also
        when it broke off on the way; and the tasks must be similar. Partial and abandoned episodes teach nothing, nor
        does one that was counted before, nor what was retired.

        Args:
            owner: whose episode.
            episode: it needs not be kept in the store.
            model: puts what is new in general terms, in one call counted as `procedure`; without, it is kept as it was.

        Returns: the procedure that was learned or counted, None where there was nothing to learn.

        Raises:
            OwnershipError: the episode is somebody else's.
            ModelError: the model failed; nothing is written.
        """
        if episode.owner != owner:
            raise OwnershipError("The episode to learn from belongs to another user than the one who is named.")
        lived: Episode = self._store.masked(owner, episode)
        task = task_of(lived)
        if lived.outcome not in ("success", "failure") or not task or not has_calls(lived):
            return None
        vector = self._store.embed_query(task)

        def used(connection: Connection, number: int) -> Procedure | None:
            near = rows.nearest(connection, number, owner, Procedure, vector, k=1000, agent=lived.agent)
            return next((kept for kept, cosine in near if cosine >= SIMILAR and followed(kept, lived)), None)

        with self._store.transaction(owner) as (connection, number):
            known = used(connection, number)
        draft = None if known else self._store.masked(owner, drafted(lived, model))
        if not (known or draft):
            return None
        self._store.embed([made.searched for made in (known, draft) if made])
        with self._store.transaction(owner, writes=True) as (connection, number):
            known = used(connection, number)  # again: another process may have learned it meanwhile
            if known is not None:
                return self._count(connection, number, known, lived)
            return draft and self._keep(connection, number, draft, "llm/1" if model else "rules/1")

    def _count(self, connection: Connection, number: int, known: Procedure, lived: Episode) -> Procedure | None:
        if known.status == "expired" or lived.id in known.learned_from:
            return None
        success = lived.outcome == "success"
        counted = _counted(known, success, lived.id, lived.ended_at)
        reason = f"it {'worked' if success else 'failed'} in the episode {lived.id}"
        return self._put(connection, number, counted, _op(known, counted), "rules/1", reason)

    def _keep(self, connection: Connection, number: int, draft: Procedure, policy: str) -> Procedure:
        names = {kept.key for kept in rows.find(connection, number, draft.owner, Procedure, agent=draft.agent)}
        name, again = draft.name, 2
        while draft.key in names:
            draft = draft.model_copy(update={"name": f"{name} ({again})"})
            again += 1
        reason = f"it worked in the episode {draft.learned_from[0]}"
        return self._put(connection, number, draft, "PROCEDURE", policy, reason)

    def _change(
        self, owner: str, procedure_id: str, change: Callable[[Procedure], Procedure], policy: str, reason: str
    ) -> Procedure:
        self._store.embed([self.get(owner, procedure_id).searched])
        with self._store.transaction(owner, writes=True) as (connection, number):
            kept = rows.get(connection, number, owner, Procedure, procedure_id)
            changed = change(kept)
            return self._put(connection, number, changed, _op(kept, changed), policy, self._store.masked(owner, reason))

    def _put(
        self, connection: Connection, number: int, made: Procedure, op: str, policy: str, reason: str
    ) -> Procedure:
        rows.put(
            connection, number, made, op=op, at=times.now(), policy=policy, reason=reason, embed=self._store.vector
        )
        return made


def _counted(kept: Procedure, success: bool, episode: str | None, at: datetime) -> Procedure:
    successes, failures = kept.successes + success, kept.failures + (not success)
    held = kept.pinned or kept.status == "expired"
    return kept.model_copy(
        update={
            "successes": successes,
            "failures": failures,
            "status": kept.status if held else standing(successes, failures),
            "used_at": max(at, kept.used_at or at),
            "learned_from": (*kept.learned_from, *([episode] if episode else []))[-COUNTED:],
        }
    )


def _op(before: Procedure, after: Procedure) -> str:
    if before.status == after.status:
        return "COUNT"
    return {"active": "PROMOTE", "demoted": "DEMOTE", "expired": "RETIRE"}.get(after.status, "COUNT")
