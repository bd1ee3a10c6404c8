"""Do summaries of sessions help or hurt the recall of evidence? Each session of a data set leaves one, as `memory.sessions` does."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

import numpy as np

from sharpwave.benchmarks.questions import Question
from sharpwave.benchmarks.recall import score, temporary
from sharpwave.memory import choosing
from sharpwave.memory.records import Memory, Recall, Source
from sharpwave.memory.semantic import written_date
from sharpwave.memory.sessions import CONFIDENCE, IMPORTANCE
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.summarise import summarise

K = 10


def beside_summaries(store: MemoryStore, questions: Sequence[Question], now: datetime) -> dict[str, Any]:
    """Return the share of evidence among the first ten messages, and among the first ten of messages and summaries together.

    Extractive summaries; what is written goes into a temporary store, and `store` stays as it is.

    Args:
        store: holds the conversations, a thread for each session.
        questions: about them.
        now: the present, after all of them.
    """
    rows: list[tuple[float, float, float, float]] = []
    with temporary(store.embeddings) as other:
        threads = {owner: _write(store, other, owner, now) for owner in {question.owner for question in questions}}
        other.index_pending()
        for question in questions:
            said = store.recall(question.owner, question.text, k=K, stores=("episodic",), floor=-1.0, now=now)
            told = other.recall(question.owner, question.text, k=K, stores=("semantic",), now=now)
            both = choosing.within(choosing.merged(told, said), K, None)
            first, second = (_recalled(question, hits) for hits in (said, both))
            taken = sum(hit.memory is not None for hit in both)
            of = {threads[question.owner][name] for name in question.gold}
            rows.append((first, second, taken, bool(of & {hit.memory.source.thread for hit in told[:1] if hit.memory})))
    alone, beside, places, right = np.array(rows).mean(0)
    return {
        "r@10 of messages": round(float(alone), 4),
        "r@10 of messages and summaries": round(float(beside), 4),
        "summaries among the first ten": round(float(places), 2),
        "first summary is of a session with evidence": round(float(right), 3),
    }


def _recalled(question: Question, hits: Iterable[Recall]) -> float:
    return score(question.gold, [hit.utterance.message_id if hit.utterance else hit.id for hit in hits])["r@10"]


def _write(store: MemoryStore, other: MemoryStore, owner: str, now: datetime) -> dict[str, str | None]:
    """Write a summary of each thread of an owner into the other store; returns the threads by message id."""
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
    other.put_memories(owner, made, "benchmark")
    return {one.message_id: one.thread for one in said}
