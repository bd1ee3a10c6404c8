"""What a decision about a statement should see: the memories nearest to it."""

from collections.abc import Sequence

import numpy as np
from sqlalchemy import Connection

from sharpwave.memory import semantic
from sharpwave.memory.candidates import Nearest, View, best_live, close_memories, keyword_view, scaled, stack
from sharpwave.memory.question import Query
from sharpwave.memory.recall import memory_hit
from sharpwave.memory.records import Candidate, Recall, Score
from sharpwave.memory.sql import fetch

EXACT = 3000
"""Owners with fewer live memories than this are compared one by one when deciding."""


def neighbours(
    connection: Connection, owner: int, queries: Sequence[tuple[Query, Candidate]], nearest: Nearest, k: int = 10
) -> list[list[Recall]]:
    """Return, for each candidate (with its text as a query), the live memories that a decision about it should see.

    Those are the hybrid top `k`, whatever holds the same slot or says the same letter by letter, and what a model proposed
    as its target, best first.
    """
    must = []
    for query, candidate in queries:
        rows = semantic.same_text_rows(connection, owner, query.text)
        if candidate.attribute:
            rows += semantic.slot_rows(connection, owner, candidate.subject, candidate.attribute)
        if candidate.proposed_target:
            rows += semantic.live_rows(connection, owner, candidate.proposed_target)
        must.append(set(rows))
    return nearby(connection, owner, [query for query, _ in queries], nearest, k, must)


def nearby(
    connection: Connection,
    owner: int,
    queries: Sequence[Query],
    nearest: Nearest,
    k: int,
    must: Sequence[set[int]] = (),
) -> list[list[Recall]]:
    """Return, for each query, the hybrid top `k` of the live memories and those in the rows that `must` names, best first.

    Owners with few memories are compared exactly, which needs no index.
    """
    exact = _all_vectors(connection, owner)
    answers = []
    for query, needed in zip(queries, must or [set()] * len(queries), strict=True):
        view = keyword_view(connection, owner, semantic.VIEW, query.terms)
        if exact is not None:
            close = exact[0][np.argsort(-(exact[1] @ query.vector))[: 2 * k]].tolist() if len(exact[0]) else []
        else:
            close = close_memories(connection, owner, query, nearest, 2 * k)
        loaded = semantic.load(connection, owner, sorted({*best_live(connection, view, 2 * k), *close, *needed}))
        answers.append(_rank_neighbours(loaded, owner, view, query, needed, k))
    return answers


def _rank_neighbours(
    loaded: Sequence[semantic.Row], owner: int, view: View, query: Query, must: set[int], k: int
) -> list[Recall]:
    if not loaded:
        return []
    cosine = stack([row.vector for row in loaded]) @ query.vector
    keyword = scaled(view.at(np.array([row.row for row in loaded])), low=0.0)
    total = (keyword + scaled(cosine)) / 2
    order = np.argsort(-total, kind="stable")
    chosen = [i for i in order if loaded[i].row in must]
    chosen += [i for i in order if loaded[i].row not in must][:k]
    hits = []
    for i in chosen:
        memory = semantic.read_row(loaded[i], owner)
        parts = Score(keyword=float(keyword[i]) / 2, cosine=float(cosine[i]), total=float(total[i]))
        hits.append(memory_hit(memory, parts))
    return hits


def _all_vectors(connection: Connection, owner: int) -> tuple[np.ndarray, np.ndarray] | None:
    statement = f"SELECT row, vector FROM memories WHERE owner = ? AND {semantic.LIVE} LIMIT ?"
    found = fetch(connection, statement, (owner, EXACT))
    if len(found) == EXACT:
        return None
    if not found:
        return np.zeros(0, np.int64), np.zeros((0, 0), np.float32)
    rows, blobs = zip(*found, strict=True)
    vectors = np.frombuffer(b"".join(blobs), np.float16).reshape(len(found), -1)
    return np.array(rows), vectors.astype(np.float32)
