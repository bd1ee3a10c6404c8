"""Stale: a mark on what has not been confirmed for long. It is derived when it is asked for, never stored, and deletes nothing."""

from datetime import datetime, timedelta

from sharpwave.memory.records import Memory
from sharpwave.memory.slots import FORMER, slot

FRESH = timedelta(days=30)
"""How long a statement about the present counts as confirmed."""


def is_stale(memory: Memory, now: datetime) -> bool:
    """Return whether `memory` speaks of a present that nobody has confirmed for 30 days.

    Never stale: standing facts (an allergy, a birthday: `slots.SlotRule.standing`), events and summaries, what is told of
    the past, and what is pinned. A memory that was never confirmed counts from when it began to hold.
    """
    attribute = memory.attribute or ""
    lasting = memory.kind in ("event", "summary") or memory.pinned or bool(attribute and slot(attribute).standing)
    if lasting or memory.valid_to is not None or attribute.startswith(FORMER):
        return False
    return now - (memory.last_confirmed_at or memory.valid_from) > FRESH
