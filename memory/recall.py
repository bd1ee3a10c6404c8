"""Recall: what an owner's stores hold about a question, without a model call.

Candidates are the nearest vectors from Chroma, the best of each keyword view, and what is not indexed yet; all of them are
then scored exactly, from the vectors and the postings in the ledger. Keyword and dense scores are each scaled to 0..1
within the candidates and added half and half; ranks (RRF) would throw the margins away and fell below BM25 alone. Verbatim
records have two keyword views and share in their neighbours' dense scores. Recency, importance and strength only break ties.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

import numpy as np
from sqlalchemy import Connection

from sharpwave.memory import episodic, features, hops, keywords, knowing, ledger, rerank, semantic
from sharpwave.memory.candidates import (
    SCANNED,
    Nearest,
    best_live,
    close_memories,
    keyword_view,
    pending_rows,
    scaled,
    stack,
)
from sharpwave.memory.features import SUBJECT_BOOST, TIE_BREAK, TIME_BOOST
from sharpwave.memory.question import Query, When
from sharpwave.memory.records import Memory, Recall, Score, Utterance
from sharpwave.memory.rehearsal import effective
from sharpwave.memory.rerank import Reranker
from sharpwave.memory.schema import utterances
from sharpwave.memory.staleness import is_stale

CANDIDATES = 60
"""How many the vectors and each keyword view contribute."""
SMOOTHING = 0.3
"""Share of a neighbour's cosine that a verbatim record takes over."""
SECONDHAND = 0.2
"""What a summary loses: it says again, at greater length, what is found in the words in which it was told. On LoCoMo, summaries
of sessions on a par with those took the evidence among the first ten from .737 to .732, and MRR from .561 to .553; with this
loss they leave .743 and .569."""
FADED = 0.5
"""Share of its tie-break that a stale memory keeps, and one that needs review."""
FLOOR = 0.4
"""Least of cosine + coverage / 2 that counts as knowing something; see `relevance`."""

Hit = tuple[Recall, np.ndarray]
"""What was found, and its vector."""


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
    reranker: Reranker | None = None,
) -> Iterator[Hit]:
    """Yield the owner's memories that have to do with `query`, best first, each with its vector."""
    view = keyword_view(connection, owner, semantic.VIEW, query.terms)
    close = close_memories(connection, owner, query, nearest, CANDIDATES)
    past = when.as_of is not None or when.known_at is not None or include_history
    worded = view.best(SCANNED) if past else best_live(connection, view, CANDIDATES)
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
    base = (keyword + dense) / 2 + named

    def read(i: int) -> Hit | None:
        memory = semantic.read_row(loaded[i], owner)
        shown = memory.expires_at is None or memory.expires_at > (when.as_of or when.known_at or when.now)
        # What a conversation was about says again, as of then, what has changed since: the change must not lose to it.
        shown = shown and not (memory.kind == "summary" and memory.needs_review)
        if not include_history and (not shown or (strict and is_stale(memory, when.now))):
            return None
        timely, tie = _timely(memory, when.asked), _tie_break(memory, when.now)
        secondhand = -SECONDHAND if memory.kind == "summary" else 0.0
        parts = Score(
            keyword=float(keyword[i]) / 2,
            dense=float(dense[i]) / 2,
            subject=float(named[i]),
            time=timely,
            tie_break=tie,
            summary=secondhand,
            cosine=float(cosine[i]),
            coverage=float(covered[i]),
            total=float(base[i]) + timely + tie + secondhand,
        )
        return memory_hit(memory, parts), vectors[i]

    relevant = relevance(query, cosine, covered) >= floor
    order = [i for i in np.argsort(-base, kind="stable").tolist() if relevant[i]]
    most = base + TIE_BREAK + (TIME_BOOST if when.asked else 0.0)
    if reranker is None:
        yield from _in_order(order, most, read)
        return
    hits = [hit for hit in map(read, order) if hit is not None]
    learned = _reranked([hit for hit, _ in hits], reranker, when.now)
    again = [(hit, vector) for hit, (_, vector) in zip(learned, hits, strict=True)]
    yield from sorted(again, key=lambda hit: -hit[0].score)


