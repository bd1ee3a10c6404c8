"""What a replay does to a trace: it becomes stronger, and is forgotten more slowly.

The forgetting curve is that of FSRS-6 (free spaced repetition scheduler, by the `fsrs` package): retrievability after t days
is (1 + f·t/S)^-d, where the stability S is the time after which it has fallen to 0.9. Each replay at the right time makes
S larger, one that fails makes it smaller.
"""

from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sharpwave.memory.errors import InputError
from sharpwave.memory.records import Memory

if TYPE_CHECKING:
    from fsrs import Scheduler

RATE = 0.1
"""Strength that a replay of weight 1 adds."""
DAY = 86_400.0


class Curve(NamedTuple):
    """The forgetting curve of a trace."""

    stability: float
    """Days after which the chance to recall it has fallen to 0.9."""
    difficulty: float
    """1 (easy) to 10."""
    due_at: datetime
    """When that chance falls to 0.9."""


def strengthened(strength: float, weight: float = 1.0, rate: float = RATE) -> float:
    """Return the strength after a replay: strength + rate x weight, at most 1.

    Args:
        strength: before, 0..1.
        weight: how much this replay counts, 0..1; see `priority.draw`.
        rate: above 0, at most 1.

    Raises:
        InputError: a rate outside of (0, 1].
    """
    if not 0 < rate <= 1:
        raise InputError(f"The rate at which replay strengthens must be above 0 and at most 1; got {rate}.")
    return min(1.0, strength + rate * weight)


def rehearsed(
    stability: float | None, difficulty: float | None, last: datetime | None, now: datetime, *, missed: bool = False
) -> Curve:
    """Return the forgetting curve after a replay at `now`.

    Args:
        stability: before; None for what was never rehearsed.
        difficulty: before.
        last: when it was rehearsed last. A clock that was set back since counts as no time gone by.
        now: the moment of the replay, in UTC.
        missed: whether it could not be found when it was asked for.
    """
    from fsrs import Card, Rating, State

    new = stability is None or last is None
    card = Card(
        card_id=0,
        state=State.Learning if new else State.Review,
        step=0 if new else None,
        stability=None if new else stability,
        difficulty=None if new else difficulty,
        due=now,
        last_review=None if last is None or new else min(last, now),
    )
    after, _ = _scheduler().review_card(card, Rating.Again if missed else Rating.Good, review_datetime=now)
    return Curve(float(after.stability or 0.0), float(after.difficulty or 0.0), after.due)


def retrievability(stability: float | None, since: datetime, now: datetime) -> float:
    """Return the chance, 0..1, that something last rehearsed at `since` would be recalled.

    What was never rehearsed has the stability that FSRS gives a thing learned once.
    """
    days = (now - since).total_seconds() / DAY
    return float(recallable(np.array([stability or np.nan]), np.array([days]))[0])


def last_used(memory: Memory) -> datetime:
    """Return when a memory entered the store, or was last confirmed, recalled, cited or replayed."""
    used = (memory.last_confirmed_at, memory.last_recalled_at, memory.last_cited_at, memory.last_replayed_at)
    return max([memory.recorded_at, *(moment for moment in used if moment)])


def effective(memory: Memory, now: datetime) -> float:
    """Return the strength of a memory at this moment: strength x retrievability since it was last used, 0..1.

    Recall, listing and forgetting all go by it, so that none of them keeps what another takes for gone.
    """
    days = max(0.0, (now - last_used(memory)).total_seconds() / DAY)
    first, power, factor = _curve()
    return float(memory.strength * (1 + factor * days / (memory.stability or first)) ** power)


def recallable(stability: np.ndarray, days: np.ndarray) -> np.ndarray:
    """Return `retrievability` of many at once.

    Args:
        stability: in days; NaN for what was never rehearsed.
        days: since the last rehearsal; below 0 counts as none.
    """
    first, power, factor = _curve()
    known = np.where(np.isnan(stability), first, stability)
    found: np.ndarray = (1 + factor * np.maximum(0.0, days) / known) ** power
    return found


@cache
def _curve() -> tuple[float, float, float]:
    """Return the stability of what was learned once, the power of the curve, and its factor."""
    parameters = _scheduler().parameters
    power = -float(parameters[20])
    return float(parameters[2]), power, 0.9 ** (1 / power) - 1


@cache
def _scheduler() -> "Scheduler":
    from fsrs import Scheduler

    # Fuzzing would make two runs differ, and steps of minutes are for people before a card.
    return Scheduler(learning_steps=(), relearning_steps=(), enable_fuzzing=False)
