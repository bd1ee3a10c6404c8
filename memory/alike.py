"""Do two memories say the same? What merging goes by, so that nothing is lost by it.

Stricter than what a decision about a new statement goes by (`decide.sameness`): there the words are still at hand to ask
about, here two memories that have stood side by side become one. Words in common are never enough. There are two ways to
be the same: in the same words, articles and the like aside; or as the same value of the same slot, told in no words that
the other lacks. Both are looked up, not compared all with all, so that merging takes time in proportion to the memories.
"""

import re
from collections.abc import Hashable
from functools import lru_cache

from sharpwave.memory import phrases, semantic
from sharpwave.memory.decide.sameness import value_words
from sharpwave.memory.phrases import details, stance, stems
from sharpwave.memory.records import Memory
from sharpwave.memory.slots import aliases
from sharpwave.memory.trust import TRUST

_WORD = re.compile(r"[^\W_]+(?:[.'/:@&+#_-]+[^\W_]+)*[+#%€$£]*|[€$£%+#]")
"""A word with what holds it together (`alpha.py`, `12:30`, `C++`): "1.5" and "15" are two."""
_SAYS_NOTHING = frozenset(("a", "an", "the", "really", "very"))
_USER = re.compile(r"^(?:the )?user\b(?:'s\b)?", re.IGNORECASE)
_VERB = re.compile(r"(?<=[^\Ws])(?:s)$")
_PAST = re.compile(r"\b(?:was|were|had|did|used to|went|ran|bought|saw|got|met|\w{3,}ed)\b", re.IGNORECASE)
MERGEABLE = ("fact", "preference", "event")


@lru_cache(maxsize=32768)
def words(text: str) -> tuple[str, ...]:
    """Return the words of a statement in order, in lower case, without articles; "User likes tea" reads as "I like tea"."""
    plain = phrases.expanded(text)
    of_user = _USER.match(plain)
    found = [word.casefold() for word in _WORD.findall(plain[of_user.end() :] if of_user else plain)]
    if of_user and of_user[0].endswith("s"):
        found = ["my", *found]
    elif of_user and found:
        found = ["i", {"is": "am", "has": "have", "was": "was"}.get(found[0], _VERB.sub("", found[0])), *found[1:]]
    if found[:2] == ["i", "am"] and len(found) > 2:  # "Allergic to nuts" is a note of "I am allergic to nuts"
        found = found[2:]
    return tuple(word for word in found if word not in _SAYS_NOTHING) or (text.casefold(),)


def _when(memory: Memory) -> Hashable:
    """Return what sets two memories apart by time: an event can happen again, and what is past is not what holds."""
    event = memory.event_time
    told = (event.start, event.end) if event else None
    day = (memory.source.said_at or memory.valid_from).date() if memory.kind == "event" and event is None else None
    return told, day, memory.valid_to, memory.expires_at


def keys(memory: Memory) -> list[Hashable]:
    """Return what a memory is looked up by: those that share none of these are not the same."""
    if memory.kind not in MERGEABLE or memory.synthetic or memory.needs_review:
        return []
    about = (memory.subject.casefold(), memory.kind == "event", _when(memory))
    found: list[Hashable] = [("words", words(memory.text), *about)]
    if memory.attribute and memory.value:
        slot = (memory.attribute, _value(memory.value), _mood(memory.text), _numbers(memory.text), _turns(memory.text))
        found.append(("slot", *slot, *about))
    return found


def _value(value: str) -> tuple[str, ...]:
    """Return the words of a value: `peanuts` and `Peanut` are one, and each order of names is its own."""
    parts = [tuple(sorted(value_words(word))) for word in semantic.folded(value).split()]
    return tuple(part for some in parts for part in some)


def _mood(text: str) -> Hashable:
    """Return how a statement takes what it speaks of: liked, disliked, wanted, denied; of the past, or changing."""
    return stance(text) - {"have"}, bool(_PAST.search(text)), phrases.changes(text)


def order(memory: Memory) -> tuple[object, ...]:
    """Return what the memory that is kept has most of: pinned, trusted, confident, specific; then the older."""
    specific = (len(details(memory.text)), len(stems(memory.text)), len(memory.value or ""))
    return (
        not memory.pinned,
        -TRUST[memory.source.kind],
        -memory.confidence,
        *(-count for count in specific),
        memory.valid_from,
        memory.id,
    )


def says_all(kept: Memory, other: Memory) -> bool:
    """Whether `kept` says everything that `other` does, so that `other` may go."""
    return bool(set(keys(kept)) & set(keys(other))) and covers(kept, other)


def covers(kept: Memory, other: Memory) -> bool:
    """The same for two memories that share a key."""
    if other.pinned:
        return False
    if None not in (kept.attribute, other.attribute) and kept.attribute != other.attribute:
        return False
    if None not in (kept.value, other.value) and _value(kept.value or "") != _value(other.value or ""):
        return False
    if (other.attribute is not None and kept.attribute is None) or not {*other.tags} <= {*kept.tags}:
        return False
    if words(kept.text) == words(other.text):
        return details(other.text) <= details(kept.text)
    held, more = _bare(kept.text), _bare(other.text)
    if not (details(kept.text) <= more and details(other.text) <= held):
        return False
    spoken = stems(aliases(kept.attribute or "")) | stems(kept.subject)
    return stems(other.text) - spoken <= stems(kept.text)


@lru_cache(maxsize=32768)
def _bare(text: str) -> frozenset[str]:
    return frozenset(words(text)) | frozenset(re.findall(r"[\w'-]+", phrases.straight(text).casefold()))


def _numbers(text: str) -> tuple[str, ...]:
    """Return the numbers of a text, those that are written out too."""
    found = (stem for word in words(text) for stem in (stems(word) or {word}) if any(c.isdigit() for c in stem))
    return tuple(sorted(found))


_TURNS = frozenset(
    "before after until till unless if except only hardly rarely seldom never almost nearly might may could would should"
    " must without against from to for with over under not no neither nor sometimes often always mostly ex former".split()
)


def _turns(text: str) -> frozenset[str]:
    """Return the small words of a text that turn what it says."""
    said = frozenset(words(text)) & _TURNS
    return said - {"to", "for", "with", "from"}
