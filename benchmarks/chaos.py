"""The chaos benchmark: agents of several processes talk to the same users and write in the background, and are killed.

    python -m sharpwave.benchmarks.chaos --processes 4 --turns 500 --json

Each process says its turns one after the other and reports each that is queued durably. It is killed (kill -9) after a
random time, and another one goes on where it was. When all is said and written, every acknowledged turn must be there
exactly once, and the store as its log makes it. The embedder is one that hashes words and costs nothing.
"""

import argparse
import importlib
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage

from sharpwave.benchmarks.children import PATIENCE, Child
from sharpwave.benchmarks.crash import Hashed, find_problems
from sharpwave.benchmarks.talk import talk
from sharpwave.graphs import BackgroundWriter, Context, build_agent
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.verify import verify

OWNERS = 5
"""Users; every process talks to all of them."""
LIFE = (1.0, 12.0)
"""Seconds after which a process is killed, at least and at most."""
LEASE = 2.0
"""Seconds after which what a killed process was writing is taken over."""
LONGEST = 1200.0
"""Seconds within which everything has to be said."""

Line = dict[str, Any]


def measure(number: int, turns: int, seed: int = 1) -> dict[str, Any]:
    """Let so many processes say so many turns each, under fire; returns what was found; no `problems`: all went well."""
    started = time.perf_counter()
    chance = random.Random(seed)
    importlib.import_module("langchain_chroma")  # once, not in every child
    lines = list(talk(OWNERS, number * turns, seed))
    with tempfile.TemporaryDirectory(prefix="sharpwave-chaos-") as folder:
        home = Path(folder, "home")
        Child(_made, home).result()
        speakers = [_Speaker(home, lines[n::number], chance) for n in range(number)]
        try:
            while sum(speaker.goes_on() for speaker in speakers):
                if time.perf_counter() > started + LONGEST:
                    raise RuntimeError(f"Not everything was said within {LONGEST:.0f} s.")
                time.sleep(0.01)
        finally:
            for speaker in speakers:
                speaker.end()
        said = time.perf_counter()
        Child(_written, home).result()
        acknowledged = {name for speaker in speakers for name in speaker.acknowledged}
        problems = [*Child(find_problems, home, acknowledged).result(), *Child(_verified, home).result()]
    return {
        "processes": number,
        "turns": turns,
        "kills": sum(speaker.kills for speaker in speakers),
        "acknowledged": len(acknowledged),
        "problems": [*problems, *([] if len(acknowledged) == len(lines) else ["Not every turn was acknowledged."])],
        "seconds_saying": round(said - started, 1),
        "seconds": round(time.perf_counter() - started, 1),
    }


class _Speaker:
    """A process that says its turns; where it is killed, the next one takes its place."""

    def __init__(self, home: Path, lines: Sequence[Line], chance: random.Random) -> None:
        self.home, self.lines, self.chance = home, lines, chance
        self.acknowledged: list[str] = []
        self.kills = 0
        self._start()

    def _start(self) -> None:
        self._child = Child(_speak, self.home, self.lines[len(self.acknowledged) :])
        self._end = time.monotonic() + self.chance.uniform(*LIFE)

    def goes_on(self) -> bool:
        """Note what the process says, kill it when its time has come, and return whether it is still to be watched."""
        self.acknowledged += self._child.heard()
        if time.monotonic() > self._end:
            self._child.kill()
        if self._child.runs():
            return True
        self.acknowledged += self._child.heard()
        if self._child.finished():
            return False
        self.kills += 1
        self._start()
        return True

    def end(self) -> None:
        """Leave no process behind."""
        self._child.kill()


def _made(pipe: Connection, home: Path) -> None:
    MemoryStore.open(home, embeddings=Hashed(), collections=4).close()


def _opened(home: Path) -> tuple[MemoryStore, BackgroundWriter]:
    store = MemoryStore.open(home, embeddings=Hashed())
    return store, BackgroundWriter(store, RulesExtractor(), RulesPolicy(), quiet=0.05, lease=LEASE)


def _speak(pipe: Connection, home: Path, lines: Sequence[Line]) -> None:
    store, writer = _opened(home)
    writer.resume()
    agent = build_agent(memory=store, write="background", writer=writer).compile()
    for line in lines:
        context = Context(user_id=line["user"], thread=line["thread"], now=line["timestamp"])
        agent.invoke({"messages": [HumanMessage(line["content"], id=line["id"])]}, context=context)
        pipe.send(line["id"])
    store.close()


def _written(pipe: Connection, home: Path) -> None:
    store, writer = _opened(home)
    writer.resume()
    if not writer.flush(PATIENCE):
        raise RuntimeError(f"What waits was not written within {PATIENCE:.0f} s.")
    store.close()


def _verified(pipe: Connection, home: Path) -> None:
    with MemoryStore.open(home, embeddings=Hashed()) as store:
        pipe.send([f"verify, {difference.told()}" for difference in verify(store).differences])


def main() -> None:
    """Run it from the command line; exit 1 when anything was lost, doubled or broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--turns", type=int, default=500, help="of each process")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    found = measure(given.processes, given.turns, given.seed)
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        print(
            f"{found['acknowledged']} turns by {found['processes']} processes, {found['kills']} kills, in {found['seconds']} s."
        )
        print("\n".join(found["problems"]) or "Nothing was lost, doubled or broken.")
    sys.exit(1 if found["problems"] else 0)


if __name__ == "__main__":
    main()
