"""What a recall is asked: the question in a text, its terms and vector, and the times that it is about."""

import re
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from sharpwave.memory import keywords


@dataclass(frozen=True)
class When:
    """The times that a recall is about. All in UTC."""

    now: datetime
    """The present: for recency, staleness, and what has expired."""
    as_of: datetime | None = None
    """What held true then."""
    known_at: datetime | None = None
    """What had been recorded by then, as it was known then."""
    asked: tuple[datetime, datetime] | None = None
    """The interval that the question names."""


@dataclass(frozen=True)
class Query:
    """A question, ready to be asked."""

    text: str
    vector: np.ndarray
    terms: tuple[str, ...]

    @classmethod
    def of(cls, text: str, vector: np.ndarray) -> "Query":
        """Make a query of `text` and its vector (unit length)."""
        return cls(text, vector, tuple(dict.fromkeys(keywords.terms(text))))


LONG = 1000
"""Characters from which on a query is searched for the question in it; more than the encoder reads."""
_SENTENCE = re.compile(r"\n+|(?<=[.!?؟。！？])\s+|(?<=[。！？])")


def ending(text: str, characters: int = 2000) -> str:
    """Return the end of a long text."""
    return text[-characters:]


def question_in(text: str) -> str:
    """Return a query without what was pasted above it: of a long one the last question, or else the last sentence."""
    if len(text) <= LONG:
        return text
    sentences = [part.strip() for part in _SENTENCE.split(ending(text)) if part.strip()][-3:]
    asked = [part for part in sentences if part.endswith(("?", "？", "؟"))]
    return (asked or sentences)[-1]
