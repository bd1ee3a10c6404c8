"""How much a trace deserves to be replayed, and the draw by that measure: prioritized experience replay.

Schaul, Quan, Antonoglou, Silver: Prioritized Experience Replay (ICLR 2016, arXiv 1511.05952), with its four parts: the
chance of a draw is proportional to priority^α; importance weights, whose β grows to 1, correct for it; priorities are
taken anew after each replay (they are computed from what the buffer says now); and none falls to 0. Beyond the paper, a
part of each batch goes to those that have waited longest, which bounds how long anything waits.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

ALPHA = 0.6
"""Exponent of the priority: 0 draws uniformly, 1 in proportion (the paper's value for proportional priorities)."""
BETA_START = 0.4
BETA_RUNS = 50
"""Runs over which β grows from 0.4 to 1."""
LEAST = 0.05
"""Least priority, 0..1."""
WAITING = 8
"""One in so many of a batch, one at least, is that which has waited longest."""

DAY = 86_400.0


@dataclass(frozen=True, eq=False)
class Buffer:
    """What may be replayed, as columns in chronological order; all arrays have one entry a trace."""

    ids: np.ndarray
    at: np.ndarray
    """When it was lived, seconds since 1970."""
    importance: np.ndarray
    """0..1."""
    success: np.ndarray
    """How well it went, 0..1; 0.5 where nobody knows."""
    surprise: np.ndarray
    """How new it was when it was written, 0..1."""
    usefulness: np.ndarray
    """How much it was recalled and cited since, 0..1."""
    failures: np.ndarray
    """Share of the questions about it that did not find it, 0..1."""
    strength: np.ndarray
    """0..1."""
    replayed: np.ndarray
    """How often."""
    last: np.ndarray
    """When it was replayed last, seconds since 1970; NaN for never."""
    due: np.ndarray
    """When it is due by its forgetting curve, seconds since 1970; NaN where it has none yet."""
    vectors: np.ndarray | None = None
    """float16, unit length, a row a trace."""

    def __len__(self) -> int:
        """Return how many traces there are."""
        return len(self.ids)

    def only(self, places: np.ndarray) -> "Buffer":
        """Return the traces at these places."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: column[places] for name, column in columns.items() if column is not None})


def reference(buffer: Buffer, now: float) -> np.ndarray:
    """Return 0.4 importance + 0.2 recency + 0.2 success + 0.2 novelty, 0..1 each.

    Recency is 1 / (1 + age in hours), novelty 1 / (1 + times replayed).
    """
    hours = np.maximum(0.0, now - buffer.at) / 3600
    novelty = 1 / (1 + buffer.replayed)
    found: np.ndarray = 0.4 * buffer.importance + 0.2 / (1 + hours) + 0.2 * buffer.success + 0.2 * novelty
    return found


def priority(buffer: Buffer, now: float) -> np.ndarray:
    """Return 0.3 surprise + 0.25 usefulness + 0.25 failures + 0.2 waiting, at least 0.05.

    Surprise wears off with each replay (÷ 1 + times replayed). Waiting is 1 - exp(-days since the last replay, or since it
    was lived, ÷ 7). In the place of the paper's temporal-difference error stand surprise, what one did not expect, and
    failures, what one could not answer.
    """
    since = np.where(np.isnan(buffer.last), buffer.at, buffer.last)
    waiting = 1 - np.exp(-np.maximum(0.0, now - since) / (7 * DAY))
    parts = 0.3 * buffer.surprise / (1 + buffer.replayed) + 0.25 * buffer.usefulness + 0.25 * buffer.failures
    found: np.ndarray = np.maximum(LEAST, parts + 0.2 * waiting)
    return found


def beta(runs: int) -> float:
    """Return how far importance weights correct for the draw after so many runs, 0.4..1."""
    return min(1.0, BETA_START + (1 - BETA_START) * runs / BETA_RUNS)


def draw(
    priorities: np.ndarray, waited: np.ndarray, n: int, rng: np.random.Generator, beta: float
) -> tuple[np.ndarray, np.ndarray]:
    """Draw `n` different traces, and return their places and importance weights (0..1, the largest 1).

    The chance of each draw is priority^α among those not drawn yet (by exponential keys: Efraimidis and Spirakis,
    Weighted random sampling with a reservoir, 2006). Weights are (N·P)^-β, divided by the largest, where P is the chance of
    a first draw. Those that have waited longest, one in eight of the batch, are in it whatever their priority, with the
    weight that their priority gives them.

    Args:
        priorities: above 0.
        waited: how long each has waited, in any unit.
        n: how many.
        rng: source of chance.
        beta: see `beta`.
    """
    n = min(n, len(priorities))
    if n == 0:
        return np.empty(0, int), np.empty(0)
    powered = priorities**ALPHA
    longest = _largest(waited, max(1, n // WAITING))
    keys = rng.exponential(size=len(powered)) / powered  # the smallest keys are the draw
    keys[longest] = -1.0
    chosen = _largest(-keys, n)
    chosen = chosen[np.argsort(keys[chosen], kind="stable")]
    weights = (len(powered) * powered / powered.sum()) ** -beta
    return chosen, weights[chosen] / weights[chosen].max()


def _largest(values: np.ndarray, n: int) -> np.ndarray:
    """Return the places of the `n` largest values, without sorting all of them; ties go to the earlier place."""
    if n >= len(values):
        return np.argsort(-values, kind="stable")
    bound = np.partition(values, len(values) - n)[len(values) - n]
    above = np.flatnonzero(values > bound)
    return np.concatenate([above, np.flatnonzero(values == bound)[: n - len(above)]])
