"""What of all that was found is returned: in which order, and how much."""

import heapq
from collections.abc import Iterable, Iterator

import numpy as np

from sharpwave.memory.errors import InputError
from sharpwave.memory.records import Recall
from sharpwave.memory.tokens import estimate

SAME = 0.8
"""Cosine from which two memories say much the same, so that no more than two of them come first."""
MISFITS = 5
"""After so many texts that no longer fit, the budget counts as full."""


def check_limits(k: int | None, budget: int | None) -> None:
    """Raise `InputError` for a negative number of results or of tokens."""
    if (k is not None and k < 0) or (budget is not None and budget < 0):
        raise InputError(f"A number of results or a token budget cannot be negative; got k={k}, budget={budget}.")


def merged(memories: Iterable[Recall], utterances: Iterable[Recall]) -> Iterator[Recall]:
    """Yield both by score, without the utterances that a memory before them quotes."""
    quoted: set[tuple[str | None, str | None]] = set()
    for hit in heapq.merge(memories, utterances, key=lambda hit: -hit.score):
        if hit.memory is not None:
            quoted.add((hit.memory.source.thread, hit.memory.source.message_id))
        elif hit.utterance is not None and (hit.utterance.thread, hit.utterance.message_id) in quoted:
            continue
        yield hit


def varied(hits: Iterable[tuple[Recall, np.ndarray]]) -> Iterator[Recall]:
    """Yield hits in order, but the third and later of much the same memories after all others."""
    first: list[np.ndarray] = []
    later: list[Recall] = []
    for hit, vector in hits:
        if len(first) >= 2 and np.count_nonzero(np.array(first) @ vector >= SAME) >= 2:
            later.append(hit)
        else:
            first.append(vector)
            yield hit
    yield from later


def within(hits: Iterable[Recall], k: int | None, budget: int | None) -> list[Recall]:
    """Return hits, best first: no more than `k`, and while their texts fit into `budget` tokens."""
    kept: list[Recall] = []
    used = misfits = 0
    for hit in hits:
        if (k is not None and len(kept) >= k) or misfits >= MISFITS:
            break
        cost = estimate(hit.text) + 17 if budget is not None else 0  # with its label, date and origin
        if budget is None or used + cost <= budget:
            kept.append(hit)
            used += cost
        else:
            misfits += 1
    return kept
