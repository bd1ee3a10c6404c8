"""What memories say of one entity: facts, and relations, which are slots that hold an entity ("source, relation, target").

Both are views over the memories, so they follow every change, undo and look into the past by themselves.
"""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import Connection

from sharpwave.memory import resolving, semantic
from sharpwave.memory.errors import InputError
from sharpwave.memory.extract.values import place_attribute, thing_key
from sharpwave.memory.grams import folded
from sharpwave.memory.kinds import Entity
from sharpwave.memory.kinship import kin
from sharpwave.memory.naming import USER
from sharpwave.memory.proper import SUBJECT, TEXT, VALUE
from sharpwave.memory.records import Memory, Record
from sharpwave.memory.slots import FORMER, SLOTS
from sharpwave.memory.sql import fetch, fetch_one
from sharpwave.memory.staleness import is_stale
from sharpwave.memory.times import UtcTime

READ = 1000
"""Most memories of one entity that are looked at: those told last."""
SHOWN = 50
"""Most relations of one entity."""
_AMONG = "(SELECT value FROM json_each(?))"
_HELD = "EXISTS (SELECT 1 FROM mentions v WHERE v.owner = m.owner AND v.memory_id = m.id AND v.part > 0)"
_OF_OTHERS = "EXISTS (SELECT 1 FROM mentions s WHERE s.owner = m.owner AND s.memory_id = m.id AND s.part = 2)"


class Relation(Record):
    """That one entity has a relation to another, as one memory says it."""

    source: str
    """Id of the entity that has it; `user` for the user."""
    source_name: str
    relation: str
    """The attribute of the slot, as `spouse`; with `former:` before it where it is past."""
    target: str
    target_name: str
    memory_id: str
    confidence: float
    since: UtcTime
    until: UtcTime | None = None


# Relations


def of(connection: Connection, owner: int, entity: str, *, as_of: datetime | None = None) -> list[Relation]:
    """Return the relations of an entity now, or as of a time: those from it first, then those to it."""
    ids = json.dumps(_ids(connection, owner, entity, (SUBJECT, VALUE)))
    if entity == USER:
        condition, values = f"m.subject = 'user' AND m.attribute IS NOT NULL AND {_HELD}", []
    else:
        condition, values = f"m.id IN {_AMONG} AND m.attribute IS NOT NULL", [ids]
    found = semantic.said(connection, owner, f"{condition} ORDER BY m.row DESC", values, limit=2 * SHOWN, as_of=as_of)
    group = set(resolving.group_of(connection, owner, entity))
    every = [relation for memory in found for relation in stated_by(connection, owner, memory)]
    every = [r for r in every if (r.source in group) != (r.target in group)]
    return sorted(every, key=lambda r: (r.source not in group, r.relation, r.memory_id))[:SHOWN]


def stated_by(connection: Connection, owner: int, memory: Memory) -> Iterator[Relation]:
    """Yield the relation that a memory states, if its slot holds an entity."""
    if memory.attribute in (None, "name"):
        return
    statement = """
        SELECT e.id, e.name, n.folded FROM mentions x JOIN entities e ON e.owner = x.owner AND e.id = x.entity
        JOIN names n ON n.owner = x.owner AND n.entity = x.entity WHERE x.owner = ? AND x.memory_id = ?
    """
    subject, value = folded(memory.subject), folded(memory.value or "")
    named = sorted(fetch(connection, statement, (owner, memory.id)), key=lambda row: (-len(row[2]), row[0]))
    source = (USER, USER) if subject == USER else next(((i, name) for i, name, key in named if key == subject), None)
    target = (USER, USER) if value == USER else next(((i, name) for i, name, key in named if _ends(value, key)), None)
    if source is None or target is None or source[0] == target[0]:
        return
    yield Relation(
        source=resolving.root_of(connection, owner, source[0]),
        source_name=source[1],
        relation=memory.attribute or "",
        target=resolving.root_of(connection, owner, target[0]),
        target_name=target[1],
        memory_id=memory.id,
        confidence=memory.confidence,
        since=memory.valid_from,
        until=memory.valid_to,
    )


def _ends(value: str, key: str) -> bool:
    """Whether the value of a slot is a name, or ends with it ("daughter called Mia")."""
    return value == key or value.endswith(f" {key}")


def holds(connection: Connection, owner: int, source: str, attribute: str, target: str) -> bool:
    """Return whether a relation is remembered already."""
    held = semantic.holding(connection, owner, source, attribute)
    return any(folded(memory.value or "") == folded(target) for memory in held)


_VERBS = (
    (re.compile(r"(?:is |are |am )?married to"), "spouse"),
    (re.compile(r"(?:is |are |am )?dating"), "partner"),
    (re.compile(r"works? (?:at|for)|(?:is |am )?employed (?:at|by)"), "employer"),
    (re.compile(r"lives? in"), "home"),
    (re.compile(r"(?:goes|go) to"), "school"),
)


