"""Spans of local time, and the calendar arithmetic under them."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sharpwave.memory.records import Precision

_MONTHS_IN = {"month": 1, "season": 3, "year": 12}


@dataclass(frozen=True)
class Span:
    """An interval [start, end) of local time, and the precision with which it was told."""

    start: datetime
    end: datetime
    unit: Precision


def floor(moment: datetime, unit: str) -> datetime:
    """The first moment of the `unit` (any but a season) that `moment` lies in."""
    if unit in ("second", "minute", "hour"):
        second, minute = moment.second if unit == "second" else 0, 0 if unit == "hour" else moment.minute
        return moment.replace(microsecond=0, second=second, minute=minute)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return day if unit == "day" else day.replace(day=1) if unit == "month" else day.replace(month=1, day=1)


def step(start: datetime, unit: str, count: int) -> datetime:
    """The moment `count` units after `start`, which is the first moment of a unit."""
    if months := _MONTHS_IN.get(unit):
        year, month = divmod(start.year * 12 + start.month - 1 + count * months, 12)
        return start.replace(year=year, month=month + 1)
    if unit in ("day", "week"):
        return start + timedelta(days=count * (7 if unit == "week" else 1))
    return (start.astimezone(UTC) + timedelta(**{unit + "s": count})).astimezone(start.tzinfo)


def whole(start: datetime, unit: Precision) -> Span:
    """The unit that begins at `start`."""
    return Span(start, step(start, unit, 1), unit)


def shifted(moment: datetime, unit: Precision, count: int) -> Span:
    """The whole unit that lies `count` units after the one in which `moment` lies."""
    return whole(step(floor(moment, unit), unit, count), unit)
