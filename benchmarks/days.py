"""Ninety days of talk to remember: LoCoMo's conversations spread over them, among three times as much that nobody asks about."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from langchain_core.embeddings import Embeddings

from sharpwave.benchmarks.everyday import Change, changes, facts, small_talk
from sharpwave.benchmarks.questions import LOCOMO, Question, locomo
from sharpwave.memory import keywords
from sharpwave.memory.embed import embedding_array
from sharpwave.memory.episodic import spoken
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.gate import worth_reading
from sharpwave.memory.records import Message, Turn
from sharpwave.memory.slots import slot
from sharpwave.memory.tokens import estimate
from sharpwave.memory.worth import affinity

DAYS = 90
NOISE = 3
"""Made-up lines for each real one; half of them facts, half small talk."""
UNTOLD = 0.3
"""Importance of what holds no statement."""
ORIGIN = datetime.fromisoformat("2023-01-01T00:00:00+00:00")


@dataclass(frozen=True, eq=False)
class Asked:
    """A question, ready to be asked."""

    vector: np.ndarray
    terms: tuple[str, ...]
    gold: np.ndarray
    """Which records hold its answer."""
    old: int = -1
    """The record that held it before, of a fact that changed."""


@dataclass(frozen=True, eq=False)
class World:
    """One conversation and what is mixed into it; arrays have one entry a record."""

    name: str
    vectors: np.ndarray
    """float32, unit length, shape (n, d)."""
    affinities: np.ndarray
    """Of all records to all, see `worth.affinity`, float32."""
    at: np.ndarray
    """Day it was said, 0..90; NaN where chance decides."""
    change: np.ndarray
    """1 for the old value of a fact that changes, 2 for the new one, else 0."""
    lengths: np.ndarray
    """In index terms."""
    postings: dict[str, np.ndarray]
    cost: np.ndarray
    """Tokens that showing it takes."""
    gated: np.ndarray
    """Whether the gate lets it in."""
    importance: np.ndarray
    """0..1, by the rules extractor."""
    slots: tuple[tuple[tuple[str, str], ...], ...]
    """(slot, value) pairs of single-valued slots that a record fills."""
    slotted: np.ndarray
    """Whether a record fills one."""
    questions: tuple[Asked, ...]
    changed: tuple[Asked, ...]


def worlds(path: Path, embeddings: Embeddings, noise: float = NOISE, *, foreign: bool = False) -> Iterator[World]:
    """Yield the worlds of LoCoMo's conversations, each the same whenever it is made.

    Args:
        path: LoCoMo's file.
        embeddings: the embedder.
        noise: made-up lines for each real one.
        foreign: take the facts that nobody asks about from the other conversations, under the names of this one's speakers:
            the same style, so that nothing but what they are about tells them apart.

    Raises:
        InputError: the file is not LoCoMo's.
    """
    turns, questions = locomo(path)
    for number, owner in enumerate(dict.fromkeys(turn.owner for turn in turns)):
        said = [turn for turn in turns if turn.owner == owner]
        asked = [one for one in questions if one.owner == owner and one.category != LOCOMO[5]]
        others = [turn for turn in turns if turn.owner != owner] if foreign else []
        yield _world(owner, said, asked, others, embeddings, noise, np.random.default_rng(number))


def _world(
    owner: str,
    turns: Sequence[Turn],
    asked: Sequence[Question],
    others: Sequence[Turn],
    embeddings: Embeddings,
    noise: float,
    rng: np.random.Generator,
) -> World:
    names = sorted({turn.messages[0].speaker or "user" for turn in turns})
    speakers = (names[0], names[-1])
    moved = changes(speakers, rng)
    extra = round(noise * len(turns)) - 2 * len(moved)
    half = extra - extra // 2
    told = [*(_borrowed(others, speakers, half, rng) if others else facts(speakers, half, rng))]
    told += small_talk(speakers, extra - len(told), rng)
    told += [(one.speaker, one.old) for one in moved] + [(one.speaker, one.new) for one in moved]
    records = [*turns, *(_turn(owner, number, *line) for number, line in enumerate(told))]
    texts = [spoken(turn.messages[0].speaker or "user", turn.messages[0].text) for turn in records]
    change = np.zeros(len(texts), int)
    change[len(texts) - 2 * len(moved) :] = np.repeat([1, 2], len(moved))
    words = [keywords.terms(text) for text in texts]
    read = [_read(turn) for turn in records]
    place = {turn.messages[0].id: number for number, turn in enumerate(turns)}
    golds = [np.array(sorted(place[one] for one in question.gold)) for question in asked]
    vectors = embedding_array(embeddings, texts)
    return World(
        name=owner,
        vectors=vectors,
        affinities=affinity(vectors, vectors).astype(np.float32),
        at=np.concatenate([_days(turns), np.full(len(told), np.nan)]),
        change=change,
        lengths=np.array([len(some) for some in words]),
        postings=_postings(words),
        cost=np.array([estimate(text) + 17 for text in texts]),
        gated=np.array([worth_reading(turn) for turn in records]),
        importance=np.array([one[0] for one in read]),
        slots=tuple(one[1] for one in read),
        slotted=np.array([bool(one[1]) for one in read]),
        questions=_questions([one.text for one in asked], golds, embeddings),
        changed=_changed(moved, len(texts), embeddings),
    )


def _turn(owner: str, number: int, speaker: str, text: str) -> Turn:
    message = Message(id=f"made-{number}", role="user", text=text, speaker=speaker)
    return Turn(owner=owner, thread="made", messages=(message,), said_at=ORIGIN, timezone="UTC")


def _borrowed(
    others: Sequence[Turn], speakers: tuple[str, str], n: int, rng: np.random.Generator
) -> list[tuple[str, str]]:
    """Return lines of other conversations, chosen by chance, as if these two had said them."""
    named: dict[str, list[str]] = defaultdict(list)
    for turn in others:
        speaker = turn.messages[0].speaker or "user"
        if speaker not in named[turn.owner]:
            named[turn.owner].append(speaker)
    lines = []
    for place in rng.permutation(len(others))[:n]:
        message, names = others[place].messages[0], named[others[place].owner]
        text = message.text
        for name, own in zip(names, speakers, strict=False):
            text = text.replace(name, own)
        lines.append((speakers[names.index(message.speaker or "user") % 2], text))
    return lines


def _days(turns: Sequence[Turn]) -> np.ndarray:
    """Return the days of real turns, their own dates stretched or squeezed to `DAYS`."""
    first, last = turns[0].said_at, turns[-1].said_at
    span = max(last - first, timedelta(seconds=1))
    return np.array([(turn.said_at - first) / span * (DAYS - 0.01) for turn in turns])


def _postings(words: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
    found: dict[str, list[int]] = defaultdict(list)
    for number, some in enumerate(words):
        for term in dict.fromkeys(some):
            found[term].append(number)
    return {term: np.array(places, np.int64) for term, places in found.items()}


def _read(turn: Turn) -> tuple[float, tuple[tuple[str, str], ...]]:
    """Return the importance of what a turn tells, and the single-valued slots that it fills."""
    found = RulesExtractor().extract(turn, ())
    filled = {
        f"{one.subject}/{one.attribute}": str(one.value)
        for one in found
        if one.attribute and one.value and not slot(one.attribute).many
    }
    return max((one.importance for one in found), default=UNTOLD), tuple(filled.items())


def _questions(texts: Sequence[str], golds: Sequence[np.ndarray], embeddings: Embeddings) -> tuple[Asked, ...]:
    vectors = embedding_array(embeddings, texts)
    return tuple(
        Asked(vector, tuple(dict.fromkeys(keywords.terms(text))), gold)
        for text, vector, gold in zip(texts, vectors, golds, strict=True)
    )


def _changed(moved: Sequence[Change], total: int, embeddings: Embeddings) -> tuple[Asked, ...]:
    new = np.arange(total - len(moved), total)
    found = _questions([one.question for one in moved], [np.array([place]) for place in new], embeddings)
    return tuple(Asked(one.vector, one.terms, one.gold, old=int(one.gold[0]) - len(moved)) for one in found)
