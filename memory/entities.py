"""Entities: the people, places and things that an owner's memories tell of, how they hang together, and what is known of each."""

from collections.abc import Callable, Sequence
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any

from sharpwave.memory import linking, relations, resolving, rows, times
from sharpwave.memory.errors import InputError, NotFoundError
from sharpwave.memory.grams import folded
from sharpwave.memory.kinds import Entity, EntityType
from sharpwave.memory.kinship import kin
from sharpwave.memory.ledger import from_timestamp
from sharpwave.memory.naming import RELATED, USER
from sharpwave.memory.records import Record
from sharpwave.memory.relations import Relation
from sharpwave.memory.sql import fetch
from sharpwave.memory.store import MemoryStore

_ME = frozenset(("user", "me", "myself", "i", "ich", "yo", "moi", "io", "eu"))
ALIKE = 0.85
"""Least share of letters in order (difflib's ratio) from which two names may be one that was misspelt."""


class Suggestion(Record):
    """Two entities that may be one, and why."""

    keep: Entity
    other: Entity
    reason: str


class Entities:
    """The entities in a store. The user is one of them, by the id and name `user`, whatever they are called.

    Entities are found by rules in what is remembered, without a model; nothing has to be called for that.
    """

    def __init__(self, store: MemoryStore) -> None:
        self.store = store

    # Looking

    def list(self, owner: str, *, told: bool = True, merged: bool = False) -> Sequence[Entity]:
        """Return the owner's entities, those spoken of last first.

        Args:
            owner: whose.
            told: leave out those that no present memory tells of.
            merged: with those that were merged into others.
        """
        which = "" if merged else "AND merged_into IS NULL"
        statement = f"SELECT id FROM entities WHERE owner = ? {which} ORDER BY last_seen DESC, id"
        with self.store.transaction(owner) as (connection, number):
            return [
                _read(connection, number, owner, entity)
                for (entity,) in fetch(connection, statement, (number,))
                if not told or relations.is_told(connection, number, entity)
            ]

    def get(self, owner: str, name_or_id: str) -> Entity:
        """Return an entity by its id or by any of its names, in any case; one that was merged by its id alone.

        Raises:
            NotFoundError: there is none.
            InputError: several are called so; says which.
        """
        if folded(name_or_id) in _ME:
            return _the_user(owner)
        with self.store.transaction(owner) as (connection, number):
            if fetch(connection, "SELECT 1 FROM entities WHERE owner = ? AND id = ?", (number, name_or_id)):
                return _read(connection, number, owner, name_or_id)
        found = self.find(owner, name_or_id)
        if not found:
            raise NotFoundError(
                f"There is no entity {name_or_id!r} for this user. `sharpwave entities list` shows who and what there is."
            )
        if len(found) > 1:
            shown = "; ".join(f"{one.id} ({one.name}, {one.type})" for one in found)
            raise InputError(f"{len(found)} entities are called {name_or_id!r}: {shown}. Name one by its id.")
        return found[0]

    def find(self, owner: str, name: str) -> Sequence[Entity]:
        """Return the entities that have this name, alias or role ("sister"), without case and accents; those spoken of last first."""
        key = folded(name)
        with self.store.transaction(owner) as (connection, number):
            known = resolving.lookup(connection, number, [key]).get(key, [])
            roots = dict.fromkeys(one.root for one in sorted(known, key=lambda one: (-one.last_seen, one.id)))
            return [_read(connection, number, owner, root) for root in roots]

    def relations(self, owner: str, name_or_id: str, *, as_of: datetime | None = None) -> Sequence[Relation]:
        """Return how an entity is related to others, by what is remembered: now, or as it was at `as_of`."""
        entity = self.get(owner, name_or_id)
        with self.store.transaction(owner) as (connection, number):
            return relations.of(connection, number, entity.id, as_of=times.utc(as_of) if as_of else None)

    def context(self, owner: str, name_or_id: str, facts: int = 20) -> str:
        """Return what is known of an entity, as text for a prompt.

        The facts come by confidence: `facts` at most, of the thousand that were told last, first those about the entity
        itself. Each says when it was first observed and last confirmed, how often it was contradicted, and whether it is stale.
        """
        if facts < 0:
            raise InputError(f"A number of facts cannot be negative; got {facts}.")
        entity = self.get(owner, name_or_id)
        with self.store.transaction(owner) as (connection, number):
            return relations.text(connection, number, entity, facts, times.now())

    def suggestions(self, owner: str) -> Sequence[Suggestion]:
        """Return pairs of entities that may be one, for a person to decide. Names in different scripts are never alike."""
        entities = self.list(owner)
        blocks: dict[str, list[int]] = {}
        for at, entity in enumerate(entities):
            words = [folded(name) for name in (entity.name, *entity.aliases) if not kin(folded(name))]
            for key in {part for word in words for part in (*word.split(), word[:2])}:
                blocks.setdefault(key, []).append(at)
        pairs = {(a, b) for block in blocks.values() for a in block for b in block if a < b}
        found = [(entities[a], entities[b], _alike(entities[a], entities[b])) for a, b in sorted(pairs)]
        return [Suggestion(keep=keep, other=other, reason=reason) for keep, other, reason in found if reason]

    # Saying

    def merge(self, owner: str, keep: str, other: str) -> Entity:
        """Say that two entities are one, and return it. Both keep their ids; `unmerge` takes it back exactly.

        Raises:
            InputError: they are one already, one of them is the user, or they are of different types.
        """
        one, two = self.get(owner, keep), self.get(owner, other)
        if USER in (one.id, two.id):
            raise InputError("The user is not merged with anybody.")
        if one.id == two.id or two.id == one.merged_into or one.id == two.merged_into:
            raise InputError(f"{one.name} and {two.name} are one entity already ({one.id}).")
        for entity in (one, two):
            if entity.status == "merged":
                raise InputError(f"Entity {entity.id} was merged into {entity.merged_into}; name that one.")
        if one.type != two.type and "concept" not in (one.type, two.type):
            raise InputError(f"{one.name} is a {one.type} and {two.name} a {two.type}: they cannot be one.")
        self._say(owner, two.id, "MERGE", f"the same as {one.name}, said by hand", status="merged", merged_into=one.id)
        return self.get(owner, one.id)

    def unmerge(self, owner: str, entity: str) -> Entity:
        """Take back that an entity (by its id) was merged into another, and return it."""
        if self.get(owner, entity).status != "merged":
            raise InputError(f"Entity {entity} was not merged into another.")
        return self._say(owner, entity, "UNMERGE", "not the same, said by hand", status="active", merged_into=None)

    def rename(self, owner: str, name_or_id: str, name: str, *, type: EntityType | None = None) -> Entity:
        """Give an entity another name, and another type if one is given; the old name goes on meaning it."""
        entity = self._changeable(owner, name_or_id)
        changes = {"name": _name(self.store.masked(owner, name)), "type": type or entity.type}
        return self._say(owner, entity.id, "RENAME", "renamed by hand", keep_name=True, **changes)

    def alias(self, owner: str, name_or_id: str, alias: str) -> Entity:
        """Give an entity one more name."""
        entity = self._changeable(owner, name_or_id)
        return self._say(
            owner, entity.id, "ALIAS", "alias given by hand", more=(_name(self.store.masked(owner, alias)),)
        )

    def relate(self, owner: str, source: str, relation: str, target: str) -> Relation:
        """Remember that `source` has a relation to `target`, and return it. Both are names, ids, or `user`; new names are fine.

        Args:
            owner: whose memory.
            source: who or what has the relation.
            relation: a word ("sister", "employer") or a verb ("works at").
            target: to whom or what.

        Raises:
            InputError: a name is blank, or that is remembered already.
        """
        one, two = self._named(owner, source), self._named(owner, target)
        attribute, text = relations.stated(one, relation, two)
        with self.store.transaction(owner) as (connection, number):
            if relations.holds(connection, number, one, attribute, two):
                raise InputError(f"That is remembered already: {text}")
        done = self.store.add(
            owner, text, subject=one, attribute=attribute, value=two, confidence=0.9, metadata={RELATED: True}
        )
        memory = self.store.get(owner, done.memory_id or "")
        with self.store.transaction(owner) as (connection, number):
            return next(relations.stated_by(connection, number, memory))

    def _named(self, owner: str, given: str) -> str:
        """Return the name that a memory calls an entity by; a new one as it is given."""
        try:
            return self.get(owner, given).name
        except NotFoundError:
            return _name(given)

    def _changeable(self, owner: str, name_or_id: str) -> Entity:
        entity = self.get(owner, name_or_id)
        if entity.id == USER:
            raise InputError("The user is called what the memories say; tell the name instead.")
        return entity

    def _say(
        self,
        owner: str,
        entity: str,
        op: str,
        reason: str,
        *,
        more: Sequence[str] = (),
        keep_name: bool = False,
        **changes: Any,
    ) -> Entity:
        """Keep what a person said about an entity, with its event, and lay it over what is derived."""
        at, nothing = times.now(), _no_vector
        with self.store.transaction(owner, writes=True) as (connection, number):
            shown = _read(connection, number, owner, entity)
            statement = "SELECT record FROM records WHERE owner = ? AND kind = 'entity' AND id = ?"
            said = fetch(connection, statement, (number, entity))
            aliases = Entity.model_validate_json(said[0][0]).aliases if said else ()
            given = tuple(dict.fromkeys((*aliases, *more, *([shown.name] if keep_name else []))))
            record = shown.model_copy(update={"aliases": given, **changes})
            rows.put(connection, number, record, op=op, at=at, policy="user", reason=reason, embed=nothing)
            linking.lay_over(connection, number, record)
            return _read(connection, number, owner, entity)


