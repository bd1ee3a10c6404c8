"""What recall learns from citations, on LoCoMo: its evidence stands for what answers cite.

Half of each conversation's questions teach, the other half tests; categories 1-4. Three orders of the same candidates:

    fixed    the fixed fusion of scores
    online   the reranker of `memory.rerank`, taught by this conversation alone, in the order of its questions: of the ten that it
             shows, the evidence is cited; where none of it is shown, nothing is learned
    pooled   a logistic regression over the same features, fitted to the questions of all other conversations, every candidate
             labelled: more than any owner's citations tell. Not shipped: LoCoMo's licence forbids that

and two ways to halve: `ordered` as the file has them (the later half is nearly all single-hop), `alternate` every other one.
Differences are against `fixed`, with 95 % intervals over conversations drawn with replacement. Last, what a query costs.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings

from sharpwave.benchmarks.questions import LOCOMO, Question, locomo
from sharpwave.benchmarks.recall import ask, score, with_turns
from sharpwave.memory.embed import LocalEmbeddings
from sharpwave.memory.rerank import Lesson, Reranker
from sharpwave.memory.store import MemoryStore

SHOWN = 10
MEASURES = ("r@10", "mrr")
TIMED = 8
"""Every so many questions are asked once more, to see what a query costs."""

Order = Callable[["Found"], np.ndarray]
"""Gives the candidates of a question their scores."""


class Found(NamedTuple):
    """The candidates of a question."""

    question: Question
    ids: Sequence[str]
    features: np.ndarray
    """Shape (candidates, features)."""
    scores: np.ndarray
    """Of the fixed fusion."""

    @property
    def gold(self) -> np.ndarray:
        """Which candidates are evidence (bool)."""
        return np.array([one in self.question.gold for one in self.ids])


def measure(data: Path, home: Path, embeddings: Embeddings | None = None) -> dict[str, Any]:
    """Ask all questions and return the scores of each order, differences, and costs.

    Args:
        data: LoCoMo's file.
        home: the store in it is asked when it holds LoCoMo's conversations; else a temporary one is made and filled.
        embeddings: the embedder; None is the local one.
    """
    turns, questions = locomo(data)
    questions = [question for question in questions if question.category != LOCOMO[5]]
    with with_turns(turns, home, embeddings or LocalEmbeddings()) as store:
        store.index_pending()
        now = max(turn.said_at for turn in turns) + timedelta(days=1)
        store.learns_recall = True
        by_owner: dict[str, list[Found]] = {}
        for question in questions:
            hits = store.recall(question.owner, question.text, stores=("episodic",), floor=-1.0, now=now)
            found = Found(
                question,
                [hit.utterance.message_id for hit in hits if hit.utterance],
                np.array([hit.features for hit in hits]),
                np.array([hit.score for hit in hits]),
            )
            by_owner.setdefault(question.owner, []).append(found)
        costs = _costs(store, questions[::TIMED])
    return {**compare(by_owner), "costs": costs}


def compare(by_owner: Mapping[str, Sequence[Found]]) -> dict[str, Any]:
    """Return scores and differences by split, and of the pooled regression on all questions."""
    pooled = {
        owner: _pooled([f for other in by_owner if other != owner for f in by_owner[other]]) for owner in by_owner
    }
    splits: dict[str, Any] = {}
    for name in ("ordered", "alternate"):
        orders: dict[str, dict[str, Order]] = {"fixed": {}, "online": {}, "pooled": pooled}
        tests = {}
        for owner, found in by_owner.items():
            taught, tests[owner] = _halves(found, name)
            orders["fixed"][owner], orders["online"][owner] = _fixed, _online(taught)
        splits[name] = _compared(tests, orders)
    whole = _compared(by_owner, {"fixed": dict.fromkeys(by_owner, _fixed), "pooled": pooled})
    return {"splits": splits, "all_questions": whole}


def _halves(found: Sequence[Found], name: str) -> tuple[Sequence[Found], Sequence[Found]]:
    if name == "alternate":
        return found[0::2], found[1::2]
    return found[: len(found) // 2], found[len(found) // 2 :]


def _fixed(found: Found) -> np.ndarray:
    return found.scores


def _online(taught: Sequence[Found]) -> Order:
    """Return the order that citations of the evidence in these questions teach, one after the other."""
    reranker = Reranker()
    for found in taught:
        scores = found.scores + reranker.shifts(found.features)
        best = np.argsort(-scores, kind="stable")[:SHOWN]
        cited = found.gold[best]
        if cited.any() and not cited.all():
            features = tuple(map(tuple, found.features[best].tolist()))
            lesson = Lesson(features=features, scores=tuple(scores[best].tolist()), cited=tuple(cited.tolist()))
            reranker = reranker.taught(lesson)
    return lambda found: found.scores + reranker.shifts(found.features)


def _pooled(taught: Sequence[Found], penalty: float = 1e-3, steps: int = 12) -> Order:
    """Return the order of a logistic regression on every candidate of these questions, fitted by Newton's method."""
    given = np.concatenate([found.features for found in taught])
    evidence = np.concatenate([found.gold for found in taught]).astype(float)
    spread = given.std(0) + 1e-9
    inputs = np.column_stack([(given - given.mean(0)) / spread, np.ones(len(given))])
    weights = np.zeros(inputs.shape[1])
    for _ in range(steps):
        likely = 1 / (1 + np.exp(-inputs @ weights))
        slope = inputs.T @ (likely - evidence) / len(inputs) + penalty * weights
        bend = (inputs * (likely * (1 - likely))[:, None]).T @ inputs / len(inputs) + penalty * np.eye(len(weights))
        weights = weights - np.linalg.solve(bend, slope)
    return lambda found: found.features @ (weights[:-1] / spread)


