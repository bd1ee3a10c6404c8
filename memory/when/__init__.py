"""When something happened: find the words that say so, and read them from the day on which they were said.

The reading is an interval in UTC, [start, end), as wide as what was said: "in May" is a month, "yesterday" a day in the
speaker's own zone. The rules, where words leave a choice:

- Weeks start on Monday; a weekend is Saturday and Sunday, of precision day; seasons are the northern ones, by months
  (summer is June to August); morning is 6-12, afternoon 12-18, evening 18-24, night 18-6, of precision hour.
- "two weeks ago" is the whole week that lay two weeks back. "A few" is two to five, of the next coarser precision.
- A bare name ("in May", "on Friday") is the nearest past one beside a past tense, else the nearest to come. A weekday,
  and a name after "last" or "next", is never the day or month that is running.
- "since X", "for three years" (with a perfect tense), "the last two weeks": from the start of X until the saying.
- "until X": from the saying until the start of X, or until its end where X is a week or less. Where X is past
  ("I worked there until 2019") it dates the ending: X itself.
- 3.4.2026 is day first. 3/4/2026 has two readings: the interval spans both, as a month when they are near, else a year.
- What recurs ("every Monday", "on Mondays", "I get up at 7 am") has no time of its own.
"""

from datetime import datetime
from itertools import zip_longest

from sharpwave.memory.records import EventTime
from sharpwave.memory.times import time_zone, utc
from sharpwave.memory.when.roles import leads, recurs, told
from sharpwave.memory.when.tense import Saying
from sharpwave.memory.when.terms import passages, terms

__all__ = ["ends", "event_time", "resolve_range"]

_READ_AT_MOST = 2000


def event_time(text: str, said_at: datetime, timezone: str) -> EventTime | None:
    """Return the time that the statement `text` tells of, or None where it tells none.

    Args:
        text: one statement; its first 2,000 characters are read, and the first time in it counts.
        said_at: when it was said; a naive time is read in `timezone`.
        timezone: IANA name of the speaker's zone, in which days begin and end.

    Returns:
        The interval in UTC, its precision, and the words that said so, verbatim.

    Raises:
        InputError: the zone is unknown.
    """
    return _first(text[:_READ_AT_MOST], said_at, timezone, default_past=False)


def resolve_range(text: str, said_at: datetime, timezone: str) -> tuple[datetime, datetime] | None:
    """Return the interval [start, end) in UTC that a question asks about ("on 25 July"), or None; see `event_time`.

    A bare name is the most recent one, unless the question speaks of the future.
    """
    found = _first(text[:_READ_AT_MOST], said_at, timezone, default_past=True)
    return (found.start, found.end) if found else None


def ends(event: EventTime) -> bool:
    """Return whether a time that was read only says when something ended or ends ("until 2019")."""
    return (event.phrase or "").casefold().startswith(("until", "till", "til ", "up to"))


def _first(text: str, said_at: datetime, timezone: str, default_past: bool) -> EventTime | None:
    zone, places = time_zone(timezone), passages(text)
    if not places:
        return None
    try:
        saying = Saying(text, utc(said_at, timezone).astimezone(zone))
    except OverflowError:  # the zone's own date lies beyond the years 1 to 9999
        return None
    for low, high in places:
        led, found = leads(text, low, high), terms(saying, low, high)
        for term, following in zip_longest(found, found[1:]):
            lead = led.get(term.at)
            if term.needs > bool(lead) or recurs(text, term):
                continue
            try:
                if event := told(saying, term, lead, following, default_past):
                    return event
            except (OverflowError, ValueError):  # beyond the years 1 to 9999
                continue
    return None
