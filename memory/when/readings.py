"""What the match of a rule tells: a span, a name, or None where it only looks like a time.

A reading raises `ValueError` or `OverflowError` where there is no such day, or none in the years 1 to 9999.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

from sharpwave.memory.records import Precision
from sharpwave.memory.when.foreign import foreign_month
from sharpwave.memory.when.names import NAMES, Name, clock, date, day_of_month, month, part_of_day, settle, weekday
from sharpwave.memory.when.spans import Span, floor, shifted, step, whole
from sharpwave.memory.when.tense import Saying
from sharpwave.memory.when.words import CJK_UNIT_OF, DAY_OF, MONTH_OF, NUMBER_OF, UNIT_OF, plain

Reading = Callable[[re.Match[str], Saying], Span | Name | None]
"""Reads the match of a rule in the text of a saying."""

_COARSER: dict[Precision, Precision] = {
    "second": "minute",
    "minute": "hour",
    "hour": "day",
    "day": "week",
    "week": "month",
    "month": "season",
    "year": "year",
}
_FRENCH = re.compile(
    r"\b(?:je|nous|on|il|elle|ai|suis|étai[st]|mon|ma|les?|la|une?|avec|soir|matin)\b|\bj['’]", re.IGNORECASE
)
_GERMAN = re.compile(r"\b(?:ich|ist|bin|sind|war|der|die|das|und|wir|nicht|ein|habe|hat)\b", re.IGNORECASE)


def counted(match: re.Match[str], saying: Saying, direction: str) -> Span | None:
    """Some units from now: "ago", "ahead", "open" (from then until now), or "perfect" (open beside a perfect tense)."""
    unit, count = UNIT_OF.get(plain(match["u"])), _number(match["n"])
    if unit is None or count is None:
        return None
    perfect = saying.perfect(match.start())
    if direction == "perfect" and not perfect:
        return None
    if direction == "ahead" and not perfect and saying.past(match.start(), match.end()):
        return None  # "done in two days": how long, not when
    now = floor(saying.moment, unit)
    if (perfect and direction == "ahead") or direction in ("open", "perfect"):  # "I have read three in two days"
        return Span(step(now, unit, -(count or 3)), saying.moment, unit)
    sign = 1 if direction == "ahead" else -1
    first, last = sorted(step(now, unit, sign * some) for some in (count or 2, count or 5))
    return Span(first, step(last, unit, 1), unit if count else _COARSER[unit])


def moved(match: re.Match[str], saying: Saying, offset: int) -> Span | None:
    """A unit or a name, so many from the one that is running: "last month", "this summer", "next Friday"."""
    word, moment = plain(match["x"]), saying.moment
    if (unit := UNIT_OF.get(word)) is not None:
        return shifted(moment, unit, offset)
    if (name := NAMES.get(word)) is None:
        return None
    if offset == 0:
        running = settle(name, moment, past=True)
        return running if running and running.end > moment else name.place(floor(moment, name.period))
    span = None
    for _ in range(abs(offset)):
        span = settle(name, span.start if span else moment, past=offset < 0, strict=True)
    return span


def named(match: re.Match[str], saying: Saying) -> Name | None:
    """A name alone: "Friday", "May", "summer"."""
    return NAMES.get(plain(match["x"]))


def day(match: re.Match[str], saying: Saying) -> Span | None:
    """A day, or part of one, near today: "yesterday", "this morning"; "hier" is one in French, not in German."""
    word = plain(match["x"])
    if word not in DAY_OF or (word == "hier" and (_GERMAN.search(saying.text) or not _FRENCH.search(saying.text))):
        return None
    offset, part = DAY_OF[word]
    span = shifted(saying.moment, "day", offset)
    return part_of_day(part).place(span.start) if part else span


def date_in_words(match: re.Match[str], saying: Saying) -> Name | None:
    """A day of a named month: "3 March"."""
    number = 3 if match["m"] == "Mar" else MONTH_OF.get(match["m"].lower())
    return date(number, int(match["d"])) if number and 1 <= int(match["d"]) <= 31 else None


def foreign_date(match: re.Match[str], saying: Saying) -> Span | None:
    """A full date whose month is named in a language that the other rules do not know: "5 мая 2019"."""
    word = match["m"].lower()
    number = None if word in MONTH_OF else foreign_month(word)
    return whole(_year(match, saying).replace(month=number, day=int(match["d"])), "day") if number else None


def numeric_date(match: re.Match[str], saying: Saying) -> Span | None:
    """A date in numbers, day first; with slashes or dashes it may have two readings, and spans both."""
    first, second, year = int(match["a"]), int(match["b"]), _year(match, saying)
    dates = [(first, second)] if match["s"] == "." else [(first, second), (second, first)]
    days = sorted({year.replace(month=month, day=day) for day, month in dates if month <= 12 and day <= 31})
    if not days:
        return None
    unit: Precision = "day" if len(days) == 1 else "month" if days[-1] - days[0] <= timedelta(days=31) else "year"
    return Span(days[0], step(days[-1], "day", 1), unit)


def iso(match: re.Match[str], saying: Saying) -> Span:
    """A date or a time in ISO 8601, in the speaker's zone where it names none."""
    moment, zone = datetime.fromisoformat(match[0]), saying.moment.tzinfo
    moment = moment.replace(tzinfo=zone) if moment.tzinfo is None else moment.astimezone(zone)
    unit: Precision = "day" if not match["t"] else "minute" if len(match["t"]) == 5 else "second"
    return shifted(moment, unit, 0)


def year(match: re.Match[str], saying: Saying) -> Span:
    """A year: "2019"."""
    return whole(_year(match, saying), "year")


def the_day(match: re.Match[str], saying: Saying) -> Name:
    """A day of the month: "the 5th"."""
    return day_of_month(int(match["d"]))


def time_of_day(match: re.Match[str], saying: Saying) -> Name | None:
    """A time by the clock: "5 pm", "17:30", "8 Uhr"."""
    groups = match.groupdict()
    hour, minute, half = int(match["h"]), groups.get("i"), groups.get("p")
    if half and hour > 12:
        return None
    if half:
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    return clock(hour, int(minute) if minute else None) if hour < 24 and int(minute or 0) < 60 else None


def noon(match: re.Match[str], saying: Saying) -> Name:
    """Noon."""
    return clock(12, None)


def cjk_unit(match: re.Match[str], saying: Saying) -> Span:
    """A unit near now in Chinese or Japanese: "上个月", "去年"."""
    return shifted(saying.moment, *CJK_UNIT_OF[match[0]])


def cjk_date(match: re.Match[str], saying: Saying) -> Name | None:
    """A month, or a day of it, in Chinese or Japanese: "3月", "3月5日"."""
    number = _number(match["m"])
    if number is None or not 1 <= number <= 12:
        return None
    return month(number) if match["d"] is None else date(number, int(match["d"]))


def cjk_weekday(match: re.Match[str], saying: Saying) -> Span:
    """A weekday of the last, this or the next week in Chinese or Japanese: "上周五"."""
    week = shifted(saying.moment, "week", {"上": -1, "先": -1, "下": 1, "来": 1}.get(match["w"], 0))
    return weekday("一二三四五六日".find(match["d"].replace("天", "日"))).place(week.start)


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else NUMBER_OF.get(plain(text))


def _year(match: re.Match[str], saying: Saying) -> datetime:
    return floor(saying.moment, "year").replace(year=int(match["y"]))
