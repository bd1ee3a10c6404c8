"""Writing one turn, in plain steps: read it for what is worth keeping, decide about that, apply the decisions."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from sharpwave.memory.applying import Applied
from sharpwave.memory.decide import Policy
from sharpwave.memory.decide.guard import guard
from sharpwave.memory.extract import Extractor, extracted
from sharpwave.memory.gate import worth_reading
from sharpwave.memory.records import Candidate, Decision, Turn
from sharpwave.memory.store import MemoryStore, StaleDecision


@runtime_checkable
class Applier(Protocol):
    """Carries out decisions."""

    def apply(self, turn: Turn, decisions: Sequence[Decision], *, revision: int | None, **more: Any) -> list[Applied]:
        """Carry out decisions about a turn, all or nothing; see `MemoryStore.apply`."""
        ...


class Budget(NamedTuple):
    """What writing a turn may cost."""

    calls: int | None = None
    """Model calls; None is no limit."""
    tokens: int | None = None
    """Tokens a day (UTC) that model calls for the owner may take in all; None is no limit."""
    wait: bool = False
    """Whether a turn past this waits in the queue; else it is written by rules."""


def read(store: MemoryStore, turn: Turn, extractor: Extractor) -> list[Candidate]:
    """Return what a queued turn says that is worth keeping; the extractor is not asked about small talk."""
    return extracted(extractor, turn, store.known(turn)) if worth_reading(turn) else []


def settle(
    store: MemoryStore,
    turn: Turn,
    candidates: Sequence[Candidate],
    policy: Policy,
    applier: Applier | None = None,
    **more: Any,
) -> list[Applied]:
    """Decide about candidates and carry it out; anew where somebody else wrote for the same owner in between.

    Args:
        store: what is remembered.
        turn: where the candidates come from; it counts as written afterwards, also where there are none.
        candidates: what `read` found.
        policy: decides; the guard has the last word.
        applier: carries it out; by default the store.
        more: passed to the applier's `apply`.
    """
    applies = applier or store
    if not candidates:
        return applies.apply(turn, [], revision=None, **more)
    while True:
        neighbours, revision = store.neighbours(turn.owner, candidates)
        decisions = guard(policy.decide(candidates, neighbours, turn), neighbours, turn)
        shown = sorted({hit.id for near in neighbours for hit in near})
        try:
            return applies.apply(turn, decisions, revision=revision, shown=shown, **more)
        except StaleDecision:
            continue