def stated(source: str, relation: str, target: str) -> tuple[str, str]:
    """Return the attribute that a relation fills, and a sentence that says it; raises `InputError` for a blank one."""
    word = " ".join(relation.split())
    key = thing_key(word)
    if not key:
        raise InputError(f"A relation needs a word, such as `sister` or `works at`; got {relation!r}.")
    verb = next((attribute for pattern, attribute in _VERBS if pattern.fullmatch(word.casefold())), None)
    noun = kin(folded(word)) or (key if key in SLOTS else None)
    end = "the user" if target == USER else target
    if noun and not verb:
        return noun, f"My {word} is {end}." if source == USER else f"{source}'s {word} is {end}."
    attribute = place_attribute(target) if verb == "home" else verb or key
    return attribute, f"{'The user' if source == USER else source} {word} {end}."


# Facts


def is_told(connection: Connection, owner: int, entity: str) -> bool:
    """Return whether a present memory tells of an entity."""
    statement = f"""
        SELECT 1 FROM mentions x JOIN memories m ON m.owner = x.owner AND m.id = x.memory_id AND {semantic.LIVE}
        WHERE x.owner = ? AND x.entity IN {_AMONG} LIMIT 1
    """
    return bool(fetch_one(connection, statement, (owner, json.dumps(resolving.group_of(connection, owner, entity)))))


def facts_of(connection: Connection, owner: int, entity: str, limit: int) -> list[Memory]:
    """Return present memories of an entity: those about it by confidence, then those that only name it, by confidence."""
    by_confidence = "ORDER BY json_extract(m.record, '$.confidence') DESC, m.row DESC"
    if entity == USER:
        condition = f"m.subject = 'user' AND (m.attribute IS NOT NULL OR NOT {_OF_OTHERS})"
        newest = f"m.row IN (SELECT row FROM memories m WHERE m.owner = ? AND {semantic.LIVE} AND {condition} ORDER BY row DESC LIMIT ?)"
        return semantic.said(connection, owner, f"{newest} {by_confidence}", [owner, READ], limit=limit)
    found: list[Memory] = []
    for parts in ((SUBJECT,), (VALUE, TEXT)):
        ids = json.dumps(_ids(connection, owner, entity, parts))
        condition = f"m.id IN {_AMONG} {by_confidence}"
        found += semantic.said(connection, owner, condition, [ids], limit=limit - len(found))
    return found


def _ids(connection: Connection, owner: int, entity: str, parts: Sequence[int]) -> list[str]:
    """Return the ids of the memories that name an entity in these parts: those noted last."""
    statement = "SELECT memory_id FROM mentions WHERE owner = ? AND entity = ? AND part = ? ORDER BY rowid DESC LIMIT ?"
    group = resolving.group_of(connection, owner, entity)
    return [
        memory
        for one in group
        for part in parts
        for (memory,) in fetch(connection, statement, (owner, one, part, READ))
    ]


def text(connection: Connection, owner: int, entity: Entity, facts: int, now: datetime) -> str:
    """Return what is known of an entity in words: names, facts, relations."""
    named = [entity.type, *([f"also {', '.join(entity.aliases)}"] if entity.aliases else [])]
    lines = ["The user" if entity.id == USER else _flat(f"{entity.name} ({'; '.join(named)})")]
    found = facts_of(connection, owner, entity.id, facts)
    observed = _observed(connection, owner, found)
    if found:
        lines += [
            "Facts:",
            *(f"- {_flat(memory.text)} ({_marks(memory, observed[memory.id], now)})" for memory in found),
        ]
    related = of(connection, owner, entity.id)
    if related:
        group = set(resolving.group_of(connection, owner, entity.id))
        lines += ["Relations:", *dict.fromkeys(f"- {_flat(_phrase(relation, group))}" for relation in related)]
    return "\n".join(lines) if len(lines) > 1 else f"{lines[0]}\nNothing is remembered of it at present."


def _flat(text: str) -> str:
    """Return a text on one line, so that nothing in it looks like a line of ours."""
    return " ".join(text.split())


def _observed(connection: Connection, owner: int, found: Sequence[Memory]) -> dict[str, str]:
    """Return the day on which each memory was told first."""
    statement = f"SELECT id, min(coalesce(json_extract(record, '$.source.said_at'), json_extract(record, '$.recorded_at'))) FROM memories WHERE owner = ? AND id IN {_AMONG} GROUP BY id"
    ids = json.dumps([memory.id for memory in found])
    return {memory: first[:10] for memory, first in fetch(connection, statement, (owner, ids))}


def _marks(memory: Memory, observed: str, now: datetime) -> str:
    marks = [f"confidence {memory.confidence:.2f}", f"observed {observed}"]
    if memory.last_confirmed_at is not None and f"{memory.last_confirmed_at:%Y-%m-%d}" > observed:
        marks.append(f"confirmed {memory.last_confirmed_at:%Y-%m-%d}")
    if memory.source.kind != "user":
        marks.append(f"from {memory.source.kind}")
    if memory.contradictions:
        marks.append(f"contradicted {memory.contradictions}×")
    return ", ".join([*marks, *(["stale"] if is_stale(memory, now) else [])])


def _phrase(relation: Relation, group: set[str]) -> str:
    word = relation.relation.replace(FORMER, "former ").replace("_", " ")
    if relation.source in group:
        return f"{word}: {_shown(relation.target, relation.target_name)}"
    return f"{word} of {_shown(relation.source, relation.source_name)}"


def _shown(entity: str, name: str) -> str:
    return "the user" if entity == USER else name
