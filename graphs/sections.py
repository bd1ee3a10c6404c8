"""What an answer would be shown, in one call: recalled, gathered, and fitted into a window; without a conversation or a model."""

from datetime import datetime
from typing import NamedTuple

from sharpwave.graphs.agent import MODEL_FLOOR
from sharpwave.graphs.respond import EXPERIENCES, PROFILE, labelled, labelled_profile
from sharpwave.graphs.state import Context
from sharpwave.memory import times
from sharpwave.memory.context import Assembled, assemble
from sharpwave.memory.errors import InputError
from sharpwave.memory.gathering import Gathered, gather
from sharpwave.memory.records import Recall
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.tokens import estimate
from sharpwave.memory.trust import may_be_shown
from sharpwave.prompts import day, render

WINDOW = 8000
"""Tokens of the window that is filled unless another one is named."""
FACTS = 300
"""Tokens of what is recalled, as of `Context.recall_budget`."""


class Sections(NamedTuple):
    """What a prompt would hold beside the conversation."""

    made: Assembled
    """The sections, as far as they fit."""
    gathered: Gathered
    """All that was gathered, and what it outweighed."""
    recalled: tuple[Recall, ...]
    """What was found, with the parts of its scores."""


def sections_for(
    memory: MemoryStore,
    owner: str,
    query: str,
    *,
    window: int = WINDOW,
    facts: int = FACTS,
    system: int | None = None,
    recent: int = 0,
    tools: int = 0,
    agent: str = "agent",
    now: datetime | None = None,
    timezone: str = "UTC",
) -> Sections:
    """Return what an answer to `query` would be shown, within the tokens of a window; nothing is written.

    Args:
        memory: where it is taken from.
        owner: whose.
        query: what is asked.
        window: tokens of the model's window, the answer's included.
        facts: at most so many tokens of what is recalled, before the window has its say.
        system: tokens of the instructions; by default what those of the agent take. Core memory comes on top.
        recent: tokens of the conversation before.
        tools: tokens of what the model is told of its tools.
        agent: which of the owner's agents answers.
        now: the present.
        timezone: IANA zone of the user.

    Raises:
        InputError: a blank owner or query, or a window that holds not even the instructions; says how large it must be.
    """
    if not query.strip():
        raise InputError("The question is blank.")
    moment = times.utc(now) if now else times.now()
    context = Context(user_id=owner, now=moment, timezone=timezone)
    recalled = memory.recall(
        *(owner, query),
        budget=facts,
        floor=MODEL_FLOOR,
        only=may_be_shown,
        explain=True,
        now=moment,
        timezone=timezone,
    )
    found = gather(memory, owner, query, recalled, agent=agent, now=moment)
    made = assemble(
        window,
        system=(_instructions(moment, timezone) if system is None else system) + estimate(found.core),
        query=estimate(query),
        recent=recent,
        tools=tools,
        sections={
            "procedural": found.procedural,
            "profile": labelled_profile(found.profile, context, len(found.facts) + 1, found.core),
            "facts": labelled(found.facts, context),
            "experiences": found.experiences,
        },
    )
    return Sections(made, found, tuple(recalled))


def _instructions(now: datetime, timezone: str) -> int:
    """Return the tokens of the agent's own instructions, with the headings of the sections."""
    local, guidance = now.astimezone(times.time_zone(timezone)), render("guidance", lines=EXPERIENCES)
    return estimate(render("respond", date=day(local), timezone=timezone, memories=PROFILE, guidance=guidance))
