"""How memories, events and times look on a screen."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from sharpwave.memory.times import time_zone

if TYPE_CHECKING:
    from sharpwave.memory.ledger import Event
    from sharpwave.memory.records import Memory

SHORTEST = 8
"""Fewest characters of an id that are shown."""


def plain(text: str) -> Text:
    """Return `text` as it is, without markup; what would steer the terminal is shown as an escape."""
    return Text("".join(c if c.isprintable() or c == "\n" or ord(c) > 0x9F else ascii(c)[1:-1] for c in text))


def table(*columns: str) -> Table:
    """Return an empty table with these columns."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=any(columns))
    for column in columns:
        shown.add_column(column, overflow="fold", no_wrap=column == "Id")
    return shown


def row(into: Table, *cells: str) -> None:
    """Add a row of plain texts."""
    into.add_row(*(plain(cell) for cell in cells))


def when(at: datetime | None, zone: str) -> str:
    """Return a time as it is written in `zone`, to the minute; nothing for None."""
    return "" if at is None else f"{at.astimezone(time_zone(zone)):%Y-%m-%d %H:%M}"


def slot(memory: "Memory") -> str:
    """Return the slot that a memory fills, `user.home_city = Lisbon`, or nothing."""
    return "" if memory.attribute is None else f"{memory.subject}.{memory.attribute} = {memory.value or '…'}"


def short_ids(ids: Sequence[str]) -> dict[str, str]:
    """Return, for each id, the shortest beginning that no other id has: it stands for the id in every command."""
    ordered = sorted(set(ids))
    short = {}
    for at, one in enumerate(ordered):
        around = ordered[max(at - 1, 0) : at] + ordered[at + 1 : at + 2]
        length = max((_shared(one, other) + 1 for other in around), default=0)
        short[one] = one[: max(length, SHORTEST)]
    return short


def _shared(one: str, other: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def change(event: "Event") -> dict[str, Any]:
    """Return what an event changed and why, as plain data."""
    detail = event.detail
    before, after = detail.get("before"), detail.get("after")
    return {
        "seq": event.seq,
        "at": event.at.isoformat(),
        "op": event.op,
        "memory_id": event.memory_id,
        "version": event.version,
        "before": before["text"] if before else None,
        "after": after["text"] if after else None,
        "status": after["status"] if after else None,
        "reason": event.reason,
        "policy": event.policy,
        "quote": detail.get("quote"),
        "guarded": detail.get("guarded"),
        "undoes": detail.get("undoes"),
        "thread": event.thread,
        "message_id": event.message_id,
    }


def told(changed: dict[str, Any]) -> str:
    """Return in words what an event did to the text of a memory."""
    before, after, status = changed["before"], changed["after"], changed["status"]
    if before is not None and before != after:
        return f"{before} → {after}"
    return f"{after or '–'} ({status})" if status not in (None, "active") else after or "–"
