"""Extraction: from one turn to the candidates worth keeping.

`rules` needs no model; `llm` asks one once a turn. Both are `Extractor`s, and so is any object of that shape.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from sharpwave.memory.records import Candidate, Recall, Turn


@runtime_checkable
class Extractor(Protocol):
    """Turns an exchange into candidates."""

    name: str
    """Name and version, as `rules/1`."""

    def extract(self, turn: Turn, known: Sequence[Recall]) -> list[Candidate]:
        """Return what the turn says that is worth keeping; an empty list says that nothing is.

        Args:
            turn: the exchange. Only what the user said makes facts about the user.
            known: memories near to the turn, best first, for extractors that look at them (at most 10).

        Raises:
            ModelError: the model failed or stayed unusable after repair. Never an empty list in its place.
        """
        ...
