"""Two policies on the same labelled dialogues: what they differ in, whether that can be chance, and whether one may go first.

Each policy writes to a store of its own. Differences are of means over the same cases; their intervals are 95 % bootstrap
intervals over cases, resampled for both alike.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from sharpwave.benchmarks.scoring import CaseScore
from sharpwave.benchmarks.write import OPERATIONS, RESAMPLES, summary

MEASURES = ("accuracy", "update_recall", "delete_recall", "wrong_delete", "wrong_update", "duplicate", "stale", "kept")


def compare(one: Sequence[CaseScore], other: Sequence[CaseScore]) -> dict[str, Any]:
    """Compare the scores of two policies on the same cases.

    Returns `rates` (of both, by measure), `differences` (the other less the one: mean, low, high), `kinds` (by the right
    operation: how many, and how many each got right) and `promote`: see `promotes`.
    """
    weights = np.random.default_rng(0).multinomial(len(one), np.full(len(one), 1 / len(one)), RESAMPLES)
    rates: dict[str, list[float | None]] = {}
    differences: dict[str, list[float]] = {}
    for name in MEASURES:
        (a_hit, a_all), (b_hit, b_all) = (_counts(scores, name) for scores in (one, other))
        rates[name] = [_rate(a_hit, a_all), _rate(b_hit, b_all)]
        if a_all.sum() and b_all.sum():
            drawn = _rates(weights, b_hit, b_all) - _rates(weights, a_hit, a_all)
            low, high = np.percentile(drawn, [2.5, 97.5])
            mean = b_hit.sum() / b_all.sum() - a_hit.sum() / a_all.sum()
            differences[name] = [round(float(value), 4) for value in (mean, low, high)]
    return {
        "cases": len(one),
        "rates": rates,
        "differences": differences,
        "kinds": _kinds(one, other),
        "promote": promotes(rates),
    }


def promotes(rates: dict[str, list[float | None]]) -> bool:
    """Return whether the other policy may take the one's place: no more wrong deletes, and more right decisions."""
    harm, right = rates["wrong_delete"], rates["accuracy"]
    return (harm[1] or 0.0) <= (harm[0] or 0.0) and (right[1] or 0.0) > (right[0] or 0.0)


def _counts(scores: Sequence[CaseScore], name: str) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.array([score.counts[f"{name}/hit"] for score in scores]),
        np.array([score.counts[f"{name}/all"] for score in scores]),
    )


def _rate(hits: np.ndarray, of: np.ndarray) -> float | None:
    return round(float(hits.sum() / of.sum()), 4) if of.sum() else None


def _rates(weights: np.ndarray, hits: np.ndarray, of: np.ndarray) -> np.ndarray:
    return np.asarray((weights @ hits) / np.maximum(weights @ of, 1))


def _kinds(one: Sequence[CaseScore], other: Sequence[CaseScore]) -> dict[str, dict[str, Any]]:
    counts = [summary(scores)["decision"]["confusion"] for scores in (one, other)]
    return {
        label: {"right": [c[label][label] for c in counts], "made": [dict(Counter(c[label])) for c in counts]}
        for label in OPERATIONS
    }
