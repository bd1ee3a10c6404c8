"""Recall: what an owner's stores hold about a question, without a model call.

Candidates are the nearest vectors from Chroma, the best of each keyword view, and what is not indexed yet; all of them are
then scored exactly, from the vectors and the postings in the ledger. Keyword and dense scores are each scaled to 0..1
within the candidates and added half and half; ranks (RRF) would throw the margins away and fell below BM25 alone. Verbatim
records have two keyword views and share in their neighbours' dense scores. Recency, importance and strength only break ties.
"""

import heapq
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from sqlalchemy import Connection, Table

from sharpwave.memory import episodic, hops, keywords, knowing, ledger, semantic
from sharpwave.memory.errors import InputError
from sharpwave.memory.index import StoreName
from sharpwave.memory.records import Candidate, Memory, Recall, Score, Utterance
from sharpwave.memory.schema import memories, utterances
from sharpwave.memory.sql import fetch, fetch_one
from sharpwave.memory.staleness import is_stale
from sharpwave.memory.tokens import estimate

CANDIDATES = 60
"""How many the vectors and each keyword view contribute."""
SMOOTHING = 0.3
"""Share of a neighbour's cosine that a verbatim record takes over."""
SUBJECT_BOOST = 0.1
TIE_BREAK = 0.05
"""Most that recency, importance and strength together can add."""
TIME_BOOST = 0.1
"""Most that a memory gains when the question names a time and it is of that time."""
FADED = 0.5
"""Share of its tie-break that a stale memory keeps, and one that needs review."""
FLOOR = 0.4
"""Least of cosine + coverage / 2 that counts as knowing something; see `relevance`."""
SAME = 0.8
"""Cosine from which two memories say much the same, so that no more than two of them come first."""
SCANNED = 1000
"""Most records of a keyword view that are ranked by length too; beyond, the rarest words decide first."""

Nearest = Callable[[StoreName, np.ndarray, int], Sequence[str]]
"""Asks the vector index: (store, vector, k) -> vector ids."""


@dataclass(frozen=True)
class When:
    """The times that a recall is about. All in UTC."""

    now: datetime
    """The present: for recency, staleness, and what has expired."""
    as_of: datetime | None = None
    """What held true then."""
    known_at: datetime | None = None
    """What had been recorded by then, as it was known then."""
    asked: tuple[datetime, datetime] | None = None
    """The interval that the question names."""


@dataclass(frozen=True)
class Query:
    """A question, ready to be asked."""

    text: str
    vector: np.ndarray
    terms: tuple[str, ...]

    @classmethod
    def of(cls, text: str, vector: np.ndarray) -> "Query":
        """Make a query of `text` and its vector (unit length)."""
        return cls(text, vector, tuple(dict.fromkeys(keywords.terms(text))))


def scaled(scores: np.ndarray, low: float | None = None) -> np.ndarray:
    """Return scores min-max scaled to 0..1; `low` stands in for the smallest. Equal scores all become 0."""
    if not len(scores):
        return scores
    bottom = scores.min() if low is None else low
    return (scores - bottom) / max(float(scores.max() - bottom), 1e-9)


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

    def best(self, k: int = CANDIDATES) -> list[int]:
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
    view: f"SELECT group_concat(length) FROM (SELECT {column} AS length FROM {table} "
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


def _best_live(connection: Connection, view: View, k: int = CANDIDATES) -> list[int]:
    """Return the row numbers of the `k` highest scores among live memories: what was retracted takes nobody's place."""
    if len(view.rows) <= k:
        return view.best(k)
    live = semantic.live_among(connection, view.rows.tolist())
    return [row for row in view.best(SCANNED) if row in live][:k]


def pending_rows(connection: Connection, table: Table, owner: int) -> list[int]:
    """Return the owner's rows that the vector index does not hold yet."""
    statement = f"SELECT row FROM {table.name} WHERE indexed = 0 AND owner = ?"
    return [row for (row,) in fetch(connection, statement, (owner,))]


def _close_memories(connection: Connection, owner: int, query: Query, nearest: Nearest, k: int) -> list[int]:
    """Return the rows of the `k` memories nearest to a query, and of all that the vector index does not know of yet."""
    waiting = pending_rows(connection, memories, owner)
    # What was live when it was indexed may wait because it no longer is; it must not take the place of another.
    found = nearest("semantic", query.vector, k + len(waiting))
    return [*semantic.rows_by_vector_id(connection, owner, found), *waiting]


def stack(vectors: Sequence[bytes]) -> np.ndarray:
    """Return vectors as they are kept in the ledger as one array, float32, shape (n, dimensions)."""
    return np.frombuffer(b"".join(vectors), np.float16).reshape(len(vectors), -1).astype(np.float32)


