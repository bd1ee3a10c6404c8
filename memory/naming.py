"""Names: whom and what a memory speaks of, read from its words and its slot without a model.

What names somebody has to be plain: a slot that holds names ("employer"), a word for kin before a name ("my sister Anna"), or
a name within a sentence of a language that writes only names with a capital. A missed name costs little, since the next
memory may name it; a weekday that became a person would stay.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from sharpwave.memory.grams import READ, WORDS, folded
from sharpwave.memory.kinds import EntityType
from sharpwave.memory.kinship import identifies, kin
from sharpwave.memory.proper import CALLED, SUBJECT, VALUE, Named, in_text, is_name
from sharpwave.memory.records import Memory
from sharpwave.memory.slots import FORMER

USER = "user"

_PERSONAL = frozenset("name partner spouse child sibling parent friend colleague relative pet".split())
_TYPES: Mapping[str, EntityType] = MappingProxyType(
    {
        **dict.fromkeys(_PERSONAL, "person"),
        **dict.fromkeys(("employer", "school"), "organization"),
        **dict.fromkeys(("home_city", "home_country", "origin"), "place"),
        "project": "project",
    }
)
_OF_PEOPLE = _PERSONAL | frozenset(
    "age birthday job employer home_city home_country origin nationality allergy diet avoids condition medication"
    " handedness marital_status likes dislikes hobby language school studies phone email".split()
)


def named(memory: Memory) -> list[Named]:
    """Return the names in a memory, those of its slot first, each once."""
    text = unicodedata.normalize("NFKC", memory.text[:READ])
    found: dict[str, Named] = {}
    for one in (*_subject(memory, text), *_value(memory), *in_text(text)):
        key = folded(one.name)
        known = found.get(key)
        if key and known is None:
            found[key] = one
        elif known is not None:
            kind = one.type if known.type == "concept" else known.type
            found[key] = Named(known.name, kind, max(known.part, one.part), known.role or one.role)
    return list(found.values())


_NOBODY = ("agent", "conversation")
"""Subjects of what is kept about the agent itself, and of what conversations were about."""


def _subject(memory: Memory, text: str) -> Iterator[Named]:
    subject = memory.subject.strip()
    key = folded(subject)
    if not key or key in (USER, *_NOBODY) or len(key.split()) > WORDS + 1:
        return
    attribute = (memory.attribute or "").removeprefix(FORMER)
    if kin(key) is not None:
        if identifies(key):
            value = memory.value if attribute == "name" and memory.value else ""
            yield Named(value if is_name(value) else key, "person", SUBJECT, key)
    elif key.startswith("project "):
        yield Named(subject[8:].strip(), "project", SUBJECT)
    else:
        yield Named(subject, "person" if attribute in _OF_PEOPLE else "concept", SUBJECT)


def _value(memory: Memory) -> Iterator[Named]:
    attribute = (memory.attribute or "").removeprefix(FORMER)
    value = (memory.value or "").strip()
    if memory.metadata.get(RELATED) and value and folded(value) != USER:
        yield Named(value, _TYPES.get(attribute, "concept"), VALUE)
        return
    if attribute == "name" and (memory.subject == USER or kin(folded(memory.subject))):
        return  # the user's own name, and one that the subject has taken
    kind = _TYPES.get(attribute)
    if kind is None:
        return
    called = CALLED.search(value)
    name = called["n"] if called else value
    if is_name(name):
        yield Named(name, kind, VALUE)


RELATED = "relation"
"""Mark in the metadata of a memory that was written to relate two entities: its value is a name, whatever it looks like."""
