"""Gathering: what an answer should heed beside what was recalled, from all kinds of memory, without contradictions."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np

from sharpwave.memory import guidance, semantic, times
from sharpwave.memory.conflicts import Loser, Statement, resolve
from sharpwave.memory.core_memory import core_text
from sharpwave.memory.episodes import Episodes
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.gate import worth_reading
from sharpwave.memory.kinds import Episode, Procedure
from sharpwave.memory.profile import profile
from sharpwave.memory.records import Memory, Recall, Record, Turn
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.telling import brief

PROFILE = 8
"""Memories of the profile that are shown."""
EXPERIENCES = 2
"""Similar episodes that are shown."""


class Outweighed(Record):
    """Something that is not shown, because something else says otherwise and weighs more."""

    kind: str
    text: str
    by: str
    """What is shown in its place."""
    reason: str


class Gathered(Record):
    """What goes into a prompt beside the conversation, each part best first, in the order of its claim to room."""

    procedural: tuple[str, ...]
    """Strategies that have proven themselves, and tools that keep failing: lines of quoted data."""
    profile: tuple[Recall, ...]
    """What holds of the user, whatever is asked; without a score."""
    facts: tuple[Recall, ...]
    """What was recalled."""
    experiences: tuple[str, ...]
    """Similar tasks and how they ended: quoted data, several lines each."""
    outweighed: tuple[Outweighed, ...]
    core: str
    """Core memory, as quoted data; see `core_memory`."""


def gather(
    store: MemoryStore,
    owner: str,
    query: str,
    recalled: Sequence[Recall],
    *,
    said: Turn | None = None,
    agent: str = "agent",
    now: datetime | None = None,
) -> Gathered:
    """Return what an answer to `query` should heed; where two stores speak of one topic, only what weighs more (`conflicts`).

    Args:
        store: the memory.
        owner: whose.
        query: what is asked, or any text.
        recalled: what was found about it; it stays in its order.
        said: what the user says just now, which outweighs all that was kept.
        agent: which of the owner's agents answers.
        now: the present.
    """
    moment = now or times.now()
    known = {hit.id for hit in recalled}
    held = [_hit(memory) for memory in profile(store, owner, PROFILE, known=known)]
    strategies = guidance.proven(store, owner, query, agent) if query.strip() else []
    lived = Episodes(store).similar(owner, query, EXPERIENCES, agent=agent, now=moment) if query.strip() else []
    episodes = [found.episode for found in lived]
    vectors = _vectors(store, owner, [*recalled, *held], [*strategies, *episodes])
    statements = [
        *_working(said),
        *(Statement(one.id, "procedural", _says(one), one.moment, vector=vectors[one.id]) for one in strategies),
        *(_semantic(hit.memory, vectors) for hit in (*held, *recalled) if hit.memory is not None),
        *(Statement(one.id, "episodic", _says(one), one.moment, vector=vectors[one.id]) for one in episodes),
    ]
    kept, lost = resolve(statements, moment)
    shown = {one.id for one in kept}
    return Gathered(
        procedural=(
            *(guidance.told(one) for one in strategies if one.id in shown),
            *guidance.warnings(store, owner, agent),
        ),
        profile=tuple(hit for hit in held if hit.id in shown),
        facts=tuple(hit for hit in recalled if hit.memory is None or hit.id in shown),
        experiences=tuple(brief(one) for one in episodes if one.id in shown),
        outweighed=tuple(_told(one) for one in lost),
        core=core_text(store, owner, agent),
    )


def _hit(memory: Memory) -> Recall:
    at = memory.source.said_at or memory.valid_from
    return Recall(id=memory.id, store="semantic", text=memory.text, said_at=at, score=0.0, memory=memory)


def _vectors(
    store: MemoryStore, owner: str, hits: Sequence[Recall], records: Sequence[Procedure | Episode]
) -> Mapping[str, np.ndarray]:
    """Return the vectors of memories, as they are kept, beside those of procedures and episodes; none without the latter."""
    if not records:
        return {}
    ids = [hit.id for hit in hits if hit.memory is not None]
    with store.transaction(owner) as (connection, number):
        vectors = semantic.vectors_of(connection, number, ids)
    texts = {one.id: _says(one) for one in records}
    texts |= {hit.id: hit.text for hit in hits if hit.memory is not None and hit.id not in vectors}
    store.embed(list(texts.values()))
    return vectors | {name: store.vector(text) for name, text in texts.items()}


def _says(record: Procedure | Episode) -> str:
    """Return what a record says to a situation: its steps, or its lesson."""
    return " ".join(record.steps) if isinstance(record, Procedure) else record.lesson or record.task


def _working(said: Turn | None) -> list[Statement]:
    if said is None or not worth_reading(said):
        return []
    found = RulesExtractor().extract(said, [])
    return [
        Statement(f"working {at}", "working", c.text, said.said_at, c.subject, c.attribute, c.value)
        for at, c in enumerate(found)
        if c.polarity == "assert" and not c.history
    ]


def _semantic(memory: Memory, vectors: Mapping[str, np.ndarray]) -> Statement:
    slot = (memory.subject, memory.attribute, memory.value)
    return Statement(memory.id, "semantic", memory.text, memory.valid_from, *slot, vectors.get(memory.id))


def _told(lost: Loser) -> Outweighed:
    return Outweighed(kind=lost.statement.kind, text=lost.statement.text, by=lost.winner.text, reason=lost.reason)
