"""Times: always timezone-aware, always UTC once inside.

A naive datetime is read in the zone that the caller declares, or refused when none is declared; it is never guessed.
"""

from datetime import UTC, datetime
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator

from sharpwave.memory.errors import InputError


def utc(value: datetime, zone: str | None = None) -> datetime:
    """Return `value` in UTC.

    Args:
        value: aware, or naive with `zone` given.
        zone: IANA name in which a naive `value` is read.

    Raises:
        InputError: `value` is naive and no zone is declared, or the zone is unknown, or UTC is out of the calendar.
    """
    if value.tzinfo is None:
        if zone is None:
            raise InputError(f"The time {value.isoformat()} has no zone. Pass an aware datetime, or declare the zone.")
        value = value.replace(tzinfo=time_zone(zone))
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise InputError(f"The time {value.isoformat()} lies outside the years 1 to 9999 in UTC.") from error


def time_zone(name: str) -> ZoneInfo:
    """Return the zone called `name` (IANA, as `Europe/Lisbon`); raises `InputError` for an unknown one."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputError(f"Unknown time zone {name!r}. Use an IANA name such as 'Europe/Lisbon' or 'UTC'.") from error


def parse_time(text: str, zone: str | None = None) -> datetime:
    """Read an ISO 8601 date or time (`2026-03-01`, `2026-03-01T10:00:00+01:00`, `…Z`) as UTC; see `utc` for naive ones."""
    try:
        value = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InputError(
            f"{text!r} is not an ISO 8601 time. Write it as 2026-03-01 or 2026-03-01T10:00:00Z."
        ) from error
    return utc(value, zone)


def now() -> datetime:
    """The present, in UTC."""
    return datetime.now(UTC)


UtcTime = Annotated[datetime, AfterValidator(utc)]
"""A datetime field that refuses naive values and stores UTC."""
