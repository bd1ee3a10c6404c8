"""The index of conversations: which there were, when, and what they were about.

It is made of sessions (`kinds.Session`) that have a summary and topics; what was said stays with the utterances.
"""

import uuid
from collections.abc import Sequence
from datetime import datetime
from itertools import islice

from langchain_core.language_models.chat_models import BaseChatModel

from sharpwave.memory import choosing, keywords, rows, times
from sharpwave.memory import recall as finding
from sharpwave.memory.errors import NotFoundError
from sharpwave.memory.kinds import Session
from sharpwave.memory.ledger import check_owner
from sharpwave.memory.records import Record, Utterance
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.summarise import Summary, summarise
from sharpwave.memory.usage import booked
from sharpwave.memory.when import event_time, resolve_range

_NAMESPACE = uuid.UUID("0c7c8e0a-6d2b-5f0f-8f39-7a2b64d1f3a4")
_ASKING = frozenset(
    keywords.terms(
        """talk talked talking discuss discussed discussing discussion conversation conversations chat chatted speak spoke
        spoken say said tell told mention mentioned remember recall topic topics subject last time thing things anything"""
    )
)
"""Words that ask about conversations, and say nothing of what they were about."""


class FoundSession(Record):
    """A conversation that was found, and how near it is to what was asked; 0 where only its time was."""

    session: Session
    score: float


class Conversations:
    """The conversations in a store. Every call names its owner, and no call reaches anybody else's.

    Args:
        store: where they are kept.
    """

    def __init__(self, store: MemoryStore) -> None:
        self.store = store

    def summarise(self, owner: str, session: Session, model: BaseChatModel | None = None) -> Session:
        """Write into a session what was said in it was about, and return it; a session that is not kept yet is kept.

        Its messages are those of its thread from `started_at` to `last_at`. Where nothing was said it is kept without a
        summary.

        Raises:
            ModelError: the model failed; the session stays as it is.
        """
        said = [
            u
            for u in self.store.utterances(owner, session.thread)
            if session.started_at <= u.said_at <= session.last_at
        ]
        return self._summarised(owner, session, said, model)

    def index(self, owner: str, model: BaseChatModel | None = None) -> list[Session]:
        """Summarise the threads that have no session yet, each as one conversation, and those that went on since; returns them.

        Of threads that are kept as sessions (see `sessions`), what is open is summarised as far as it has come.
        """
        threads: dict[str, list[Utterance]] = {}
        for utterance in self.store.utterances(owner):
            threads.setdefault(utterance.thread, []).append(utterance)
        kept = {(session.thread, session.id): session for session in self.find(owner)}
        sessions = {thread for thread, _ in kept}
        made = []
        for thread, said in threads.items():
            whole = _whole(owner, thread, said)
            known = kept.get((thread, whole.id))
            if thread not in sessions or (known is not None and known.messages < whole.messages):
                made.append(self._summarised(owner, whole, said, model))
        for session in kept.values():
            lived = [u for u in threads.get(session.thread, ()) if u.said_at >= session.started_at]
            if session.status == "open" and len(lived) > session.messages:
                so_far = session.model_copy(update={"last_at": max(u.said_at for u in lived)})
                made.append(self._summarised(owner, so_far, lived, model))
        return made

    def get(self, owner: str, session_id: str) -> Session:
        """Return the session with this id; raises `NotFoundError` for an unknown one, or another's."""
        with self.store.transaction(owner) as (connection, number):
            return rows.get(connection, number, owner, Session, session_id)

    def find(
        self, owner: str, *, thread: str | None = None, since: datetime | None = None, until: datetime | None = None
    ) -> list[Session]:
        """Return the sessions of a time, in order: those that had begun before `until` and had not ended before `since`."""
        start = since and times.utc(since)
        with self.store.transaction(owner) as (connection, number):
            found = rows.find(connection, number, owner, Session, thread=thread, since=start)
        return [session for session in found if until is None or session.started_at < until]

    def search(
        self,
        owner: str,
        question: str,
        *,
        k: int = 5,
        since: datetime | None = None,
        until: datetime | None = None,
        now: datetime | None = None,
        timezone: str = "UTC",
    ) -> list[FoundSession]:
        """Return up to `k` conversations that a question is about.

        "What did we talk about in March?" names a time alone: the latest of that time, in order. "When did we talk about
        the flat?" names a matter: those that are nearest to it, best first. Where it names both, both must fit.

        Args:
            owner: whose.
            question: any text.
            k: so many at most.
            since, until: the time, where the question does not name it.
            now: the present, from which the question's time is read.
            timezone: IANA zone in which it is read.
        """
        choosing.check_limits(k, None)
        check_owner(owner)
        present = times.utc(now) if now else times.now()
        named = resolve_range(question, present, timezone)
        since, until = named if named else (since and times.utc(since), until and times.utc(until))
        rest = _without_time(question, present, timezone) if named else question
        rest = _without_asking(rest)
        matter = keywords.terms(rest)
        if not matter:
            found = self.find(owner, since=since, until=until)
            return [FoundSession(session=session, score=0.0) for session in found[max(0, len(found) - k) :]]
        vector = self.store.embed_query(rest)
        with self.store.transaction(owner) as (connection, number):
            near = rows.nearest(
                *(connection, number, owner, Session, vector),
                k=rows.ALL,
                terms=matter,
                floor=finding.FLOOR,
                since=since,
            )
            fitting = (one for one in near if until is None or one[0].started_at < until)
            return [FoundSession(session=session, score=round(score, 4)) for session, score in islice(fitting, k)]

    def _summarised(
        self, owner: str, session: Session, said: Sequence[Utterance], model: BaseChatModel | None
    ) -> Session:
        with booked(self.store, owner):
            summary: Summary = self.store.masked(owner, summarise(said, model))
        try:
            session = self.get(owner, session.id).model_copy(
                update={"last_at": session.last_at, "messages": max(session.messages, len(said))}
            )
        except NotFoundError:
            session = session.model_copy(update={"owner": owner, "messages": max(session.messages, len(said))})
        changes = {"summary": summary.text or None, "topics": summary.topics}
        session = session.model_copy(update=changes)
        self.store.embed([session.searched] if session.searched else [])
        with self.store.transaction(owner, writes=True) as (connection, number):
            rows.put(
                *(connection, number, session),
                op="SUMMARISE",
                at=times.now(),
                policy=summary.policy,
                reason=f"{len(said)} messages",
                embed=self.store.vector,
            )
        return session


def whole_thread(thread: str) -> str:
    """Return the id of the session that stands for a thread as a whole."""
    return str(uuid.uuid5(_NAMESPACE, thread))


def _whole(owner: str, thread: str, said: Sequence[Utterance]) -> Session:
    """Return a thread as one session; the same thread always as the same one."""
    return Session(
        id=whole_thread(thread),
        owner=owner,
        status="ended",
        thread=thread,
        started_at=min(utterance.said_at for utterance in said),
        last_at=max(utterance.said_at for utterance in said),
        ended_at=max(utterance.said_at for utterance in said),
        messages=len(said),
    )


def _without_asking(question: str) -> str:
    """Return the words of a question that say what it is about; the others would make all conversations seem alike."""
    return " ".join(word for word in question.split() if set(keywords.terms(word)) - _ASKING)


def _without_time(question: str, now: datetime, timezone: str) -> str:
    event = event_time(question, now, timezone)
    return question.replace(event.phrase, " ") if event and event.phrase else question
