"""`MemoryStore`: the one way in to what is remembered in a folder.

Each call names its owner, and the owner is checked here, once; rows are checked again when they become records. Every
write is one SQL transaction, then the vectors follow into Chroma, inside a lock between processes that is never held
during a model call.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from langchain_core.embeddings import Embeddings
from sqlalchemy import Connection

from sharpwave.memory import (
    applying,
    chroma_files,
    edits,
    episodic,
    fingerprint,
    knowing,
    ledger,
    lock,
    portability,
    rebuild,
    secrets,
    semantic,
    times,
)
from sharpwave.memory import recall as finding
from sharpwave.memory.applying import Applied
from sharpwave.memory.decide.shadow import Difference
from sharpwave.memory.embed import LocalEmbeddings, embedding_array, query_array
from sharpwave.memory.errors import InputError, StoreError
from sharpwave.memory.index import StoreName, damaged, share
from sharpwave.memory.ledger import Event, Ledger, check_owner
from sharpwave.memory.records import Candidate, Decision, Memory, Recall, Turn, Usage, Utterance
from sharpwave.memory.when import resolve_range

T = TypeVar("T")

REMEMBERED_VECTORS = 512
BATCH = 1000
"""Rows of a store that are indexed at once, under one hold of the lock."""
INDEXED_FROM = 64
"""Rows that wait before they are indexed. It is the call that takes Chroma its time, more than the rows: indexing after each
turn cost a turn 18 ms. A recall scores what waits exactly, from the ledger; 63 rows add about 1 ms to it."""


class StaleDecision(Exception):
    """The owner's memories changed between deciding and applying; decide again."""


