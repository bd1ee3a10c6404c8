"""Linking memories to the entities that they name.

Entities are derived: `note` runs wherever a version of a memory is written and keeps the tables `entities`, `names` and
`mentions`; `rebuild` makes them anew from the memories, in their order. Only what a person said about entities (merges,
names, types) is a record of its own, with an event, and is laid over what is derived. The id of an entity is made from the
name that it was first known by, so that a rebuild and an import find the same.
"""

import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from sharpwave.memory.grams import Words, folded, words_of
from sharpwave.memory.kinds import Entity
from sharpwave.memory.kinship import identifies, kin
from sharpwave.memory.naming import USER, named
from sharpwave.memory.proper import NO_NAME, SUBJECT, TEXT, VALUE, Named
from sharpwave.memory.records import Memory
from sharpwave.memory.resolving import Known, choose, lookup, matches
from sharpwave.memory.sql import fetch

_SPACE = uuid.UUID("6b0c8f5e-4c3a-5f0e-9d63-0f3f0f5f7a51")
_AMONG = "(SELECT value FROM json_each(?))"
_LEGAL = frozenset("ag gmbh inc ltd llc llp corp corporation sa spa bv nv co plc kg se oy ab as srl sarl".split())
_COMMON = NO_NAME | frozenset("will mark rose grace hope faith bill art dawn joy pat rob sue summer".split())


@dataclass(slots=True)
class _Note:
    """What is being worked out about one memory."""

    connection: Connection
    owner: int
    at: float
    known: dict[str, list[Known]]
    parts: dict[str, int] = field(default_factory=dict)

    def beside(self) -> set[str]:
        """Return the entities that the memory names beyond doubt."""
        sure = {among[0].id for among in self.known.values() if len(among) == 1 and not among[0].role}
        return sure.union(self.parts)

    def mention(self, entity: str, part: int) -> None:
        self.parts[entity] = max(part, self.parts.get(entity, TEXT))


def note(connection: Connection, owner: int, memory: Memory) -> None:
    """Note which entities a memory names, old ones and new, inside the transaction that writes it.

    What is in quarantine names nobody until it is released.
    """
    if memory.status == "quarantined":
        return
    found = named(memory)
    words = words_of(memory.text)
    subject, value = folded(memory.subject), folded(memory.value or "")
    asked = {gram.folded for gram in words.grams}.union(*(_lookups(one) for one in found), (subject, value))
    known = lookup(connection, owner, asked - {USER, ""})
    if not found and not known:
        return
    told = _Note(connection, owner, memory.recorded_at.timestamp(), known)
    for one in found:
        told.mention(_settle(told, one), one.part)
    _mention_known(told, words, found, subject, value if memory.attribute else "")
    _write(told, memory.id)


def _lookups(one: Named) -> list[str]:
    """Return what may have to be known to settle a name."""
    key = folded(one.name)
    return [key, *_shorter(key, one.type), *_roles(one.role)]


def _roles(role: str | None) -> list[str]:
    """Return a role and its last word ("older sister", "sister"), where it means one person as a rule."""
    return [] if role is None or not identifies(role) else list(dict.fromkeys((role, role.split()[-1])))


def _shorter(key: str, kind: str) -> list[str]:
    """Return the shorter form of a name that usually means the same: a first name, or a company without its legal form."""
    words = key.split()
    if len(words) > 1 and words[-1] in _LEGAL and kind in ("organization", "concept"):
        return [" ".join(words[:-1])]
    return [words[0]] if len(words) > 1 and kind == "person" and len(words[0]) > 1 else []


def _written(name: str, kind: str) -> list[tuple[str, bool]]:
    """Return a name with its shorter form, as they are written, for `call`."""
    lengths = [len(form.split()) for form in _shorter(folded(name), kind)]
    return [(name, False), *((" ".join(name.split()[:length]), False) for length in lengths)]


