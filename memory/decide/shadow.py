"""A second policy beside the one that decides: it is asked the same and carries out nothing; where it differs is noted."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, get_args

from sharpwave.memory.decide import Policy
from sharpwave.memory.ledger import Event
from sharpwave.memory.records import Candidate, Decision, Operation, Recall, Record, Turn
from sharpwave.memory.wilson import lower_bound


class Said(Record):
    """What a policy wanted to do about a candidate."""

    policy: str
    op: Operation
    target: str | None = None
    confidence: float


class Difference(Record):
    """One candidate that two policies decide differently about. It holds no text: the log keeps that of the turn anyway."""

    candidate: int
    """Which candidate of the turn, from 0."""
    live: Said
    shadow: Said


Note = Callable[[Turn, Sequence[Difference]], None]
"""Keeps what differed in a turn, as `MemoryStore.note_shadow` does."""


class Shadowed:
    """Decides as `live` does, and notes where `shadow` would have decided otherwise."""

    def __init__(self, live: Policy, shadow: Policy, note: Note) -> None:
        self.name = live.name
        self._live, self._shadow, self._note = live, shadow, note

    def decide(
        self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Recall]], turn: Turn
    ) -> list[Decision]:
        """Return what the live policy decides. Raises what either of the two raises."""
        decided = self._live.decide(candidates, neighbours, turn)
        other = self._shadow.decide(candidates, neighbours, turn)
        if found := differences(candidates, decided, other):
            self._note(turn, found)
        return decided


def differences(
    candidates: Sequence[Candidate], live: Sequence[Decision], shadow: Sequence[Decision]
) -> list[Difference]:
    """Return the candidates about which the first decision of the one is not that of the other.

    ADDs are the same whatever they say of a target.
    """
    found = []
    for at, candidate in enumerate(candidates):
        one, other = (next((d for d in made if _is_about(d, candidate)), None) for made in (live, shadow))
        if one is not None and other is not None and _action(one) != _action(other):
            found.append(Difference(candidate=at, live=_said(one), shadow=_said(other)))
    return found


def tally(events: Sequence[Event], one: str, other: str) -> dict[str, Any]:
    """Count in an owner's log how often the policy `other` would have decided otherwise than `one`, which decided.

    Policies are named with or without their version. Counted is from the first difference on. Returns `decisions`, `differ`,
    `interval` (95 %, Wilson 1927, of the share that differs) and `kinds`: pairs of operations with their number.
    """
    noted = [
        e for e in events if e.op == "SHADOW" and _named(e.detail["shadow"], other) and _named(e.detail["live"], one)
    ]
    first = noted[0].seq if noted else 0
    decided = [e for e in events if e.seq >= first and e.op in get_args(Operation) and e.policy.split("/")[0] == one]
    kinds = Counter((event.detail["live"]["op"], event.detail["shadow"]["op"]) for event in noted)
    total = max(len(decided), len(noted))
    same = total - len(noted)
    return {
        "decisions": total,
        "differ": len(noted),
        "interval": [lower_bound(len(noted), same), 1 - lower_bound(same, len(noted))] if total else [0.0, 1.0],
        "kinds": [[list(pair), count] for pair, count in kinds.most_common()],
    }


def _named(said: dict[str, Any], policy: str) -> bool:
    return policy in (said["policy"], said["policy"].split("/")[0])


def _is_about(decision: Decision, candidate: Candidate) -> bool:
    """Whether a decision, whose candidate a policy may have completed, is about this one."""
    return (decision.candidate.message_id, decision.candidate.quote, decision.candidate.text) == (
        candidate.message_id,
        candidate.quote,
        candidate.text,
    )


def _action(decision: Decision) -> tuple[Operation, str | None]:
    return decision.op, None if decision.op == "ADD" else decision.target


def _said(decision: Decision) -> Said:
    return Said(policy=decision.policy, op=decision.op, target=decision.target, confidence=decision.confidence)
