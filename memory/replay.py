"""What is replayed, and in which order: the strategies.

`recent` and `oldest` differ in what they choose, the newest or the oldest, and both replay it in the order in which it was
lived (forward replay). `reverse` chooses what `recent` does and replays it backwards, the newest first, as hippocampal
place cells do after a reward (Foster and Wilson, Nature 2006).
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from sharpwave.memory.errors import InputError
from sharpwave.memory.priority import Buffer, beta, draw, priority, reference


class Choice(NamedTuple):
    """A batch, in the order of its replay."""

    places: np.ndarray
    """Which traces, as places in the buffer."""
    weights: np.ndarray
    """How much each replay counts, 0..1: 1 unless the strategy's draw has to be corrected for."""


class Chance(NamedTuple):
    """What a strategy may go by, beside the buffer."""

    now: float
    """Seconds since 1970."""
    rng: np.random.Generator
    runs: int = 0
    """Replays of this owner so far; importance weights correct more with each."""
    cue: np.ndarray | None = None
    """Vector of what `contextual` replay is about, unit length."""


Strategy = Callable[[Buffer, int, Chance], Choice]


def _plain(places: np.ndarray) -> Choice:
    return Choice(places, np.ones(len(places)))


def _drawn(priorities: np.ndarray, buffer: Buffer, n: int, given: Chance) -> Choice:
    since = np.where(np.isnan(buffer.last), buffer.at - 1e9, buffer.last)  # what was never replayed has waited longest
    return Choice(*draw(priorities, given.now - since, n, given.rng, beta(given.runs)))


def prioritized(buffer: Buffer, n: int, given: Chance) -> Choice:
    """Draw by priority: surprise, usefulness, failures and waiting (see `priority`)."""
    return _drawn(priority(buffer, given.now), buffer, n, given)


def by_reference(buffer: Buffer, n: int, given: Chance) -> Choice:
    """Draw by importance, recency, success and novelty (see `priority.reference`)."""
    return _drawn(np.maximum(1e-6, reference(buffer, given.now)), buffer, n, given)


def random(buffer: Buffer, n: int, given: Chance) -> Choice:
    """Draw uniformly."""
    return _plain(given.rng.permutation(len(buffer))[:n])


def recent(buffer: Buffer, n: int, _given: Chance) -> Choice:
    """Choose the newest, in the order in which they were lived."""
    return _plain(np.arange(max(0, len(buffer) - n), len(buffer)))


def oldest(buffer: Buffer, n: int, _given: Chance) -> Choice:
    """Choose the oldest, in the order in which they were lived."""
    return _plain(np.arange(min(n, len(buffer))))


def reverse(buffer: Buffer, n: int, given: Chance) -> Choice:
    """Choose the newest, the newest first."""
    return _plain(recent(buffer, n, given).places[::-1])


def interleaved(buffer: Buffer, n: int, _given: Chance) -> Choice:
    """Take turns between the old end and the new end: the oldest, the newest, the second oldest, …"""
    n = min(n, len(buffer))
    turn = np.arange(n)
    return _plain(np.where(turn % 2 == 0, turn // 2, len(buffer) - 1 - turn // 2))


def contextual(buffer: Buffer, n: int, given: Chance) -> Choice:
    """Choose those nearest to a cue, the nearest first.

    Raises:
        InputError: there is no cue.
    """
    if given.cue is None:
        raise InputError("Contextual replay needs a cue: what to replay the memories of.")
    if buffer.vectors is None or not len(buffer):
        return _plain(np.empty(0, int))
    nearness = buffer.vectors.astype(np.float32) @ given.cue
    return _plain(np.argsort(-nearness, kind="stable")[:n])


def spaced(buffer: Buffer, n: int, given: Chance) -> Choice:
    """Choose what is due by its forgetting curve, the longest overdue first; what has no curve yet is due at once."""
    due = np.where(np.isnan(buffer.due), buffer.at, buffer.due)
    order = np.argsort(due, kind="stable")
    return _plain(order[due[order] <= given.now][:n])


def surprise(buffer: Buffer, n: int, _given: Chance) -> Choice:
    """Choose what was the most unexpected when it was written, the most unexpected first."""
    return _plain(np.argsort(-buffer.surprise, kind="stable")[:n])


STRATEGIES: Mapping[str, Strategy] = {
    "prioritized": prioritized,
    "reference": by_reference,
    "random": random,
    "recent": recent,
    "oldest": oldest,
    "reverse": reverse,
    "interleaved": interleaved,
    "contextual": contextual,
    "spaced": spaced,
    "surprise": surprise,
}


def select(buffer: Buffer, n: int, strategies: str | Mapping[str, float], given: Chance) -> Choice:
    """Return the batch to replay: by one strategy, or by several with shares.

    Of several, each chooses its share of `n` among what those before it left; what a share leaves unused is lost to none:
    the others fill it in their order.

    Args:
        buffer: what there is.
        n: at most so many.
        strategies: a name, or names with shares above 0.
        given: the present, chance, the cue.

    Raises:
        InputError: `n` is negative, there is no such strategy, or the shares are not above 0.
    """
    shares = checked(strategies)
    if n < 0:
        raise InputError(f"The number of memories to replay must be 0 or more; got {n}.")
    left = np.arange(len(buffer))
    places: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    for name, quota in [*_quotas(shares, min(n, len(buffer))), *((name, n) for name in shares)]:
        quota = min(quota, n - sum(map(len, places)))
        if quota <= 0 or not len(left):
            continue
        chosen = STRATEGIES[name](buffer if len(left) == len(buffer) else buffer.only(left), quota, given)
        places.append(left[chosen.places])
        weights.append(chosen.weights)
        left = np.setdiff1d(left, places[-1], assume_unique=True)
    if not places:
        return _plain(np.empty(0, int))
    return Choice(np.concatenate(places), np.concatenate(weights))


def checked(strategies: str | Mapping[str, float]) -> dict[str, float]:
    """Return strategies with their shares.

    Raises:
        InputError: there is no such strategy, or the shares are not above 0.
    """
    shares = {strategies: 1.0} if isinstance(strategies, str) else dict(strategies)
    unknown = sorted(set(shares) - set(STRATEGIES))
    if unknown or not shares:
        raise InputError(
            f"There is no strategy {', '.join(map(repr, unknown)) or '(none given)'}. Known: {', '.join(STRATEGIES)}."
        )
    if any(not 0 < share < np.inf for share in shares.values()):
        raise InputError(f"The share of each strategy must be above 0; got {shares}.")
    return shares


def _quotas(shares: Mapping[str, float], n: int) -> list[tuple[str, int]]:
    """Divide `n` by shares, the remainder by largest fraction."""
    whole = sum(shares.values())
    exact = {name: n * share / whole for name, share in shares.items()}
    quotas = {name: int(value) for name, value in exact.items()}
    rest = sorted(shares, key=lambda name: quotas[name] - exact[name])[: n - sum(quotas.values())]
    return [(name, quotas[name] + (name in rest)) for name in shares]
