"""The parts of a score as numbers of one scale: what a reranker weighs."""

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from sharpwave.memory import keywords
from sharpwave.memory.episodic import Lines
from sharpwave.memory.records import Recall

FEATURES = (
    *("keyword", "dense", "subject", "time", "tie_break", "cosine", "coverage"),
    *("length", "question", "before", "after", "session", "useful", "recent"),
    *("utterance", "preference", "event", "summary", "insight"),
)
"""What a weight is learned for, 0..1 but for cosine and length: the parts of the score, each as a share of its most; the logarithm
of the length, 1 for 50 terms; whether it holds a question mark; the scores of the messages before and after it, and the best of
its thread; the share of its recalls in which it was cited; recency; and which kind it is of, a fact being none of these."""
SUBJECT_BOOST = 0.1
"""What a record gains whose subject or speaker the question names."""
TIE_BREAK = 0.05
"""Most that recency, importance and strength together can add."""
TIME_BOOST = 0.1
"""Most that a memory gains when the question names a time and it is of that time."""


def of_memories(hits: Sequence[Recall], now: datetime) -> np.ndarray:
    """Return the features of memories that were found with the parts of their scores, shape (records, features)."""
    found = [(hit.memory, hit.parts) for hit in hits if hit.memory and hit.parts]
    return _table(
        len(found),
        keyword=[2 * parts.keyword for _, parts in found],
        dense=[2 * parts.dense for _, parts in found],
        subject=[parts.subject / SUBJECT_BOOST for _, parts in found],
        time=[parts.time / TIME_BOOST for _, parts in found],
        tie_break=[parts.tie_break / TIE_BREAK for _, parts in found],
        cosine=[parts.cosine for _, parts in found],
        coverage=[parts.coverage for _, parts in found],
        length=_long([len(keywords.terms(memory.text)) for memory, _ in found]),
        useful=[memory.cited / (memory.recalled + 2) for memory, _ in found],
        recent=recent([memory.valid_from.timestamp() for memory, _ in found], now),
        **{
            kind: [memory.kind == kind for memory, _ in found] for kind in ("preference", "event", "summary", "insight")
        },
    )


def of_lines(
    lines: Lines,
    now: datetime,
    *,
    keyword: np.ndarray,
    dense: np.ndarray,
    named: np.ndarray,
    cosine: np.ndarray,
    covered: np.ndarray,
) -> np.ndarray:
    """Return the features of utterances, shape (records, features); keyword and dense scores scaled to 0..1."""
    score = (keyword + dense) / 2
    before, after, best = np.zeros(len(score)), np.zeros(len(score)), np.zeros(int(lines.threads[-1]) + 1)
    before[1:], after[:-1] = score[:-1] * lines.follows, score[1:] * lines.follows
    np.maximum.at(best, lines.threads, score)
    return _table(
        len(score),
        keyword=keyword,
        dense=dense,
        subject=named / SUBJECT_BOOST,
        cosine=cosine,
        coverage=covered,
        length=_long(lines.lengths),
        question=lines.asking,
        before=before,
        after=after,
        session=best[lines.threads],
        recent=recent(lines.said_at, now),
        utterance=1.0,
    )


def recent(at: Sequence[float] | np.ndarray | float, now: datetime) -> np.ndarray:
    """Return the recency of times in seconds since 1970: 1 now or later, half of it after 180 days."""
    return np.asarray(0.5 ** (np.maximum(now.timestamp() - np.asarray(at), 0.0) / (180 * 86400)))


def _long(terms: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.asarray(np.log1p(terms) / np.log(51))


def _table(records: int, **columns: Sequence[float] | np.ndarray | float) -> np.ndarray:
    made = np.zeros((records, len(FEATURES)))
    for name, values in columns.items():
        made[:, FEATURES.index(name)] = values
    return made
