"""What a small network sees of a candidate and the memories near it: numbers, the same in training and at run time.

They come from words, slots and the cosine that the search has found anyway, not from the vectors themselves: a network that
sees vectors learns its training's subjects by heart. `cues.toml` says which words tell of a change or an end.
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import snowballstemmer

from sharpwave.memory import phrases
from sharpwave.memory.extract.values import KIN
from sharpwave.memory.records import Candidate, Memory, Recall
from sharpwave.memory.slots import FORMER, slot

VERSION = 1
"""Raised whenever a feature changes: a network is only good for the features it was trained on."""
NEAR = 10
"""Memories that are looked at, best first."""
CUES = ("negation", "modal", "now", "again", "besides", "past", "wrong", "ended", "change", "end")

Floats = npt.NDArray[np.float32]

_WORD = re.compile(r"\w+(?:[.:,'’]\w+)*|\?")
_FIRST = frozenset("i my me mine we our us im i'm i've i'd i'll we're we've".split())
_KIN_WORDS = frozenset(word for name in KIN for word in name.split())
_TASTES = {"like": 1, "hate": -1}


@cache
def _lexicon() -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    """Return the bits of single words (or stems), and of a stem with the particle after it."""
    one: dict[str, int] = {}
    two: dict[tuple[str, str], int] = {}
    for name, words in tomllib.loads(Path(__file__).with_name("cues.toml").read_text("utf-8")).items():
        for word in words:
            first, _, particle = word.partition(" ")
            if particle:
                two[first, particle] = two.get((first, particle), 0) | 1 << CUES.index(name)
            else:
                one[first] = one.get(first, 0) | 1 << CUES.index(name)
    return one, two


@dataclass(frozen=True, slots=True)
class _Word:
    """What is known of one word, whatever stands around it."""

    stem: str
    content: frozenset[str]
    bits: int
    taste: int
    first: bool
    kin: bool


@lru_cache(maxsize=65536)
def _word(word: str) -> _Word:
    plain = word.replace("’", "'").removesuffix("'s")
    stem = snowballstemmer.stemmer("english").stemWord(plain)
    one, _ = _lexicon()
    bits = one.get(plain, 0) | one.get(stem, 0) | (1 << CUES.index("negation") if plain.endswith("n't") else 0)
    taste = sum(_TASTES.get(taken, 0) for taken in phrases.stance(plain))
    return _Word(stem, frozenset() if bits else phrases.stems(plain), bits, taste, plain in _FIRST, plain in _KIN_WORDS)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one statement says, word by word."""

    content: frozenset[str]
    """Stems of its content words that are no cues."""
    exact: frozenset[str]
    """Names and numbers, in lower case."""
    numbers: frozenset[str]
    bits: int
    taste: int
    """Likes less dislikes; a negation turns it round."""
    first: bool
    kin: frozenset[str]
    length: int
    asks: bool

    def has(self, cue: str) -> bool:
        """Return whether a word of the class occurs."""
        return bool(self.bits >> CUES.index(cue) & 1)


@lru_cache(maxsize=16384)
def read(text: str) -> Reading:
    """Return the reading of a statement; kept for the memories, which come again and again."""
    _, two = _lexicon()
    words = _WORD.findall(text)
    known = [_word(word.casefold()) for word in words]
    bits, taste = 0, 0
    for at, word in enumerate(known):
        bits |= word.bits
        taste += word.taste
        if at + 1 < len(known):
            bits |= two.get((word.stem, words[at + 1].casefold()), 0)
    numbers = frozenset(word for word in words if word[0].isdigit())
    names = frozenset(w.casefold() for w in words[1:] if w[0].isupper() and len(w) > 1 and w.casefold() not in _FIRST)
    if bits >> CUES.index("negation") & 1:
        taste = -abs(taste)
    return Reading(
        content=frozenset().union(*(word.content for word in known)),
        exact=names | numbers,
        numbers=numbers,
        bits=bits,
        taste=taste,
        first=any(word.first for word in known),
        kin=frozenset(word.stem for word in known if word.kin),
        length=len(words),
        asks=text.rstrip().endswith("?"),
    )


def of_candidate(candidate: Candidate) -> list[float]:
    """Return what a candidate says by itself: `CANDIDATE` numbers about 0..1."""
    said = read(candidate.text)
    return [
        *(float(said.bits >> n & 1) for n in range(len(CUES))),
        float(said.first),
        float(said.asks),
        float(candidate.polarity == "retract"),
        float(candidate.history),
        float(candidate.attribute is not None),
        float(candidate.attribute is not None and slot(candidate.attribute).many),
        float(candidate.kind == "event"),
        float(candidate.kind == "preference"),
        min(len(said.content), 12) / 12,
        min(said.length, 30) / 30,
        float(bool(said.exact)),
        float(said.taste > 0),
        float(said.taste < 0),
    ]


def of_pair(candidate: Candidate, memory: Memory, cosine: float) -> list[float]:
    """Return how a candidate stands to one memory: `PAIR` numbers about -1..1. `cosine` is that of the two texts."""
    new, old = read(candidate.text), read(memory.text)
    shared, mine, theirs = new.content & old.content, new.content - old.content, old.content - new.content
    return [
        cosine,
        max(0.0, cosine - 0.6),
        len(shared) / max(1, len(new.content)),
        len(shared) / max(1, len(old.content)),
        min(len(shared), 4) / 4,
        min(len(mine), 6) / 6,
        min(len(theirs), 6) / 6,
        float(not mine),
        float(not theirs),
        *_slots(candidate, memory, new, old),
        *_details(new, old),
        float(new.kin == old.kin),
        float(candidate.subject.casefold() == memory.subject.casefold()),
        float(new.has("negation") == old.has("negation")),
        float(old.has("negation")),
        float(new.taste * old.taste < 0),
        float(new.taste * old.taste > 0),
        float(memory.valid_to is not None or (memory.attribute or "").startswith(FORMER)),
        float(old.has("past")),
        float(old.has("ended") or old.has("end")),
        float(old.has("change")),
    ]


def _slots(candidate: Candidate, memory: Memory, new: Reading, old: Reading) -> list[float]:
    both = candidate.attribute is not None and memory.attribute is not None
    same = both and candidate.attribute == memory.attribute
    value, known = (read(v or "").content for v in (candidate.value, memory.value))
    return [
        float(same),
        float(both and not same),
        float(same and not slot(candidate.attribute or "").many),
        float(bool(value) and value == known),
        float(bool(value) and bool(known) and not value & known),
        float(bool(known) and known <= new.content),
        float(bool(value) and value <= old.content),
    ]


def _details(new: Reading, old: Reading) -> list[float]:
    return [
        float(bool(new.exact & old.exact)),
        float(bool(new.exact - old.exact)),
        float(bool(old.exact - new.exact)),
        float(bool(new.numbers and old.numbers) and not new.numbers & old.numbers),
    ]


def observe(candidate: Candidate, near: Sequence[Recall]) -> tuple[Floats, Floats]:
    """Return the numbers of a candidate (`CANDIDATE`,) and of each memory near it (n, `PAIR`); `Recall.memory` is set."""
    pairs = [of_pair(candidate, r.memory, r.parts.cosine if r.parts else 0.0) for r in near if r.memory is not None]
    return (
        np.array(of_candidate(candidate), np.float32),
        np.array(pairs, np.float32).reshape(len(pairs), PAIR),
    )


CANDIDATE = len(CUES) + 13
PAIR = 30
