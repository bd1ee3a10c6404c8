"""The write-path benchmark: labelled dialogues through the real store, and how often what was written was wrong.

Each case has an owner of its own in a store of its own making. Intervals are 95 % bootstrap intervals over cases; for a
rate that is 0 the upper end is the exact binomial one (Clopper and Pearson 1934), since resampling zeros says nothing.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from sharpwave.benchmarks.labelled import Case
from sharpwave.benchmarks.scoring import CaseScore, Outcome, Written
from sharpwave.graphs.state import Context
from sharpwave.graphs.write import KNOWN, build_write
from sharpwave.memory.applying import Applied
from sharpwave.memory.decide import Policy
from sharpwave.memory.decide.guard import guard
from sharpwave.memory.errors import ModelError
from sharpwave.memory.extract import Extractor, extracted
from sharpwave.memory.gate import worth_reading
from sharpwave.memory.records import Candidate, Decision, Memory, Message, Operation, Recall, Turn
from sharpwave.memory.store import MemoryStore

RESAMPLES = 1000
FLOOR = 0.5
"""Confidence below which a memory is out of the current view."""
RATES = ("wrong_delete", "wrong_update", "duplicate", "unsupported")
OPERATIONS: tuple[Operation, ...] = ("ADD", "UPDATE", "DELETE", "NOOP")

Write = Callable[[Turn], tuple[list[Candidate], list[Written]]]
"""Writes one turn and returns what was proposed and what was done."""


class Statements:
    """Takes what is said for facts, a line each: measures a policy alone."""

    name = "given"

    def extract(self, turn: Turn, known: Sequence[Recall]) -> list[Candidate]:
        """Return a candidate for each line, about the speaker."""
        message = turn.messages[0]
        return [
            Candidate(text=line, quote=line, subject=message.speaker or "user", message_id=message.id)
            for line in message.text.splitlines()
        ]


class AlwaysAdd:
    """The baseline that keeps everything and changes nothing."""

    name = "always-add"

    def decide(
        self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Recall]], turn: Turn
    ) -> list[Decision]:
        """Return an ADD for each candidate."""
        return [Decision(op="ADD", candidate=c, reason="always", policy=self.name) for c in candidates]


class Cosine:
    """The baseline that replaces the nearest memory from a cosine of `threshold` on, and adds below it."""

    name = "cosine"

    def __init__(self, threshold: float = 0.85) -> None:
        self.threshold = threshold

    def decide(
        self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Recall]], turn: Turn
    ) -> list[Decision]:
        """Return an UPDATE of the nearest memory, or an ADD, for each candidate."""
        return [self._one(c, near) for c, near in zip(candidates, neighbours, strict=True)]

    def _one(self, candidate: Candidate, near: Sequence[Recall]) -> Decision:
        nearest = max(near, key=_cosine, default=None)
        if nearest is None or _cosine(nearest) < self.threshold:
            return Decision(op="ADD", candidate=candidate, reason="nothing is near", policy=self.name)
        return Decision(op="UPDATE", candidate=candidate, target=nearest.id, reason="near", policy=self.name)


def _cosine(hit: Recall) -> float:
    return hit.parts.cosine if hit.parts else 0.0


Baseline = AlwaysAdd | Cosine


def path(store: MemoryStore, extractor: Extractor, policy: Policy) -> Write:
    """Return the write path to measure.

    The product's is the compiled writing graph. Statements that are given need no gate, and baselines are measured as they
    are used elsewhere, with no guard after them; both go step by step.
    """
    if isinstance(extractor, Statements) or isinstance(policy, Baseline):
        return lambda turn: _by_steps(store, extractor, policy, turn)
    graph = build_write(memory=store, extract=extractor, decide=policy).compile()
    return lambda turn: _by_graph(graph, turn)


def _by_graph(graph: Any, turn: Turn) -> tuple[list[Candidate], list[Written]]:
    context = Context(user_id=turn.owner, thread=turn.thread, now=turn.said_at)
    state = graph.invoke({"turn": turn.model_dump(mode="json"), "messages": []}, context=context)
    if state["errors"]:
        raise ModelError(f"A turn could not be written: {state['errors'][0]['error']}")
    decisions = [Decision.model_validate(decision) for decision in state["decisions"]]
    done = [Applied.model_validate(applied) for applied in state["operations"]]
    candidates = [Candidate.model_validate(candidate) for candidate in state["candidates"]]
    return _taken(candidates, list(zip(decisions, done, strict=False)))


def _taken(candidates: Sequence[Candidate], written: list[Written]) -> tuple[list[Candidate], list[Written]]:
    """Return what was taken for facts, and what became of it: a tentative candidate counts where something came of it."""
    kept = [(d, a) for d, a in written if not d.candidate.tentative or d.op != "NOOP" or d.target is not None]
    came = {d.candidate.text for d, _ in kept}
    return [candidate for candidate in candidates if not candidate.tentative or candidate.text in came], kept


def _by_steps(
    store: MemoryStore, extractor: Extractor, policy: Policy, turn: Turn
) -> tuple[list[Candidate], list[Written]]:
    store.queue([turn])
    if isinstance(extractor, Statements):
        candidates = extractor.extract(turn, [])
    elif worth_reading(turn):
        known = store.recall(turn.owner, turn.user_text, k=KNOWN, stores=("semantic",), floor=-1.0, now=turn.said_at)
        candidates = extracted(extractor, turn, known)
    else:
        candidates = []
    neighbours, revision = store.neighbours(turn.owner, candidates)
    decisions = policy.decide(candidates, neighbours, turn) if candidates else []
    if not isinstance(policy, Baseline):
        decisions = guard(decisions, neighbours, turn)
    done = store.apply(turn, decisions, revision=revision, index=False)
    return _taken(candidates, list(zip(decisions, done, strict=False)))


def evaluate(extractor: Extractor, policy: Policy, cases: Sequence[Case], embeddings: Embeddings) -> list[CaseScore]:
    """Write all turns of all cases and return the score of each case.

    Args:
        extractor: finds the candidates; `Statements` takes each line for one.
        policy: decides; the guard follows it, unless it is a `Baseline`.
        cases: labelled dialogues.
        embeddings: the embedder of the store.

    Raises:
        ModelError: a model failed.
    """
    with tempfile.TemporaryDirectory() as home, MemoryStore.open(home, embeddings=embeddings, collections=1) as store:
        write, seed = path(store, extractor, policy), path(store, Statements(), AlwaysAdd())
        return [_case(store, case, write, seed) for case in cases]


def _case(store: MemoryStore, case: Case, write: Write, seed: Write) -> CaseScore:
    score = CaseScore(case)
    for at, labelled in enumerate(case.turns):
        score.turn(at, said_in(store, case, at, seed if labelled.seed else write))
    return score


def said_in(store: MemoryStore, case: Case, at: int, write: Write) -> Outcome:
    """Write the turn with the index `at` of a case, and return what happened."""
    labelled = case.turns[at]
    message = Message(id=f"m{at}", role="user", text=labelled.user, speaker=case.about)
    turn = Turn(owner=case.id, thread=f"t{at}", messages=(message,), said_at=labelled.at)
    before = {memory.id: memory.text for memory in _current(store, case.id)}
    candidates, written = write(turn)
    return Outcome(candidates, written, before, _current(store, case.id))


def _current(store: MemoryStore, owner: str) -> list[Memory]:
    return [m for m in store.memories(owner) if m.valid_to is None and m.confidence >= FLOOR]


def summary(scores: Sequence[CaseScore], *, intervals: bool = False) -> dict[str, Any]:
    """Return the rates of some cases, each 0..1, or None where there was nothing to count.

    `wrong_delete` is the share of UPDATEs and DELETEs that took away a fact that still holds; `wrong_update` that of UPDATEs
    of a memory that the fact is not about; `duplicate` that of ADDs that say again what is kept; `unsupported` that of
    stored texts that the user's own words do not carry; `noise` that of turns without facts in which something was written;
    `stale` that of outdated strings left in the current view; `lost` that of new facts that were found and then taken for
    known ones; `kept` that of the strings that are in the current view as they should be. The recall of updates and deletes counts what was never found.
    """
    counts: Counter[str] = sum((score.counts for score in scores), Counter())
    confusion = {label: {made: counts[f"{label}>{made}"] for made in OPERATIONS} for label in OPERATIONS}
    found: dict[str, Any] = {
        "cases": len(scores),
        "turns": sum(not turn.seed for score in scores for turn in score.case.turns),
        "rates": {name: _rate(counts, name) for name in RATES},
        "extraction": {name: _rate(counts, name) for name in ("precision", "recall", "noise")},
        "decision": {
            **{name: _rate(counts, name) for name in ("accuracy", "update_recall", "delete_recall")},
            "missed_update": _complement(_rate(counts, "update_recall")),
            "confusion": confusion,
        },
        **{name: _rate(counts, name) for name in ("stale", "kept", "lost")},
        "counts": {name: [counts[f"{name}/hit"], counts[f"{name}/all"]] for name in MEASURES if counts[f"{name}/all"]},
    }
    return {**found, "intervals": _intervals([score.counts for score in scores])} if intervals else found


MEASURES = (
    *RATES,
    "precision",
    "recall",
    "noise",
    "accuracy",
    "update_recall",
    "delete_recall",
    "stale",
    "kept",
    "lost",
)


def _rate(counts: Mapping[str, int], name: str) -> float | None:
    of = counts.get(f"{name}/all", 0)
    return round(counts.get(f"{name}/hit", 0) / of, 4) if of else None


def _complement(rate: float | None) -> float | None:
    return None if rate is None else round(1 - rate, 4)


def _intervals(counts: Sequence[Mapping[str, int]]) -> dict[str, list[float]]:
    weights = np.random.default_rng(0).multinomial(len(counts), np.full(len(counts), 1 / len(counts)), RESAMPLES)
    found = {}
    for name in MEASURES:
        hits, of = (weights @ [c.get(f"{name}/{part}", 0) for c in counts] for part in ("hit", "all"))
        total = sum(c.get(f"{name}/all", 0) for c in counts)
        if not total:
            continue
        rates = hits[of > 0] / of[of > 0]
        low, high = np.percentile(rates, [2.5, 97.5])
        found[name] = [round(float(low), 4), round(float(high if rates.any() else 1 - 0.025 ** (1 / total)), 4)]
    return found


def grouped(scores: Sequence[CaseScore], name: str) -> dict[str, dict[str, Any]]:
    """Return the rates by an attribute of the cases (`language`, `style`, `split`)."""
    values = sorted({str(getattr(score.case, name)) for score in scores})
    return {value: summary([s for s in scores if getattr(s.case, name) == value]) for value in values}
