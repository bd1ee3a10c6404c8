"""What a whole replay of one owner takes, keyless, and how that grows: own CPU time, step by step.

    python -m sharpwave.benchmarks.replaying --json            # 10,000 records
    python -m sharpwave.benchmarks.replaying --sizes 10000 100000 --json

Of the records six in ten are memories, three are what the user said, one is an episode. Words are hashed for an encoder, so
that none is measured. A second run follows the first: it meets a buffer that is full and memories that are consolidated.
"""

import argparse
import json
import math
import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from sharpwave.benchmarks.crash import Hashed
from sharpwave.benchmarks.everyday import facts
from sharpwave.graphs import Context, build_replay
from sharpwave.memory import rows, times
from sharpwave.memory.kinds import Episode, Step
from sharpwave.memory.procedures import Procedures
from sharpwave.memory.records import Memory, Utterance
from sharpwave.memory.store import MemoryStore

SIZES = (10_000,)
BATCH = 64
AT_ONCE = 2000
OWNER = "ana"
TASKS = ("deploy the site", "fix the build", "plan the trip", "answer the mail", "rename the files")


def measure(sizes: Sequence[int] = SIZES) -> dict[str, Any]:
    """Return the CPU seconds of two replays of stores with so many records, and their growth beside n log n."""
    found = []
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="sharpwave-") as folder:
            found.append(_replayed(Path(folder), size))
    result: dict[str, Any] = {"sizes": found}
    if len(found) > 1:
        first, last = found[0], found[-1]
        linear = last["records"] / first["records"]
        result["growth"] = round(last["cpu_seconds"] / first["cpu_seconds"], 2)
        result["n_log_n"] = round(linear * math.log(last["records"]) / math.log(first["records"]), 2)
    return result


def _replayed(folder: Path, size: int) -> dict[str, Any]:
    with MemoryStore.open(folder, embeddings=Hashed(), collections=2) as store:
        _fill(store, size)
        graph = build_replay(memory=store, patience=0).compile()
        first, steps, report = _run(graph)
        again, _, _ = _run(graph)
    counts = ("replayed", "merged", "derived", "learned", "insights", "settled", "forgotten")
    return {
        "records": size,
        "cpu_seconds": first,
        "cpu_seconds_again": again,
        "steps": steps,
        **{name: report[name] for name in counts},
    }


def _run(graph: Any) -> tuple[float, dict[str, float], dict[str, Any]]:
    steps: dict[str, float] = {}
    report: dict[str, Any] = {}
    began = last = time.process_time()
    for mode, part in graph.stream({"n": BATCH}, context=Context(user_id=OWNER), stream_mode=["custom", "values"]):
        if mode == "custom":
            steps[part["step"]] = round(steps.get(part["step"], 0.0) + time.process_time() - last, 3)
            last = time.process_time()
        else:
            report = part.get("report") or report
    return round(time.process_time() - began, 3), steps, report


def _fill(store: MemoryStore, size: int) -> None:
    rng = np.random.default_rng(size)
    now = times.now()
    told = [text for _, text in facts(("Ana", "Ben"), size * 9 // 10, rng)]
    held, said = told[: size * 6 // 10], told[size * 6 // 10 :]
    for at in range(0, len(held), AT_ONCE):
        some = [_memory(text, now - timedelta(minutes=at + n)) for n, text in enumerate(held[at : at + AT_ONCE])]
        store.put_memories(OWNER, some, "made up")
    for at in range(0, len(said), AT_ONCE):
        store.put_utterances(OWNER, [_utterance(n, said[n], now) for n in range(at, min(len(said), at + AT_ONCE))])
    lived = [_episode(n, now) for n in range(size // 10)]
    store.embed([one.searched for one in lived])
    with store.transaction(OWNER, writes=True) as (connection, number):
        more: dict[str, Any] = {"op": "EPISODE", "policy": "made up", "reason": "made up", "embed": store.vector}
        for one in lived:
            rows.put(connection, number, one, at=now, **more)
    for one in lived:  # as the agent does after each turn
        Procedures(store).learn(OWNER, one)


def _memory(text: str, at: Any) -> Memory:
    return Memory(owner=OWNER, text=text, recorded_at=at, valid_from=at, last_confirmed_at=at)


def _utterance(n: int, text: str, now: Any) -> Utterance:
    said = now - timedelta(minutes=n)
    place: dict[str, Any] = {"thread": f"t{n // 20}", "message_id": f"m{n}", "position": n % 20}
    return Utterance(owner=OWNER, role="user", speaker="user", text=text, said_at=said, recorded_at=now, **place)


def _episode(n: int, now: Any) -> Episode:
    ended = now - timedelta(minutes=n)
    trajectory = (Step(action=f"open file {n % 7}", observation="done"), Step(action="save", observation="saved"))
    return Episode(
        owner=OWNER,
        task=f"{TASKS[n % len(TASKS)]} {n}",
        trajectory=trajectory,
        outcome="failure" if n % 5 == 0 else "success",
        started_at=ended - timedelta(seconds=30),
        ended_at=ended,
    )


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="records in the store")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    found = measure(given.sizes)
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for one in found["sizes"]:
        print(
            f"{one['records']:8} records: {one['cpu_seconds']} s CPU, again {one['cpu_seconds_again']} s; {one['steps']}"
        )
    print({name: found[name] for name in ("growth", "n_log_n") if name in found} or "")


if __name__ == "__main__":
    main()
