"""Extraction: from one turn to the candidates worth keeping.

`rules` needs no model; `llm` asks one once a turn. Both are `Extractor`s, and so is any object of that shape.
"""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol, runtime_checkable

from sharpwave.memory.records import Candidate, EventTime, Recall, Turn
from sharpwave.memory.times import time_zone, utc
from sharpwave.memory.when import ends, event_time


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


def extracted(extractor: Extractor, turn: Turn, known: Sequence[Recall]) -> list[Candidate]:
    """Return what an extractor finds in a turn, each candidate with the time that its words tell of.

    Times are read by our own rules from the quote, else from the text, as of when the turn was said in the speaker's zone,
    whatever the extractor; only where these find none does the extractor's own reading stand.
    """
    return [_dated(candidate, turn) for candidate in extractor.extract(turn, known)]


_JUST = re.compile(r"\bjust\b", re.IGNORECASE)


def _dated(candidate: Candidate, turn: Turn) -> Candidate:
    found = (
        event_time(candidate.quote, turn.said_at, turn.timezone)
        or event_time(candidate.text, turn.said_at, turn.timezone)
        or candidate.event_time
    )
    if found is None and candidate.kind == "event" and _JUST.search(candidate.quote):
        found = _day_of(turn)
    if found is None:
        return candidate
    over = candidate.kind != "event" and ends(found) and found.end <= turn.said_at
    return candidate.model_copy(update={"event_time": found, "history": candidate.history or over})


def _day_of(turn: Turn) -> EventTime:
    """Return the day on which a turn was said, which is when what "just" happened did."""
    start = turn.said_at.astimezone(time_zone(turn.timezone)).replace(hour=0, minute=0, second=0, microsecond=0)
    return EventTime(start=utc(start), end=utc(start + timedelta(days=1)), precision="day", phrase="just")