class MemoryStore:
    """What is remembered in one folder: the ledger, the vectors, and the embedder that made them.

    Safe to share between threads; several processes may open the same folder. What is written is found at once; its
    vectors are indexed from time to time, when the store closes, and at the latest when it is opened again.
    """

    def __init__(self, home: Path, embeddings: Embeddings, collections: int) -> None:
        self.home = home
        self.embeddings = embeddings
        self.ledger = Ledger(home / "ledger.sqlite3")
        self.index, self._release = share(home / "chroma", collections)
        self.made_with: str | None = ""  # fingerprint of the embedder; of none while nothing may be recalled or written
        self._vectors: OrderedDict[tuple[str, str], np.ndarray] = OrderedDict()
        self._vectors_lock = threading.Lock()
        self._lock = lock.of(home / "lock")
        self._closed = False
        self.before_closing: list[Callable[[], object]] = []
        """Called before this store closes, by what uses it in the background."""

    @classmethod
    def open(
        cls,
        home: Path | str,
        *,
        embeddings: Embeddings | None = None,
        collections: int = 64,
        repair: bool = False,
    ) -> Self:
        """Open the store in `home`, making it where there is none, and index what an earlier process left unindexed.

        Args:
            home: a folder; it is made private to its user (0700).
            embeddings: any LangChain `Embeddings`; None is the local encoder.
            collections: over how many Chroma collections the owners of each store are spread; fixed when it is made.
            repair: open it for `doctor.examine` and `rebuild.reindex` alone: whatever state the index is in, and
                whichever embedder made the vectors. Nothing can be recalled or written.

        Raises:
            StoreError: the folder cannot be used, was written with another embedder, or its index is damaged.
            ConfigError: there is no embedder to be had.
            InputError: `collections` is less than 1.
        """
        if collections < 1:
            raise InputError(f"A store needs at least one collection; got {collections}.")
        try:
            home = Path(home).expanduser().resolve()
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.chmod(home, 0o700)
        except (OSError, RuntimeError, ValueError) as error:
            cause = error.strerror if isinstance(error, OSError) else error
            raise StoreError(f"The folder {home} cannot be used: {cause}. Choose another with --home.") from error
        store = cls(home, embeddings or LocalEmbeddings(), collections)
        try:
            store._settle(collections, repair)
        except BaseException:
            store._let_go()
            raise
        return store

    def _settle(self, collections: int, repair: bool) -> None:
        self.made_with = None if repair else self._embedder()
        with self.ledger.write() as connection:
            kept = ledger.get_meta(connection, "collections")
            if kept is None:
                ledger.set_meta(connection, "collections", str(collections))
            if self.made_with and ledger.get_meta(connection, "embedder") is None:
                ledger.set_meta(connection, "embedder", self.made_with)
        self.index.collections = int(kept or collections)
        if not repair:
            rebuild.resume(self)
            self._check_files()
            self.index_pending()

    def _embedder(self) -> str:
        """Return the fingerprint of the embedder that the store is made with, once it is clear that it is this one."""
        with self.ledger.read() as connection:  # which holds nobody up while the embedder is asked
            kept = ledger.get_meta(connection, "embedder")
            if kept is not None:
                fingerprint.check(connection, self.embeddings, self.home)
        return kept or fingerprint.take(self.embeddings)

    def _check_files(self) -> None:
        if self._flaw() is None:
            return
        with self.locked():  # while another process writes, files may not fit each other
            flaw = self._flaw()
            if flaw is None:
                return
            with self.ledger.write() as connection:
                if ledger.get_meta(connection, "indexing") != "1":
                    raise StoreError(f"The vector index {self.index.path} is damaged: {flaw}. {chroma_files.REPAIR}")
                rebuild.announce(connection)  # a writer died in the middle
            rebuild.resume(self)

    def _flaw(self) -> str | None:
        with self.ledger.read() as connection:
            return chroma_files.flaw(self.index.path, filled=rebuild.any_indexed(connection))

    def _check_embedder(self, connection: Connection) -> None:
        if ledger.get_meta(connection, "embedder") != self.made_with:
            raise StoreError(
                f"The store {self.home} is open for repair, or was embedded anew with another embedder since it was opened. "
                "Open it again."
            )

    def close(self) -> None:
        """Index what waits, and close the ledger and this store's share of the index; again, it does nothing.

        What uses the store in the background is ended first.

        Raises:
            StoreError: what waits could not be indexed. It is closed and nothing is lost: the next to open it does that.
        """
        if self._closed:
            return
        for end in [*self.before_closing]:
            end()
        try:
            if self.made_with:
                self.index_pending()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        self._closed = True
        self.ledger.close()
        self._release()

    def __enter__(self) -> Self:
        """Return the store itself; leaving the block closes it."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the store."""
        self.close()

    # Reading

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
        finding.check_limits(k, budget)
        check_owner(owner)
        if not query.strip() or k == 0:
            return []
        question = finding.question_in(query)
        asked = finding.Query.of(question, self.embed_query(question))
        present = times.utc(now) if now else times.now()
        when = finding.When(
            now=present,
            as_of=times.utc(as_of) if as_of else None,
            known_at=times.utc(known_at) if known_at else None,
            asked=resolve_range(question, present, timezone),
        )
        with self._lock.shared(), self._owned(owner) as (connection, number):
            if not number:
                return []
            nearest = self._nearest(connection, owner, live=not (when.as_of or when.known_at or include_history))
            memories: Iterator[Recall] = iter(())
            utterances: Iterator[Recall] = iter(())
            if "semantic" in stores:
                memories = finding.varied(
                    finding.search_memories(
                        connection,
                        number,
                        asked,
                        nearest,
                        when=when,
                        include_history=include_history,
                        strict=strict,
                        floor=floor,
                    )
                )
            if "episodic" in stores:
                utterances = finding.search_utterances(
                    connection,
                    number,
                    owner,
                    asked,
                    nearest,
                    as_of=when.as_of,
                    known_at=when.known_at,
                    floor=floor,
                )
            kept = finding.within(filter(only, finding.merged(memories, utterances)), k, budget)
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
        asked = finding.Query.of(finding.ending(turn.user_text), vector / max(float(np.linalg.norm(vector)), 1e-9))
        with self._lock.shared(), self._owned(turn.owner) as (connection, number):
            return finding.nearby(connection, number, [asked], self._nearest(connection, turn.owner, live=True), k)[0]

    def neighbours(self, owner: str, candidates: Sequence[Candidate]) -> tuple[list[list[Recall]], int]:
        """Return what a decision about each candidate should see, and the revision of the owner's memories it holds for."""
        self.embed([candidate.text for candidate in candidates])
        with self._lock.shared(), self.ledger.read() as connection:
            number = ledger.owner_number(connection, check_owner(owner))
            if number is None:
                return [[] for _ in candidates], 0
            asked = [(finding.Query.of(c.text, self.vector(c.text)), c) for c in candidates]
            nearest = self._nearest(connection, owner, live=True)
            return finding.neighbours(connection, number, asked, nearest), ledger.revision(connection, number)

    def get(self, owner: str, memory_id: str) -> Memory:
        """Return the current version of a memory, whatever its status.

        Raises:
            NotFoundError: there is none with this id, or it is somebody else's.
        """
        with self._owned(owner) as (connection, number):
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
        with self._owned(owner) as (connection, number):
            if known_at is not None:
                known = knowing.find(connection, number, times.utc(known_at), valid)
                return [memory for memory in known if not kinds or memory.kind in kinds]
            found = semantic.find(connection, number, statuses=statuses, kinds=kinds, as_of=ledger.timestamp(valid))
        if valid is not None or tuple(statuses) != ("active",):
            return found
        return [memory for memory in found if memory.confidence >= semantic.BELIEVED]

    def versions(self, owner: str, memory_id: str) -> list[Memory]:
        """Return all versions of a memory, oldest first; raises `NotFoundError` for an unknown id."""
        with self._owned(owner) as (connection, number):
            edits.current(connection, number, memory_id)
            return semantic.versions(connection, number, memory_id)

    def history(self, owner: str, memory_id: str) -> list[Event]:
        """Return everything that ever happened to a memory, in order; raises `NotFoundError` for an unknown id."""
        with self._owned(owner) as (connection, number):
            edits.current(connection, number, memory_id)
            return ledger.read_events(connection, number, memory_id=memory_id)

    def events(self, owner: str, *, last: int | None = None, turn: tuple[str, str] | None = None) -> list[Event]:
        """Return the owner's decision log in order; `last` keeps the newest, `turn` is (thread, message id)."""
        with self._owned(owner) as (connection, number):
            return ledger.read_events(connection, number, last=last, turn=turn)

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

    def utterances(self, owner: str, thread: str | None = None) -> list[Utterance]:
        """Return what was said, verbatim and in order; of one thread, or of all."""
        with self._owned(owner) as (connection, number):
            return episodic.find(connection, number, owner, thread)

    def pending(self, owner: str | None = None) -> list[tuple[Turn, int, str | None]]:
        """Return turns that wait to be written, with their attempts and last error; of everybody without an owner."""
        with self.ledger.read() as connection:
            if owner is None:
                return ledger.pending_turns(connection)
            number = ledger.owner_number(connection, check_owner(owner))
            return [] if number is None else ledger.pending_turns(connection, number)

    def is_written(self, turn: Turn) -> bool:
        """Return whether this turn has been processed before."""
        with self._owned(turn.owner) as (connection, number):
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

    # What may be written

    def set_policy(self, owner: str, *, mask_secrets: bool) -> None:
        """Say whether secrets of this owner are masked before they are written. They are, unless this says no."""
        with self.ledger.write() as connection:
            number = ledger.enlist_owner(connection, check_owner(owner))
            ledger.set_policy(connection, number, mask_secrets, times.now())

    def masks_secrets(self, owner: str) -> bool:
        """Return the owner's policy about secrets; see `set_policy`."""
        with self.ledger.read() as connection:
            return ledger.masks_secrets(connection, check_owner(owner))

    def masked(self, owner: str, value: T) -> T:
        """Return a text, a record, or lists and dicts of them, as they may be written for `owner`: secrets masked by kind.

        Everything that is written goes through this, and masking twice changes nothing.
        """
        return secrets.mask(value)[0] if self.masks_secrets(owner) else value

    def _masked(self, turns: Sequence[Turn]) -> list[Turn]:
        with self.ledger.read() as connection:
            owners = {check_owner(turn.owner) for turn in turns}
            open_ = {owner for owner in owners if not ledger.masks_secrets(connection, owner)}
        return [turn if turn.owner in open_ else secrets.mask(turn)[0] for turn in turns]

    # Writing a turn

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
        batch: list[tuple[Utterance, np.ndarray]] = []
        seen: set[tuple[str, str]] = set()
        positions: dict[str, int] = {}
        for turn in turns:
            ledger.queue_turn(connection, number, turn, at)
            known = episodic.known_messages(connection, number, turn.thread, [m.id for m in turn.messages])
            for message in turn.messages:
                key = (turn.thread, message.id)
                if message.id in known or key in seen or not message.text.strip():
                    continue
                seen.add(key)
                if turn.thread not in positions:
                    positions[turn.thread] = episodic.next_position(connection, number, turn.thread)
                speaker = message.speaker or message.role
                utterance = Utterance(
                    owner=turn.owner,
                    thread=turn.thread,
                    message_id=message.id,
                    position=positions[turn.thread],
                    role=message.role,
                    speaker=speaker,
                    text=message.text,
                    said_at=turn.said_at,
                    recorded_at=at,
                )
                positions[turn.thread] += 1
                batch.append((utterance, self.vector(episodic.spoken(speaker, message.text))))
        episodic.put(connection, number, batch)

    def apply(
        self,
        turn: Turn,
        decisions: Sequence[Decision],
        *,
        revision: int | None,
        shown: Sequence[str] = (),
        recalled: Sequence[str] = (),
        cited: Sequence[str] = (),
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
            ledger.finish_turn(connection, number, turn)
            return done

        return self._commit(work) if index else self._write(work)

    def pass_over(self, turns: Sequence[Turn]) -> None:
        """Mark queued turns as written that hold nothing to decide about, all in one transaction."""
        with self.ledger.write() as connection:
            for turn in turns:
                ledger.finish_turn(connection, ledger.enlist_owner(connection, check_owner(turn.owner)), turn)

    def fail(self, turn: Turn, error: str) -> None:
        """Note why a queued turn could not be written; it stays in the queue."""
        error = self.masked(turn.owner, error)
        with self._owned(turn.owner, writes=True) as (connection, number):
            ledger.fail_turn(connection, number, turn, error)

    def spend(self, owner: str, usage: Usage) -> None:
        """Add what model calls for `owner` have cost to today's account (UTC)."""
        if usage.llm_calls:
            with self.ledger.write() as connection:
                number = ledger.enlist_owner(connection, check_owner(owner))
                ledger.add_usage(connection, number, f"{times.now():%Y-%m-%d}", usage)

    def tokens_today(self, owner: str) -> int:
        """Return how many tokens model calls for `owner` have taken today (UTC), prompts and answers together."""
        with self._owned(owner) as (connection, number):
            spent = ledger.read_usage(connection, number, f"{times.now():%Y-%m-%d}").values()
            return sum(row["prompt_tokens"] + row["completion_tokens"] for row in spent)

    # Editing by hand

    def add(self, owner: str, text: str, **fields: Any) -> Applied:
        """Add a memory by hand; `fields` are those of `Memory` (kind, subject, attribute, value, importance, tags, metadata…)."""
        text, fields = self.masked(owner, (text.strip(), fields))
        return self._edit(owner, [text], lambda c, n: edits.add(c, n, owner, text, fields, self.vector))

    def edit(self, owner: str, memory_id: str, text: str) -> Applied:
        """Give a memory a new text, as a new version."""
        text = self.masked(owner, text.strip())
        return self._edit(owner, [text], lambda c, n: edits.edit(c, n, memory_id, text, self.vector))

    def delete(self, owner: str, memory_id: str, reason: str = "deleted by hand") -> Applied:
        """Retract a memory. It leaves a tombstone and can be restored."""
        reason = self.masked(owner, reason)
        return self._edit(owner, [], lambda c, n: edits.delete(c, n, memory_id, reason))

    def expire(self, owner: str, reasons: Mapping[str, str]) -> list[Applied]:
        """Forget memories, by id with the reason: they leave the current view and can be restored. Pinned ones stay."""
        check_owner(owner)
        reasons = self.masked(owner, dict(reasons))

        def work(connection: Connection) -> list[Applied]:
            number = ledger.enlist_owner(connection, owner)
            done = [edits.expire(connection, number, memory_id, reason) for memory_id, reason in reasons.items()]
            return [one for one in done if one is not None]

        return self._commit(work) if reasons else []

    def release(self, owner: str, memory_id: str) -> Applied:
        """Let a memory out of quarantine: it is recalled from now on."""
        return self._edit(owner, [], lambda c, n: edits.release(c, n, memory_id))

    def drop(self, owner: str, memory_id: str) -> Applied:
        """Retract a memory that is in quarantine, as one that never held."""
        return self._edit(owner, [], lambda c, n: edits.drop(c, n, memory_id))

    def restore(self, owner: str, memory_id: str, version: int | None = None) -> Applied:
        """Make a version of a memory the current one again; the newest one before the present without `version`."""
        texts = [memory.text for memory in self.versions(owner, memory_id)]
        return self._edit(owner, texts, lambda c, n: edits.restore(c, n, memory_id, version, self.vector))

    def keep(self, owner: str, memory_id: str) -> Applied:
        """Settle the review of a memory: it still holds, as of now."""
        return self._edit(owner, [], lambda c, n: edits.keep(c, n, memory_id))

    def pin(self, owner: str, memory_id: str, pinned: bool = True) -> Applied:
        """Pin a memory, so that no decision changes it and nothing forgets it; or let it go again."""
        return self._edit(owner, [], lambda c, n: edits.pin(c, n, memory_id, pinned))

    def undo(self, owner: str, *, last: int = 1, turn: tuple[str, str] | None = None) -> list[Applied]:
        """Take back the owner's last changes, newest first, or those of one turn (thread, message id), by new events."""
        with self._owned(owner) as (connection, number):
            chosen = edits.undoable(connection, number, last=last, turn=turn)
        self.embed([event.detail["before"]["text"] for event in chosen if event.detail["before"]])

        def work(connection: Connection) -> list[Applied]:
            number = ledger.enlist_owner(connection, owner)  # again: who was erased meanwhile has no number
            return [applying.undo(connection, number, event, self.vector, times.now()) for event in chosen]

        return self._commit(work)

    def put_memories(self, owner: str, records: Sequence[Memory], reason: str) -> int:
        """Write memories that come from elsewhere with all their fields; ids that are there already are left alone. Returns how many were new."""
        records = self.masked(owner, list(records))
        self.embed([record.text for record in records])
        return self._commit(
            lambda c: edits.take_over(
                c, ledger.enlist_owner(c, check_owner(owner)), owner, records, reason, self.vector
            )
        )

    def put_utterances(self, owner: str, records: Sequence[Utterance]) -> int:
        """Keep messages that come from elsewhere; those that the owner has already are left alone. Returns how many were new."""
        records = self.masked(owner, list(records))
        self.embed([episodic.spoken(record.speaker, record.text) for record in records])
        return self._write(
            lambda c: portability.put_utterances(
                c, ledger.enlist_owner(c, check_owner(owner)), owner, records, self.vector
            )
        )

    def _edit(self, owner: str, texts: Sequence[str], work: Callable[[Connection, int], Applied]) -> Applied:
        self.embed([text for text in texts if text])
        return self._commit(lambda connection: work(connection, ledger.enlist_owner(connection, check_owner(owner))))

    # Vectors

    def embed(self, texts: Sequence[str]) -> int:
        """Make sure that the vectors of `texts` are at hand for `vector`; returns how many had to be made."""
        with self._vectors_lock:
            missing = [text for text in dict.fromkeys(texts) if (text, "record") not in self._vectors]
        if missing:
            made = embedding_array(self.embeddings, missing)
            self._remember((((text, "record"), vector) for text, vector in zip(missing, made, strict=True)), len(texts))
        return len(missing)

    def vector(self, text: str) -> np.ndarray:
        """Return the vector of a text as a record is embedded (float32, unit length)."""
        with self._vectors_lock:
            kept = self._vectors.get((text, "record"))
        return kept if kept is not None else embedding_array(self.embeddings, [text])[0]

    def embed_query(self, text: str) -> np.ndarray:
        """Return the vector of a question (float32, unit length)."""
        asked = (text, "query")
        with self._vectors_lock:
            kept = self._vectors.get(asked)
        if kept is None:
            kept = query_array(self.embeddings, text)
            self._remember([(asked, kept)])
        return kept

    def forget_vectors(self) -> None:
        """Let go of the vectors that are at hand."""
        with self._vectors_lock:
            self._vectors.clear()

    def _remember(self, made: Iterable[tuple[tuple[str, str], np.ndarray]], more: int = 0) -> None:
        with self._vectors_lock:
            self._vectors.update(made)
            while len(self._vectors) > REMEMBERED_VECTORS + more:
                self._vectors.popitem(last=False)

    def _nearest(self, connection: Connection, owner: str, *, live: bool) -> finding.Nearest:
        """Return what asks the index; the caller held the lock before this view, which so is as new as the files."""
        self._check_embedder(connection)
        current = ledger.generation(connection)
        return lambda store, vector, k: self.index.nearest(store, owner, vector, k, current, live=live)

    # Transactions

    @contextmanager
    def _owned(self, owner: str, *, writes: bool = False) -> Iterator[tuple[Connection, int]]:
        """One transaction for one owner; somebody unknown owns nothing, as number 0."""
        check_owner(owner)
        with self.ledger.write() if writes else self.ledger.read() as connection:
            yield connection, ledger.owner_number(connection, owner) or 0

    @contextmanager
    def transaction(self, owner: str, *, writes: bool = False) -> Iterator[tuple[Connection, int]]:
        """One transaction for one owner: yields the connection and the owner's number.

        One that writes gives somebody new a number; to one that reads, somebody unknown is number 0 and owns nothing.
        """
        check_owner(owner)
        with self.ledger.write() if writes else self.ledger.read() as connection:
            if writes:
                self._check_embedder(connection)
                yield connection, ledger.enlist_owner(connection, owner)
            else:
                yield connection, ledger.owner_number(connection, owner) or 0

    def _write(self, work: Callable[[Connection], T]) -> T:
        with self.ledger.write() as connection:
            self._check_embedder(connection)
            return work(connection)

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the lock between processes; yields the index generation. The client is fresh when the block starts."""
        with self._lock.exclusive():
            with self.ledger.read() as connection:
                current = ledger.generation(connection)
                interrupted = ledger.get_meta(connection, "indexing") == "1"
            if interrupted:
                self.index.forget()  # a writer died in the middle: what this client holds may be older than the files
            yield current

    def _commit(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction, and bring the vectors after it once enough of them wait."""

        def counted(connection: Connection) -> tuple[T, int]:
            return work(connection), rebuild.waiting(connection)

        result, waiting = self._write(counted)
        if waiting >= INDEXED_FROM:
            self.index_pending()
        return result

    def index_pending(self, progress: Callable[[int], None] | None = None) -> int:
        """Index what waits to be indexed, in batches, and return how many rows that were; `progress` hears of each batch.

        As many rows as wait now: others may write more all the while, faster than they can be indexed.
        """
        done, waiting = 0, self._waiting()
        while done < waiting:
            with self.locked() as current:
                with self.ledger.write() as connection:
                    announced = self._announce(connection)
                indexed = self._index(current, announced)
            if not indexed:  # somebody else did
                break
            done += indexed
            if progress:
                progress(done)
        return done

    def _waiting(self) -> int:
        with self.ledger.read() as connection:
            return rebuild.waiting(connection)

    def _announce(self, connection: Connection) -> int:
        # Raised before the vectors are written and again after: a reader in between opens anew twice rather than never.
        ledger.set_meta(connection, "indexing", "1")
        return ledger.raise_generation(connection)

    def _index(self, before: int, announced: int) -> int:
        with self.ledger.read() as connection:
            waiting: dict[StoreName, Any] = {
                "semantic": semantic.pending(connection, BATCH),
                "episodic": episodic.pending(connection, BATCH),
            }
        self._upsert(waiting, before)
        self.index.wrote(before, announced)
        with self.ledger.write() as connection:
            for store, rows in waiting.items():
                _mark_indexed(connection, store, rows)
            ledger.set_meta(connection, "indexing", "0")
            after = ledger.raise_generation(connection)
        self.index.wrote(announced, after)
        return sum(len(rows) for rows in waiting.values())

    def _upsert(self, waiting: dict[StoreName, Any], generation: int) -> None:
        from chromadb.errors import ChromaError

        try:
            for store, rows in waiting.items():
                if rows:
                    self.index.upsert(store, [row[1:] for row in rows], generation)
        except ChromaError as error:
            raise damaged(self.index.path, error) from error


def _mark_indexed(connection: Connection, store: StoreName, rows: Sequence[Any]) -> None:
    if rows and store == "episodic":
        connection.exec_driver_sql("UPDATE utterances SET indexed = 1 WHERE row = ?", [(row[0],) for row in rows])
    elif rows:  # a version that ended while its vector was written waits again
        statement = f"UPDATE memories SET indexed = 1 WHERE row = ? AND ({semantic.LIVE}) = ?"
        connection.exec_driver_sql(statement, [(row[0], row[4]["live"]) for row in rows])
