"""Decision by what was learned, with rules before it.

Rules are right nearly always where they find a relation between a candidate and a memory, and too often find none. So they
decide where they find one. Where they would only add, it is asked whether the candidate replaces one of the memories near it, ends
it, or says it again: first what the cross-encoder read, then a small network that was trained on simulated dialogues, then
whether a change is told in so many words. Where none is sure, the rules' ADD stands.
"""

import re
from collections.abc import Sequence

import numpy as np
from langchain_core.embeddings import Embeddings

from sharpwave.memory import phrases
from sharpwave.memory.decide import Policy
from sharpwave.memory.decide.happenings import happened
from sharpwave.memory.decide.moving_on import changed, other_values
from sharpwave.memory.decide.nearest import names_other, nearest_changed, only_named
from sharpwave.memory.decide.reading import apart, decided_by_reading
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.decide.sameness import confirms, is_past, repeats
from sharpwave.memory.decide.taking_back import ATTITUDE, is_meanwhile, passes, shares_object
from sharpwave.memory.embed import LocalEmbeddings
from sharpwave.memory.extract.changing import tells_change, tells_end
from sharpwave.memory.extract.languages import is_english
from sharpwave.memory.learning.checkpoint import Checkpoint, load
from sharpwave.memory.learning.features import NEAR, observe
from sharpwave.memory.learning.network import ADD, FIRST, NOOP, scores
from sharpwave.memory.meanings import unsaid
from sharpwave.memory.records import Candidate, Decision, Memory, Operation, Recall, Turn

_OF_ONESELF = re.compile(
    r"\b(?:i|i['’](?:m|ve|d|ll)|me|my|mine|myself|we|we['’](?:re|ve|d|ll)|us|our|ours)\b", re.IGNORECASE
)
"""Words of somebody who speaks of himself. Logs, tickets and reports say many things in one mould, in which likeness is not
sameness: there the network takes one thing for another, and is not asked. Nor is it in other languages than English, of which
the encoder knows next to nothing."""
LEAST = 0.7
"""Probability from which the network's word goes before the rules' ADD: the least tried at which no more was deleted wrongly than by
rules, on the dialogues for validation."""


class LearnedPolicy:
    """Decides by rules and a trained network. One instance may serve all threads: it keeps no state."""

    name = "learned/1"

    def __init__(
        self, checkpoint: Checkpoint | None = None, *, rules: Policy | None = None, least: float = LEAST
    ) -> None:
        """Decide with a network.

        Args:
            checkpoint: the network; None reads the one that comes with the package.
            rules: what decides where the network is not sure, and where it finds a relation; None is `RulesPolicy`.
            least: probability from which the network overrules an ADD of the rules.

        Raises:
            ConfigError: the network that comes with the package cannot be read.
        """
        self._network = Network(checkpoint)
        self._rules = rules or RulesPolicy()
        self._least = least

    def decide(
        self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Recall]], turn: Turn
    ) -> list[Decision]:
        """Return at least one decision a candidate. Raises what the rules raise."""
        made: list[Decision] = []
        for at, candidate in enumerate(candidates):
            if (said := _said(candidate, candidates[:at], self.name)) is not None:
                made.append(said)
                continue
            by_rules = self._rules.decide([candidate], [neighbours[at]], turn)
            if candidate.tentative:
                made += self._read(candidate, neighbours[at]) or by_rules
                continue
            proposed = self._instead(by_rules, candidate, neighbours[at]) or by_rules
            made += [self._unless_apart(decision, neighbours[at]) for decision in proposed]
        return made

    def _read(self, candidate: Candidate, near: Sequence[Recall]) -> list[Decision]:
        """Return what the cross-encoder is sure of, unless the statement is of a kind that misleads it."""
        read = decided_by_reading(candidate, near, self.name)
        return [] if read is None or (read.op != "NOOP" and _misleads(read, near)) else [read]

    def _unless_apart(self, decision: Decision, near: Sequence[Recall]) -> Decision:
        """Return an ADD in place of a change of what is clearly read as left alone."""
        if decision.op not in ("UPDATE", "DELETE") or not apart(decision, near):
            return decision
        said, why = decision.candidate, f"read as leaving it as it is: {_target(decision, near).text!r}"
        if said.polarity == "retract":  # what it takes back is not kept as if it were so now
            said = said.model_copy(update={"history": True})
        return Decision(op="ADD", candidate=said, confidence=0.9, reason=why, policy=self.name)

    def _instead(self, by_rules: Sequence[Decision], candidate: Candidate, near: Sequence[Recall]) -> list[Decision]:
        """Return what was read, else what the network is sure of, else what is told in so many words, where rules would only add."""
        if not asks_further(by_rules, candidate):
            return []
        if read := self._read(candidate, near):
            return read
        if _OF_ONESELF.search(candidate.text):
            decided = self._network.decide_one(candidate, near)
            if decided.target is not None and decided.confidence >= self._least:
                decided = _confirmed(decided, near)
                if not _passing(decided, near):
                    return [decided.model_copy(update={"policy": self.name})]
        told = nearest_changed(candidate, near, self.name)
        return [] if told is None else [_confirmed(told, near)]


def asks_further(by_rules: Sequence[Decision], candidate: Candidate) -> bool:
    """Whether rules only add a statement whose relation can be guessed: English, of how it stands."""
    related = len(by_rules) > 1 or by_rules[0].op != "ADD" or by_rules[0].outdated_by is not None
    return not related and not candidate.history and is_english(candidate.text)


