"""Decision: ADD, UPDATE, DELETE or NOOP for each candidate, given the memories nearest to it.

`rules` needs no model; `llm` asks one. Whatever decides, `guard` has the last word.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from sharpwave.memory.records import Candidate, Decision, Recall, Turn


@runtime_checkable
class Policy(Protocol):
    """Decides what to do about candidates."""

    name: str
    """Name and version, as `rules/1`."""

    def decide(
        self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Recall]], turn: Turn
    ) -> list[Decision]:
        """Return decisions, in the order of the candidates, at least one for each.

        Args:
            candidates: what extraction proposed.
            neighbours: for each candidate its nearest active memories, best first (hybrid search, at most 10), plus
                those that hold the same subject and attribute. `Recall.memory` is set on each.
            turn: the exchange that they come from.

        Raises:
            ModelError: the model failed or stayed unusable after repair.
        """
        ...
