"""Resolving names: which of the entities that are known is meant, by name, alias, role, the company it is named in, and recency."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from sharpwave.memory.grams import Gram, Words
from sharpwave.memory.sql import fetch

LATEST = 200
"""Memories of an entity that are looked at for who is named beside it: somebody in each of ten thousand needs no more."""
_AMONG = "(SELECT value FROM json_each(?))"


@dataclass(frozen=True, slots=True)
class Known:
    """An entity that a name may mean."""

    id: str
    name: str
    type: str
    root: str
    """Its own id, or that of the one it was merged into."""
    by_hand: bool
    last_seen: float
    role: bool
    """Whether the name is what the entity is to the user ("sister")."""


def lookup(connection: Connection, owner: int, keys: Iterable[str]) -> dict[str, list[Known]]:
    """Return the entities that each of these folded names may mean; names that nobody has are left out."""
    statement = f"""
        SELECT n.folded, e.id, e.name, e.type, e.merged_into, e.by_hand, e.last_seen, n.role FROM names n
        JOIN entities e ON e.owner = n.owner AND e.id = n.entity WHERE n.owner = ? AND n.folded IN {_AMONG}
    """
    found: dict[str, list[Known]] = {}
    for key, entity, name, kind, merged, by_hand, seen, role in fetch(
        connection, statement, (owner, json.dumps(list(keys)))
    ):
        root = root_of(connection, owner, merged) if merged else entity
        found.setdefault(key, []).append(Known(entity, name, kind, root, bool(by_hand), seen, bool(role)))
    return found


def root_of(connection: Connection, owner: int, entity: str) -> str:
    """Return the id of the entity that this one was merged into in the end; its own where it was not."""
    statement = "SELECT merged_into FROM entities WHERE owner = ? AND id = ?"
    while (found := fetch(connection, statement, (owner, entity))) and found[0][0]:
        entity = found[0][0]
    return entity


def group_of(connection: Connection, owner: int, entity: str) -> list[str]:
    """Return the ids of an entity and of all that was merged into it."""
    group, new = [entity], [entity]
    statement = f"SELECT id FROM entities WHERE owner = ? AND merged_into IN {_AMONG}"
    while new:
        new = [i for (i,) in fetch(connection, statement, (owner, json.dumps(new))) if i not in group]
        group += new
    return group


_TOGETHER = f"""
    SELECT x.entity, count(*)
    FROM (SELECT memory_id FROM mentions WHERE owner = ? AND entity = ? ORDER BY memory_id DESC LIMIT ?) y
    JOIN mentions x ON x.owner = ? AND x.memory_id = y.memory_id WHERE x.entity IN {_AMONG} GROUP BY x.entity
"""


def choose(connection: Connection, owner: int, among: Sequence[Known], beside: Iterable[str] = ()) -> Known:
    """Return which of several entities of one name is meant.

    The one that memories name most often together with those `beside` it, going by the `LATEST` of each; of equals the one
    spoken of last. One that was merged counts as what it was merged into, and that one is preferred.
    """
    if len({one.root for one in among}) == 1:
        return next((one for one in among if one.id == one.root), among[0])
    ids = [one.id for one in among]
    together = Counter[str]()
    for entity in (one for one in beside if one not in ids):
        together.update(dict(fetch(connection, _TOGETHER, (owner, entity, LATEST, owner, json.dumps(ids)))))
    return max(among, key=lambda one: (together[one.id], one.last_seen, one.id))


def matches(words: Words, known: dict[str, list[Known]]) -> list[tuple[Gram, list[Known]]]:
    """Return where a text holds known names, longest first, none within another, with the entities of that name."""
    taken: list[tuple[int, int, str]] = []
    found = []
    for gram in words.grams:
        among = known.get(gram.folded)
        if among and not any(s < gram.end and gram.start < e and (gram.folded in f or e - s > 1) for s, e, f in taken):
            taken.append((gram.start, gram.end, gram.folded))
            found.append((gram, among))
    return found
