"""Does repair help questions that it was not made from, and does it cost others?

    sharpwave --home FOLDER ingest --format locomo PATH/locomo10.json
    python -m sharpwave.benchmarks.probes --home FOLDER --data PATH/locomo10.json --json

The facts of all conversations are laid into one memory, with forty statements of our own. Probes of some memories are asked,
and those that miss are repaired. Then the same questions are asked as before: the probes themselves, other questions about the
repaired memories (held out), and questions about memories that were not repaired. No model is called: what a model would give
as questions and words is written in `labelled/rephrasings.jsonl`, by hand, words and held-out questions apart.
"""

import argparse
import json
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sharpwave.memory import questions, times
from sharpwave.memory.probing import FIRST, Probing, keep, mend
from sharpwave.memory.questions import Question
from sharpwave.memory.store import MemoryStore

OWNER = "all"
WRITTEN = Path(__file__).with_name("labelled") / "rephrasings.jsonl"


class Asked(NamedTuple):
    """A question, and the memory that answers it."""

    memory: str
    text: str


class Case(NamedTuple):
    """A memory with the questions that it is probed with, and others about it."""

    probes: list[Question]
    held_out: list[Asked]


Cases = Callable[[MemoryStore, "Material"], Iterator[Case]]


class Material(NamedTuple):
    """What is asked about: lines of `rephrasings.jsonl` by the id of their memory, and LoCoMo's questions by theirs."""

    written: Mapping[str, dict[str, Any]]
    real: Mapping[str, list[str]]


def prepared(home: Path, data: Path, into: Path) -> Material:
    """Lay the memories of everybody in `home`, and our own, into one memory in `into`; return what is asked about them."""
    into.mkdir()
    lines = [json.loads(line) for line in WRITTEN.read_text(encoding="utf-8").splitlines()]
    samples = {sample["sample_id"]: sample["qa"] for sample in json.loads(data.read_text(encoding="utf-8"))}
    by_source: dict[tuple[str, str], list[str]] = defaultdict(list)
    with MemoryStore.open(home) as source, MemoryStore.open(into) as store:
        for owner in source.owners():
            found = source.memories(owner)
            store.put_memories(OWNER, found, "benchmark")
            for memory in found:
                by_source[owner, memory.source.message_id or ""].append(memory.id)
        written = {store.add(OWNER, line["memory"]).memory_id or "": line for line in lines}
    real: dict[str, list[str]] = defaultdict(list)
    for owner, asked in samples.items():
        for one in asked:
            memories = by_source[owner, one["evidence"][0]] if len(one["evidence"]) == 1 else []
            if one["category"] < 5 and len(memories) == 1:
                real[memories[0]].append(one["question"])
    return Material(written, real)


def by_rules(store: MemoryStore, material: Material) -> Iterator[Case]:
    """Probe with what rules make of our own statements."""
    for memory, line in material.written.items():
        held_out = [Asked(memory, text) for text in (*line["probes"], *line["held_out"])]
        yield Case(questions.by_rules(store.get(OWNER, memory)), held_out)


def in_questions(store: MemoryStore, material: Material, words: bool = False) -> Iterator[Case]:
    """Probe our own statements with two of the written questions each."""
    for memory, line in material.written.items():
        more = tuple(line["keywords"].split()) if words else ()
        probes = [Question(memory, text, "llm/1", more) for text in line["probes"]]
        yield Case(probes, [Asked(memory, text) for text in line["held_out"]])


def in_questions_and_words(store: MemoryStore, material: Material) -> Iterator[Case]:
    """The same with words, as a model gives them."""
    return in_questions(store, material, words=True)


def real(store: MemoryStore, material: Material, first: bool = True) -> Iterator[Case]:
    """Probe the memories that several real questions are about with one of these, and hold out the others."""
    for memory, texts in material.real.items():
        if len(texts) > 1:
            probe, *others = texts if first else texts[::-1]
            yield Case([Question(memory, probe, "asked/1")], [Asked(memory, text) for text in others])


def real_reversed(store: MemoryStore, material: Material) -> Iterator[Case]:
    """The same with the last question about each memory as its probe."""
    return real(store, material, first=False)


CONDITIONS: Mapping[str, Cases] = {
    "by rules": by_rules,
    "written questions": in_questions,
    "written questions and words": in_questions_and_words,
    "real questions": real,
    "real questions, the last one": real_reversed,
}


def run(home: Path, material: Material, cases: Cases) -> dict[str, Any]:
    """Return how often questions of each sort found their memory among the first ten, before the repair and after."""
    with MemoryStore.open(home) as store:
        made = list(cases(store, material))
        known = [Asked(memory, text) for memory, texts in material.real.items() for text in texts]
        asked = list(dict.fromkeys([*(Asked(q.memory, q.text) for c in made for q in c.probes), *_held(made), *known]))
        before = {one: _finds(store, one) for one in asked}
        with store.transaction(OWNER, writes=True) as (connection, number):
            keep(connection, number, OWNER, [probe for case in made for probe in case.probes], times.now())
        answers = Probing(store).ask(OWNER, n=10**6)
        with store.transaction(OWNER, writes=True) as (connection, number):
            repaired = set(mend(connection, number, answers, times.now(), None))
        after = {one: _finds(store, one) for one in asked}
    probes = [Asked(q.memory, q.text) for case in made for q in case.probes]
    sorts = {
        "probes of repaired": [one for one in probes if one.memory in repaired],
        "held out, of repaired": [one for one in _held(made) if one.memory in repaired],
        "about other memories": [one for one in asked if one.memory not in repaired],
    }
    return {"repaired": len(repaired), **{name: _counted(ones, before, after) for name, ones in sorts.items()}}


def _held(made: Sequence[Case]) -> list[Asked]:
    return [one for case in made for one in case.held_out]


def _finds(store: MemoryStore, asked: Asked) -> bool:
    hits = store.recall(OWNER, asked.text, k=FIRST, stores=("semantic",))
    return asked.memory in [hit.id for hit in hits]


def _counted(asked: Sequence[Asked], before: Mapping[Asked, bool], after: Mapping[Asked, bool]) -> dict[str, Any]:
    n = len(asked)
    return {
        "n": n,
        "before": sum(before[one] for one in asked) / max(n, 1),
        "after": sum(after[one] for one in asked) / max(n, 1),
        "gained": sum(after[one] and not before[one] for one in asked),
        "lost": sum(before[one] and not after[one] for one in asked),
    }


def measure(home: Path, data: Path) -> dict[str, Any]:
    """Return the result of each condition; `home` stays as it is."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        material = prepared(home, data, base)
        results = {}
        for place, (name, cases) in enumerate(CONDITIONS.items()):
            copy = Path(folder) / str(place)
            shutil.copytree(base, copy)
            results[name] = run(copy, material, cases)
            shutil.rmtree(copy)
    return results


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, help="folder into which LoCoMo was ingested")
    parser.add_argument("--data", type=Path, required=True, help="locomo10.json")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = measure(options.home, options.data)
    if options.json:
        print(json.dumps(results, indent=2))
        return
    print("| probes | asked | n | before | after | gained | lost |\n|---|---|---|---|---|---|---|")
    for name, result in results.items():
        for sort in ("probes of repaired", "held out, of repaired", "about other memories"):
            one = result[sort]
            counted = f"{one['before']:.3f} | {one['after']:.3f} | {one['gained']} | {one['lost']}"
            print(f"| {name} ({result['repaired']} repaired) | {sort} | {one['n']} | {counted} |")


if __name__ == "__main__":
    main()
