"""The crash benchmark: kill -9 at random instants of an ingest, and see that nothing acknowledged is lost or doubled.

    python -m sharpwave.benchmarks.crash --kills 50 --json

A child process ingests a made-up file and reports each turn that is written. It is killed, the store is examined, and the
next child goes on where the killed one was; a store that is finished must equal that of a run that nobody killed.
"""

import argparse
import hashlib
import importlib
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from sharpwave.benchmarks.children import Child
from sharpwave.benchmarks.talk import talk
from sharpwave.conversations import read
from sharpwave.ingesting import ingest
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.doctor import examine
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.store import MemoryStore

OWNERS, TURNS = 3, 400
SHARE = 0.3
"""Part of the time of a whole run after which a child is killed at the latest."""


class Hashed(Embeddings):
    """An embedder that costs nothing: the words of a text, hashed into a few dimensions."""

    name = "hashed words"

    def __init__(self, dimensions: int = 32) -> None:
        self.dimensions = dimensions

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text; equal texts get equal ones."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text."""
        vector = np.full(self.dimensions, 0.01)
        for word in text.lower().split():
            digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
            vector[int.from_bytes(digest[2:6], "big") % self.dimensions] += 1 if digest[1] & 1 else -1
        rounded: list[float] = vector.tolist()
        return rounded


def measure(kills: int, turns: int = TURNS, seed: int = 1) -> dict[str, Any]:
    """Kill children `kills` times, of stores of so many turns, and return what was found; no `problems`: all went well."""
    started = time.perf_counter()
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="sharpwave-crash-") as folder:
        file = Path(folder, "talk.jsonl")
        file.write_text("".join(f"{json.dumps(line)}\n" for line in talk(OWNERS, turns, seed)), encoding="utf-8")
        importlib.import_module("langchain_chroma")  # once, not in every child
        begun = time.perf_counter()
        Child(_ingest, Path(folder, "whole"), file).result()
        longest = SHARE * (time.perf_counter() - begun)
        run = _Run(file, Child(_state, Path(folder, "whole")).result(), lambda: chance.uniform(0, longest))
        while run.kills < kills:
            run.over(Path(folder, f"store-{run.stores}"), kills)
    return {
        "kills": run.kills,
        "while_writing": run.while_writing,
        "stores": run.stores,
        "turns": turns,
        "acknowledged": run.acknowledged,
        "problems": run.problems,
        "seconds": round(time.perf_counter() - started, 1),
    }


class _Run:
    """Ingests into one store after the other and kills, until it was often enough."""

    def __init__(self, file: Path, whole: dict[str, Any], instant: Callable[[], float]) -> None:
        self.file, self.whole, self.instant = file, whole, instant
        self.kills = self.while_writing = self.stores = self.acknowledged = 0
        self.problems: list[str] = []

    def over(self, home: Path, kills: int) -> None:
        """Fill one store under fire, then to the end, and compare it."""
        self.stores += 1
        acknowledged: set[str] = set()
        ended = False
        while not ended and self.kills < kills:
            child = Child(_ingest, home, self.file)
            child.kill(self.instant())
            acks, ended = set(child.heard()), child.finished()
            self.kills += not ended
            self.while_writing += bool(acks) and not ended
            acknowledged |= acks
            self._examine(home, acknowledged)
        Child(_ingest, home, self.file).result()
        self._examine(home, acknowledged)
        self.acknowledged += len(acknowledged)
        state = Child(_state, home).result()
        self._expect(
            state["events"] == self.whole["events"], "The decisions differ from those of a run that nobody killed."
        )
        self._expect(
            state["memories"] == self.whole["memories"], "The memories differ from those of a run that nobody killed."
        )
        self._expect(state["said"] == self.whole["said"], "What was said differs from a run that nobody killed.")

    def _examine(self, home: Path, acknowledged: set[str]) -> None:
        if home.is_dir():
            self.problems += [
                f"kill {self.kills}: {problem}" for problem in Child(find_problems, home, acknowledged).result()
            ]

    def _expect(self, holds: bool, problem: str) -> None:
        if not holds:
            self.problems.append(f"store {self.stores}: {problem}")


def _ingest(pipe: Connection, home: Path, file: Path) -> None:
    with MemoryStore.open(home, embeddings=Hashed(), collections=4) as store:
        turns = read(file, "jsonl", owner=None)
        ingest(store, turns, RulesExtractor(), RulesPolicy(), passed=lambda turn, written: pipe.send(turn.message_id))


def find_problems(pipe: Connection, home: Path, acknowledged: set[str]) -> None:
    """Send what is wrong with a store that nobody has open: of the acknowledged turns, and what `doctor` says."""
    with MemoryStore.open(home, embeddings=Hashed()) as store:
        said = Counter(line.message_id for owner in store.owners() for line in store.utterances(owner))
        waiting = {turn.message_id for turn, _, _ in store.pending()}
        found = [f"{name} was acknowledged and is gone" for name in sorted(acknowledged - said.keys())]
        found += [f"{name} was acknowledged and still waits" for name in sorted(acknowledged & waiting)]
        found += [f"{name} is there {number} times" for name, number in sorted(said.items()) if number > 1]
        found += _doubled(store)
    with MemoryStore.open(home, embeddings=Hashed(), repair=True) as store:
        found += [f"doctor, {check.name}: {check.found}" for check in examine(store).checks if not check.ok]
    pipe.send(found)


def _doubled(store: MemoryStore) -> list[str]:
    events = [
        (e.message_id, e.op, (e.detail["after"] or {}).get("text")) for o in store.owners() for e in store.events(o)
    ]
    return [f"{key} was decided {number} times" for key, number in Counter(events).items() if key[0] and number > 1]


def _state(pipe: Connection, home: Path) -> None:
    with MemoryStore.open(home, embeddings=Hashed()) as store:
        owners = store.owners()
        pipe.send(
            {
                "memories": [
                    (owner, v.text, v.status, v.version, v.attribute, v.value, v.confidence)
                    for owner in owners
                    for memory in store.memories(owner, statuses=())
                    for v in store.versions(owner, memory.id)
                ],
                "events": [
                    (o, e.op, e.message_id, e.reason, e.detail["quote"]) for o in owners for e in store.events(o)
                ],
                "said": [(o, u.thread, u.position, u.text) for o in owners for u in store.utterances(o)],
            }
        )


def main() -> None:
    """Run it from the command line; exit 1 when anything was lost, doubled or different."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--turns", type=int, default=TURNS, help="messages in the file that is ingested")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    found = measure(given.kills, given.turns, given.seed)
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        print(
            f"{found['kills']} kills, {found['while_writing']} of them while turns were written, in {found['seconds']} s."
        )
        print("\n".join(found["problems"]) or "Nothing was lost, doubled or different.")
    sys.exit(1 if found["problems"] else 0)


if __name__ == "__main__":
    main()
