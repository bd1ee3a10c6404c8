"""Recall that learns from citations: a small linear reranker for each owner, over the parts of a score.

Of what was shown, the answer cites what it made use of. After Tan et al. 2025 (RMM, arXiv 2503.08026), which learns a
reranker of embeddings from citations by REINFORCE (Williams 1992). Two departures, as one owner gives a few hundred
citations at best: a weight for each part of the score instead of a matrix, and nothing is sampled; what is shown is the
best, and the policy that the gradient is of is the softmax of the scores that it was shown by.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from sqlalchemy import Connection

from sharpwave.memory.features import FEATURES
from sharpwave.memory.records import Recall, Record
from sharpwave.memory.sql import fetch_one

RATE = 0.03
"""Of learning, a lesson."""
TEMPERATURE = 0.15
"""Of the softmax; scores lie within about 0..1."""
NEGATIVE = 0.1
"""Weight of what was shown and not cited, beside 1 for what was."""
NEAR, FAR = 0.02, 0.3
"""Most that a score is shifted with hardly any evidence, and with no end of it."""
EVIDENCE = 20
"""Lessons after which the bound lies halfway between the two."""


class Lesson(Record):
    """What an answer was shown, and what of it was cited."""

    features: tuple[tuple[float, ...], ...]
    scores: tuple[float, ...]
    cited: tuple[bool, ...]

    @classmethod
    def of(cls, shown: Sequence[Recall], cited: Collection[str]) -> Self | None:
        """Return what citing these ids teaches; None where nothing, or all, of what has features was cited."""
        hits = [hit for hit in shown if hit.features]
        named = tuple(hit.id in cited for hit in hits)
        if all(named) or not any(named):
            return None
        return cls(features=tuple(hit.features for hit in hits), scores=tuple(hit.score for hit in hits), cited=named)


def _zeros() -> np.ndarray:
    return np.zeros(len(FEATURES))


@dataclass(frozen=True)
class Reranker:
    """What was learned from an owner's citations. One that has learned nothing shifts nothing."""

    weights: np.ndarray = field(default_factory=_zeros)
    """Shape (features,)."""
    mean: np.ndarray = field(default_factory=_zeros)
    """Of the features of what was shown; what is like it is not shifted. Shape (features,)."""
    lessons: int = 0

    @property
    def bound(self) -> float:
        """Most that a score is shifted, up or down: two records further apart than twice this keep their order."""
        return NEAR + (FAR - NEAR) * self.lessons / (self.lessons + EVIDENCE) if self.lessons else 0.0

    def shifts(self, features: np.ndarray) -> np.ndarray:
        """Return what to add to each score; `features` is of shape (records, features)."""
        shifts: np.ndarray = np.clip((features - self.mean) @ self.weights, -self.bound, self.bound)
        return shifts

    def taught(self, lesson: Lesson) -> "Reranker":
        """Return the reranker after one lesson more.

        A step along the sum of rewards times the gradients of log softmax(score / temperature): a reward of 1 shared by what
        was cited, one of -0.1 by what was not. A feature that all of it has alike cancels out.
        """
        features, cited = np.array(lesson.features), np.array(lesson.cited)
        scores = np.array(lesson.scores) / TEMPERATURE
        chosen = np.exp(scores - scores.max())
        expected = chosen @ features / chosen.sum()
        gradient = (features[cited].mean(0) - expected) - NEGATIVE * (features[~cited].mean(0) - expected)
        mean = self.mean + (features.mean(0) - self.mean) / (self.lessons + 1)
        return Reranker(self.weights + RATE * gradient, mean, self.lessons + 1)


def plain(features: np.ndarray) -> tuple[float, ...]:
    """Return the features of one record as a `Recall` carries them."""
    return tuple(round(float(value), 4) for value in features)


def load(connection: Connection, owner: int) -> Reranker:
    """Return what was learned from an owner's citations. Weights are kept by name, so features may come and go."""
    kept = fetch_one(connection, "SELECT learned FROM rerankers WHERE owner = ?", (owner,))
    if kept is None:
        return Reranker()
    learned = json.loads(kept)
    weights, mean = (np.array([learned[part].get(name, 0.0) for name in FEATURES]) for part in ("weights", "mean"))
    return Reranker(weights, mean, learned["lessons"])


def learn(connection: Connection, owner: int, lesson: Lesson) -> None:
    """Teach an owner's reranker one lesson more."""
    made = load(connection, owner).taught(lesson)
    parts = {"weights": made.weights, "mean": made.mean}
    learned = {part: dict(zip(FEATURES, values.tolist(), strict=True)) for part, values in parts.items()}
    statement = "INSERT INTO rerankers (owner, learned) VALUES (?, ?) ON CONFLICT (owner) DO UPDATE SET learned = excluded.learned"
    connection.exec_driver_sql(statement, (owner, json.dumps({**learned, "lessons": made.lessons})))


def reset(connection: Connection, owner: int) -> int:
    """Forget what was learned from an owner's citations; returns how many lessons that were."""
    lessons = load(connection, owner).lessons
    connection.exec_driver_sql("DELETE FROM rerankers WHERE owner = ?", (owner,))
    return lessons