def _compared(tests: Mapping[str, Sequence[Found]], orders: Mapping[str, Mapping[str, Order]]) -> dict[str, Any]:
    """Return the mean scores of each order, and the differences to the first, on these questions."""
    tables = {name: {owner: _scored(tests[owner], by[owner]) for owner in tests} for name, by in orders.items()}
    base = tables["fixed"]
    made: dict[str, Any] = {"n": sum(map(len, tests.values()))}
    for name, table in tables.items():
        mean = np.concatenate(list(table.values())).mean(0)
        made[name] = {key: round(float(value), 4) for key, value in zip(MEASURES, mean, strict=True)}
        if name != "fixed":
            apart = [table[owner] - base[owner] for owner in tests]
            made[name] |= {f"{key} gain": interval([one[:, at] for one in apart]) for at, key in enumerate(MEASURES)}
    return made


def _scored(found: Sequence[Found], order: Order) -> np.ndarray:
    """Return r@10 and MRR of each question, shape (questions, 2)."""
    rows = []
    for one in found:
        best = np.argsort(-order(one), kind="stable")[:20]
        scored = score(one.question.gold, [one.ids[at] for at in best])
        rows.append([scored[key] for key in MEASURES])
    return np.array(rows).reshape(-1, len(MEASURES))


def interval(by_conversation: Sequence[np.ndarray], times: int = 10_000) -> list[float]:
    """Return [mean, low, high] over questions; 95 %, conversations drawn with replacement."""
    sums, sizes = (np.array([work(one) for one in by_conversation], float) for work in (np.sum, len))
    drawn = np.random.default_rng(0).integers(len(sums), size=(times, len(sums)))
    means = sums[drawn].sum(1) / sizes[drawn].sum(1)
    return [round(float(one), 4) for one in (sums.sum() / sizes.sum(), *np.percentile(means, [2.5, 97.5]))]


def _costs(store: MemoryStore, questions: Sequence[Question]) -> dict[str, Any]:
    """Return what a query costs without the reranker, and with one that has learned nothing yet, which costs the same as any."""
    costs = {}
    for name, learns in (("fixed", False), ("reranked", True)):
        store.learns_recall = learns
        costs[name] = ask(store, "episodic", questions)[1]
    return costs


def main(argv: Sequence[str] | None = None) -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="LoCoMo's file")
    parser.add_argument(
        "--home", type=Path, help="a store that LoCoMo was ingested into; by default a temporary one is made"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as empty:
        found = measure(given.data, given.home or Path(empty))
    print(json.dumps(found, indent=2) if given.json else shown(found))


def shown(found: Mapping[str, Any]) -> str:
    """Return what was measured as lines of a table."""
    lines = [f"{'':12}{'':8}{'r@10':>8}{'MRR':>8}   r@10 gain [95 %], MRR gain [95 %]"]
    for split, rows in {**found["splits"], "all": found["all_questions"]}.items():
        for name, row in ((name, row) for name, row in rows.items() if name != "n"):
            gains = [
                "{:+.4f} [{:+.4f}, {:+.4f}]".format(*row[f"{key} gain"]) for key in MEASURES if f"{key} gain" in row
            ]
            lines.append(f"{split:12}{name:8}{row['r@10']:8.4f}{row['mrr']:8.4f}   {', '.join(gains)}")
    for name, row in found["costs"].items():
        lines.append(f"{name}: {row['cpu_ms_per_query']} ms a query, {row['ratio_to_chroma']} times one of Chroma's")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
