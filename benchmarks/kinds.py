"""Which kind of memory finds what: the same questions asked of facts, of what was said and lived, and of entities.

    semantic   the memories that recall finds: what holds now
    episodic   messages as they were said, and tasks with what became of them
    entity     the memories that the names in a question lead to, in one hop or two, those with most of its words first

The three best of each are compared. Costs are own CPU time of the process in milliseconds; the question has been encoded
before, as entities need no encoder.
"""

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings

from sharpwave.benchmarks import kinds_demo
from sharpwave.benchmarks.questions import locomo
from sharpwave.ingesting import ingest
from sharpwave.memory import hops, semantic
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.embed import LocalEmbeddings
from sharpwave.memory.entities import Entities
from sharpwave.memory.episodes import Episodes
from sharpwave.memory.errors import InputError
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.keywords import terms
from sharpwave.memory.kinds import Episode
from sharpwave.memory.store import MemoryStore

SHOWN, BEST = 10, 3
"""Questions that are shown, and results of each kind that are compared."""
ALL = 1000
"""Memories of an entity that are looked up."""


class Hit(NamedTuple):
    """Something that was found, and the message that it comes from, if any."""

    text: str
    message_id: str | None


class Asked(NamedTuple):
    """A question, what it asks for, and how to tell whether a hit answers it."""

    text: str
    asks: str
    answered: Callable[[Hit], bool]


def measure(
    dataset: Literal["demo", "locomo"] = "demo", data: Path | None = None, embeddings: Embeddings | None = None
) -> dict[str, Any]:
    """Ask all questions of each kind of memory, in a temporary store, and return what was found, scores and costs.

    Args:
        dataset: `demo` needs no data; of `locomo` the first conversation is asked, with facts that are taken by rules.
        data: LoCoMo's file.
        embeddings: the embedder; None is the local one.

    Raises:
        InputError: LoCoMo without its file, or another file.
    """
    with (
        tempfile.TemporaryDirectory(prefix="sharpwave-") as folder,
        MemoryStore.open(folder, embeddings=embeddings or LocalEmbeddings()) as store,
    ):
        owner, questions = _demo(store) if dataset == "demo" else _locomo(store, data)
        answers, costs = _ask(store, owner, questions)
        held = {
            "memories": len(store.memories(owner)),
            "messages": len(store.utterances(owner)),
            "episodes": len(Episodes(store).find(owner)),
            "entities": len(Entities(store).list(owner)),
        }
    return {"dataset": dataset, "holds": held, **_summary(questions, answers), "own_cpu_ms_per_query": costs}


def _demo(store: MemoryStore) -> tuple[str, list[Asked]]:
    kinds_demo.fill(store)
    return kinds_demo.OWNER, [
        Asked(question.text, question.asks, partial(_says, question.answer)) for question in kinds_demo.QUESTIONS
    ]


def _says(answer: str, hit: Hit) -> bool:
    return answer.casefold() in hit.text.casefold()


def _locomo(store: MemoryStore, data: Path | None) -> tuple[str, list[Asked]]:
    if data is None:
        raise InputError("Where is LoCoMo? Name its file with --data.")
    turns, questions = locomo(data)
    if not questions:
        raise InputError(f"{data} holds no question whose evidence is among its messages.")
    owner = questions[0].owner
    ingest(store, [turn for turn in turns if turn.owner == owner], RulesExtractor(), RulesPolicy())
    return owner, [
        Asked(question.text, question.category, partial(_comes_from, question.gold))
        for question in questions
        if question.owner == owner
    ]


def _comes_from(messages: frozenset[str], hit: Hit) -> bool:
    return hit.message_id in messages


def _ask(
    store: MemoryStore, owner: str, questions: Sequence[Asked]
) -> tuple[list[dict[str, list[Hit]]], dict[str, float]]:
    costs: dict[str, list[float]] = defaultdict(list)
    answers = []
    store.index_pending()
    for question in questions:
        store.embed_query(question.text)
        found = {}
        for kind, look in LOOKUPS.items():
            started = time.process_time()
            found[kind] = look(store, owner, question.text)
            costs[kind].append((time.process_time() - started) * 1000)
        answers.append(found)
    return answers, {kind: round(float(np.mean(spent)), 3) for kind, spent in costs.items()}


def _semantic(store: MemoryStore, owner: str, question: str) -> list[Hit]:
    hits = store.recall(owner, question, k=BEST, stores=("semantic",), floor=-1.0)
    return [Hit(hit.text, hit.memory.source.message_id) for hit in hits if hit.memory]


