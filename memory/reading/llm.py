"""Reading by a chat model: one call a piece, each of which writes the notes anew, and one for the answer."""

import json
from collections.abc import Sequence

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from sharpwave.memory.errors import ConfigError
from sharpwave.memory.reading.document import Piece
from sharpwave.memory.reading.reader import Found, Memory
from sharpwave.memory.structured import ask
from sharpwave.memory.tokens import shorten
from sharpwave.memory.working.counting import OUTPUT_SHARE, count_messages, counter, window_of
from sharpwave.prompts import render

PIECE = 4_000
"""Most tokens of a piece: of more, models overlook what stands in the middle."""
SHORTEST = 200
"""Tokens of a piece that are worth a call."""
_BESIDE = 100
"""Tokens of a call beside its messages: a word on what was wrong with an answer."""


class ModelReader:
    """Keeps notes that the model writes anew with each piece, within a budget; see `Reader`.

    Its calls are counted under "read" and "answer".

    Args:
        model: any LangChain chat model.
        budget: tokens of the notes.
        window: tokens of the model's context, the answer included; by default what is known of it (`window_of`).
    """

    name = "llm/1"

    def __init__(self, model: BaseChatModel, *, budget: int = 1_000, window: int | None = None) -> None:
        self._model, self.budget = model, budget
        self._window, self.count = window or window_of(model), counter(model)

    def room(self, question: str) -> int:
        """Return the tokens of a piece; raises `ConfigError` when the question and the notes leave none."""
        taken = count_messages(self._reading(question, [], "", 10**9), self.count)
        output = max(self.budget, int(self._window * OUTPUT_SHARE))
        room = min(PIECE, self._window - taken - self.budget - output - _BESIDE)
        if room < SHORTEST:
            raise ConfigError(
                f"The model's window of {self._window} tokens has no room for a piece of the document beside the question and "
                f"{self.budget} tokens of notes. Shorten the question, or set SHARPWAVE_CONTEXT_TOKENS if the model has more."
            )
        return room

    def read(self, question: str, memory: Memory, piece: Piece, line: int) -> Memory:
        """Return the notes after a piece; an answer without any leaves them as they were.

        Raises:
            ModelError: the model failed, or gave no usable answer.
            BudgetExceeded: no further call is allowed.
        """
        earlier: list[str] = memory.get("notes", [])
        said = ask(self._model, self._reading(question, earlier, piece.text, line), _Notes, purpose="read")
        notes = [note for note in dict.fromkeys(" ".join(note.split()) for note in said.notes) if note]
        return {"notes": self._within(notes) or earlier}

    def answer(self, question: str, memory: Memory) -> Found:
        """Return the model's answer from the notes; without any there is nothing to ask it.

        Raises:
            ModelError: the model failed, or gave no usable answer.
            BudgetExceeded: no further call is allowed.
        """
        notes: list[str] = memory.get("notes", [])
        if not notes:
            return Found(answer="Nothing in the document answers that.", known=False)
        told = f"Question: {question}\n\nNotes:\n{_listed(notes)}"
        said = ask(self._model, [SystemMessage(render("read_answer")), HumanMessage(told)], _Answer, purpose="answer")
        passages = tuple({"text": note} for note in notes)
        return Found(answer=said.answer.strip(), known=said.known, passages=passages)

    def _reading(self, question: str, notes: Sequence[str], text: str, line: int) -> list[SystemMessage | HumanMessage]:
        system = render("read", words=str(self.budget // 2))
        part = text.replace("</part", "< /part")
        told = f"Question: {question}\n\nNotes so far:\n{_listed(notes)}\n\nNext part, from line {line} on:\n<part>\n{part}\n</part>"
        return [SystemMessage(system), HumanMessage(told)]

    def _within(self, notes: Sequence[str]) -> list[str]:
        """Return notes within the budget: of too many the first and the last ones stay."""
        kept = [shorten(note, self.budget // 2, count=self.count) for note in notes]
        sizes = [self.count(_listed([note])) + 1 for note in kept]
        while sum(sizes) > self.budget:
            del kept[len(kept) // 2], sizes[len(sizes) // 2]
        return kept


class _Notes(BaseModel):
    notes: list[str] = []


class _Answer(BaseModel):
    answer: str = Field(min_length=1, pattern=r"\S")
    known: bool = True


def _listed(notes: Sequence[str]) -> str:
    return "\n".join(f"- {json.dumps(note, ensure_ascii=False)}" for note in notes) or "(none yet)"