_no_vector: Callable[[str], Any] = str  # entities are found by their names, never by a vector


def _name(given: str) -> str:
    if not folded(given):
        raise InputError(f"The name of an entity needs letters; got {given!r}.")
    return given.strip()


def _the_user(owner: str) -> Entity:
    since = from_timestamp(0)
    return Entity(id=USER, owner=owner, name=USER, type="user", first_seen_at=since, last_seen_at=times.now())


def _read(connection: Any, number: int, owner: str, entity: str) -> Entity:
    """Return an entity with all names of those that were merged into it."""
    statement = "SELECT name, type, merged_into, first_seen, last_seen FROM entities WHERE owner = ? AND id = ?"
    name, kind, merged, first, last = fetch(connection, statement, (number, entity))[0]
    group = resolving.group_of(connection, number, entity)
    called = "SELECT name FROM names WHERE owner = ? AND entity = ? ORDER BY rowid"
    names = [other for one in group for (other,) in fetch(connection, called, (number, one))]
    aliases = {folded(other): other for other in reversed(names) if folded(other) != folded(name)}
    return Entity(
        id=entity,
        owner=owner,
        name=name,
        type=kind,
        aliases=tuple(reversed(aliases.values())),
        merged_into=merged,
        status="merged" if merged else "active",
        first_seen_at=from_timestamp(first),
        last_seen_at=from_timestamp(last),
    )


def _alike(one: Entity, two: Entity) -> str | None:
    """Return why two entities may be one, None where nothing says so."""
    if one.type != two.type and "concept" not in (one.type, two.type):
        return None
    first, second = folded(one.name), folded(two.name)
    if first == second:
        return "the same name"
    short, long = sorted((first.split(), second.split()), key=len)
    if len(short) < len(long) and set(short) <= set(long):
        return "one name is part of the other"
    if (
        len(short) == len(long) > 1
        and short[-1] == long[-1]
        and 1 in (len(short[0]), len(long[0]))
        and short[0][0] == long[0][0]
    ):
        return "one may be the initials of the other"
    alike = min(len(first), len(second)) > 4 and SequenceMatcher(None, first, second).ratio() >= ALIKE
    return "the names differ by a few letters" if alike else None
