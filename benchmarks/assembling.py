"""The assembling benchmark: own CPU time of what is put together for a prompt, from a memory that is well filled.

    python -m sharpwave.benchmarks.assembling --json

For each question memories and messages are recalled, what else an answer should heed is gathered (strategies, warnings of
tools, profile, similar episodes, without contradictions), and all of it is fitted into a window of 8,000 tokens. What the
embedder takes is counted apart; it is one that hashes words, so that the store is filled in seconds. CPU time is that of
the whole process, all threads, in milliseconds. Each question is asked three times and the cheapest counts, since what else
runs on a core makes its CPU time longer.
"""

import argparse
import json
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from sharpwave.benchmarks.cost import Metered
from sharpwave.benchmarks.crash import Hashed
from sharpwave.graphs.agent import MODEL_FLOOR
from sharpwave.graphs.respond import labelled
from sharpwave.graphs.state import Context
from sharpwave.memory.context import Assembled, assemble
from sharpwave.memory.episodes import Episodes
from sharpwave.memory.gathering import Gathered, gather
from sharpwave.memory.procedures import Procedures
from sharpwave.memory.records import Memory, Message, Recall, Source, Turn
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.tokens import estimate
from sharpwave.memory.tool_use import ToolUse, ToolUses

MEMORIES, EPISODES, PROCEDURES, USES, QUESTIONS = 10_000, 1_000, 200, 1_000, 60
OWNER, WINDOW = "ana", 8_000
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
SUBJECTS = "user user user Mia Tom Kenji Lotte Saga Bruno Ines".split()
VERBS = "likes visited repaired sold painted lost borrowed cooked planted photographed".split()
THINGS = """bicycle kettle cello garden lamp novel boat carpet camera violin mushroom lantern ferry balcony oven jacket bridge
clock mirror basket tent harp map ladder bench quilt compass kayak easel telescope""".split()
PLACES = "Oslo Lisbon Porto Turku Graz Ghent Kraków Seville Lyon Bergen Split Narvik Cork Delft".split()
TASKS = "deploy export translate book invoice migrate test publish archive index".split()


def measure(
    memories: int = MEMORIES,
    episodes: int = EPISODES,
    procedures: int = PROCEDURES,
    uses: int = USES,
    questions: int = QUESTIONS,
) -> dict[str, Any]:
    """Fill a temporary store with so many records of one owner, assemble contexts for so many questions, and return the costs."""
    metered, chance = Metered(Hashed(384)), random.Random(1)
    with (
        tempfile.TemporaryDirectory(prefix="sharpwave-") as folder,
        MemoryStore.open(folder, embeddings=metered) as store,
    ):
        _fill(store, chance, memories, episodes, procedures, uses)
        for question in _questions(chance, 8):  # what is loaded once
            _context(store, question, lambda part: None)
        rows = [
            min((_costs(store, metered, question) for _ in range(3)), key=_own)
            for question in _questions(chance, questions)
        ]
    parts = {part: np.array([row[part] for row in rows]) * 1000 for part in rows[0]}
    own = np.array([_own(row) for row in rows]) * 1000
    return {
        "memories": memories,
        "episodes": episodes,
        "procedures": procedures,
        "tool_uses": uses,
        "questions": questions,
        "cpu_ms": round(float(own.mean()), 2),
        "cpu_ms_p95": round(float(np.percentile(own, 95)), 2),
        "parts_cpu_ms": {part: round(float(parts[part].mean()), 2) for part in ("recall", "gather", "fit")},
        "embedder_cpu_ms": round(float(parts["embedder"].mean()), 2),
        "filtered_chroma_query_cpu_ms": round(float(parts["chroma"].mean()), 2),
    }


def _own(spent: dict[str, float]) -> float:
    return spent["recall"] + spent["gather"] + spent["fit"]


def _costs(store: MemoryStore, metered: Metered, question: str) -> dict[str, float]:
    spent: dict[str, float] = defaultdict(float)
    began, embedding = time.process_time(), metered.seconds
    first = embedding

    def passed(part: str) -> None:
        nonlocal began, embedding
        now, embedded = time.process_time(), metered.seconds
        spent[part] += (now - began) - (embedded - embedding)
        began, embedding = now, embedded

    _context(store, question, passed)
    spent["embedder"] = metered.seconds - first
    began = time.process_time()
    _chroma(store, store.embed_query(question))
    spent["chroma"] = time.process_time() - began
    return spent


