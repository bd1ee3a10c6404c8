"""Hops: what else a question may be about when it names an entity that is known.

The first hop leads to the memories that name it, the second to those of the entities that these tell of; so "Where does my
sister's husband work?" finds "Tom works at Siemens" by way of "My sister Anna is married to Tom". What hops reach are
candidates like others; a memory about the very one that is asked about gains what a named subject gains, and the words
that named it count as found in it.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from sharpwave.memory import keywords, resolving
from sharpwave.memory.grams import Gram, Words, words_of
from sharpwave.memory.kinship import ROLES, kin
from sharpwave.memory.proper import NO_NAME, SUBJECT
from sharpwave.memory.resolving import Known
from sharpwave.memory.sql import fetch

FIRST = 30
"""Most memories that the first hop of a recall leads to, for each of at most `ENTITIES` that a question names."""
SECOND = 30
"""Most memories that the second hop leads to."""
ENTITIES = 3
NEIGHBOURS = 8
"""Most entities that the second hop goes by: those that the memories of the first name most often."""
_AMONG = "(SELECT value FROM json_each(?))"
_MUTUAL = frozenset(("spouse", "partner", "sibling", "friend", "colleague"))


@dataclass(frozen=True)
class Reach:
    """What a question reaches by the entities that it names."""

    memories: tuple[str, ...] = ()
    """Ids of memories that join the candidates."""
    about: frozenset[str] = frozenset()
    """The ids of the one entity that it asks about, and of what was merged into it; none where it names several."""
    terms: frozenset[str] = frozenset()
    """The index terms that name that one."""

    def told(self, connection: Connection, owner: int, ids: Sequence[str]) -> np.ndarray:
        """Return which of these memories are about the one that is asked about (bool)."""
        if not self.about:
            return np.zeros(len(ids), bool)
        statement = f"""
            SELECT memory_id FROM mentions WHERE owner = ? AND entity IN {_AMONG} AND part = {SUBJECT} AND memory_id IN {_AMONG}
        """
        found = fetch(connection, statement, (owner, json.dumps(list(self.about)), json.dumps(list(ids))))
        held = {memory for (memory,) in found}
        return np.array([memory in held for memory in ids], bool)


NOWHERE = Reach()


def reach(connection: Connection, owner: int, question: str, each: int = FIRST) -> Reach:
    """Return what a question reaches, by `each` memories of every entity that it names; nothing where none is known."""
    words = words_of(question)
    grams = [gram for gram in words.grams if gram.folded not in NO_NAME]
    known = resolving.lookup(connection, owner, {gram.folded for gram in grams}) if grams else {}
    if not known:
        return NOWHERE
    named = _named(connection, owner, words, known)[:ENTITIES]
    if not named:
        return NOWHERE
    asked, first, terms = [], [], set[str]()
    for gram, entity in named:
        start, steps, used = resolving.group_of(connection, owner, entity.root), _steps(words, gram), [gram.folded]
        first += start
        for role in steps:
            ends = _related(connection, owner, start, kin(role) or "")
            if not ends:
                break
            start, used = ends, [*used, role]
            first += ends
        asked.append(start)
        terms.update(term for word in used for term in keywords.terms(word))
    found = [memory for entity in dict.fromkeys(first) for memory in _newest(connection, owner, entity, each)][
        : ENTITIES * each
    ]
    beyond = _beyond(connection, owner, found, first)
    same = len({frozenset(one) for one in asked}) == 1
    return Reach(tuple(dict.fromkeys((*found, *beyond))), frozenset(asked[0] if same else ()), frozenset(terms))


def _named(connection: Connection, owner: int, words: Words, known: dict[str, list[Known]]) -> list[tuple[Gram, Known]]:
    """Return the entities that a question names, in the order of its words; "her sister" is not the user's."""
    found: list[tuple[Gram, Known]] = []
    for gram, among in resolving.matches(words, known):
        others = gram.start > 0 and (words.owns[gram.start - 1] or words.folded[gram.start - 1] in _THEIRS)
        of = _follows_of(words, gram.end)
        meant = [one for one in among if not (one.role and (others or of))]
        if meant:
            found.append((gram, resolving.choose(connection, owner, meant, [one.id for _, one in found])))
    return sorted(found, key=lambda pair: pair[0].start)


