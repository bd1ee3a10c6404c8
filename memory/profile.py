"""The user's profile: what an answer should heed even where the question does not mention it."""

import json
from collections.abc import Collection

from sqlalchemy import Connection

from sharpwave.memory import semantic
from sharpwave.memory.records import Memory
from sharpwave.memory.schema import OF_THE_USER, WEIGHT
from sharpwave.memory.slots import FORMER, SLOTS
from sharpwave.memory.sql import fetch
from sharpwave.memory.store import MemoryStore

MOST = 15
"""Memories of a profile."""
WEIGHTY = 0.8
"""Importance from which a fact belongs to the profile, whatever it is about."""

_STANDING = json.dumps([attribute for attribute, rule in SLOTS.items() if rule.standing])


def profile(store: MemoryStore, owner: str, most: int = MOST, *, known: Collection[str] = ()) -> list[Memory]:
    """Return the owner's standing facts and preferences: what is pinned first, then by importance, then the newest.

    Standing are facts that mere time does not change (an allergy, a birthday, a language), what is pinned, and whatever is of
    importance 0.8 or more (a diet, a condition). Only what holds of the user now, and is believed, belongs here.

    Args:
        store: the memory.
        owner: whose.
        most: at most so many.
        known: ids of memories that are at hand already, and are left out.

    Raises:
        InputError: `owner` is blank or no text.
    """
    with store.transaction(owner) as (connection, number):
        return _weightiest(connection, number, most, known)


def _weightiest(connection: Connection, owner: int, most: int, known: Collection[str]) -> list[Memory]:
    # Read from the index by weight: of thousands of memories, only those at the top are looked at.
    statement = f"""
        SELECT row FROM memories WHERE owner = ? AND {OF_THE_USER} AND json_extract(record, '$.confidence') >= ?
            AND NOT json_extract(record, '$.synthetic') AND (kind = 'preference' OR json_extract(record, '$.importance') >= ?
            OR json_extract(record, '$.pinned') OR attribute IN (SELECT value FROM json_each(?)))
            AND (attribute IS NULL OR attribute NOT LIKE '{FORMER}%') AND id NOT IN (SELECT value FROM json_each(?))
        ORDER BY {WEIGHT} LIMIT ?
    """
    values = (owner, semantic.BELIEVED, WEIGHTY, _STANDING, json.dumps(list(known)), most)
    found = [row for (row,) in fetch(connection, statement, values)]
    order = {row: place for place, row in enumerate(found)}
    rows = sorted(semantic.load(connection, owner, found), key=lambda row: order[row.row])
    return [semantic.read_row(row, owner) for row in rows]
