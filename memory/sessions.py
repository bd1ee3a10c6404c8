"""Sessions: one sitting in a thread, from its first message until it is ended or nobody has said anything for too long.

A session that ends is consolidated: what was said becomes two or three sentences, which are found with the conversation and
as a memory of kind `summary`. While it is open nothing is written about it: when something was said last, and how often, is
read off the messages, which are kept anyway.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from langchain_core.language_models.chat_models import BaseChatModel
from sqlalchemy import Connection

from sharpwave.memory import edits, ledger, rows, semantic, times
from sharpwave.memory.decide import Policy
from sharpwave.memory.decide.llm import LLMPolicy
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.errors import BudgetExceeded, ModelError, NotFoundError
from sharpwave.memory.extract import Extractor
from sharpwave.memory.extract.llm import LLMExtractor
from sharpwave.memory.extract.rules import RulesExtractor
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
LEAST_MESSAGES = 2
"""Messages below which there is nothing to summarise."""
WORTH = 0.3
"""Importance above which a fact belongs into the report of a session; preferences always do."""
IMPORTANCE, CONFIDENCE = 0.5, 0.6
"""Of the memory that a summary becomes."""
AT_ONCE = 3
"""Idle sessions that are ended on the way, when a new one starts."""

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
        """Start a session in a thread and return it with the user's profile; one that is open and not idle goes on.

        Sessions of the owner that are idle are ended, without a model.
        """
        at = times.utc(now) if now else times.now()
        with self.store.transaction(owner) as (connection, number):
            latest = _latest(connection, number, owner, thread)
        goes_on = latest is not None and latest.status == "open" and not self._over(latest, at)
        session = latest if goes_on and latest else self._begin(owner, thread, at)
        return Started(session, tuple(profile(self.store, owner)))

    def heed(self, turn: Turn) -> None:
        """Take note of a turn that has been kept: the first one, and one after too long a silence, starts a session.

        Costs two look-ups where the session goes on.
        """
        with self.store.transaction(turn.owner) as (connection, number):
            latest = _latest(connection, number, turn.owner, turn.thread, before=turn.said_at)
        if latest is not None and latest.status == "ended" and turn.said_at <= latest.last_at:
            return  # said in a session that is over: it is written late
        if latest is None or latest.status == "ended" or self._over(latest, turn.said_at):
            self._begin(turn.owner, turn.thread, turn.said_at)

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
        with self.store.transaction(owner) as (connection, number):
            latest = _latest(connection, number, owner, thread)
        if latest is None:
            raise NotFoundError(f"There is no session in the conversation {thread!r} for this user.")
        if latest.status == "ended":
            return Ended(session=latest, memories=self.told(latest), changed=False)
        at = times.utc(now) if now else times.now()
        waits = self._write(owner, model) if write is None else None
        if write is not None:
            write(owner)
        return self._end(self.get(owner, latest.id), at, model, waits)

    def end_idle(
        self, owner: str, *, model: BaseChatModel | None = None, most: int | None = None, now: datetime | None = None
    ) -> list[Ended]:
        """End the sessions in which nobody has said anything for too long, the oldest first; returns what became of them.

        Args: as of `end_session`; `most` limits how many. Turns that wait to be written are left to others.
        """
        at = times.utc(now) if now else times.now()
        over = [session for session in self.find(owner, statuses=("open",), before=at) if self._over(session, at)]
        return [self._end(session, at, model) for session in over[:most]]

    def get(self, owner: str, session_id: str) -> Session:
        """Return the session with this id; raises `NotFoundError` for an unknown one, or another's."""
        with self.store.transaction(owner) as (connection, number):
            return _live(connection, number, rows.get(connection, number, owner, Session, session_id))

    def find(
        self,
        owner: str,
        *,
        thread: str | None = None,
        statuses: Sequence[str] = (),
        last: int | None = None,
        before: datetime | None = None,
    ) -> list[Session]:
        """Return sessions in the order of their time, the open ones with all that was said in them (`before` a moment)."""
        with self.store.transaction(owner) as (connection, number):
            found = rows.find(connection, number, owner, Session, thread=thread, statuses=statuses, last=last)
            return [_live(connection, number, session, before) for session in found]

    def _over(self, session: Session, at: datetime) -> bool:
        return session.status == "open" and at - session.last_at > self.idle

    def _begin(self, owner: str, thread: str, at: datetime) -> Session:
        self.end_idle(owner, most=AT_ONCE, now=at)
        session = Session(owner=owner, thread=thread, started_at=at, last_at=at)
        with self.store.transaction(owner, writes=True) as (connection, number):
            open_ = rows.find(connection, number, owner, Session, thread=thread, statuses=("open",), last=1)
            if open_ and not self._over(_live(connection, number, open_[0], at, counted=False), at):
                return open_[0]  # somebody else was faster, or it began later than this
            self._put(connection, number, session, "SESSION", "sessions/1", "started")
        return session

    def _end(
        self, session: Session, at: datetime, model: BaseChatModel | None = None, waits: str | None = None
    ) -> Ended:
        owner = session.owner
        said = [
            u
            for u in self.store.utterances(owner, session.thread)
            if session.started_at <= u.said_at <= session.last_at
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
        self.store.embed([text for text in (ended.searched, ended.summary) if text])
        with self.store.transaction(owner, writes=True) as (connection, number):
            kept = rows.get(connection, number, owner, Session, session.id)
            if kept.status == "ended":
                return Ended(session=kept, memories=told, changed=False)
            policy = summary.policy if summary else "sessions/1"
            self._put(connection, number, ended, "END", policy, f"{len(said)} messages")
            if summary and summary.text:
                fields = _memory_fields(ended, summary, told)
                why = f"what {len(said)} messages were about"
                edits.add(connection, number, owner, summary.text, fields, self.store.vector, reason=why, policy=policy)
        problem = " ".join(one for one in (waits, failed) if one)
        return Ended(session=ended, memories=told, problem=problem or None)

    def _summarised(
        self, owner: str, said: Sequence[Utterance], model: BaseChatModel | None
    ) -> tuple[Summary | None, str | None]:
        """Return a summary, if there is anything to summarise, and why the model did not make it."""
        if len(said) < LEAST_MESSAGES:
            return None, None
        with booked(self.store, owner):
            try:
                return self.store.masked(owner, summarise(said, model)), None
            except (ModelError, BudgetExceeded) as error:
                return self.store.masked(owner, summarise(said)), f"Summarised without the model: {error}"

    def _write(self, owner: str, model: BaseChatModel | None) -> str | None:
        """Write the turns that wait, in order; returns why some still do."""
        extract: Extractor = RulesExtractor() if model is None else LLMExtractor(model)
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
        "derived_from": tuple(memory.id for memory in told),
        "metadata": {"session": session.id, "messages": session.messages, "policy": summary.policy},
    }


def _latest(
    connection: Connection, number: int, owner: str, thread: str, before: datetime | None = None
) -> Session | None:
    found = rows.find(connection, number, owner, Session, thread=thread, last=1)
    return _live(connection, number, found[0], before, counted=before is None) if found else None


_LAST = "SELECT said_at FROM utterances WHERE owner = ? AND thread = ? AND said_at < ? ORDER BY position DESC LIMIT 1"
_COUNT = "SELECT count(*) FROM utterances WHERE owner = ? AND thread = ? AND said_at BETWEEN ? AND ?"


def _live(
    connection: Connection, number: int, session: Session, before: datetime | None = None, *, counted: bool = True
) -> Session:
    """Return a session as it stands: of an open one, when something was said last, and how many messages there are."""
    if session.status != "open":
        return session
    start, end = session.started_at.timestamp(), before.timestamp() if before else float("inf")
    last = max(start, fetch_one(connection, _LAST, (number, session.thread, end)) or start)
    changes = {"last_at": max(session.started_at, ledger.from_timestamp(last))}
    if not counted:
        return session.model_copy(update=changes)
    messages = fetch_one(connection, _COUNT, (number, session.thread, start, last))
    return session.model_copy(update={**changes, "messages": messages})