def _chroma(store: MemoryStore, vector: np.ndarray) -> None:
    """Ask Chroma as one would without Sharpwave: the nearest memories of one owner."""
    collection = store.index._collection(store.index.collection_name("semantic", OWNER), create=False)
    collection.query(query_embeddings=[vector], n_results=20, where={"owner": OWNER})


def _context(store: MemoryStore, question: str, passed: Any) -> Assembled:
    """Return what a prompt would hold, calling `passed` with the name of each part that is done."""
    message = Message(id="now", role="user", text=question)
    turn = Turn(owner=OWNER, thread="now", messages=(message,), said_at=START + timedelta(days=400))
    recalled: list[Recall] = store.recall(OWNER, question, budget=900, floor=MODEL_FLOOR, now=turn.said_at)
    passed("recall")
    found: Gathered = gather(store, OWNER, question, recalled, said=turn, now=turn.said_at)
    passed("gather")
    context = Context(user_id=OWNER, now=turn.said_at)
    sections = {
        "procedural": found.procedural,
        "profile": labelled(found.profile, context, len(found.facts) + 1),
        "facts": labelled(found.facts, context),
        "experiences": found.experiences,
    }
    made = assemble(WINDOW, system=150, query=estimate(question), recent=3_000, sections=sections)
    passed("fit")
    return made


def _fill(store: MemoryStore, chance: random.Random, memories: int, episodes: int, procedures: int, uses: int) -> None:
    store.put_memories(OWNER, [_memory(chance, number) for number in range(memories)], "benchmark")
    for number in range(episodes):
        task = f"{chance.choice(TASKS)} the {chance.choice(THINGS)} report for {chance.choice(PLACES)} ({number})"
        outcome, at = chance.choice(("success", "success", "partial", "failure")), START + timedelta(hours=8 * number)
        lived = [
            {"action": f"call_{n}(place={chance.choice(PLACES)})", "observation": "done, 12 rows"} for n in range(4)
        ]
        Episodes(store).add(OWNER, task, lived, outcome, reflection="Check the rows before sending.", started_at=at)
    for number in range(procedures):
        what = f"{chance.choice(TASKS)} a {chance.choice(THINGS)} report for {chance.choice(PLACES)}"
        steps = [f"call_{n}(place)" for n in range(3)]
        worked, failed = chance.randrange(3, 30), chance.randrange(3)
        Procedures(store).add(
            OWNER, f"{what} {number}", f"when asked to {what}", steps, successes=worked, failures=failed
        )
    ToolUses(store).record_all(OWNER, list(_uses(chance, uses)))
    store.index_pending()


def _memory(chance: random.Random, number: int) -> Memory:
    subject, verb, thing, place = (chance.choice(words) for words in (SUBJECTS, VERBS, THINGS, PLACES))
    named = "I" if subject == "user" else subject
    at = START + timedelta(minutes=50 * number)
    return Memory(
        owner=OWNER,
        kind="preference" if verb == "likes" and subject == "user" else "fact",
        text=f"{named} {verb} the {thing} number {number} in {place}.",
        subject=subject,
        importance=round(chance.random(), 2),
        source=Source(kind="user", said_at=at),
        recorded_at=at,
        valid_from=at,
    )


def _uses(chance: random.Random, uses: int) -> Iterator[ToolUse]:
    for number in range(uses):
        tool = number % 20
        failed = chance.random() < (0.5 if tool < 6 else 0.05)
        yield ToolUse(
            owner=OWNER,
            call_id=f"call {number}",
            tool=f"call_{tool}",
            parameters={"place": chance.choice(PLACES)},
            success=not failed,
            seconds=0.2,
            error=f"TimeoutError: no answer after {number} s" if failed else None,
            at=START + timedelta(minutes=number),
        )


def _questions(chance: random.Random, number: int) -> Iterator[str]:
    for at in range(number):
        subject, thing, place = chance.choice(SUBJECTS[3:]), chance.choice(THINGS), chance.choice(PLACES)
        yield (
            f"What did {subject} do with the {thing} in {place}?",
            f"Please {chance.choice(TASKS)} the {thing} report for {place}.",
            f"Any ideas for an evening in {place}?",
            f"Where is my {thing}?",
        )[at % 4]


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    wanted, found = parser.parse_args(), measure()
    print(json.dumps(found, indent=2) if wanted.json else "\n".join(f"{k:14} {v}" for k, v in found.items()))


if __name__ == "__main__":
    main()