def _passing(decided: Decision, near: Sequence[Recall]) -> bool:
    """Whether what is told changes nothing for good: it is of one day, or what it would change is past already."""
    if decided.op == "NOOP":
        return False
    candidate = decided.candidate
    beside = (candidate.kind == "event" and not changed(candidate)) or phrases.besides(candidate.text)
    if happened(candidate.text) and not (tells_change(candidate.text) or tells_end(candidate.text)):
        return True
    target = _target(decided, near)
    other = changed(candidate) or other_values(candidate.text, target.text) or confirms(candidate.quote)
    if decided.op == "UPDATE" and target.attribute is not None and candidate.attribute is None and not other:
        return True
    if decided.op == "DELETE" and not _names(candidate, target):
        return True
    return is_past(target) or _for_the_moment(decided, target) or (decided.op == "UPDATE" and beside)


def _misleads(decided: Decision, near: Sequence[Recall]) -> bool:
    """Whether a statement is of a kind that only sounds like a change of what it was read to change."""
    said, target = decided.candidate, _target(decided, near)
    if decided.op == "DELETE" and only_named(phrases.expanded(said.text), target):
        return True
    beside = phrases.besides(said.text) and not tells_end(said.text)
    return beside or _for_the_moment(decided, target) or names_other(said.text, target)


def _for_the_moment(decided: Decision, target: Memory) -> bool:
    """Whether a statement changes nothing for good: it is of how things are meanwhile."""
    said = decided.candidate
    if ATTITUDE.search(target.text) and not phrases.stance(said.text) and said.attribute is None:
        return True  # what happens in a place changes nothing in how somebody likes it
    return bool((decided.op == "DELETE" and passes(said, target)) or is_meanwhile(said.text))


def _names(candidate: Candidate, memory: Memory) -> bool:
    """Whether a retraction that names its thing names the memory's."""
    return candidate.polarity == "assert" or candidate.value is None or shares_object(candidate, memory)


def _confirmed(decided: Decision, near: Sequence[Recall]) -> Decision:
    """Return the decision; a NOOP in place of an UPDATE by what says itself that it is known, or says nearly nothing else.

    It may have no name and no number that the memory lacks.
    """
    said, memory = decided.candidate, _target(decided, near)
    known = (
        (confirms(said.quote) or (said.attribute is None and memory.attribute is not None and _left(said, memory) <= 1))
        and not phrases.changes(said.text)
        and phrases.details(said.text) <= phrases.details(memory.text)
    )
    if decided.op == "UPDATE" and known and phrases.negated(said.text) == phrases.negated(memory.text):
        return decided.model_copy(update={"op": "NOOP"})
    return decided


def _left(candidate: Candidate, memory: Memory) -> int:
    """Return how many content words a candidate has that the memory does not say in any way."""
    return len(unsaid(phrases.stems(candidate.text), phrases.stems(f"{memory.text} {memory.value or ''}")))


def _target(decided: Decision, near: Sequence[Recall]) -> Memory:
    return next(r.memory for r in near if r.memory is not None and r.memory.id == decided.target)


def keyless(embeddings: Embeddings) -> Policy:
    """Return what decides where no model and nobody says otherwise: the learned policy, with an embedder that it does not know
    rules."""
    return LearnedPolicy() if isinstance(embeddings, LocalEmbeddings) else RulesPolicy()


class Network:
    """The network alone, as a policy: to measure what it has learned."""

    name = "network/1"

    def __init__(self, checkpoint: Checkpoint | None = None) -> None:
        """Decide with a network; None reads the one that comes with the package.

        Raises:
            ConfigError: it cannot be read.
        """
        self._weights = (checkpoint or load()).weights

    def decide(
        self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Recall]], turn: Turn
    ) -> list[Decision]:
        """Return one decision a candidate."""
        return [
            _said(candidate, candidates[:at], self.name) or self.decide_one(candidate, neighbours[at])
            for at, candidate in enumerate(candidates)
        ]

    def decide_one(self, candidate: Candidate, near: Sequence[Recall]) -> Decision:
        """Return the likeliest operation, with its probability as confidence.

        A NOOP names the memory that says the candidate already, unless there is rather nothing to keep.
        """
        shown = [recall for recall in near if recall.memory is not None and recall.memory.status == "active"][:NEAR]
        found = scores(self._weights, *observe(candidate, shown))
        likely = np.exp(found.logits - np.logaddexp.reduce(found.logits))
        best = int(likely.argmax())
        op, target = _operation(best, shown)
        if best == NOOP and shown and found.known.max() > found.new:
            target = shown[int(found.known.argmax())].memory
        return Decision(
            op=op,
            candidate=candidate,
            target=target.id if target else None,
            confidence=min(1.0, float(likely[best])),
            reason=_REASONS[op] if target is None else f"{_REASONS[op]}: {target.text!r}",
            policy=self.name,
        )


_REASONS: dict[Operation, str] = {
    "ADD": "looks new",
    "NOOP": "looks known",
    "UPDATE": "looks like the present state of what is known",
    "DELETE": "looks like the end of what is known",
}


def _operation(place: int, near: Sequence[Recall]) -> tuple[Operation, Memory | None]:
    if place in (ADD, NOOP):
        return ("ADD" if place == ADD else "NOOP"), None
    count = len(near)
    return ("UPDATE" if place < FIRST + count else "DELETE"), near[(place - FIRST) % count].memory


def _said(candidate: Candidate, before: Sequence[Candidate], policy: str) -> Decision | None:
    earlier = next((c for c in before if repeats(candidate, c)), None)
    if earlier is None:
        return None
    reason = f"said already in this turn: {earlier.text!r}"
    return Decision(op="NOOP", candidate=candidate, confidence=0.95, reason=reason, policy=policy)
