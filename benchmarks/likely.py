"""Fit the weights by which a clause that no rule reads is taken for a fact (see `memory.extract.likely`).

    python -m sharpwave.benchmarks.likely --json             # cross-validation
    python -m sharpwave.benchmarks.likely --write            # fit to all of the tune part, and keep the weights

Each clause of the labelled tune part (English) that may tell something, and from which rules take nothing, is one example; it
is a fact where it shares half of the shorter of the two with a labelled one. Clauses that may be kept or not are left out.
Logistic regression with a ridge penalty of 1, by Newton's method. Ten folds, whole dialogues in each.
"""

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sharpwave.benchmarks.labelled import Case, LabelledTurn, load
from sharpwave.benchmarks.scoring import about
from sharpwave.memory.extract import languages, likely
from sharpwave.memory.extract.clauses import clauses
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.records import Candidate, Message, Turn

RIDGE, FOLDS = 1.0, 10


class Example(NamedTuple):
    """A clause that rules leave, with its traits, and whether it is a fact."""

    case: str
    text: str
    traits: list[bool]
    fact: bool


def examples(cases: Sequence[Case]) -> Iterator[Example]:
    """Yield the clauses of English dialogues that rules leave."""
    rules = RulesExtractor(least=2.0)
    for case in cases:
        names: set[str] = set()
        for turn in case.turns if case.language == "en" else ():
            yield from _of_turn(case.id, turn, names, rules)
            names |= {word.casefold() for fact in turn.facts for word in re.findall(r"\b[A-Z][\w-]+", fact.text[1:])}


def _of_turn(case: str, turn: LabelledTurn, names: set[str], rules: RulesExtractor) -> Iterator[Example]:
    message = Message(id="m", role="user", text=turn.user)
    taken = rules.extract(Turn(owner=case, thread="t", messages=(message,), said_at=turn.at), [])
    for clause in clauses(turn.user):
        said = Candidate(text=clause.text, quote=clause.quote, subject="user", message_id="m")
        read = any(about(said, one.quote, turn.user) for one in taken)
        meant = [fact for fact in turn.facts if about(said, fact.text, turn.user)]
        if read or not languages.is_english(clause.text) or (meant and all(fact.op is None for fact in meant)):
            continue
        yield Example(case, clause.text, likely.traits(clause.text, names), bool(meant))


def fitted(traits: np.ndarray, facts: np.ndarray) -> np.ndarray:
    """Return the weights of the traits, and the bias last, that fit `facts` (0 or 1) best."""
    rows = np.c_[traits, np.ones(len(traits))]
    weights = np.zeros(rows.shape[1])
    ridge = np.r_[np.full(rows.shape[1] - 1, RIDGE), 1e-6]
    for _ in range(50):
        odds = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (odds - facts) + ridge * weights
        curve = (rows * np.maximum(odds * (1 - odds), 1e-6)[:, None]).T @ rows + np.diag(ridge)
        step = np.linalg.solve(curve, slope)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return np.asarray(weights)


def cross_validated(found: Sequence[Example]) -> dict[str, Any]:
    """Return how many facts would be found, and how many other clauses be taken for facts, by the least probability."""
    traits, facts = _arrays(found)
    cases = sorted({one.case for one in found})
    folds = dict(zip(cases, np.random.default_rng(0).integers(0, FOLDS, len(cases)), strict=True))
    fold = np.array([folds[one.case] for one in found])
    odds = np.zeros(len(found))
    for k in range(FOLDS):
        weights = fitted(traits[fold != k], facts[fold != k])
        odds[fold == k] = 1 / (1 + np.exp(-np.c_[traits[fold == k], np.ones((fold == k).sum())] @ weights))
    taken = {
        least: {"found": int(facts[odds >= least].sum()), "false": int((1 - facts)[odds >= least].sum())}
        for least in (0.5, 0.6, 0.7, likely.LEAST, 0.8, 0.9)
    }
    return {"clauses": len(found), "facts": int(facts.sum()), "by_least_probability": taken}


def _arrays(found: Sequence[Example]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([one.traits for one in found], float), np.array([one.fact for one in found], float)


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="fit to all of it, and keep the weights in the package")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    found = list(examples(load("tune")))
    result = cross_validated(found)
    if given.write:
        weights = dict(zip((*likely.TRAITS, "bias"), fitted(*_arrays(found)).round(3).tolist(), strict=True))
        Path(likely.__file__).with_suffix(".json").write_text(json.dumps(weights, indent=2) + "\n", "utf-8")
    print(json.dumps(result, indent=2) if given.json else result)


if __name__ == "__main__":
    main()
