"""The words of a text, and the runs of them that may be names."""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from sharpwave.memory import keywords

READ = 2000
"""Characters of a text that are searched for names."""
WORDS = 4
"""Most words of a name."""

WORD = re.compile(r"[\w\u0900-\u0963\u0966-\u109f\u1780-\u17d3]+")


def folded(name: str) -> str:
    """Return the words of a name without case, accents and punctuation; look-alike letters of other scripts stay others."""
    return " ".join(WORD.findall(keywords.fold(name)))


_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]{2,}"
)
_MINE = frozenset(
    "my our i mein meine meiner meinen meinem unsere unser mi mis nuestra nuestro mon ma notre mia mio meu minha mijn onze min mitt".split()
)
LONGEST = 8
"""Most characters of a name in a script without spaces, when a text is searched for known names."""


class Gram(NamedTuple):
    """A run of words in a text that may be a known name."""

    folded: str
    start: int
    """Index of its first word; of runs within a word of a script without spaces, that of the word."""
    end: int
    written: bool
    """Whether it is written like a name: with a capital, or in a script that has none."""
    mine: bool
    """Whether it follows a word for "my"."""


class Words(NamedTuple):
    """The words of a text, folded, and whether each owns the next ("sister's")."""

    folded: list[str]
    owns: list[bool]
    grams: list[Gram]


_PIECE = re.compile(r"(?P<w>[\w\u0900-\u0963\u0966-\u109f\u1780-\u17d3]+)(?P<o>['’]s\b|(?<=s)['’](?!\w))?")


def words_of(text: str) -> Words:
    """Return the words of a text with all runs of them that may be names, longest first."""
    pieces = list(_PIECE.finditer(unicodedata.normalize("NFKC", text[:READ])))
    words = [keywords.fold(piece["w"]) for piece in pieces]
    caps = [not piece["w"][0].islower() and piece["w"][0].isalpha() for piece in pieces]
    owns = [piece["o"] is not None for piece in pieces]
    grams = []
    for size in range(min(WORDS, len(words)), 0, -1):
        for start in range(len(words) - size + 1):
            end = start + size
            if not any(owns[start : end - 1]):
                mine = start > 0 and words[start - 1] in _MINE
                grams.append(Gram(" ".join(words[start:end]), start, end, caps[start] and caps[end - 1], mine))
    grams += [gram for at, word in enumerate(words) if not word.isascii() for gram in _within(word, at)]
    return Words(words, owns, grams)


def _within(word: str, at: int) -> Iterator[Gram]:
    for run in _UNSPACED.findall(word):
        for size in range(min(LONGEST, len(run)), 1, -1):
            for start in range(len(run) - size + 1):
                yield Gram(run[start : start + size], at, at + 1, True, False)
