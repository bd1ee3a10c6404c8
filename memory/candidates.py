"""Which records are scored for a question: the nearest vectors, the best of each keyword view, and what is not indexed yet."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection, Table

from sharpwave.memory import episodic, keywords, ledger, semantic
from sharpwave.memory.index import StoreName
from sharpwave.memory.question import Query
from sharpwave.memory.schema import memories
from sharpwave.memory.sql import fetch, fetch_one

SCANNED = 1000
"""Most records of a keyword view that are ranked by length too; beyond, the rarest words decide first."""
Nearest = Callable[[StoreName, np.ndarray, int], Sequence[str]]
"""Asks the vector index: (store, vector, k) -> vector ids."""


@dataclass(frozen=True)
class View:
    """What one keyword view of an owner's records holds about a question."""

    rows: np.ndarray
    """Row numbers of the records that hold a term of it, ascending (int64)."""
    scores: np.ndarray
    """Their BM25 scores."""
    found: dict[str, np.ndarray]
    """Row numbers by term."""
    weights: dict[str, float]
    """The weight of every term, also of those that nothing holds."""

    def best(self, k: int) -> list[int]:
        """Return the row numbers of the `k` highest scores."""
        rows: list[int] = self.rows[np.argsort(-self.scores, kind="stable")[:k]].tolist()
        return rows

    def at(self, rows: np.ndarray) -> np.ndarray:
        """Return the scores of these rows, 0 where the view does not hold one."""
        return self._of(rows, self.scores)

    def covered(self, rows: np.ndarray) -> np.ndarray:
        """Return, for each row, the share of the question's terms that it holds, by weight: 0..1."""
        return self._of(rows, self._held(self.found)) / self.weight

    def lacking(self, rows: np.ndarray, terms: Collection[str]) -> np.ndarray:
        """Return, for each row, the weight of those of `terms` that it does not hold."""
        whole = sum(self.weights.get(term, 0.0) for term in terms)
        return whole - self._of(rows, self._held(terms))

    @property
    def weight(self) -> float:
        """The weight of all terms together (> 0)."""
        return max(sum(self.weights.values()), 1e-9)

    def _held(self, terms: Iterable[str]) -> np.ndarray:
        held = np.zeros(len(self.rows))
        for term in terms:
            if term in self.found:
                held[keywords.places(self.rows, self.found[term])] += self.weights[term]
        return held

    def _of(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        if not len(self.rows):
            return np.zeros(len(rows))
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return np.where(self.rows[at] == rows, values[at], 0.0)


def keyword_view(connection: Connection, owner: int, view: str, terms: Sequence[str]) -> View:
    """Return what one keyword view of one owner's records holds about `terms`."""
    found = keywords.postings(connection, view, owner, terms)
    total, mean_length = ledger.statistics(connection, owner, view)
    weights = {term: keywords.idf(total, len(found.get(term, ()))) for term in terms}
    if not found:
        return View(np.zeros(0, np.int64), np.zeros(0), found, weights)
    rows = np.unique(np.concatenate(list(found.values())))
    if len(rows) > SCANNED:
        rough = keywords.bm25(found, rows, np.full(len(rows), mean_length), total, mean_length)
        rows = np.sort(rows[np.argpartition(-rough, SCANNED)[:SCANNED]])
    scores = keywords.bm25(found, rows, _lengths(connection, view, rows), total, mean_length)
    return View(rows, scores, found, weights)


_LENGTHS = {
    view: f"SELECT group_concat(length) FROM (SELECT {column} AS length FROM {table} INDEXED BY {table}_ranked "
    "WHERE row IN (SELECT value FROM json_each(?)) ORDER BY row)"
    for view, table, column in (
        (semantic.VIEW, "memories", "term_count"),
        (episodic.VIEW, "utterances", "term_count"),
        (episodic.WINDOW, "utterances", "window_term_count"),
    )
}


def _lengths(connection: Connection, view: str, rows: np.ndarray) -> np.ndarray:
    found = fetch_one(connection, _LENGTHS[view], (json.dumps(rows.tolist()),))
    return np.fromstring(found, np.int64, sep=",")


def best_live(connection: Connection, view: View, k: int) -> list[int]:
    """Return the row numbers of the `k` highest scores among live memories: what was retracted takes nobody's place."""
    ranked, found = view.best(SCANNED), list[int]()
    for at in range(0, len(ranked), 3 * k):  # as a rule the first of these holds enough that live
        if len(found) < k:
            some = ranked[at : at + 3 * k]
            live = semantic.live_among(connection, some)
            found += [row for row in some if row in live]
    return found[:k]


def pending_rows(connection: Connection, table: Table, owner: int) -> list[int]:
    """Return the owner's rows that the vector index does not hold yet."""
    statement = f"SELECT row FROM {table.name} WHERE indexed = 0 AND owner = ?"
    return [row for (row,) in fetch(connection, statement, (owner,))]


def close_memories(connection: Connection, owner: int, query: Query, nearest: Nearest, k: int) -> list[int]:
    """Return the rows of the `k` memories nearest to a query, and of all that the vector index does not know of yet."""
    waiting = pending_rows(connection, memories, owner)
    # What was live when it was indexed may wait because it no longer is; it must not take the place of another.
    found = nearest("semantic", query.vector, k + len(waiting))
    return [*semantic.by_vector_id(connection, owner, found).values(), *waiting]


def stack(vectors: Sequence[bytes]) -> np.ndarray:
    """Return vectors as they are kept in the ledger as one array, float32, shape (n, dimensions)."""
    return np.frombuffer(b"".join(vectors), np.float16).reshape(len(vectors), -1).astype(np.float32)


def scaled(scores: np.ndarray, low: float | None = None) -> np.ndarray:
    """Return scores min-max scaled to 0..1; `low` stands in for the smallest. Equal scores all become 0."""
    if not len(scores):
        return scores
    bottom = scores.min() if low is None else low
    return (scores - bottom) / max(float(scores.max() - bottom), 1e-9)
