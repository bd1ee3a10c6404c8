"""What a store is worth after a session: answers, economy, coherence. No model judges it.

Economy is a precision, so that a store without entries earns nothing: a share of entries that were *not* kept would pay for
forgetting everything.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

WEIGHTS = {"answer_quality": 0.5, "memory_efficiency": 0.3, "conversation_coherence": 0.2}
FOUND = 5
"""Entries that a question brings up."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One store at the end of a session: E entries in the order they came, F facts that the dialogue is about."""

    states: Bools
    """(E, F): whether an entry states a fact. An entry states one fact or none."""
    kept: Bools
    """(E,): whether an entry is in the store."""
    true: Bools
    """(F,): facts that hold."""
    told: Bools
    """(F,): facts that were ever told."""
    slots: Bools
    """(F, F): whether two facts fill the same slot, themselves included."""
    nearness: Floats
    """(F, E): cosine of the question for a fact to each entry."""

    @property
    def held(self) -> Bools:
        """(F,): facts that an entry in the store states."""
        return np.asarray(self.states[self.kept].any(0))


def reward(outcome: Outcome) -> float:
    """Return 0.5 answer quality + 0.3 memory efficiency + 0.2 conversation coherence, 0..1."""
    parts = (answer_quality, memory_efficiency, conversation_coherence)
    return float(sum(WEIGHTS[part.__name__] * part(outcome) for part in parts))


def answer_quality(outcome: Outcome) -> float:
    """Return the mean over the questions, 0..1; 1 where there is none to ask.

    A fact that holds is asked for: 1 when an entry that states it is among the `FOUND` nearest, 0.5 when an outdated entry of
    its slot is nearer, else 0. A fact that was taken back and not replaced is asked for too: 1 when nothing found states it.
    """
    outdated = outcome.told & ~outcome.true
    empty = outdated & ~(outcome.slots & outcome.true).any(1)
    near = np.where(outcome.kept, outcome.nearness, -np.inf)
    bound = -np.sort(-near, axis=1)[:, min(FOUND, near.shape[1]) - 1]
    found = outcome.kept & (near >= bound[:, None])
    best = np.where(found & outcome.states.T, near, -np.inf).max(1, initial=-np.inf)
    stale_entry = (outcome.slots & outdated) @ outcome.states.T
    best_stale = np.where(found & stale_entry, near, -np.inf).max(1, initial=-np.inf)
    right = np.where(np.isfinite(best), np.where(best_stale > best, 0.5, 1.0), 0.0)
    marks = np.concatenate([right[outcome.true], np.where(np.isfinite(best_stale[empty]), 0.0, 1.0)])
    return float(marks.mean()) if marks.size else 1.0


def memory_efficiency(outcome: Outcome) -> float:
    """Return the distinct facts held that are true, a share of the entries, 0..1; 0 for an empty store while facts hold."""
    entries = int(outcome.kept.sum())
    if entries == 0:
        return 0.0 if outcome.true.any() else 1.0
    return float((outcome.held & outcome.true).sum() / entries)


def conversation_coherence(outcome: Outcome) -> float:
    """Return the share of the slots ever told whose held values are the true ones, 0..1; 1 where none was told."""
    wrong = outcome.told & (outcome.held != outcome.true)
    slots = {tuple(row.nonzero()[0]) for row in outcome.slots[outcome.told]}
    return 1.0 - sum(bool(wrong[list(slot)].any()) for slot in slots) / len(slots) if slots else 1.0
