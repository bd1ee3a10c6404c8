"""Summaries of summaries: what was talked about in a week, and what about a topic over all conversations.

They are made of sessions that have a summary, two or more, and made anew only when there are others or one went on. Without
a model they are extractive: each sentence stands in a summary of a conversation.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from langchain_core.language_models.chat_models import BaseChatModel

from sharpwave.memory import keywords
from sharpwave.memory.concluding import concluded
from sharpwave.memory.conversations import whole_thread
from sharpwave.memory.kinds import Session
from sharpwave.memory.records import Memory, Utterance
from sharpwave.memory.semantic import written_date
from sharpwave.memory.summarise import EXTRACTIVE, summarise

FEWEST = 2
"""Conversations that a summary is made of."""
SUBJECT = "conversations"


class RollUp(NamedTuple):
    """Conversations that are to be summarised as one."""

    name: str
    """`week:2026-W10` or `topic:garden`; the tag that the summary is known by."""
    title: str
    sessions: tuple[Session, ...]

    @property
    def state(self) -> dict[str, int]:
        """Of what the summary is made: messages by the id of the conversation."""
        return {session.id: session.messages for session in self.sessions}


def roll_ups(sessions: Sequence[Session], summaries: Sequence[Memory]) -> list[RollUp]:
    """Return which weeks and topics have something to be summarised that their summaries do not have.

    Args:
        sessions: the owner's conversations.
        summaries: memories of kind summary, whatever their status: a summary that was deleted is made again only once
            there are further conversations.
    """
    told = [session for session in sessions if session.summary]
    apart = {session.thread for session in told if session.id != whole_thread(session.thread)}
    told = [session for session in told if session.thread not in apart or session.id != whole_thread(session.thread)]
    known = {memory.metadata.get("rolled_up"): memory.metadata.get("made_of") for memory in summaries}
    found = [*_weeks(told), *_topics(told)]
    return [one for one in found if len(one.sessions) >= FEWEST and known.get(one.name) != one.state]


def _weeks(sessions: Sequence[Session]) -> list[RollUp]:
    weeks: dict[tuple[int, int], list[Session]] = defaultdict(list)
    for session in sessions:
        weeks[session.last_at.isocalendar()[:2]].append(session)
    return [
        RollUp(f"week:{year}-W{week:02}", f"Week of {_monday(year, week)}", tuple(those))
        for (year, week), those in weeks.items()
    ]


def _monday(year: int, week: int) -> str:
    return written_date(datetime.fromisocalendar(year, week, 1))


def _topics(sessions: Sequence[Session]) -> list[RollUp]:
    topics: dict[str, list[Session]] = defaultdict(list)
    names: dict[str, str] = {}
    for session in sessions:
        for topic in dict.fromkeys(session.topics):
            key = " ".join(keywords.terms(topic)) or topic.casefold()
            names.setdefault(key, topic)
            if session not in topics[key]:
                topics[key].append(session)
    return [RollUp(f"topic:{key}", f"About {names[key]}", tuple(those)) for key, those in topics.items()]


def rolled_up(owner: str, what: RollUp, at: datetime, model: BaseChatModel | None = None) -> tuple[Memory, str]:
    """Return the summary of several conversations as a memory, and what made it.

    Raises:
        ModelError: the model failed, or gave no usable answer.
    """
    lines = [
        Utterance(
            owner=owner,
            thread=session.thread,
            message_id=session.id,
            position=place,
            role="user",
            speaker=written_date(session.last_at),
            text=session.summary or "",
            said_at=session.last_at,
            recorded_at=session.last_at,
        )
        for place, session in enumerate(what.sessions)
    ]
    made = summarise(lines, model)
    how = "in words of their summaries" if made.policy == EXTRACTIVE else "in a model's words"
    memory = concluded(
        owner,
        f"{what.title} ({len(lines)} conversations, {how}): {made.text}",
        [session.id for session in what.sessions],
        at,
        kind="summary",
        subject=SUBJECT,
        importance=0.5,
        tags=(what.name,),
        metadata={"rolled_up": what.name, "made_of": what.state, "policy": made.policy},
    )
    return memory, made.policy