def _in_order(order: Sequence[int], most: np.ndarray, read: Callable[[int], Hit | None]) -> Iterator[Hit]:
    """Yield hits by their scores, without reading many that nobody asks for, since to read one costs more than to score it.

    Args:
        order: which to read, by `most` from the highest on.
        most: what the score of each cannot exceed.
        read: reads one; None is nothing to return.
    """
    waiting: list[tuple[float, int, Hit]] = []
    for i in order:
        while waiting and -waiting[0][0] > most[i]:
            yield heapq.heappop(waiting)[2]
        hit = read(i)
        if hit is not None:
            heapq.heappush(waiting, (-hit[0].score, i, hit))
    while waiting:
        yield heapq.heappop(waiting)[2]


def _reranked(hits: Sequence[Recall], reranker: Reranker, now: datetime) -> Iterator[Recall]:
    """Yield hits with the scores that citations have taught to give them."""
    known = features.of_memories(hits, now)
    for hit, row, shift in zip(hits, known, reranker.shifts(known).tolist(), strict=True):
        total = hit.score + shift
        parts = hit.parts and hit.parts.model_copy(update={"learned": shift, "total": total})
        yield hit.model_copy(update={"score": total, "parts": parts, "features": rerank.plain(row)})


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
    when: When,
    floor: float = FLOOR,
    reranker: Reranker | None = None,
) -> Iterator[Recall]:
    """Yield the owner's utterances that have to do with `query`, best first."""
    plain = keyword_view(connection, owner, episodic.VIEW, query.terms)
    wide = keyword_view(connection, owner, episodic.WINDOW, query.terms)
    close = episodic.by_vector_id(connection, owner, nearest("episodic", query.vector, CANDIDATES)).values()
    candidates = {*plain.best(CANDIDATES), *wide.best(CANDIDATES), *close, *pending_rows(connection, utterances, owner)}
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
    known, learned = None, np.zeros(len(total))
    if reranker is not None:
        given = {"keyword": keyword, "dense": dense, "named": named, "cosine": cosine, "covered": covered}
        known = features.of_lines(lines, when.now, **given)
        learned = reranker.shifts(known)
        total = total + learned
    relevant = relevance(query, np.maximum(cosine, smooth / (1 + 2 * SMOOTHING)), covered) >= floor
    if when.as_of is not None:
        relevant &= lines.said_at <= when.as_of.timestamp()
    numbers = lines.rows.tolist()
    order = [i for i in np.argsort(-total, kind="stable").tolist() if relevant[i]]
    for at in range(0, len(order), READ_AT_ONCE):
        some = order[at : at + READ_AT_ONCE]
        records = episodic.read(connection, owner, name, [numbers[i] for i in some])
        for i in some:
            if when.known_at is not None and records[numbers[i]].recorded_at > when.known_at:
                continue
            parts = Score(
                keyword=float(keyword[i]) / 2,
                dense=float(dense[i]) / 2,
                subject=float(named[i]),
                cosine=float(cosine[i]),
                coverage=float(covered[i]),
                learned=float(learned[i]),
                total=float(total[i]),
            )
            hit = _utterance_hit(records[numbers[i]], parts)
            yield hit if known is None else hit.model_copy(update={"features": rerank.plain(known[i])})


READ_AT_ONCE = 24


def _utterance_hit(utterance: Utterance, parts: Score) -> Recall:
    text, at = episodic.spoken(utterance.speaker, utterance.text), utterance.said_at
    return Recall(
        id=utterance.id, store="episodic", text=text, said_at=at, score=parts.total, parts=parts, utterance=utterance
    )


def memory_hit(memory: Memory, parts: Score) -> Recall:
    """Return what recall returns for a memory."""
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
    recency = float(features.recent(memory.valid_from.timestamp(), now))
    share = TIE_BREAK * (0.4 * recency + 0.3 * memory.importance + 0.3 * effective(memory, now))
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
