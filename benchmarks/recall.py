"""The recall benchmark: how much of the labelled evidence the store's own recall finds, and what a query costs.

    r@k       share of a question's evidence among the first k results, averaged over questions
    mrr       mean of 1 / rank of the first evidence, 0 where it is not among the first 20
    ndcg@10   with gains of 0 or 1 (Järvelin and Kekäläinen 2002)

Costs are CPU time of the whole process, all threads, in milliseconds. Each question is encoded, asked of the store, and
its vector asked of plain Chroma, before the next one: so all of them meet the same machine. The ratio to Chroma is the
median of the questions' own, which a machine that stalls for a moment leaves alone.
"""

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from langchain_core.embeddings import Embeddings

from sharpwave.benchmarks.questions import LOCOMO, Question, halumem, locomo
from sharpwave.ingesting import ingest
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.embed import LocalEmbeddings
from sharpwave.memory.index import StoreName
from sharpwave.memory.records import Memory, Recall, Turn
from sharpwave.memory.store import MemoryStore

T = TypeVar("T")

K = 20
DEPTHS = (1, 5, 10, 20)
NOT_OVERALL = {LOCOMO[5]}


def measure(
    dataset: Literal["locomo", "halumem"], data: Path, home: Path, embeddings: Embeddings | None = None
) -> dict[str, Any]:
    """Ask all questions of a data set and return scores and costs.

    Args:
        dataset: `locomo` searches what was said, `halumem` statements.
        data: LoCoMo's file, HaluMem's folder.
        home: the store in it is asked when it holds LoCoMo's conversations; else a temporary one is made and filled.
        embeddings: the embedder; None is the local one.
    """
    embeddings = embeddings or LocalEmbeddings()
    store_name: StoreName
    if dataset == "locomo":
        turns, questions = locomo(data)
        store_name, opened = "episodic", with_turns(turns, home, embeddings)
    else:
        memories, questions = halumem(data)
        store_name, opened = "semantic", _with_memories(memories, embeddings)
    with opened as store:
        answers, costs = ask(store, store_name, questions)
    return {"dataset": dataset, **scores(questions, answers), **costs}


def scores(questions: Sequence[Question], answers: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return the scores overall and by category; `answers` are the ids that were found, best first."""
    rows: dict[str, list[dict[str, float]]] = defaultdict(list)
    for question, found in zip(questions, answers, strict=True):
        rows[question.category].append(score(question.gold, found))
    counted = [row for category, some in rows.items() if category not in NOT_OVERALL for row in some]
    return {"overall": _mean(counted), "categories": {category: _mean(rows[category]) for category in sorted(rows)}}


def score(gold: frozenset[str], found: Sequence[str]) -> dict[str, float]:
    """Return the scores of one question."""
    ranks = [rank for rank, name in enumerate(found, 1) if name in gold]
    shares = {f"r@{k}": sum(rank <= k for rank in ranks) / len(gold) for k in DEPTHS}
    gain = sum(1 / np.log2(rank + 1) for rank in ranks if rank <= 10)
    most = sum(1 / np.log2(rank + 1) for rank in range(1, min(len(gold), 10) + 1))
    return {**shares, "mrr": 1 / ranks[0] if ranks else 0.0, "ndcg@10": float(gain / most)}


def _mean(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    return {"n": len(rows), **{name: round(float(np.mean([row[name] for row in rows])), 4) for name in rows[0]}}


def ask(
    store: MemoryStore, store_name: StoreName, questions: Sequence[Question]
) -> tuple[list[list[str]], dict[str, Any]]:
    """Ask questions of a store; returns the ids that were found, best first, and the costs."""
    costs: dict[str, list[float]] = defaultdict(list)

    def timed(what: str, work: Callable[..., T], *given: Any) -> T:
        started = time.process_time()
        result = work(*given)
        costs[what].append((time.process_time() - started) * 1000)
        return result

    answers = []
    store.index_pending()
    for question in questions:
        vector = timed("encoder", store.embed_query, question.text)
        found = timed("recall", _recall, store, store_name, question)
        timed("chroma", _chroma, store, store_name, question.owner, vector)
        answers.append([hit.utterance.message_id if hit.utterance else hit.id for hit in found])
    own, chroma = np.array(costs["recall"]), np.array(costs["chroma"])
    return answers, {
        "questions": len(questions),
        "cpu_ms_per_query": round(float(own.mean()), 3),
        "encoder_cpu_ms_per_query": round(float(np.mean(costs["encoder"])), 3),
        "chroma_query_cpu_ms": round(float(chroma.mean()), 3),
        "ratio_to_chroma": round(float(np.median(own / chroma)), 3),
    }


def _recall(store: MemoryStore, store_name: StoreName, question: Question) -> list[Recall]:
    return store.recall(question.owner, question.text, k=K, stores=(store_name,), floor=-1.0)


def _chroma(store: MemoryStore, store_name: StoreName, owner: str, vector: np.ndarray) -> None:
    """Ask Chroma as one would without Sharpwave: the nearest of one owner, with metadata and distances."""
    collection = store.index._collection(store.index.collection_name(store_name, owner), create=False)
    collection.query(query_embeddings=[vector], n_results=K, where={"owner": owner})


@contextmanager
def with_turns(turns: Sequence[Turn], home: Path, embeddings: Embeddings) -> Iterator[MemoryStore]:
    """Yield a store that holds these turns verbatim: the one in `home` where it does, else a temporary one."""
    if (home / "ledger.sqlite3").is_file():
        with MemoryStore.open(home, embeddings=embeddings) as store:
            if _holds(store, turns):
                yield store
                return
    with temporary(embeddings) as store:
        ingest(store, turns, None, RulesPolicy())
        yield store


def _holds(store: MemoryStore, turns: Sequence[Turn]) -> bool:
    needed: dict[str, set[str]] = defaultdict(set)
    for turn in turns:
        needed[turn.owner].add(turn.message_id)
    return all(ids <= {said.message_id for said in store.utterances(owner)} for owner, ids in needed.items())


@contextmanager
def _with_memories(memories: Sequence[Memory], embeddings: Embeddings) -> Iterator[MemoryStore]:
    with temporary(embeddings) as store:
        for owner in dict.fromkeys(memory.owner for memory in memories):
            store.put_memories(owner, [memory for memory in memories if memory.owner == owner], "benchmark")
        store.index_pending()
        yield store


@contextmanager
def temporary(embeddings: Embeddings) -> Iterator[MemoryStore]:
    """Yield an empty store that is gone afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="sharpwave-") as folder,
        MemoryStore.open(folder, embeddings=embeddings) as store,
    ):
        yield store
