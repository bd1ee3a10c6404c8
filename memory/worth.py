"""What a record is worth keeping, where there is no room for all: from what is in it, and from what was asked so far.

A record has mostly not been asked for when it has to be judged. So what was asked is generalised: a record that is like those
that answered questions, or like the questions, is likely to be asked for too.
"""

from dataclasses import dataclass

import numpy as np

NEIGHBOURS = 5
"""Questions, the nearest to a record, that its demand is the mean cosine of."""


@dataclass(frozen=True, eq=False)
class Standing:
    """What is known of each record, as columns."""

    importance: np.ndarray
    """0..1."""
    details: np.ndarray
    """Names and numbers in it."""
    length: np.ndarray
    """Terms in it."""
    retained: np.ndarray
    """Strength times the chance that it is still recalled, 0..1; see `rehearsal.retrievability`."""
    cited: np.ndarray
    """How often it answered a question."""
    demand: np.ndarray
    """How near it is to what was asked, see `demand`."""
    likeness: np.ndarray
    """Largest cosine to a newer record that stays."""
    superseded: np.ndarray
    """Whether a newer record has another value for the same thing."""


def demand(vectors: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Return the mean cosine of each record to the five questions nearest to it; zeros where nothing was asked.

    Args:
        vectors: unit length, a row a record.
        asked: unit length, a row a question.
    """
    if not len(asked):
        return np.zeros(len(vectors))
    near = vectors @ asked.T
    k = min(NEIGHBOURS, len(asked))
    found: np.ndarray = np.partition(near, len(asked) - k, axis=1)[:, -k:].mean(axis=1)
    return found
