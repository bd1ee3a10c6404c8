"""Names of what comes again, such as a weekday or a month, and the occurrence that is meant."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sharpwave.memory.records import Precision
from sharpwave.memory.when.spans import Span, floor, step, whole
from sharpwave.memory.when.words import MONTH_OF, PART_OF, SEASON_OF, SHORT_WEEKDAY_OF, WEEKDAY_OF, WEEKENDS

_HOURS = ((6, 12), (12, 18), (18, 24), (18, 30))


@dataclass(frozen=True)
class Name:
    """What comes again in each `period` (a weekday in weeks, a month in years)."""

    unit: Precision
    period: Precision
    place: Callable[[datetime], Span]
    """Puts it into the period that starts then; raises `ValueError` where that one has no such day."""
    strict: bool = False
    """Never the one that is running."""
    habit: bool = False
    """Mostly said of what recurs, so that alone it dates nothing without a tense."""


def weekday(index: int) -> Name:
    """A weekday, 0 to 6 from Monday."""
    return Name("day", "week", lambda week: whole(week + timedelta(days=index), "day"), strict=True)


def month(number: int) -> Name:
    """A month, 1 to 12."""
    return Name("month", "year", lambda year: whole(year.replace(month=number), "month"))


def date(month: int, day: int) -> Name:
    """A day of a month, without a year."""
    return Name("day", "year", lambda year: whole(year.replace(month=month, day=day), "day"))


def day_of_month(day: int) -> Name:
    """A day of any month."""
    return Name("day", "month", lambda month: whole(month.replace(day=day), "day"))


def clock(hour: int, minute: int | None) -> Name:
    """A time of day, of precision hour where `minute` is None."""
    unit: Precision = "hour" if minute is None else "minute"
    return Name(unit, "day", lambda day: whole(day.replace(hour=hour, minute=minute or 0), unit), habit=True)


def part_of_day(number: int) -> Name:
    """A part of the day, `MORNING` to `NIGHT`."""
    first, last = (timedelta(hours=hour) for hour in _HOURS[number - 1])
    return Name("hour", "day", lambda day: Span(day + first, day + last, "hour"), habit=True)


def _season(number: int) -> Name:
    return Name("season", "year", lambda year: whole(year.replace(month=3 * number), "season"), habit=True)


_WEEKEND = Name("day", "week", lambda week: Span(week + timedelta(days=5), week + timedelta(days=7), "day"))

NAMES = (
    {word: month(number) for word, number in MONTH_OF.items()}
    | {word: weekday(index) for word, index in (WEEKDAY_OF | SHORT_WEEKDAY_OF).items()}
    | {word: _season(number) for word, number in SEASON_OF.items()}
    | dict.fromkeys(WEEKENDS, _WEEKEND)
    | {word: part_of_day(number) for word, number in PART_OF.items()}
)
"""Names by word."""


def inside(inner: Name, outer: Span | Name) -> Span | Name | None:
    """`inner` in the `outer` that it recurs in, or None; a weekday beside a date adds nothing."""
    if inner.period == "week" and outer.unit == "day" and not (isinstance(outer, Name) and outer.period == "week"):
        return outer
    if inner.period != outer.unit:
        return None
    if isinstance(outer, Name):
        return Name(inner.unit, outer.period, lambda start: inner.place(outer.place(start).start), outer.strict)
    if outer != whole(floor(outer.start, outer.unit), outer.unit):
        return None
    try:
        return inner.place(outer.start)
    except (OverflowError, ValueError):  # that year has no such day
        return None


def settle(what: Span | Name, moment: datetime, past: bool, strict: bool = False) -> Span | None:
    """The occurrence nearest to `moment`, past or to come; `strict` leaves out the one that is running."""
    if isinstance(what, Span):
        return what
    strict = strict or what.strict
    running = floor(moment, what.period)
    for count in range(1, -9, -1) if past else range(-1, 9):
        try:
            span = what.place(step(running, what.period, count))
        except ValueError:  # not every year has a 29 February
            continue
        if past and (span.end if strict else span.start) <= moment:
            return span
        if not past and (span.start if strict else span.end) > moment:
            return span
    return None
