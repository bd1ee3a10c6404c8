"""Sessions: one sitting in a thread, from its first message until it is ended or nobody has said anything for too long.

A session that ends is consolidated: what was said becomes two or three sentences, which are found with the conversation and
as a memory of kind `summary`. Until then it is read off the messages, which are kept anyway: it is what was said in the
thread since the session before, and since the last long silence. Only one that is started by hand is written down before it
ends.
"""

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from langchain_core.language_models.chat_models import BaseChatModel
from sqlalchemy import Connection

from sharpwave.memory import edits, ledger, rows, semantic, times
from sharpwave.memory.conversations import whole_thread
from sharpwave.memory.decide import Policy
from sharpwave.memory.decide.llm import LLMPolicy
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.errors import BudgetExceeded, ModelError, NotFoundError
from sharpwave.memory.extract import Extractor
from sharpwave.memory.extract.llm import LLMExtractor
from sharpwave.memory.extract.rules import rules_for
from sharpwave.memory.kinds import Session
from sharpwave.memory.profile import profile
from sharpwave.memory.records import Memory, Record, Source, Turn, Utterance
from sharpwave.memory.sql import fetch, fetch_one
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.summarise import Summary, summarise
from sharpwave.memory.turn_queue import TurnQueue
from sharpwave.memory.usage import booked
from sharpwave.memory.writing import read, settle

IDLE = timedelta(minutes=30)
"""Time without a message after which a session is over."""
LEAST_SAID = 3
"""Messages of the user below which there is nothing to summarise: two or three sentences would be all of it again."""
WORTH = 0.3
"""Importance above which a fact belongs into the report of a session; preferences always do."""
IMPORTANCE, CONFIDENCE = 0.5, 0.6
"""Of the memory that a summary becomes."""
_NAMESPACE = uuid.UUID("6d0a8f7e-3f0c-5b7e-9f57-0f6a1f8b2c91")

Write = Callable[[str], object]
"""Writes the turns of an owner that wait in the queue."""


class Started(NamedTuple):
    """A session that has begun, or goes on, and what is known of its user."""

    session: Session
    profile: tuple[Memory, ...]


class Ended(Record):
    """What became of a session."""

    session: Session
    memories: tuple[Memory, ...] = ()
    """Preferences, and facts of importance above 0.3, that were told in it and hold."""
    changed: bool = True
    """False where it had ended before, and nothing was done."""
    problem: str | None = None
    """What went wrong: why its summary is made of sentences that were said, or why turns still wait to be written."""