def relevance(query: Query, cosine: np.ndarray, covered: np.ndarray) -> np.ndarray:
    """Return how much a record has to do with a question, apart from what else there is: cosine + coverage / 2.

    Where the embedder knows nothing of what the question says (a vector of zeros), the words alone must do: twice the
    coverage (in Thai, Amharic and Khmer, questions covered .3 to .5 of the answer and .13 or less of other statements).
    """
    return cosine + covered / 2 if query.vector.any() else 2 * covered


def search_memories(
    connection: Connection,
    owner: int,
    query: Query,
    nearest: Nearest,
    *,
    when: When,
    include_history: bool = False,
    strict: bool = False,
    floor: float = FLOOR,
) -> Iterator[tuple[Recall, np.ndarray]]:
    """Yield the owner's memories that have to do with `query`, best first, each with its vector."""
    view = keyword_view(connection, owner, semantic.VIEW, query.terms)
    close = _close_memories(connection, owner, query, nearest, CANDIDATES)
    past = when.as_of is not None or when.known_at is not None or include_history
    worded = view.best(SCANNED) if past else _best_live(connection, view)
    reached = hops.reach(connection, owner, query.text)
    candidates = {*worded, *close, *semantic.rows_of(connection, owner, reached.memories)}
    loaded = _loaded(connection, owner, sorted(candidates), when, include_history)
    if not loaded:
        return
    rows = np.array([row.row for row in loaded])
    vectors = stack([row.vector for row in loaded])
    cosine = vectors @ query.vector
    told = reached.told(connection, owner, [row.id for row in loaded])
    implied = told * view.lacking(rows, reached.terms)
    keyword = scaled(view.at(rows) + implied, low=0.0)
    dense = scaled(cosine)
    named = SUBJECT_BOOST * told if reached.about else _named([row.subject for row in loaded], query)
    covered = view.covered(rows) + implied / view.weight
    found = []
    for i in np.flatnonzero(relevance(query, cosine, covered) >= floor):
        memory = semantic.read_row(loaded[i], owner)  # which costs more than to score the row
        timely, tie = _timely(memory, when.asked), _tie_break(memory, when.now)
        parts = Score(
            keyword=float(keyword[i]) / 2,
            dense=float(dense[i]) / 2,
            subject=float(named[i]),
            time=timely,
            tie_break=tie,
            cosine=float(cosine[i]),
            coverage=float(covered[i]),
            total=float((keyword[i] + dense[i]) / 2 + named[i] + timely + tie),
        )
        shown = memory.expires_at is None or memory.expires_at > (when.as_of or when.known_at or when.now)
        # What a conversation was about says again, as of then, what has changed since: the change must not lose to it.
        shown = shown and not (memory.kind == "summary" and memory.needs_review)
        if include_history or (shown and not (strict and is_stale(memory, when.now))):
            found.append((_hit(memory, parts), vectors[i]))
    yield from sorted(found, key=lambda hit: -hit[0].score)


def _loaded(
    connection: Connection, owner: int, rows: Sequence[int], when: When, include_history: bool
) -> list[semantic.Row]:
    """Return the rows among these that a recall may return, ascending."""
    at = ledger.timestamp(when.as_of)
    if when.known_at is not None:
        return knowing.load(connection, owner, rows, when.known_at, as_of=when.as_of, history=include_history)
    loaded = semantic.load(connection, owner, rows, as_of=at, history=include_history)
    if include_history or at is not None:
        return loaded
    return [row for row in loaded if row.confidence >= semantic.BELIEVED]


def search_utterances(
    connection: Connection,
    owner: int,
    name: str,
    query: Query,
    nearest: Nearest,
    *,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
    floor: float = FLOOR,
) -> Iterator[Recall]:
    """Yield the owner's utterances that have to do with `query`, best first."""
    plain = keyword_view(connection, owner, episodic.VIEW, query.terms)
    wide = keyword_view(connection, owner, episodic.WINDOW, query.terms)
    close = episodic.rows_by_vector_id(connection, owner, nearest("episodic", query.vector, CANDIDATES))
    candidates = {*plain.best(), *wide.best(), *close, *pending_rows(connection, utterances, owner)}
    lines = episodic.load(connection, owner, sorted(candidates))
    if lines is None:
        return
    cosine = stack(lines.vectors) @ query.vector
    smooth = _smoothed(cosine, lines.follows)
    keyword = (scaled(plain.at(lines.rows), low=0.0) + scaled(wide.at(lines.rows), low=0.0)) / 2
    dense = (scaled(cosine) + scaled(smooth)) / 2
    named = _named(lines.speakers, query)
    total = (keyword + dense) / 2 + named
    covered = plain.covered(lines.rows)
    relevant = relevance(query, np.maximum(cosine, smooth / (1 + 2 * SMOOTHING)), covered) >= floor
    if as_of is not None:
        relevant &= lines.said_at <= as_of.timestamp()
    numbers = lines.rows.tolist()
    order = [i for i in np.argsort(-total, kind="stable").tolist() if relevant[i]]
    for at in range(0, len(order), READ_AT_ONCE):
        some = order[at : at + READ_AT_ONCE]
        records = episodic.read(connection, owner, name, [numbers[i] for i in some])
        for i in some:
            if known_at is not None and records[numbers[i]].recorded_at > known_at:
                continue
            parts = Score(
                keyword=float(keyword[i]) / 2,
                dense=float(dense[i]) / 2,
                subject=float(named[i]),
                cosine=float(cosine[i]),
                coverage=float(covered[i]),
                total=float(total[i]),
            )
            yield _utterance_hit(records[numbers[i]], parts)


