"""The cost benchmark: own CPU time of a turn through the compiled agent, without a model, beside plain Chroma.

    python -m sharpwave.benchmarks.cost --json

What the embedder takes is counted apart. After each turn plain Chroma adds one vector and answers one filtered query, so
both meet the same machine. CPU time is that of the whole process, all threads, in milliseconds; the mean of all turns.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from sharpwave.benchmarks.talk import talk
from sharpwave.graphs import Context, build_agent, thread_config
from sharpwave.ingesting import ingest
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.embed import LocalEmbeddings, query_array
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.records import Message, Turn
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.times import parse_time

BEFORE, TURNS = 300, 100
"""Messages that are in memory before, and those that are measured."""


class Metered(Embeddings):
    """An embedder with a count of the CPU seconds that it takes."""

    def __init__(self, embeddings: Embeddings) -> None:
        self.embeddings, self.seconds = embeddings, 0.0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Pass texts on."""
        with self._counted():
            return self.embeddings.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        """Pass a text on."""
        with self._counted():
            return self.embeddings.embed_query(text)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        started = time.process_time()
        yield
        self.seconds += time.process_time() - started


def measure(embeddings: Embeddings | None = None, *, before: int = BEFORE, turns: int = TURNS) -> dict[str, Any]:
    """Talk to a keyless agent and return what a turn costs, on average.

    Args:
        embeddings: the embedder; None is the local one.
        before: messages that are in memory before.
        turns: messages that are measured.
    """
    metered = Metered(embeddings or LocalEmbeddings())
    said = list(talk(1, before + turns, seed=1))
    with (
        tempfile.TemporaryDirectory(prefix="sharpwave-") as folder,
        MemoryStore.open(folder, embeddings=metered) as store,
    ):
        ingest(store, [_turn(line) for line in said[:before]], RulesExtractor(), RulesPolicy())
        plain = _Plain(Path(folder, "plain"), query_array(metered, "a text"), before)
        return _talk(store, metered, said[before:], plain)


def _turn(line: dict[str, Any]) -> Turn:
    message = Message(id=line["id"], role="user", text=line["content"])
    return Turn(owner=line["user"], thread=line["thread"], messages=(message,), said_at=parse_time(line["timestamp"]))


class _Plain:
    """Chroma without anything around it."""

    def __init__(self, folder: Path, vector: np.ndarray, filled: int) -> None:
        import chromadb

        self.chance = np.random.default_rng(1)
        client = chromadb.PersistentClient(str(folder), chromadb.config.Settings(anonymized_telemetry=False))
        self.collection = client.create_collection("plain", configuration={"hnsw": {"space": "cosine"}})
        self.size = len(vector)
        for number in range(filled):
            self.add(f"before {number}")

    def _vector(self) -> Any:
        return self.chance.standard_normal(self.size, np.float32)

    def add(self, name: str) -> None:
        self.collection.add(ids=[name], embeddings=[self._vector()], documents=[name], metadatas=[{"owner": "user-0"}])

    def query(self) -> None:
        self.collection.query(query_embeddings=[self._vector()], n_results=10, where={"owner": "user-0"})


def _talk(store: MemoryStore, metered: Metered, said: list[dict[str, Any]], plain: _Plain) -> dict[str, Any]:
    agent = build_agent(memory=store).compile(checkpointer=InMemorySaver())
    rows = []
    for number, line in enumerate(said):
        owner, before = line["user"], metered.seconds
        started = time.process_time()
        state = agent.invoke(
            {"messages": [HumanMessage(line["content"], id=line["id"])]},
            thread_config(owner, line["thread"]),
            context=Context(user_id=owner, thread=line["thread"], now=parse_time(line["timestamp"])),
        )
        spent, embedding = time.process_time() - started, metered.seconds - before
        begun = time.process_time()
        plain.add(f"turn {number}")
        plain.query()
        rows.append((spent - embedding, embedding, time.process_time() - begun, bool(state["operations"])))
    own, encoder, chroma, wrote = (np.array(column) for column in zip(*rows, strict=True))
    return {
        "turns": len(rows),
        "turns_that_wrote": int(wrote.sum()),
        "cpu_ms_per_turn": _milliseconds(own),
        "cpu_ms_per_turn_that_wrote": _milliseconds(own[wrote]),
        "cpu_ms_per_quiet_turn": _milliseconds(own[~wrote]),
        "encoder_cpu_ms_per_turn": _milliseconds(encoder),
        "chroma_add_and_query_cpu_ms": _milliseconds(chroma),
        "ratio_to_chroma": round(float(own.mean() / chroma.mean()), 3),
    }


def _milliseconds(seconds: np.ndarray) -> float | None:
    return round(float(seconds.mean()) * 1000, 3) if len(seconds) else None


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    found = measure()
    print(
        json.dumps(found, indent=2) if parser.parse_args().json else "\n".join(f"{k:30} {v}" for k, v in found.items())
    )


if __name__ == "__main__":
    main()
