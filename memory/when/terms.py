"""Terms: the words of a text that tell a time, joined where they tell one together ("on Friday night")."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from sharpwave.memory.when.names import NAMES, Name, inside
from sharpwave.memory.when.rules import rules
from sharpwave.memory.when.spans import Span
from sharpwave.memory.when.tense import Saying
from sharpwave.memory.when.words import DAY_OF, UNIT_OF

_MARGIN = 80
"""More characters than a phrase, or what a rule looks at behind it, reaches from the word that makes it a time."""
_TIME_WORDS_AT_MOST = 64
_MATCHES_AT_MOST = 16
_WORD = re.compile(r"[^\W\d_]+")
_TIME_WORDS = {
    max(_WORD.findall(phrase), key=len) for table in (UNIT_OF, NAMES, DAY_OF) for phrase in table if phrase < "\u2e80"
} - {"an"} | {"mar", "noon", "midday"}
_TIME_MARKS = re.compile(
    r"\d{4}|\d[./:-]\d|\d\s?(?:st|nd|rd|th|[ap]\.?\s?m|h(?:\d\d)?|uhr)\b|(?:\d|['’]|\bun|\bcet)\s{0,3}an\b"
    r"|[年月日天周週昨今明末曜星秒分時拜]|小时",
    re.IGNORECASE,
)
_GLUE = re.compile(
    r"\s{0,3},?\s{0,3}(?:(?:at|on|in|of|the|in the|of the|um|am|im|de|del|di|do|da|a las?|à|às|alle|por la|的|の)\s{1,3})?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Term:
    """Words in a text, text[at:to], that tell a time."""

    at: int
    to: int
    what: Span | Name
    needs: int = 0
    """0: tells a time by itself; 1: only after a word such as "in" or "since", or joined to another; 2: only joined."""
    bare: bool = False
    """Begins with a name that takes an "in": the phrase holds it too."""


def passages(text: str) -> list[tuple[int, int]]:
    """Where in `text` to look: around each of its first words that may tell a time, far enough to hold any phrase."""
    words = [word.span() for word in _WORD.finditer(text) if word[0].lower() in _TIME_WORDS]
    found: list[tuple[int, int]] = []
    for at, to in islice(sorted(words + [mark.span() for mark in _TIME_MARKS.finditer(text)]), _TIME_WORDS_AT_MOST):
        low, high = max(0, at - _MARGIN), min(len(text), to + _MARGIN)
        if found and low <= found[-1][1]:
            low = found.pop()[0]
        found.append((low, high))
    return found


def terms(saying: Saying, low: int, high: int) -> list[Term]:
    """The terms of one passage, in their order, joined where only such words as "of" or a comma lie between."""
    joined: list[Term] = []
    for term in _apart(_matches(saying, low, high)):
        glued = joined and _GLUE.fullmatch(saying.text, joined[-1].to, term.at)
        both = _join(joined[-1], term) if glued else None
        if both:
            joined[-1] = both
        else:
            joined.append(term)
    return joined


def _matches(saying: Saying, low: int, high: int) -> Iterator[Term]:
    for rule in rules():
        for match in islice(rule.pattern.finditer(saying.text, low, high), _MATCHES_AT_MOST):
            if match.end() == high < len(saying.text):  # words cut off by the end of the passage
                continue
            try:
                what = rule.read(match, saying)
            except (OverflowError, ValueError):  # no such day, or beyond the years 1 to 9999
                continue
            if what is not None:
                yield Term(match.start(), match.end(), what, rule.needs, bare=rule.needs > 0)


def _apart(found: Iterator[Term]) -> list[Term]:
    """Of terms that overlap, the first, and of those that begin together the longest."""
    kept: list[Term] = []
    for term in sorted(found, key=lambda term: (term.at, -term.to, term.needs)):
        if not kept or term.at >= kept[-1].to:
            kept.append(term)
    return kept


def _join(left: Term, right: Term) -> Term | None:
    for inner, outer in ((left.what, right.what), (right.what, left.what)):
        if isinstance(inner, Name) and (what := inside(inner, outer)):
            return Term(left.at, right.to, what, bare=left.bare)
    return None