READ_AT_ONCE = 24


def _utterance_hit(utterance: Utterance, parts: Score) -> Recall:
    text, at = episodic.spoken(utterance.speaker, utterance.text), utterance.said_at
    return Recall(
        id=utterance.id, store="episodic", text=text, said_at=at, score=parts.total, parts=parts, utterance=utterance
    )


def _hit(memory: Memory, parts: Score) -> Recall:
    at = memory.source.said_at or memory.valid_from
    return Recall(
        id=memory.id, store="semantic", text=memory.text, said_at=at, score=parts.total, parts=parts, memory=memory
    )


def _smoothed(cosine: np.ndarray, follows: np.ndarray) -> np.ndarray:
    """Return cosines with a share of the neighbours'; `follows` says which line comes right after the one before it."""
    smooth = cosine.copy()
    smooth[1:] += SMOOTHING * cosine[:-1] * follows
    smooth[:-1] += SMOOTHING * cosine[1:] * follows
    return smooth


_FIRST_PERSON = frozenset("i me my mine myself i'm im ive i've id i'd".split())


def _named(subjects: Sequence[str], query: Query) -> np.ndarray:
    """Return the boost of each record whose subject or speaker is the one that the query names."""
    words = set(keywords.fold(query.text).replace("?", " ").replace("'s", " ").split())
    names = {subject: keywords.terms(subject) for subject in set(subjects)}
    named = {s for s, terms in names.items() if s != "user" and terms and set(terms) & set(query.terms)}
    if not named and words & _FIRST_PERSON:
        named = {"user"}
    if len(named) != 1:
        return np.zeros(len(subjects))
    return np.array([SUBJECT_BOOST if subject in named else 0.0 for subject in subjects])


def _tie_break(memory: Memory, now: datetime) -> float:
    recency = 0.5 ** (max((now - memory.valid_from).total_seconds(), 0.0) / (180 * 86400))
    share = TIE_BREAK * (0.4 * recency + 0.3 * memory.importance + 0.3 * memory.strength)
    return float(share * FADED ** (is_stale(memory, now) + memory.needs_review))


def _timely(memory: Memory, asked: tuple[datetime, datetime] | None) -> float:
    """Return the boost of a memory for being of the time asked about: the share of its own time that lies in that."""
    if asked is None:
        return 0.0
    said = memory.source.said_at or memory.valid_from
    start, end = (memory.event_time.start, memory.event_time.end) if memory.event_time else (said, said)
    if start >= end:
        return TIME_BOOST * (asked[0] <= start < asked[1])
    shared = min(end, asked[1]) - max(start, asked[0])
    return TIME_BOOST * max(0.0, shared / (end - start))


LONG = 1000
"""Characters from which on a query is searched for the question in it; more than the encoder reads."""
_SENTENCE = re.compile(r"\n+|(?<=[.!?؟。！？])\s+|(?<=[。！？])")


def ending(text: str, characters: int = 2000) -> str:
    """Return the end of a long text."""
    return text[-characters:]


def question_in(text: str) -> str:
    """Return a query without what was pasted above it: of a long one the last question, or else the last sentence."""
    if len(text) <= LONG:
        return text
    sentences = [part.strip() for part in _SENTENCE.split(ending(text)) if part.strip()][-3:]
    asked = [part for part in sentences if part.endswith(("?", "？", "؟"))]
    return (asked or sentences)[-1]


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
        if sum(float(vector @ other) >= SAME for other in first) >= 2:
            later.append(hit)
        else:
            first.append(vector)
            yield hit
    yield from later


MISFITS = 5
"""After so many texts that no longer fit, the budget counts as full."""


def check_limits(k: int | None, budget: int | None) -> None:
    """Raise `InputError` for a negative number of results or of tokens."""
    if (k is not None and k < 0) or (budget is not None and budget < 0):
        raise InputError(f"A number of results or a token budget cannot be negative; got k={k}, budget={budget}.")


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
            close = _close_memories(connection, owner, query, nearest, 2 * k)
        loaded = semantic.load(connection, owner, sorted({*_best_live(connection, view, 2 * k), *close, *needed}))
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
        hits.append(_hit(memory, parts))
    return hits


EXACT = 3000
"""Owners with fewer live memories than this are compared one by one when deciding."""


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
