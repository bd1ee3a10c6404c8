"""What reads a document for the sake of a question, and what it comes back with."""

from typing import Any, Protocol, runtime_checkable

from sharpwave.memory.reading.document import Piece
from sharpwave.memory.records import Record, Text

Memory = dict[str, Any]
"""What a reader has in mind: plain data of a bounded size, empty at first, and all that goes from piece to piece."""


class Found(Record):
    """The answer that a document gives to a question."""

    answer: Text
    known: bool
    """Whether the document says anything about it."""
    passages: tuple[dict[str, Any], ...] = ()
    """What the answer rests on: `text` and, where it stands so in the document, `line` and `score`."""


@runtime_checkable
class Reader(Protocol):
    """Reads a document piece by piece for the sake of one question."""

    name: str
    """What the result is signed with, such as `extractive/1`."""

    def room(self, question: str) -> int:
        """Return the tokens of a piece, as `count` counts; raises `SharpwaveError` when the question leaves no room."""
        ...

    def count(self, text: str) -> int:
        """Return the tokens of a text."""
        ...

    def read(self, question: str, memory: Memory, piece: Piece, line: int) -> Memory:
        """Return the memory after a piece that begins in line `line` (from 1 on)."""
        ...

    def answer(self, question: str, memory: Memory) -> Found:
        """Return what the memory answers."""
        ...