def _settle(told: _Note, one: Named) -> str:
    """Return the id of the entity that a memory plainly names, a new one where it is not known."""
    key, roles = folded(one.name), _roles(one.role)
    called = [k for k in told.known.get(key, []) if _fits(k, one.type) and not _other_role(told, k, one)]
    if not called:
        called = [k for k in _extended(told, key, one) if not _other_role(told, k, one)]
    if not called and roles:
        called = [
            k for role in roles for k in told.known.get(role, []) if k.role and k.name == folded(k.name) and kin(k.name)
        ]
    if not called:
        return _new(told, one, key, roles)
    entity = choose(told.connection, told.owner, called, told.beside())
    _learn(told, entity, one, key, roles)
    return entity.id


def _fits(known: Known, kind: str) -> bool:
    """Whether an entity can be of a type; what is only a concept may turn out to be anything."""
    return known.type == kind or "concept" in (known.type, kind)


def _other_role(told: _Note, known: Known, one: Named) -> bool:
    """Whether somebody of this name is known as something else to the user: the sister Anna is not the boss Anna."""
    if one.role is None:
        return False
    kinds = {"partner" if k == "spouse" else k for role in _roles_of(told, known.id) if (k := kin(role))}
    wanted = kin(one.role)
    return bool(kinds) and ("partner" if wanted == "spouse" else wanted) not in kinds


def _roles_of(told: _Note, entity: str) -> list[str]:
    statement = "SELECT folded FROM names WHERE owner = ? AND entity = ? AND role"
    return [role for (role,) in fetch(told.connection, statement, (told.owner, entity))]


def _extended(told: _Note, key: str, one: Named) -> list[Known]:
    """Return the one entity whose whole name is the shorter form of this name ("Anna" of "Anna Schmidt"), if there is one."""
    shorter = _shorter(key, one.type)
    same = [k for form in shorter for k in told.known.get(form, []) if _fits(k, one.type)]
    return same if len(same) == 1 and folded(same[0].name) in shorter and not same[0].by_hand else []


def _learn(told: _Note, entity: Known, one: Named, key: str, roles: Sequence[str]) -> None:
    """Add what a memory tells of an entity: another name, a fuller one, what it is."""
    changes: dict[str, str] = {}
    shown = folded(entity.name)
    if not entity.by_hand:
        if key != shown and (kin(shown) or key.startswith(f"{shown} ")) and not kin(key):
            changes["name"] = one.name
        if entity.type == "concept" and one.type != "concept":
            changes["type"] = one.type
    for column, value in changes.items():
        statement = f"UPDATE entities SET {column} = ? WHERE owner = ? AND id = ?"
        told.connection.exec_driver_sql(statement, (value, told.owner, entity.id))
    kind = changes.get("type", entity.type)
    names = [] if kin(key) else _written(one.name, kind)
    call(told.connection, told.owner, entity.id, [*names, *((role, True) for role in roles)])


def _new(told: _Note, one: Named, key: str, roles: Sequence[str]) -> str:
    role = kin(one.role) if one.role and not kin(key) else None
    entity = str(uuid.uuid5(_SPACE, "\n".join((one.type, key, role or ""))))
    told.connection.exec_driver_sql(
        "INSERT INTO entities VALUES (?, ?, ?, ?, NULL, 0, ?, ?) ON CONFLICT DO NOTHING",
        (told.owner, entity, one.name, one.type, told.at, told.at),
    )
    names = [] if kin(key) else _written(one.name, one.type)
    call(told.connection, told.owner, entity, [*names, *((name, True) for name in roles)])
    fresh = Known(entity, one.name, one.type, entity, False, told.at, False)
    for name in (key, *_shorter(key, one.type)):
        told.known.setdefault(name, []).append(fresh)
    return entity


def call(connection: Connection, owner: int, entity: str, called: Sequence[tuple[str, bool]]) -> None:
    """Keep that an entity is called so: names as they are written, and whether each is a role."""
    rows = [(owner, folded(name), entity, name, role) for name, role in called if folded(name)]
    if rows:
        connection.exec_driver_sql("INSERT INTO names VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", rows)