_THEIRS = frozenset(
    "his her their your its seine seiner seinem seinen ihre ihrer ihrem ihren sein ihr sus su leur ses".split()
)
_OF = frozenset("of de del di do da von van".split())
_MINE = frozenset("my our the mi mis mein meiner meines meinem unserer ma mon mia mio minha meu la el mijn".split())
_GENITIVE = frozenset("meiner meines unserer unseres".split())


def _follows_of(words: Words, at: int) -> bool:
    """Whether a word is said to be of somebody: "husband" in "the husband of my sister"."""
    if words.folded[at : at + 1] and words.folded[at] in _GENITIVE:
        return True
    return bool(words.folded[at : at + 1]) and words.folded[at] in _OF and len(words.folded) > at + 1


def _steps(words: Words, gram: Gram) -> list[str]:
    """Return the roles that a question goes on to from a name: "husband" of "my sister's husband", or before "of"."""
    steps, at = [], gram.end
    while words.owns[at - 1] and at < len(words.folded) and words.folded[at] in ROLES:
        steps.append(words.folded[at])
        at += 1
    at = gram.start - 1
    while not steps and at > 0 and words.folded[at] in (_MINE | _OF):
        if words.folded[at - 1] in ROLES and (words.folded[at] in _OF or words.folded[at] in _GENITIVE):
            return [words.folded[at - 1]]
        at -= 1
    return steps


def _related(connection: Connection, owner: int, entities: Sequence[str], attribute: str) -> list[str]:
    """Return whom these entities are related to by an attribute, by what is remembered now; with what was merged into them."""
    wanted = ("spouse", "partner") if attribute in ("spouse", "partner") else (attribute,)
    ways = ((SUBJECT, "x.part < 2"), (1, "x.part = 2")) if attribute in _MUTUAL else ((SUBJECT, "x.part < 2"),)
    found: list[str] = []
    for part, other in ways:
        statement = f"""
            SELECT x.entity FROM mentions s JOIN memories m ON m.owner = s.owner AND m.id = s.memory_id AND m.current
            JOIN mentions x ON x.owner = s.owner AND x.memory_id = s.memory_id AND x.part > 0 AND {other}
            WHERE s.owner = ? AND s.entity IN {_AMONG} AND s.part = ? AND m.status = 'active' AND m.attribute IN {_AMONG}
            ORDER BY m.row DESC LIMIT {NEIGHBOURS}
        """
        values = (owner, json.dumps(list(entities)), part, json.dumps(wanted))
        found += [one for (one,) in fetch(connection, statement, values) if one not in entities]
    roots = dict.fromkeys(resolving.root_of(connection, owner, one) for one in found)
    return [one for root in list(roots)[:1] for one in resolving.group_of(connection, owner, root)]


def _newest(connection: Connection, owner: int, entity: str, limit: int) -> list[str]:
    """Return the ids of the memories that name an entity: those about it first, those noted last first."""
    statement = "SELECT memory_id FROM mentions WHERE owner = ? AND entity = ? ORDER BY part DESC, rowid DESC LIMIT ?"
    return [memory for (memory,) in fetch(connection, statement, (owner, entity, limit))]


def _beyond(connection: Connection, owner: int, found: Collection[str], first: Iterable[str]) -> list[str]:
    """Return the ids of the memories about those that the found memories name as well."""
    # Left to itself, SQLite reads all of the owner's mentions in the order of the grouping.
    statement = f"""
        SELECT entity FROM mentions INDEXED BY mentions_memory
        WHERE owner = ? AND memory_id IN {_AMONG} AND entity NOT IN {_AMONG} GROUP BY entity ORDER BY max(part) DESC, count(*) DESC, entity LIMIT ?
    """
    near = fetch(connection, statement, (owner, json.dumps(list(found)), json.dumps(list(first)), NEIGHBOURS))
    each = [_newest(connection, owner, entity, SECOND) for (entity,) in near]
    share = max(SECOND // max(len(each), 1), 1)
    return [memory for one in each for memory in one[:share]]