class Sessions:
    """The sessions in a store. Every call names its owner, and no call reaches anybody else's.

    Args:
        store: where they are kept.
        idle: time without a message after which a session is over.
    """

    def __init__(self, store: MemoryStore, *, idle: timedelta = IDLE) -> None:
        self.store, self.idle = store, idle

    def start_session(self, owner: str, thread: str, *, now: datetime | None = None) -> Started:
        """Start a session in a thread and return it with the user's profile; one that is open and not idle goes on."""
        at = times.utc(now) if now else times.now()
        latest = self._latest(owner, thread)
        if latest is not None and self._over(latest, at):
            self._end(latest, at)
        if latest is None or latest.status == "ended" or self._over(latest, at):
            latest = Session(owner=owner, thread=thread, started_at=at, last_at=at)
            with self.store.transaction(owner, writes=True) as (connection, number):
                self._put(connection, number, latest, "SESSION", "sessions/1", "started")
        return Started(latest, tuple(profile(self.store, owner)))

    def heed(self, turn: Turn) -> None:
        """Take note of a turn that has been kept: after too long a silence, the session before it ends, without a model.

        Costs one look-up where the session goes on.
        """
        start = turn.said_at.timestamp()
        with self.store.transaction(turn.owner) as (connection, number):
            before = fetch_one(connection, _LAST, (number, turn.thread, start))
        if before is None or start - before <= self.idle.total_seconds():
            return
        latest = self._latest(turn.owner, turn.thread, before=turn.said_at)
        if latest is not None and self._over(latest, turn.said_at):
            self._end(latest, turn.said_at)

    def end_session(
        self,
        owner: str,
        thread: str,
        *,
        model: BaseChatModel | None = None,
        write: Write | None = None,
        now: datetime | None = None,
    ) -> Ended:
        """End the session of a thread, consolidate it, and return what became of it; one that has ended stays as it is.

        Args:
            owner: whose.
            thread: the conversation.
            model: writes the summary. Where it fails, or there is none, the summary is made of sentences that were said.
            write: writes the turns that wait, before anything is read; by default they are written by `model`, else by rules.
            now: the present.

        Raises:
            NotFoundError: there has been no session in this thread.
        """
        latest = self._latest(owner, thread)
        if latest is None:
            raise NotFoundError(f"There is no session in the conversation {thread!r} for this user.")
        if latest.status == "ended":
            return Ended(session=latest, memories=self.told(latest), changed=False)
        at = times.utc(now) if now else times.now()
        waits = self._write(owner, model) if write is None else None
        if write is not None:
            write(owner)
        return self._end(self._latest(owner, thread) or latest, at, model, waits)

    def end_idle(self, owner: str, *, model: BaseChatModel | None = None, now: datetime | None = None) -> list[Ended]:
        """End the sessions in which nobody has said anything for too long, the oldest first; returns what became of them.

        Args: as of `end_session`. Turns that wait to be written are left to others.
        """
        at = times.utc(now) if now else times.now()
        return [self._end(session, at, model) for session in self.find(owner) if self._over(session, at)]

    def get(self, owner: str, session_id: str) -> Session:
        """Return the session with this id; raises `NotFoundError` for an unknown one, or another's."""
        found = next((session for session in self.find(owner) if session.id == session_id), None)
        if found is None:
            raise NotFoundError(f"There is no session {session_id!r} for this user.")
        return found

    def find(self, owner: str, *, thread: str | None = None) -> list[Session]:
        """Return sessions in the order of their time: those that have ended, and the one that is open in each thread."""
        with self.store.transaction(owner) as (connection, number):
            kept = rows.find(connection, number, owner, Session, thread=thread)
            spoken = fetch(connection, "SELECT DISTINCT thread FROM utterances WHERE owner = ?", (number,))
            threads = {name for (name,) in spoken if thread in (None, name)} | {session.thread for session in kept}
            latest = [self._last(connection, number, owner, name) for name in threads]
        ended = [one for one in kept if one.status == "ended" and one.id != whole_thread(one.thread)]
        open_ = [one for one in latest if one is not None and one.status == "open"]
        return sorted([*ended, *open_], key=lambda session: (session.started_at, session.thread))

    def _latest(self, owner: str, thread: str, before: datetime | None = None) -> Session | None:
        with self.store.transaction(owner) as (connection, number):
            return self._last(connection, number, owner, thread, before)

    def _last(
        self, connection: Connection, number: int, owner: str, thread: str, before: datetime | None = None
    ) -> Session | None:
        """Return the session of a thread that is open, else the last one that has ended; `before` a moment."""
        found = rows.find(connection, number, owner, Session, thread=thread, last=2)  # one may be of the whole thread
        known = next((session for session in reversed(found) if session.id != whole_thread(thread)), None)
        begun = known if known and known.status == "open" else None
        after = known.last_at.timestamp() if known and not begun else float("-inf")
        since = begun.started_at.timestamp() if begun else float("-inf")
        until = before.timestamp() if before else float("inf")
        said = [at for (at,) in fetch(connection, _SAID, (number, thread, after, since, until))]
        if begun is None:
            said = said[_last_break(said, self.idle.total_seconds()) :]
        if not said:
            return known
        last = ledger.from_timestamp(said[-1])
        if begun is not None:
            return begun.model_copy(update={"last_at": last, "messages": len(said)})
        name, start = str(uuid.uuid5(_NAMESPACE, f"{thread}\n{said[0]}")), ledger.from_timestamp(said[0])
        return Session(id=name, owner=owner, thread=thread, started_at=start, last_at=last, messages=len(said))

    def _over(self, session: Session, at: datetime) -> bool:
        return session.status == "open" and at - session.last_at > self.idle

    def _end(
        self, session: Session, at: datetime, model: BaseChatModel | None = None, waits: str | None = None
    ) -> Ended:
        owner = session.owner
        said = [
            u
            for u in self.store.utterances(owner, session.thread, since=session.started_at)
            if u.said_at <= session.last_at
        ]
        summary, failed = self._summarised(owner, said, model)
        ended = session.model_copy(
            update={
                "status": "ended",
                "ended_at": session.last_at if self._over(session, at) else max(at, session.last_at),
                "messages": len(said),
                "summary": (summary and summary.text) or session.summary,
                "topics": (summary and summary.topics) or session.topics,
            }
        )
        told = self.told(ended)
        text = f"Conversation of {semantic.written_date(ended.started_at)}, {len(said)} messages: {ended.summary or ''}"
        self.store.embed([one for one in (ended.searched, text) if one])
        with self.store.transaction(owner, writes=True) as (connection, number):
            if rows.known(connection, number, session):
                kept = rows.get(connection, number, owner, Session, session.id)
                if kept.status == "ended":  # somebody else was faster
                    return Ended(session=kept, memories=told, changed=False)
            policy = summary.policy if summary else "sessions/1"
            self._put(connection, number, ended, "END", policy, f"{len(said)} messages")
            if summary and summary.text:
                fields = _memory_fields(ended, summary, told)
                why = f"what {len(said)} messages were about"
                edits.add(connection, number, owner, text, fields, self.store.vector, reason=why, policy=policy)
        problem = " ".join(one for one in (waits, failed) if one)
        return Ended(session=ended, memories=told, problem=problem or None)

    def _summarised(
        self, owner: str, said: Sequence[Utterance], model: BaseChatModel | None
    ) -> tuple[Summary | None, str | None]:
        """Return a summary, if there is anything to summarise, and why the model did not make it."""
        if sum(one.role == "user" for one in said) < LEAST_SAID:
            return None, None
        with booked(self.store, owner):
            try:
                return self.store.masked(owner, summarise(said, model)), None
            except (ModelError, BudgetExceeded) as error:
                return self.store.masked(owner, summarise(said)), f"Summarised without the model: {error}"

    def _write(self, owner: str, model: BaseChatModel | None) -> str | None:
        """Write the turns that wait, in order; returns why some still do."""
        extract: Extractor = rules_for(self.store.embeddings) if model is None else LLMExtractor(model)
        decide: Policy = RulesPolicy() if model is None else LLMPolicy(None)
        if owner in TurnQueue(self.store.ledger).claimed():
            return "Turns of this user are being written by another process."
        with booked(self.store, owner):
            for turn, _, _ in self.store.pending(owner):
                try:
                    for kept in self.store.queue([turn]):
                        settle(self.store, kept, read(self.store, kept, extract), decide)
                except (ModelError, BudgetExceeded) as error:
                    self.store.fail(turn, str(error))
                    return f"Not all is written to memory yet: {error}"
        return None

    def told(self, session: Session) -> tuple[Memory, ...]:
        """Return the preferences, and the facts of importance above 0.3, that were told in a session and hold."""
        with self.store.transaction(session.owner) as (connection, number):
            statement = f"""
                SELECT row FROM memories WHERE owner = ? AND {semantic.LIVE} AND kind IN ('preference', 'fact')
                    AND json_extract(record, '$.source.thread') = ?
            """
            found = [row for (row,) in fetch(connection, statement, (number, session.thread))]
            memories = [semantic.read_row(row, number) for row in semantic.load(connection, number, found)]
        return tuple(memory for memory in memories if _within(memory, session))

    def _put(self, connection: Connection, number: int, session: Session, op: str, policy: str, reason: str) -> None:
        rows.put(
            *(connection, number, session),
            op=op,
            at=times.now(),
            policy=policy,
            reason=reason,
            embed=self.store.vector,
        )


