"""Do summaries of sessions help or hurt the recall of evidence? LoCoMo, categories 1-4, with facts extracted by rules.

Each session leaves an extractive summary, as `memory.sessions` does. Memories and messages are recalled together, as for a
model, once with the summaries and once without. Evidence is found where the message itself is, or a memory taken from it.

    r@10            share of a question's evidence among the first ten results
    summaries       how many of those ten are summaries
    right session   share of questions whose first summary is of a session that holds evidence
"""

import argparse
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from sharpwave.benchmarks.questions import LOCOMO, Question, locomo
from sharpwave.benchmarks.recall import score, temporary
from sharpwave.graphs.agent import MODEL_FLOOR
from sharpwave.ingesting import ingest
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.embed import LocalEmbeddings
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.records import Memory, Recall, Source
from sharpwave.memory.semantic import written_date
from sharpwave.memory.sessions import CONFIDENCE, IMPORTANCE
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.summarise import summarise

SHOWN = 10


def measure(data: Path, embeddings: Embeddings | None = None) -> dict[str, Any]:
    """Return the scores with and without summaries, of a temporary store.

    Args:
        data: LoCoMo's file.
        embeddings: the embedder; None is the local one.
    """
    turns, questions = locomo(data)
    questions = [question for question in questions if question.category != LOCOMO[5]]
    now = max(turn.said_at for turn in turns) + timedelta(days=1)
    with temporary(embeddings or LocalEmbeddings()) as store:
        ingest(store, turns, RulesExtractor(), RulesPolicy())
        without = [_recalled(question, _asked(store, question, now)) for question in questions]
        threads = {owner: _write_summaries(store, owner, now) for owner in store.owners()}
        found = [_asked(store, question, now) for question in questions]
        first = [_asked(store, question, now, kind="summary")[:1] for question in questions]
    beside = [_recalled(question, hits) for question, hits in zip(questions, found, strict=True)]
    right = [
        any(_thread(hit) in {threads[question.owner][one] for one in question.gold} for hit in hits)
        for question, hits in zip(questions, first, strict=True)
    ]
    return {
        "n": len(questions),
        "without summaries": {"r@10": _mean(without)},
        "with summaries": {"r@10": _mean(beside), "summaries": _mean([sum(map(_is_summary, hits)) for hits in found])},
        "right session": _mean(right),
    }


def _asked(store: MemoryStore, question: Question, now: datetime, kind: str | None = None) -> list[Recall]:
    def fits(hit: Recall) -> bool:
        return kind is None or (hit.memory is not None and hit.memory.kind == kind)

    return store.recall(question.owner, question.text, k=SHOWN, floor=MODEL_FLOOR, now=now, only=fits)


def _recalled(question: Question, hits: Sequence[Recall]) -> float:
    sources = [hit.utterance.message_id if hit.utterance else _source(hit) for hit in hits]
    return score(question.gold, list(dict.fromkeys(sources)))["r@10"]


def _source(hit: Recall) -> str:
    return (hit.memory and hit.memory.source.message_id) or hit.id


def _thread(hit: Recall) -> str | None:
    return hit.memory.source.thread if hit.memory else None


def _is_summary(hit: Recall) -> bool:
    return hit.memory is not None and hit.memory.kind == "summary"


def _mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4)


def _write_summaries(store: MemoryStore, owner: str, now: datetime) -> dict[str, str]:
    """Write a summary of each thread of an owner; returns the threads by message id."""
    said = sorted(store.utterances(owner), key=lambda one: (one.thread, one.position))
    made = []
    for thread, group in groupby(said, key=lambda one: one.thread):
        lines = list(group)
        if summary := summarise(lines).text:
            text = f"Conversation of {written_date(lines[0].said_at)}, {len(lines)} messages: {summary}"
            source = Source(kind="inferred", thread=thread, said_at=lines[-1].said_at)
            fields: dict[str, Any] = {"kind": "summary", "subject": "conversation", "source": source}
            fields |= {"importance": IMPORTANCE, "confidence": CONFIDENCE, "valid_from": lines[-1].said_at}
            made.append(Memory(owner=owner, text=text, recorded_at=now, **fields))
    store.put_memories(owner, made, "benchmark")
    store.index_pending()
    return {one.message_id: one.thread for one in said}


def main(argv: Sequence[str] | None = None) -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="LoCoMo's file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(argv)
    found = measure(given.data)
    print(json.dumps(found, indent=2) if given.json else "\n".join(f"{name}: {row}" for name, row in found.items()))


if __name__ == "__main__":
    main()
