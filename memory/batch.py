"""A batch of records is replayed: chosen from the buffer, then strengthened."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection

from sharpwave.memory import buffer, replay, runs, times
from sharpwave.memory.rehearsal import RATE, strengthened
from sharpwave.memory.store import MemoryStore

ONLINE = 5
"""Records that are replayed after a turn."""


class Chosen(NamedTuple):
    """A record that is to be replayed."""

    id: str
    weight: float
    """How much this replay counts, 0..1."""


def choose(
    connection: Connection,
    owner: int,
    n: int,
    strategies: str | Mapping[str, float],
    *,
    now: datetime,
    seed: str,
    cue: np.ndarray | None = None,
    size: int = buffer.SIZE,
) -> list[Chosen]:
    """Take what is new into the buffer, and choose a batch from it, in the order of its replay.

    Args:
        connection: inside a write transaction.
        owner: the owner's number.
        n: at most so many.
        strategies: see `replay.select`.
        now: the present.
        seed: the same one draws the same batch from the same buffer.
        cue: unit vector of what contextual replay is about.
        size: of the buffer.
    """
    buffer.take_in(connection, owner, now, size)
    held = buffer.load(connection, owner, vectors="contextual" in replay.checked(strategies))
    rng = np.random.default_rng(int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest()))
    given = replay.Chance(now.timestamp(), rng, runs.count(connection, owner), cue)
    picked = replay.select(held, n, strategies, given)
    return [
        Chosen(str(held.ids[place]), float(weight)) for place, weight in zip(picked.places, picked.weights, strict=True)
    ]


def rehearse(
    connection: Connection, owner: int, chosen: Sequence[Chosen], now: datetime, rate: float = RATE
) -> list[dict[str, Any]]:
    """Replay a batch and return `id`, `weight`, and the strength `before` and `after` of each record.

    What has left the buffer since it was chosen is left out.
    """
    weights = dict(chosen)
    traces = buffer.traces(connection, owner, list(weights))
    buffer.rehearse(connection, owner, [(trace, weights[trace.id]) for trace in traces], now, rate)
    return [
        {
            "id": trace.id,
            "weight": weights[trace.id],
            "before": trace.strength,
            "after": strengthened(trace.strength, weights[trace.id], rate),
        }
        for trace in traces
    ]


def online(store: MemoryStore, owner: str, now: datetime | None = None, n: int = ONLINE) -> list[dict[str, Any]]:
    """Replay a few records by priority, at once and without a model; see `rehearse` for what it returns."""
    moment = times.utc(now) if now else times.now()
    with store.transaction(owner, writes=True) as (connection, number):
        chosen = choose(connection, number, n, "prioritized", now=moment, seed=moment.isoformat())
        return rehearse(connection, number, chosen, moment)
