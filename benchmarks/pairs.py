"""Fit and measure the cross-encoder that reads what a statement does to a memory (see `memory.cross_encoder`).

    python -m sharpwave.benchmarks.pairs --json            # on the statements of a writer that it was not fitted to
    python -m sharpwave.benchmarks.pairs --fit             # fit it anew (needs the [train] extra; half an hour on two cores)

`labelled/pairs.jsonl` holds what imagined people are known to have said, and statements with the one of these that each concerns and the
relation between the two; to the others it does nothing. Each of its writers had a manner and a part of life of his own. It is
fitted to these, and to the English dialogues of the labelled tune parts, as the store holds them.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sharpwave.benchmarks import labelled
from sharpwave.benchmarks.scoring import CaseScore, about
from sharpwave.benchmarks.write import AlwaysAdd, Statements, Write, path, said_in
from sharpwave.memory import cross_encoder
from sharpwave.memory.cross_encoder import MAX_TOKENS, RELATIONS, CrossEncoder
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.embed import LocalEmbeddings, open_tokenizer, packaged_files
from sharpwave.memory.extract.rules import rules_for
from sharpwave.memory.learning import low_rank
from sharpwave.memory.learning.low_rank import Row
from sharpwave.memory.records import Candidate, Decision, Recall, Record, Turn
from sharpwave.memory.store import MemoryStore

OTHERS = 2
"""Of what else a person is known to have said, so many are taken with each statement, as left alone by it; one, where most of what
he says leaves alone what it concerns, too."""
NEAREST = 4
"""Each statement of the labelled dialogues is taken with so many memories, those nearest to it."""
OFTEN = 3
"""How often these are taken: they are few, and alone of the kind that the store holds."""
EPOCHS = 3
LEAST = (0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99)
Example = tuple[str, str, int]
"""What is known, what is said, and the index of the relation in `RELATIONS`."""
_RELATION = {"ADD": "more", "UPDATE": "new", "DELETE": "over", "NOOP": "same"}


class Person(Record):
    """What somebody is known to have said, and what he says then."""

    writer: str
    split: Literal["tune", "held"]
    known: tuple[str, ...]
    said: tuple[tuple[str, int, Literal["apart", "new", "over", "same", "more"]], ...]
    """Statement, index of what it concerns, relation to that."""


def people(split: Literal["tune", "held"]) -> Iterator[Person]:
    """Yield the people of one part."""
    lines = (labelled.HERE / "pairs.jsonl").read_text("utf-8").splitlines()
    return (person for person in map(Person.model_validate_json, lines) if person.split == split)


def posed(person: Person) -> list[Example]:
    """Return the pairs that are labelled one by one."""
    return [(person.known[at], said, RELATIONS.index(relation)) for said, at, relation in person.said]


def beside(person: Person, drawn: random.Random, count: int) -> Iterator[Example]:
    """Yield each statement with `count` of what it does not concern."""
    for said, at, _ in person.said:
        others = [known for number, known in enumerate(person.known) if number != at]
        yield from ((known, said, 0) for known in drawn.sample(others, min(count, len(others))))


class Shown:
    """Decides by rules, and keeps what each statement was shown with."""

    name = "rules/1"

    def __init__(self) -> None:
        self.near: list[tuple[Candidate, Sequence[Recall]]] = []
        self._rules = RulesPolicy()

    def decide(
        self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Recall]], turn: Turn
    ) -> list[Decision]:
        """Return what rules decide."""
        self.near = list(zip(candidates, neighbours, strict=True))
        return self._rules.decide(candidates, neighbours, turn)


def of_dialogues(cases: Sequence[labelled.Case]) -> Iterator[Example]:
    """Write labelled dialogues to a store by rules, and yield each statement that was found with each of the `NEAREST` memories near it.

    What is labelled as no change of a memory leaves it alone. So does, wrongly, what speaks of a memory that rules failed to end: its
    label names a later one (of 2,610 pairs 150 have such a memory).
    """
    embeddings, shown = LocalEmbeddings(), Shown()
    with tempfile.TemporaryDirectory() as home, MemoryStore.open(home, embeddings=embeddings, collections=1) as store:
        writes = path(store, rules_for(embeddings), shown), path(store, Statements(), AlwaysAdd())
        for case in cases:
            yield from _of_dialogue(store, case, *writes, shown)


def _of_dialogue(store: MemoryStore, case: labelled.Case, write: Write, seed: Write, shown: Shown) -> Iterator[Example]:
    score = CaseScore(case)
    for at, labels in enumerate(case.turns):
        shown.near = []
        outcome = said_in(store, case, at, seed if labels.seed else write)
        for said, near in shown.near:
            told = [fact for fact in labels.facts if fact.op and about(said, fact.text, labels.user)]
            concerned = {score.home(key): _RELATION[fact.op] for fact in told if fact.op for key in fact.targets}
            nearest = sorted(near, key=lambda hit: hit.parts.cosine if hit.parts else 0.0, reverse=True)[:NEAREST]
            yield from ((hit.text, said.text, RELATIONS.index(concerned.get(hit.id, "apart"))) for hit in nearest)
        score.turn(at, outcome)


def examples(seed: int = 0) -> list[Example]:
    """Return all that the cross-encoder is fitted to."""
    drawn = random.Random(seed)
    pairs = [pair for person in people("tune") for pair in (*posed(person), *beside(person, drawn, _others(person)))]
    dialogues = [case for folder in (labelled.HERE, labelled.TRAPS) for case in labelled.load("tune", folder)]
    return pairs + OFTEN * list(of_dialogues([case for case in dialogues if case.language == "en"]))


def _others(person: Person) -> int:
    apart = sum(relation == "apart" for *_, relation in person.said)
    return 1 if 2 * apart > len(person.said) else OTHERS


def encoded(examples: Sequence[Example]) -> list[Row]:
    """Return examples as they are fitted to."""
    tokenizer = open_tokenizer(packaged_files().tokenizer)
    tokenizer.enable_truncation(MAX_TOKENS)
    rows = tokenizer.encode_batch([(known, said) for known, said, _ in examples])
    return [(row.ids, row.type_ids, [relation]) for row, (_, _, relation) in zip(rows, examples, strict=True)]


def measured(pairs: Sequence[Example], others: Sequence[Example]) -> dict[str, Any]:
    """Return how well relations are told, and the CPU time that it takes: accuracy and confusion on `pairs`, and by least probability the share of changes that
    are seen, and of pairs without one that are taken for one, among the posed pairs and among the others."""
    reader = CrossEncoder()
    reader.read([("warm", "up")])
    started = time.process_time()
    likely = reader.read([(known, said) for known, said, _ in pairs])
    spent = time.process_time() - started
    relations = np.array([relation for *_, relation in pairs])
    read, changes = likely.argmax(axis=1), likely[:, 1] + likely[:, 2]
    beside_them = reader.read([(known, said) for known, said, _ in others])[:, 1:3].sum(axis=1)
    changed = (relations == 1) | (relations == 2)
    return {
        "pairs": len(pairs),
        "cpu_ms_a_pair": round(1000 * spent / len(pairs), 2),
        "accuracy": round(float((read == relations).mean()), 4),
        "confusion": {
            one: {other: int(((relations == i) & (read == j)).sum()) for j, other in enumerate(RELATIONS)}
            for i, one in enumerate(RELATIONS)
        },
        "by_least_probability": {
            least: {
                "changes_seen": round(float((changes[changed] >= least).mean()), 4),
                "taken_for_a_change": round(float((changes[~changed] >= least).mean()), 4),
                "of_others": round(float((beside_them >= least).mean()), 4),
                "known_seen": round(float((likely[relations == 3, 3] >= least).mean()), 4),
                "taken_for_known": round(float((likely[relations != 3, 3] >= least).mean()), 4),
            }
            for least in LEAST
        },
    }


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true", help="fit it anew, and keep the weights in the package")
    parser.add_argument("--out", type=Path, default=cross_encoder.WEIGHTS, help="where the weights are kept")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    if given.fit:
        fitted = low_rank.fit(encoded(examples()), len(RELATIONS), epochs=EPOCHS, told=print)
        np.savez_compressed(given.out, allow_pickle=False, **fitted)
        return
    drawn = random.Random(0)
    held = list(people("held"))
    pairs = [pair for person in held for pair in posed(person)]
    result = measured(pairs, [pair for person in held for pair in beside(person, drawn, 5)])
    print(json.dumps(result, indent=2) if given.json else result)


if __name__ == "__main__":
    main()
