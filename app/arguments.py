"""Reading what is given to a command."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from sharpwave.memory.errors import InputError, NotFoundError
from sharpwave.memory.times import now, parse_time
from sharpwave.settings import Settings
from sharpwave.showing import short_ids

if TYPE_CHECKING:
    from sharpwave.memory.store import MemoryStore

PREFIX = 6
"""Fewest characters that may stand for an id."""

AsOfOption = Annotated[
    str | None,
    typer.Option("--as-of", help="Read the past: what held at this date or time (ISO 8601).", show_default=False),
]

KnownAtOption = Annotated[
    str | None,
    typer.Option(
        "--known-at",
        help="Read the past of the record: what had been written by this date or time (ISO 8601), as it was known then.",
        show_default=False,
    ),
]


def moment(text: str | None, settings: Settings) -> datetime | None:
    """Return the time that `--as-of` or `--known-at` names, read in the zone of the settings; raises `InputError`."""
    return None if text is None else parse_time(text, settings.timezone)


def one_of(what: str, value: str | None, known: Sequence[str]) -> str | None:
    """Return `value` where it is known or None; raises `InputError` that lists what is known."""
    if value is not None and value not in known:
        raise InputError(f"Unknown {what} {value!r}. Use one of {', '.join(known)}.")
    return value


_AGE = re.compile(r"(\d{1,5})\s*([hdw])", re.IGNORECASE)
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def age(text: str) -> timedelta:
    """Return the length of time that `30d`, `12h` or `2w` stands for; raises `InputError` for anything else."""
    read = _AGE.fullmatch(text.strip())
    if read is None:
        raise InputError(f"{text!r} is no length of time. Write it as 12h, 30d or 2w.")
    return timedelta(**{_UNITS[read[2].lower()]: int(read[1])})


_PAUSE = re.compile(r"(\d{1,5})\s*([smhd])", re.IGNORECASE)
_PAUSES = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def pause(text: str | None) -> timedelta | None:
    """Return the length of time that `10s`, `30m`, `2h` or `1d` stands for, above 0; raises `InputError` for anything else."""
    if text is None:
        return None
    read = _PAUSE.fullmatch(text.strip())
    if read is None or int(read[1]) == 0:
        raise InputError(f"{text!r} is no length of time. Write it as 10s, 30m, 2h or 1d.")
    return timedelta(**{_PAUSES[read[2].lower()]: int(read[1])})


_HOURS = re.compile(r"(\d{1,2})\s*-\s*(\d{1,2})")


def hours(text: str | None) -> tuple[int, int] | None:
    """Return the hours of the day that `1-5` or `22-6` stands for, the second one excluded; raises `InputError`."""
    if text is None:
        return None
    read = _HOURS.fullmatch(text.strip())
    if read is None or int(read[1]) > 23 or int(read[2]) > 24 or int(read[1]) == int(read[2]):
        raise InputError(f"{text!r} are no hours of the day. Write them as 1-5 or 22-6.")
    return int(read[1]), int(read[2])


def since_when(text: str | None, settings: Settings) -> datetime | None:
    """Return the time that `--since` or `--until` names, ISO 8601, or that long ago (`30d`); raises `InputError`."""
    if text is None or not _AGE.fullmatch(text.strip()):
        return moment(text, settings)
    try:
        return now() - age(text)
    except OverflowError as error:
        raise InputError(f"{text!r} ago lies before the year 1.") from error


def whole_id(given: str, ids: Sequence[str]) -> str | None:
    """Return the one of `ids` that is `given` or begins so; None where there is none.

    Raises:
        InputError: there are several.
    """
    if given in ids:
        return given
    found = [one for one in ids if one.startswith(given)] if len(given) >= PREFIX else []
    if len(found) > 1:
        shown = ", ".join(short_ids(found)[one] for one in found[:5])
        raise InputError(
            f"{given!r} is the beginning of {len(found)} ids ({shown}{', …' if len(found) > 5 else ''}). Write more of it."
        )
    return found[0] if found else None


def find_id(store: "MemoryStore", owner: str, given: str) -> str:
    """Return the id of one of the owner's memories that is `given` or begins so.

    Raises:
        NotFoundError: there is none.
        InputError: there are several.
    """
    try:
        return store.get(owner, given).id
    except NotFoundError:
        found = whole_id(given, [memory.id for memory in store.memories(owner, statuses=())])
        if found is None:
            raise
    return found