def _episodic(store: MemoryStore, owner: str, question: str) -> list[Hit]:
    """Both are scored by cosine and half the share of words held, so that they can be put in one order."""
    said = store.recall(owner, question, k=BEST, stores=("episodic",), floor=-1.0, explain=True)
    lived = Episodes(store).search(owner, question, k=BEST, floor=-1.0)
    found = [
        (hit.parts.cosine + hit.parts.coverage / 2, Hit(hit.text, hit.utterance.message_id))
        for hit in said
        if hit.parts and hit.utterance
    ]
    found += [(one.score, Hit(_told(one.episode), one.episode.message_id)) for one in lived]
    return [hit for _, hit in sorted(found, key=lambda pair: -pair[0])[:BEST]]


def _told(episode: Episode) -> str:
    steps = (step.observation for step in episode.trajectory)
    return " | ".join(filter(None, (episode.task, episode.outcome, episode.lesson, *steps)))


def _entity(store: MemoryStore, owner: str, question: str) -> list[Hit]:
    with store.transaction(owner) as (connection, number):
        reached = hops.reach(connection, number, question, each=ALL)
        ids = reached.memories
        rows = semantic.load(connection, number, semantic.rows_of(connection, number, ids))
        place = {name: at for at, name in enumerate(ids)}
        found = sorted((semantic.read_row(row, number) for row in rows), key=lambda memory: place[memory.id])
    asked = set(terms(question)) - reached.terms
    found.sort(key=lambda memory: -len(asked.intersection(terms(memory.text))))
    return [Hit(memory.text, memory.source.message_id) for memory in found[:BEST]]


LOOKUPS: Mapping[str, Callable[[MemoryStore, str, str], list[Hit]]] = {
    "semantic": _semantic,
    "episodic": _episodic,
    "entity": _entity,
}


def _summary(questions: Sequence[Asked], answers: Sequence[Mapping[str, list[Hit]]]) -> dict[str, Any]:
    """Return the questions that are shown with what was found, and of all questions how many each kind answered.

    The kind with an answer at the best place wins a question, or several do.
    """
    ranks = [
        {kind: _rank(question, hits) for kind, hits in found.items()}
        for question, found in zip(questions, answers, strict=True)
    ]
    by_question: dict[str, list[dict[str, int]]] = defaultdict(list)
    for question, rank in zip(questions, ranks, strict=True):
        by_question[question.asks].append(rank)
    shown = [
        {
            "question": questions[at].text,
            "asks": questions[at].asks,
            "found": {
                kind: [{"text": hit.text, "answers": questions[at].answered(hit)} for hit in hits]
                for kind, hits in answers[at].items()
            },
            "wins": _winners(ranks[at]),
        }
        for at in _chosen([question.asks for question in questions])
    ]
    scored = {asks: _scores(some) for asks, some in by_question.items()}
    return {"queries": shown, "overall": _scores(ranks), "questions": scored, "wins_at": _wins_at(scored)}


def _rank(question: Asked, hits: Sequence[Hit]) -> int:
    """Return the place (from 1) of the first hit that answers a question, one beyond the last for none."""
    return next((rank for rank, hit in enumerate(hits, 1) if question.answered(hit)), BEST + 1)


def _winners(ranks: Mapping[str, int]) -> list[str]:
    best = min(ranks.values())
    return [kind for kind, rank in ranks.items() if rank == best <= BEST]


def _scores(ranks: Sequence[Mapping[str, int]]) -> dict[str, Any]:
    """Return how many questions there are, and of each kind the share that it answered, won, and answered alone."""
    won = [_winners(rank) for rank in ranks]
    of = len(ranks)
    return {
        "n": of,
        **{
            kind: {
                f"hit@{BEST}": round(sum(rank[kind] <= BEST for rank in ranks) / of, 3),
                "wins": round(sum(kind in one for one in won) / of, 3),
                "alone": round(sum(rank[kind] <= BEST < min(_others(rank, kind)) for rank in ranks) / of, 3),
            }
            for kind in LOOKUPS
        },
    }


def _others(ranks: Mapping[str, int], kind: str) -> list[int]:
    return [rank for other, rank in ranks.items() if other != kind]


def _wins_at(scored: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return what each kind is best asked for: where it wins as many questions as any other."""
    best = {asks: max(scores[kind]["wins"] for kind in LOOKUPS) for asks, scores in scored.items()}
    return {
        kind: [asks for asks, scores in scored.items() if scores[kind]["wins"] == best[asks] > 0] for kind in LOOKUPS
    }


def _chosen(asks: Sequence[str]) -> list[int]:
    """Return the places of the questions that are shown: as many of each sort as there is room for, evenly spread."""
    if len(asks) <= SHOWN:
        return list(range(len(asks)))
    places: dict[str, list[int]] = defaultdict(list)
    for at, sort in enumerate(asks):
        places[sort].append(at)
    each = max(1, SHOWN // len(places))
    chosen = [some[len(some) * n // each] for some in places.values() for n in range(min(each, len(some)))]
    return sorted(chosen)[:SHOWN]
