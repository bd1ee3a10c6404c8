"""Reading what is remembered: recall, and the rows of memories, messages, events and turns. Everything asks for an owner."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

import numpy as np

from sharpwave.memory import choosing, edits, episodic, knowing, ledger, rerank, semantic, times
from sharpwave.memory import neighbours as near
from sharpwave.memory import recall as finding
from sharpwave.memory.folder import Folder
from sharpwave.memory.index import StoreName
from sharpwave.memory.ledger import Event, check_owner
from sharpwave.memory.question import Query, When, ending, question_in
from sharpwave.memory.records import Candidate, Memory, Recall, Turn, Utterance
from sharpwave.memory.when import resolve_range


class Lookup(Folder):
    """The half of `MemoryStore` that changes nothing."""

    def owners(self) -> list[str]:
        """Return everybody that this store has written for."""
        with self.ledger.read() as connection:
            return ledger.all_owners(connection)

    def recall(
        self,
        owner: str,
        query: str,
        *,
        k: int | None = None,
        budget: int | None = None,
        stores: Sequence[StoreName] = ("semantic", "episodic"),
        as_of: datetime | None = None,
        include_history: bool = False,
        explain: bool = False,
        strict: bool = False,
        floor: float = finding.FLOOR,
        only: Callable[[Recall], bool] | None = None,
        now: datetime | None = None,
        known_at: datetime | None = None,
        timezone: str = "UTC",
    ) -> list[Recall]:
        """Return what `owner` has said or is remembered for that has to do with `query`, best first; empty when nothing is known.

        Args:
            owner: whose memory; nobody else's is ever returned.
            query: a question or any text, in any script.
            k: at most so many; None is no limit.
            budget: at most so many tokens of text in all; None is no limit.
            stores: `semantic` for memories, `episodic` for verbatim utterances.
            as_of: read the past: what was held true then.
            include_history: also return what was superseded, retracted or has expired.
            explain: attach the parts of each score.
            strict: leave out what is stale too (see `staleness.is_stale`).
            floor: least relevance (cosine + half the keyword coverage) that counts as knowing something.
            only: what may be returned; anything else takes no place in `k` and `budget`.
            now: the present, for recency, and for times that the query names ("last month").
            known_at: read the past of the record: only what had been written by then, as it was known then. Writing times
                are those of the machine's clock, also for turns that were said at another time. Goes with `as_of`.
            timezone: IANA zone in which the query names times; memories of that time rank a little higher.

        Raises:
            InputError: a blank owner, or a negative `k` or `budget`.
        """
        choosing.check_limits(k, budget)
        check_owner(owner)
        if not query.strip() or k == 0:
            return []
        question = question_in(query)
        asked = Query.of(question, self.embed_query(question))
        present = times.utc(now) if now else times.now()
        when = When(
            now=present,
            as_of=times.utc(as_of) if as_of else None,
            known_at=times.utc(known_at) if known_at else None,
            asked=resolve_range(question, present, timezone),
        )
        with self._indexing.lock.shared(), self.transaction(owner) as (connection, number):
            if not number:
                return []
            nearest = self._nearest(connection, owner, live=not (when.as_of or when.known_at or include_history))
            reranker = rerank.load(connection, number) if self.learns_recall else None
            memories: Iterator[Recall] = iter(())
            utterances: Iterator[Recall] = iter(())
            if "semantic" in stores:
                memories = choosing.varied(
                    finding.search_memories(
                        connection,
                        number,
                        asked,
                        nearest,
                        when=when,
                        include_history=include_history,
                        strict=strict,
                        floor=floor,
                        reranker=reranker,
                    )
                )
            if "episodic" in stores:
                utterances = finding.search_utterances(
                    connection,
                    number,
                    owner,
                    asked,
                    nearest,
                    when=when,
                    floor=floor,
                    reranker=reranker,
                )
            kept = choosing.within(filter(only, choosing.merged(memories, utterances)), k, budget)
        return kept if explain else [hit.model_copy(update={"parts": None}) for hit in kept]

    def known(self, turn: Turn, k: int = 10) -> list[Recall]:
        """Return the `k` memories nearest to what the user says in a turn, best first: what an extractor is shown.

        The turn has been queued, so its vectors are at hand and nothing is embedded.
        """
        said = [
            episodic.spoken(m.speaker or m.role, m.text) for m in turn.messages if m.role == "user" and m.text.strip()
        ]
        if not said:
            return []
        vector = np.mean([self.vector(text) for text in said], axis=0)
        asked = Query.of(ending(turn.user_text), vector / max(float(np.linalg.norm(vector)), 1e-9))
        with self._indexing.lock.shared(), self.transaction(turn.owner) as (connection, number):
            return near.nearby(connection, number, [asked], self._nearest(connection, turn.owner, live=True), k)[0]

    def neighbours(self, owner: str, candidates: Sequence[Candidate]) -> tuple[list[list[Recall]], int]:
        """Return what a decision about each candidate should see, and the revision of the owner's memories it holds for."""
        self.embed([candidate.text for candidate in candidates])
        with self._indexing.lock.shared(), self.ledger.read() as connection:
            number = ledger.owner_number(connection, check_owner(owner))
            if number is None:
                return [[] for _ in candidates], 0
            asked = [(Query.of(c.text, self.vector(c.text)), c) for c in candidates]
            nearest = self._nearest(connection, owner, live=True)
            found, revision = near.neighbours(connection, number, asked, nearest), ledger.revision(connection, number)
        if self.reader is not None:
            found = [self.reader.related(c.text, hits) for c, hits in zip(candidates, found, strict=True)]
        return found, revision

    def get(self, owner: str, memory_id: str) -> Memory:
        """Return the current version of a memory, whatever its status.

        Raises:
            NotFoundError: there is none with this id, or it is somebody else's.
        """
        with self.transaction(owner) as (connection, number):
            return edits.current(connection, number, memory_id)

    def memories(
        self,
        owner: str,
        *,
        statuses: Sequence[str] = ("active",),
        kinds: Sequence[str] = (),
        as_of: datetime | None = None,
        known_at: datetime | None = None,
    ) -> list[Memory]:
        """Return the owner's memories in the order they were recorded.

        Args:
            owner: whose.
            statuses: which; none is all. Of the active ones alone, those that are doubted (confidence below 0.5) are left out.
            kinds: which; none is all.
            as_of: those that were valid then, whatever became of them; takes the place of `statuses`.
            known_at: those that had been written by then, as they were known then (by the machine's clock), and active
                unless `as_of` says when they were to be valid; takes the place of `statuses`.
        """
        valid = times.utc(as_of) if as_of else None
        with self.transaction(owner) as (connection, number):
            if known_at is not None:
                known = knowing.find(connection, number, times.utc(known_at), valid)
                return [memory for memory in known if not kinds or memory.kind in kinds]
            found = semantic.find(connection, number, statuses=statuses, kinds=kinds, as_of=ledger.timestamp(valid))
        if valid is not None or tuple(statuses) != ("active",):
            return found
        return [memory for memory in found if memory.confidence >= semantic.BELIEVED]

    def versions(self, owner: str, memory_id: str) -> list[Memory]:
        """Return all versions of a memory, oldest first; raises `NotFoundError` for an unknown id."""
        with self.transaction(owner) as (connection, number):
            edits.current(connection, number, memory_id)
            return semantic.versions(connection, number, memory_id)

    def history(self, owner: str, memory_id: str) -> list[Event]:
        """Return everything that ever happened to a memory, in order; raises `NotFoundError` for an unknown id."""
        with self.transaction(owner) as (connection, number):
            edits.current(connection, number, memory_id)
            return ledger.read_events(connection, number, memory_id=memory_id)

    def events(self, owner: str, *, last: int | None = None, turn: tuple[str, str] | None = None) -> list[Event]:
        """Return the owner's decision log in order; `last` keeps the newest, `turn` is (thread, message id)."""
        with self.transaction(owner) as (connection, number):
            return ledger.read_events(connection, number, last=last, turn=turn)

    def utterances(self, owner: str, thread: str | None = None, *, since: datetime | None = None) -> list[Utterance]:
        """Return what was said, verbatim and in order; of one thread, or of all; at this moment and later."""
        with self.transaction(owner) as (connection, number):
            return episodic.find(connection, number, owner, thread, since)

    def pending(self, owner: str | None = None) -> list[tuple[Turn, int, str | None]]:
        """Return turns that wait to be written, with their attempts and last error; of everybody without an owner."""
        with self.ledger.read() as connection:
            if owner is None:
                return ledger.pending_turns(connection)
            number = ledger.owner_number(connection, check_owner(owner))
            return [] if number is None else ledger.pending_turns(connection, number)

    def is_written(self, turn: Turn) -> bool:
        """Return whether this turn has been processed before."""
        with self.transaction(turn.owner) as (connection, number):
            return ledger.turn_state(connection, number, turn.thread, turn.message_id) == "done"

    def unwritten(self, turns: Sequence[Turn]) -> list[Turn]:
        """Return those of `turns` that have not been processed before, as they may be written (see `masked`)."""
        turns = self._masked(turns)
        with self.ledger.read() as connection:
            numbers = {
                owner: ledger.owner_number(connection, check_owner(owner)) or 0 for owner in {t.owner for t in turns}
            }
            return [
                turn
                for turn in turns
                if ledger.turn_state(connection, numbers[turn.owner], turn.thread, turn.message_id) != "done"
            ]

    def tokens_today(self, owner: str) -> int:
        """Return how many tokens model calls for `owner` have taken today (UTC), prompts and answers together."""
        with self.transaction(owner) as (connection, number):
            spent = ledger.read_usage(connection, number, f"{times.now():%Y-%m-%d}").values()
            return sum(row["prompt_tokens"] + row["completion_tokens"] for row in spent)
