"""Forgetting: which memories and episodes may go, by rules that can be read, and their going, which can be undone.

What is forgotten leaves the current view (status `expired`) and stays in the ledger: `restore` brings it back. Age is counted
from when a record entered the store or was last used, never from when its event took place: a conversation of years ago
that was imported today is new. What is pinned is never forgotten.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal

import numpy as np
from sqlalchemy import Connection

from sharpwave.memory import edits, rows, semantic, times
from sharpwave.memory.candidates import stack
from sharpwave.memory.errors import InputError
from sharpwave.memory.keywords import terms
from sharpwave.memory.kinds import Episode
from sharpwave.memory.records import Memory, Record
from sharpwave.memory.rehearsal import effective, last_used
from sharpwave.memory.slots import slot
from sharpwave.memory.sql import fetch
from sharpwave.memory.staleness import is_stale
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.worth import Standing, needs, worth

DOUBTED = 0.3
"""Confidence below which a memory goes."""
STALE_AND_DOUBTED = 0.6
"""Confidence below which a stale memory goes."""
CONTRADICTED = 3
"""Contradictions that a memory survives."""
EPISODE = timedelta(days=90)
"""Age at which an episode goes; a success with a reflection at three times that."""
ABANDONED = timedelta(days=7)
"""Age at which an abandoned episode goes."""
CAPACITY = 10_000
"""Memories of an owner; beyond, those of the least worth go."""
LARGEST_SHARE = 0.2
"""Share of all that may go in one pass without being asked about."""
FEW = 20
"""Records from which on that share counts: of three, one is always more."""


class Doomed(Record):
    """Something that goes, and why."""

    store: Literal["memory", "episode"]
    id: str
    text: str
    rule: Literal["expired", "doubted", "stale", "contradicted", "capacity", "age"]
    reason: str


class Forgetting(Record):
    """What a pass of forgetting did, or would do."""

    dry_run: bool
    considered: int
    """Memories and episodes that are in the current view."""
    doomed: tuple[Doomed, ...]
    stopped: bool = False
    """Nothing was done, because too much would have gone; ask for it with a larger share."""


def forget(
    store: MemoryStore,
    owner: str,
    *,
    now: datetime | None = None,
    capacity: int = CAPACITY,
    largest_share: float = LARGEST_SHARE,
    dry_run: bool = False,
) -> Forgetting:
    """Forget what the rules let go of, each with an event that names its rule; all of it, or nothing.

    Args:
        store: the memory.
        owner: whose.
        now: the present, by default that of the machine's clock.
        capacity: memories that may stay, at least 1.
        largest_share: most, 0..1, that may go of all there is; where more would go, nothing is done.
        dry_run: only say what would go.

    Raises:
        InputError: a blank owner, a capacity below 1, a share outside of 0..1.
    """
    if capacity < 1:
        raise InputError(f"A memory must have room for at least 1; got a capacity of {capacity}.")
    if not 0 <= largest_share <= 1:
        raise InputError(f"The largest share that may be forgotten must be 0 to 1; got {largest_share}.")
    moment = times.utc(now) if now else times.now()
    with store.transaction(owner) as (connection, number):
        memories = semantic.find(connection, number)
        going = list(_memories(connection, number, memories, moment, capacity))
        episodes = rows.find(connection, number, owner, Episode, statuses=("active",))
        entered = rows.entered(connection, number, Episode)
    doomed = [*going, *_episodes(episodes, entered, moment)]
    considered = len(memories) + len(episodes)
    stopped = considered >= FEW and len(doomed) > largest_share * considered
    if not dry_run and not stopped:
        with store.transaction(owner, writes=True) as (connection, number):
            let_go(connection, number, owner, doomed, store.vector)
    return Forgetting(dry_run=dry_run, considered=considered, doomed=tuple(doomed), stopped=stopped)


def _memories(
    connection: Connection, owner: int, memories: Sequence[Memory], now: datetime, capacity: int
) -> Iterator[Doomed]:
    staying: list[Memory] = []
    for memory in memories:
        verdict = None if memory.pinned else _verdict(memory, now)
        if verdict is None:
            staying.append(memory)
        else:
            rule, reason = verdict
            yield Doomed(store="memory", id=memory.id, text=memory.text, rule=rule, reason=reason)
    excess = len(staying) - capacity
    loose = [memory for memory in staying if not memory.pinned]
    if excess <= 0 or not loose:
        return
    worths = _worths(connection, owner, loose, now)
    for place in np.argsort(worths, kind="stable")[:excess]:
        strength = effective(loose[place], now)
        reason = f"over the capacity of {capacity}, worth {worths[place]:.2f} (strength {strength:.2f})"
        yield Doomed(store="memory", id=loose[place].id, text=loose[place].text, rule="capacity", reason=reason)


# What went counts too: it was known when the questions were asked. What probes missed does not: nobody asked those.
_KNOWN = """
SELECT m.id, m.vector, coalesce(u.cited, 0) > 0
FROM memories m LEFT JOIN uses u ON u.owner = m.owner AND u.memory_id = m.id WHERE m.owner = ? AND m.current ORDER BY m.row
"""


def _worths(connection: Connection, owner: int, memories: Sequence[Memory], now: datetime) -> np.ndarray:
    """Return what these memories are worth, see `worth`."""
    ids, vectors, answered = zip(*fetch(connection, _KNOWN, (owner,)), strict=True)
    place = {memory_id: number for number, memory_id in enumerate(ids)}
    own = [place[memory.id] for memory in memories]
    known, asked = stack(vectors), np.array(answered, np.float32)
    return worth(
        Standing(
            need=needs(known[own], known, asked),
            answered=asked[own],
            recalled=np.array([memory.recalled for memory in memories]),
            length=np.array([len(terms(memory.text)) for memory in memories]),
            importance=np.array([memory.importance for memory in memories]),
            retained=np.array([effective(memory, now) for memory in memories]),
            current=np.array([bool(memory.attribute) and not slot(str(memory.attribute)).many for memory in memories]),
            superseded=np.zeros(len(memories)),
        )
    )


def _verdict(
    memory: Memory, now: datetime
) -> tuple[Literal["expired", "doubted", "stale", "contradicted"], str] | None:
    if memory.expires_at is not None and memory.expires_at <= now:
        return "expired", f"kept until {memory.expires_at:%Y-%m-%d}"
    if memory.confidence < DOUBTED:
        return "doubted", f"confidence {memory.confidence:.2f}, below {DOUBTED}"
    if memory.contradictions > CONTRADICTED:
        return "contradicted", f"contradicted {memory.contradictions} times"
    if memory.confidence < STALE_AND_DOUBTED and is_stale(memory, now) and now - last_used(memory) > EPISODE / 3:
        return "stale", f"not confirmed for long, and confidence {memory.confidence:.2f}, below {STALE_AND_DOUBTED}"
    return None


def _episodes(episodes: Sequence[Episode], entered: dict[str, datetime], now: datetime) -> Iterator[Doomed]:
    for episode in episodes:
        since = max(entered[episode.id], episode.last_replayed_at or entered[episode.id])
        allowed = _allowed(episode)
        if not episode.pinned and now - since > allowed:
            reason = f"{episode.outcome}, {(now - since).days} days old, kept for {allowed.days}"
            yield Doomed(store="episode", id=episode.id, text=episode.task, rule="age", reason=reason)


def _allowed(episode: Episode) -> timedelta:
    if episode.outcome == "abandoned":
        return ABANDONED
    return 3 * EPISODE if episode.outcome == "success" and episode.reflection else EPISODE


def let_go(connection: Connection, number: int, owner: str, doomed: Sequence[Doomed], embed: rows.Embed) -> None:
    """Let these go: what a dry run of `forget` has found. What has gone since, or was pinned, is left alone.

    Args:
        connection: inside a write transaction.
        number: the owner's.
        owner: whose.
        doomed: what goes.
        embed: gives the vector of an episode's text.
    """
    at = times.now()
    for one in doomed:
        reason = f"{one.rule}: {one.reason}"
        if one.store == "memory":
            edits.expire(connection, number, one.id, reason)
            continue
        episode = rows.get(connection, number, owner, Episode, one.id)
        if episode.status == "active" and not episode.pinned:
            gone = episode.model_copy(update={"status": "expired"})
            rows.put(connection, number, gone, op="EXPIRE", at=at, policy="forget/1", reason=reason, embed=embed)
