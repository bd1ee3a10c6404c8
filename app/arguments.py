"""Reading what is given to a command."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from sharpwave.memory.errors import InputError, NotFoundError
from sharpwave.memory.times import parse_time
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


def find_id(store: "MemoryStore", owner: str, given: str) -> str:
    """Return the id of one of the owner's memories that is `given` or begins so.

    Raises:
        NotFoundError: there is none.
        InputError: there are several.
    """
    try:
        return store.get(owner, given).id
    except NotFoundError:
        found = [memory.id for memory in store.memories(owner, statuses=()) if memory.id.startswith(given)]
        if not found or len(given) < PREFIX:
            raise
    return only_one(given, found)


def only_one(given: str, found: Sequence[str]) -> str:
    """Return the only id of those that begin with `given`; raises `InputError` when there are several."""
    if len(found) > 1:
        shown = ", ".join(short_ids(found)[one] for one in found[:5])
        raise InputError(
            f"{given!r} is the beginning of {len(found)} ids ({shown}{', …' if len(found) > 5 else ''}). Write more of it."
        )
    return found[0]
