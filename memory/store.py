"""`MemoryStore`: the one way in to what is remembered in a folder.

Each call names its owner, and the owner is checked here, once; rows are checked again when they become records. Every
write is one SQL transaction, then the vectors follow into Chroma, inside a lock between processes that is never held
during a model call.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection

from sharpwave.memory import applying, episodic, ledger, rerank, times
from sharpwave.memory.applying import Applied
from sharpwave.memory.by_hand import ByHand
from sharpwave.memory.decide.shadow import Difference
from sharpwave.memory.ledger import check_owner
from sharpwave.memory.records import Decision, Recall, Turn, Usage
from sharpwave.memory.rerank import Lesson


class StaleDecision(Exception):
    """The owner's memories changed between deciding and applying; decide again."""


class MemoryStore(ByHand):
    """What is remembered in one folder: the ledger, the vectors, and the embedder that made them.

    Safe to share between threads; several processes may open the same folder. What is written is found at once; its
    vectors are indexed from time to time, when the store closes, and at the latest when it is opened again.
    """

    @staticmethod
    def spoken(turns: Sequence[Turn]) -> list[str]:
        """Return the texts that keeping these turns embeds."""
        return [episodic.spoken(m.speaker or m.role, m.text) for turn in turns for m in turn.messages if m.text.strip()]

    def queue(self, turns: Sequence[Turn]) -> list[Turn]:
        """Keep turns durably, verbatim, before anything is decided about them; returns those not yet written.

        Idempotent by (owner, thread, message id): what is known already is not kept twice. The turns that are returned
        are as they were kept, secrets masked (see `masked`): go on with those.
        """
        turns = self._masked(turns)
        self.embed(self.spoken(turns))
        with self.ledger.write() as connection:
            self._check_embedder(connection)
            for owner in dict.fromkeys(check_owner(turn.owner) for turn in turns):
                self._keep_verbatim(connection, [turn for turn in turns if turn.owner == owner])
            return [turn for turn in turns if self._state(connection, turn) != "done"]

    def _state(self, connection: Connection, turn: Turn) -> str | None:
        number = ledger.enlist_owner(connection, turn.owner)
        return ledger.turn_state(connection, number, turn.thread, turn.message_id)

    def _keep_verbatim(self, connection: Connection, turns: Sequence[Turn]) -> None:
        at = times.now()
        number = ledger.enlist_owner(connection, turns[0].owner)
        for turn in turns:
            ledger.queue_turn(connection, number, turn, at)
        episodic.keep(connection, number, turns, self.vector, at)

    def apply(
        self,
        turn: Turn,
        decisions: Sequence[Decision],
        *,
        revision: int | None,
        shown: Sequence[str] = (),
        recalled: Sequence[str] = (),
        cited: Sequence[str] = (),
        lesson: Lesson | None = None,
        index: bool = True,
    ) -> list[Applied]:
        """Carry out decisions and mark the turn as written, all or nothing; a turn that is written already changes nothing.

        Args:
            turn: the turn, queued before.
            decisions: what to do, as the guard passed them.
            revision: of the owner's memories when it was decided; None carries it out whatever has changed since.
            shown: ids of the memories that the policy saw.
            recalled: memory ids that the turn recalled.
            cited: memory ids that its answer cited.
            lesson: what these citations teach recall.
            index: see to the vectors, once enough of them wait; False leaves them to `index_pending`.

        Raises:
            StaleDecision: the owner's memories have changed since; decide again.
        """
        turn, decisions = self.masked(turn.owner, (turn, tuple(decisions)))
        self.embed([d.text or d.candidate.text for d in decisions if d.op in ("ADD", "UPDATE")])

        def work(connection: Connection) -> list[Applied]:
            number = ledger.enlist_owner(connection, check_owner(turn.owner))
            if ledger.turn_state(connection, number, turn.thread, turn.message_id) == "done":
                return []
            if decisions and revision is not None and ledger.revision(connection, number) != revision:
                raise StaleDecision(turn.owner)
            at = times.now()
            ledger.queue_turn(
                connection, number, turn, at
            )  # known from before, as a rule; if not, it counts from now on
            done = applying.apply(connection, number, turn, decisions, self.vector, at, shown)
            ledger.count_use(connection, number, list(recalled), turn.said_at, "recalled")
            ledger.count_use(connection, number, list(cited), turn.said_at, "cited")
            if lesson is not None:
                rerank.learn(connection, number, lesson)
            ledger.finish_turn(connection, number, turn)
            return done

        return self._commit(work) if index else self._write(work)

    def count_recalled(self, owner: str, hits: Sequence[Recall], now: datetime | None = None) -> None:
        """Count that memories were recalled and put to use; what was only looked through (a list) is not counted."""
        ids = [hit.id for hit in hits if hit.store == "semantic"]
        if ids:
            at = times.utc(now) if now else times.now()
            with self.transaction(owner, writes=True) as (connection, number):
                ledger.count_use(connection, number, ids, at, "recalled")

    def learn_recall(self, owner: str, lesson: Lesson) -> None:
        """Learn from what an answer cited; for answers that are not written as turns (see `apply`)."""
        with self.transaction(owner, writes=True) as (connection, number):
            rerank.learn(connection, number, lesson)

    def reset_recall(self, owner: str) -> int:
        """Forget what recall has learned from this owner's citations; returns from how many answers that was."""
        with self.transaction(owner, writes=True) as (connection, number):
            return rerank.reset(connection, number)

    def pass_over(self, turns: Sequence[Turn]) -> None:
        """Mark queued turns as written that hold nothing to decide about, all in one transaction."""
        with self.ledger.write() as connection:
            for turn in turns:
                ledger.finish_turn(connection, ledger.enlist_owner(connection, check_owner(turn.owner)), turn)

    def fail(self, turn: Turn, error: str) -> None:
        """Note why a queued turn could not be written; it stays in the queue."""
        error = self.masked(turn.owner, error)
        with self.transaction(turn.owner, writes=True) as (connection, number):
            ledger.fail_turn(connection, number, turn, error)

    def spend(self, owner: str, usage: Usage) -> None:
        """Add what model calls for `owner` have cost to today's account (UTC)."""
        if usage.llm_calls:
            with self.ledger.write() as connection:
                number = ledger.enlist_owner(connection, check_owner(owner))
                ledger.add_usage(connection, number, f"{times.now():%Y-%m-%d}", usage)

    def note_shadow(self, turn: Turn, found: Sequence[Difference]) -> None:
        """Log, once a turn, where a policy that only watches would have decided otherwise; see `decide.shadow`."""
        with self.ledger.write() as connection:
            number = ledger.enlist_owner(connection, check_owner(turn.owner))
            before = ledger.read_events(connection, number, turn=(turn.thread, turn.message_id))
            if any(event.op == "SHADOW" for event in before):
                return
            for one in found:
                ledger.append_event(
                    connection,
                    number,
                    "SHADOW",
                    at=times.now(),
                    policy=one.shadow.policy,
                    reason=f"would have been {one.shadow.op}, and was {one.live.op} by {one.live.policy}",
                    turn=turn,
                    detail=one.model_dump(mode="json"),
                )