def _within(memory: Memory, session: Session) -> bool:
    said = memory.source.said_at
    weighs = memory.kind == "preference" or memory.importance > WORTH
    return weighs and said is not None and session.started_at <= said <= session.last_at


def _memory_fields(session: Session, summary: Summary, told: Sequence[Memory]) -> dict[str, object]:
    return {
        "kind": "summary",
        "subject": "conversation",
        "importance": IMPORTANCE,
        "confidence": CONFIDENCE,
        "source": Source(kind="inferred", thread=session.thread, said_at=session.last_at),
        "valid_from": session.last_at,
        "last_confirmed_at": session.last_at,
        "derived_from": tuple(memory.id for memory in told),
        "metadata": {"session": session.id, "messages": session.messages, "policy": summary.policy},
    }


_LAST = "SELECT said_at FROM utterances WHERE owner = ? AND thread = ? AND said_at < ? ORDER BY position DESC LIMIT 1"
_SAID = """
SELECT said_at FROM utterances WHERE owner = ? AND thread = ? AND said_at > ? AND said_at >= ? AND said_at < ?
ORDER BY said_at
"""


def _last_break(said: Sequence[float], idle: float) -> int:
    """Return where in these times, in order, the last silence of more than `idle` seconds ends."""
    return max((at for at in range(1, len(said)) if said[at] - said[at - 1] > idle), default=0)
