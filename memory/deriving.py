"""Durable facts from what was said: nothing that a single message says, only what several agree on.

Without a model that is a statement which was made in the same words at least twice, at separate times, and which no memory
holds, whatever became of it. A model may put together what similar messages say; each fact has to quote at least two of them,
verbatim, and may hold no number or name that they do not.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from sharpwave.memory.alike import words
from sharpwave.memory.evidence import assertions, own_words
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.gate import may_tell
from sharpwave.memory.phrases import details, stems
from sharpwave.memory.records import Candidate, Memory, Message, Turn, Utterance
from sharpwave.memory.slots import slot
from sharpwave.memory.structured import ask
from sharpwave.memory.trust import looks_like_instruction
from sharpwave.prompts import quoted, render

SIMILAR = 0.55
"""Cosine from which messages are read together (all-MiniLM-L6-v2)."""
READ, TOGETHER, LONGEST = 400, 12, 400
"""Messages that are grouped at once, the latest; most of a group; characters of each that a model is shown."""


class Fact(NamedTuple):
    """A fact that several messages agree on."""

    text: str
    quotes: tuple[str, ...]
    """Verbatim, one of each source."""
    sources: tuple[Utterance, ...]
    candidate: Candidate | None = None
    """How the rules read it, where they do: its kind and its slot."""


def repeated(utterances: Sequence[Utterance], memories: Sequence[Memory]) -> Iterator[Fact]:
    """Yield the statements that the user made in the same words at separate times, and that no memory holds.

    Args:
        utterances: what was said, in order.
        memories: all there are or were, live or not: what was deleted is not brought back.
    """
    held = {words(text) for memory in memories for text in (memory.text, memory.source.quote) if text}
    filled = {(memory.subject, memory.attribute) for memory in memories}
    said: dict[tuple[str, ...], dict[str, tuple[str, Utterance]]] = defaultdict(dict)
    for utterance in utterances:
        if utterance.role == "user":
            for sentence in assertions(own_words(utterance.text)):
                said[words(sentence)].setdefault(utterance.said_at.isoformat(), (sentence, utterance))
    for key, tellings in said.items():
        if len(tellings) < 2 or key in held:
            continue
        sentences, sources = zip(*tellings.values(), strict=True)
        read = _read(sentences[-1], sources[-1])
        if read is not None and not _denied(read, filled) and words(read.text) not in held:
            yield Fact(read.text, sentences, sources, read)


def _read(sentence: str, utterance: Utterance) -> Candidate | None:
    """Return how the rules read a statement; None where they would not keep it."""
    if not may_tell(sentence) or looks_like_instruction(sentence):
        return None
    message = Message(id=utterance.message_id, role="user", text=sentence)
    turn = Turn(owner=utterance.owner, thread=utterance.thread, messages=(message,), said_at=utterance.said_at)
    found = RulesExtractor().extract(turn, [])
    usable = [one for one in found if one.polarity == "assert" and not one.history]
    return usable[0] if len(found) == len(usable) == 1 else None


def _denied(candidate: Candidate, filled: Collection[tuple[str, str | None]]) -> bool:
    """Whether the slot of a statement is known to be filled, or was filled: then its tellings are older or newer than that,
    and which of them holds is for a decision to say."""
    if candidate.attribute is None or slot(candidate.attribute).many:
        return False
    return (candidate.subject, candidate.attribute) in filled


# With a model


def clusters(utterances: Sequence[Utterance], vectors: np.ndarray, looked_at: Collection[str]) -> list[list[Utterance]]:
    """Return groups of messages of the user's that speak of the same, two or more in each, none that was looked at before.

    Args:
        utterances: what was said, in order.
        vectors: one of each, unit length.
        looked_at: ids of messages.
    """
    fresh = [
        place
        for place, one in enumerate(utterances)
        if one.role == "user" and one.id not in looked_at and any(map(may_tell, assertions(own_words(one.text))))
    ][-READ:]
    groups: list[list[int]] = []
    for place in fresh:
        near = [float(vectors[group[0]] @ vectors[place]) if len(group) < TOGETHER else -1.0 for group in groups]
        best = int(np.argmax(near)) if near else 0
        if near and near[best] >= SIMILAR:
            groups[best].append(place)
        else:
            groups.append([place])
    return [[utterances[place] for place in group] for group in groups if len(group) > 1]


class _Quoted(BaseModel):
    message: int
    quote: str = Field(min_length=3)


class _Fact(BaseModel):
    fact: str = Field(min_length=3)
    quotes: list[_Quoted]


class _Facts(BaseModel):
    facts: list[_Fact]


def read_together(model: BaseChatModel, messages: Sequence[Utterance], memories: Sequence[Memory]) -> list[Fact]:
    """Return the facts that a model finds in messages and that those support, without what a memory says already.

    Raises:
        ModelError: the model failed, or gave no usable answer.
    """
    told = [own_words(one.text) for one in messages]
    shown = "\n".join(
        f"{n}. ({one.said_at:%Y-%m-%d}) {quoted(text, LONGEST)}"
        for n, (one, text) in enumerate(zip(messages, told, strict=True), 1)
    )
    answer = ask(model, [SystemMessage(render("derive")), HumanMessage(shown)], _Facts, purpose="derive")
    held = {words(text) for memory in memories for text in (memory.text, memory.source.quote) if text}
    found = [fact for one in answer.facts if (fact := _supported(one, messages, told)) and words(fact.text) not in held]
    return list({words(fact.text): fact for fact in found}.values())


def _supported(found: _Fact, messages: Sequence[Utterance], told: Sequence[str]) -> Fact | None:
    """Return a fact that two messages or more support with what they say, else None."""
    text = " ".join(found.fact.split())
    quotes = {
        one.message - 1: one.quote.strip()
        for one in found.quotes
        if 0 < one.message <= len(messages) and _folded(one.quote) in _folded(told[one.message - 1])
    }
    said = " ".join(told[place] for place in quotes)
    whole = stems(said) | set(words(said))
    invented = [d for d in details(text) if not set(words(d)) <= set(words(said))]
    if len(quotes) < 2 or invented or not stems(text) & whole or looks_like_instruction(text):
        return None
    numbers = {stem for stem in stems(text) if stem[0].isdigit()}
    if not numbers <= whole or not all(stems(quote) & stems(text) for quote in quotes.values()):
        return None
    places = sorted(quotes)
    return Fact(text, tuple(quotes[p] for p in places), tuple(messages[p] for p in places))


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