def _mention_known(told: _Note, words: Words, found: Sequence[Named], subject: str, value: str) -> None:
    """Mention those that are known already and named in the text, or as subject or value, by name or by role."""
    for key, part in ((subject, SUBJECT), (value, VALUE)):
        meant = [k for k in told.known.get(key, []) if part == SUBJECT or not k.role]
        if meant:
            told.mention(choose(told.connection, told.owner, meant, told.beside()).id, part)
    plain = {folded(one.name) for one in found}
    cased = any(gram.written for gram in words.grams)
    for gram, among in matches(words, told.known):
        if any(re.search(rf"\b{re.escape(gram.folded)}\b", name) for name in plain):
            continue
        meant = [
            k for k in among if (gram.mine if k.role else gram.written or (not cased and gram.folded not in _COMMON))
        ]
        if meant:
            about = gram.start == int(gram.mine) and subject == USER and not words.owns[gram.end - 1]
            told.mention(choose(told.connection, told.owner, meant, told.beside()).id, SUBJECT if about else TEXT)


def _write(told: _Note, memory_id: str) -> None:
    if not told.parts:
        return
    told.connection.exec_driver_sql(
        "INSERT INTO mentions VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET part = max(part, excluded.part)",
        [(told.owner, entity, memory_id, part) for entity, part in told.parts.items()],
    )
    told.connection.exec_driver_sql(
        f"UPDATE entities SET last_seen = max(last_seen, ?) WHERE owner = ? AND id IN {_AMONG}",
        (told.at, told.owner, json.dumps(list(told.parts))),
    )


# What was said by hand, and making anew


def lay_over(connection: Connection, owner: int, record: Entity) -> None:
    """Let what a person said about an entity stand over what memories tell."""
    values = (record.name, record.type, record.merged_into, record.first_seen_at.timestamp())
    connection.exec_driver_sql(
        "INSERT INTO entities VALUES (?, ?, ?, ?, ?, 1, ?, ?) ON CONFLICT DO UPDATE "
        "SET name = excluded.name, type = excluded.type, merged_into = excluded.merged_into, by_hand = 1",
        (owner, record.id, *values, record.last_seen_at.timestamp()),
    )
    given = [name for name in (record.name, *record.aliases) if not kin(folded(name))]
    shorter = _written(record.name, record.type)[1:]
    call(connection, owner, record.id, [*((name, False) for name in given), *shorter])


def rebuild(connection: Connection, owner: int) -> None:
    """Make an owner's entities, names and mentions anew from the memories and from what was said by hand."""
    for table in ("mentions", "names", "entities"):
        connection.exec_driver_sql(f"DELETE FROM {table} WHERE owner = ?", (owner,))
    by_hand = "SELECT record FROM records WHERE owner = ? AND kind = 'entity' ORDER BY row"
    for (record,) in fetch(connection, by_hand, (owner,)):
        lay_over(connection, owner, Entity.model_validate_json(record))
    for (record,) in fetch(connection, "SELECT record FROM memories WHERE owner = ? ORDER BY row", (owner,)):
        note(connection, owner, Memory.model_validate_json(record))


def forget(connection: Connection, owner: int, memory_ids: Sequence[str]) -> list[str]:
    """Make all of it anew without these memories, which are gone; returns the ids of entities that only they told of.

    Of those, what was said by hand goes as well.
    """
    statement = f"SELECT DISTINCT entity FROM mentions WHERE owner = ? AND memory_id IN {_AMONG}"
    touched = [entity for (entity,) in fetch(connection, statement, (owner, json.dumps(list(memory_ids))))]
    if not touched:
        return []
    left = f"""
        SELECT value FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM mentions
        WHERE owner = ? AND entity = value AND memory_id NOT IN {_AMONG})
    """
    gone = [e for (e,) in fetch(connection, left, (json.dumps(touched), owner, json.dumps(list(memory_ids))))]
    drop = f"DELETE FROM records WHERE owner = ? AND kind = 'entity' AND id IN {_AMONG}"
    connection.exec_driver_sql(drop, (owner, json.dumps(gone)))
    rebuild(connection, owner)
    return gone
