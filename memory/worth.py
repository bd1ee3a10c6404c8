"""What a record is worth keeping, where there is no room for all.

Most records have never been asked for when they have to be judged, so what was asked for is generalised: a record among those
that answered questions is likely to be asked for too, one among those that never did is not. Rehearsal, detail and a newer
value for the same thing count beside it.
"""

from dataclasses import dataclass

import numpy as np

SHARPNESS = 12.0
"""How fast a neighbour counts less with its cosine: by e at 1/12 less."""
SAME = 0.999
"""Cosine from which two are the same: a record is no evidence about itself."""
DOUBT = 0.1
"""Weight of the average of all beside what the neighbours say; a neighbour of cosine 0.8 weighs as much."""
ANSWERED, RECALLED, LENGTH, IMPORTANCE, RETAINED, CURRENT, SUPERSEDED = 3.0, 0.5, 1.0, 1.0, 1.0, 2.0, 100.0
BLOCK = 1000
"""Records whose neighbours are looked at together; it bounds the room that takes."""


@dataclass(frozen=True, eq=False)
class Standing:
    """What is known of each record; all arrays have one entry a record."""

    need: np.ndarray
    """How likely it is to be asked for, as a multiple of the average; see `need`."""
    answered: np.ndarray
    """Whether it answered a question, or should have."""
    recalled: np.ndarray
    """How often it was recalled."""
    length: np.ndarray
    """Index terms in it."""
    importance: np.ndarray
    """0..1."""
    retained: np.ndarray
    """Strength times the chance of recall by the forgetting curve, 0..1."""
    current: np.ndarray
    """Whether it holds the value of something that has one value at a time, such as where somebody lives."""
    superseded: np.ndarray
    """Whether a newer record has another value for the same thing."""


def affinity(vectors: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return how much each of `others` tells about each of `vectors`: e^(12·(cosine - 1)), 0 for the same record.

    Args:
        vectors: unit length, shape (n, d).
        others: unit length, shape (m, d).

    Returns:
        0..1, shape (n, m).
    """
    cosine = vectors @ others.T
    found: np.ndarray = np.where(cosine < SAME, np.exp(SHARPNESS * (cosine - 1)), 0.0)
    return found


def need(affinities: np.ndarray, answered: np.ndarray) -> np.ndarray:
    """Return how likely each record is to be asked for, as a multiple of the average: all 1 while nothing was asked.

    It is the share of its neighbours that answered questions, near ones counting most (Nadaraya and Watson's kernel
    regression, 1964), drawn towards the average where there are few.

    Args:
        affinities: of the records to all that are known of, those that went included; see `affinity`; shape (n, m).
        answered: whether each of these answered a question, or should have, shape (m,).
    """
    mean = float(answered.mean()) if len(answered) else 0.0
    if not mean:
        return np.ones(len(affinities))
    share = (affinities @ answered + DOUBT * mean) / (affinities.sum(axis=1) + DOUBT)
    found: np.ndarray = share / mean
    return found


def needs(vectors: np.ndarray, others: np.ndarray, answered: np.ndarray) -> np.ndarray:
    """Return `need` of the records with these vectors, from the vectors of all that are known of."""
    if not answered.any():
        return np.ones(len(vectors))
    blocks = (vectors[at : at + BLOCK] for at in range(0, len(vectors), BLOCK))
    return np.concatenate([need(affinity(some, others), answered) for some in blocks] or [np.empty(0)])


def worth(standing: Standing) -> np.ndarray:
    """Return what each record is worth, to be compared with the others of the same owner; any number, higher is better.

    log need + 3 answered + 0.5 log(1 + recalled) + log(1 + length) + importance + retained + 2 current; what was superseded
    comes after all others.
    """
    learned = np.log(np.maximum(standing.need, 1e-9)) + ANSWERED * standing.answered
    learned += RECALLED * np.log1p(standing.recalled)
    known = LENGTH * np.log1p(standing.length) + IMPORTANCE * standing.importance + RETAINED * standing.retained
    known += CURRENT * standing.current
    found: np.ndarray = learned + known - SUPERSEDED * standing.superseded
    return found
