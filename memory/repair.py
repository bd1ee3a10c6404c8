"""Repair: a memory that questions about it do not find is given words by which they do.

They are kept with the memory (`metadata`, under `semantic.FOUND_AS`) and indexed as its own words are; its text stays as it is.
What somebody has taken back is not done again.
"""

import json
import re
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection

from sharpwave.memory import keywords, ledger, semantic
from sharpwave.memory.records import Memory
from sharpwave.memory.sql import fetch

MOST = 24
"""Words that one memory is given at most: each of them may also find it when it is not meant."""
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def lacking(memory: Memory, texts: Iterable[str]) -> list[str]:
    """Return the words of `texts`, in lower case, that a memory is not found by yet."""
    held, found = set(semantic.index_terms(memory)), list[str]()
    for word in (word.lower() for text in texts for word in _WORD.findall(text)):
        terms = set(keywords.terms(word))
        if terms and not terms <= held:
            held |= terms
            found.append(word)
    return found


def repair(
    connection: Connection, owner: int, memory: Memory, texts: Iterable[str], at: datetime, run: str | None = None
) -> Memory | None:
    """Let a memory be found by the words of `texts` too, and return it; None where there is nothing to add, or no more room.

    Args:
        connection: inside a write transaction.
        owner: the owner's number.
        memory: its current version.
        texts: questions that did not find it, and other words for what it says.
        at: the present.
        run: the run it belongs to, for the log.
    """
    had = semantic.found_as(memory)
    new = lacking(memory, texts)[: max(0, MOST - len(had))]
    if not new or _taken_back(connection, owner, memory.id):
        return None
    after = memory.model_copy(update={"metadata": {**memory.metadata, semantic.FOUND_AS: [*had, *new]}})
    semantic.reword(connection, owner, after)
    ledger.append_event(
        *(connection, owner, "REPAIR"),
        at=at,
        policy="probe/1",
        reason=f"not found by questions about it; {len(new)} words added",
        memory=after,
        before=memory,
        detail={"quote": memory.source.quote, "run": run},
    )
    return after


def _taken_back(connection: Connection, owner: int, memory_id: str) -> bool:
    events = "SELECT seq, op, detail FROM events WHERE owner = ? AND memory_id = ? AND op IN ('REPAIR', 'UNDO')"
    found = fetch(connection, events, (owner, memory_id))
    repairs = {seq for seq, op, _ in found if op == "REPAIR"}
    return any(json.loads(detail).get("undoes") in repairs for _, op, detail in found if op == "UNDO")
