"""Is a candidate the same statement as a memory, in other words?

Facts that differ in a number, a date, a name or a negation are never the same.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sharpwave.memory import phrases
from sharpwave.memory.extract.values import KIN
from sharpwave.memory.phrases import LIGHT, akin, core, covered, details, same_words, stance, stems
from sharpwave.memory.records import Candidate, Memory, Recall
from sharpwave.memory.slots import FORMER, aliases, slot

SAME_MEANING = 0.74
"""Cosine from which two statements with the same details and stance are one (all-MiniLM-L6-v2)."""

SAID_AGAIN = 0.68
"""The same for a statement that says nothing but the value of what is known ("I'm in Leeds", "I live in Leeds")."""


@dataclass(frozen=True, slots=True)
class Known:
    """A memory that a candidate is held against."""

    memory: Memory
    cosine: float
    """Between the two, -1..1; 0 when unknown."""


def usable(near: Sequence[Recall]) -> Iterator[Known]:
    """Yield the active memories among what was found."""
    for recall in near:
        if recall.memory is not None and recall.memory.status == "active":
            yield Known(recall.memory, recall.parts.cosine if recall.parts else 0.0)


def is_past(memory: Memory) -> bool:
    """Whether a memory is about what once was."""
    return memory.valid_to is not None or (memory.attribute or "").startswith(FORMER)


def same_subject(candidate: Candidate, memory: Memory) -> bool:
    """Whether both speak of one subject; "sister" and "Oona" are one when a text names both."""
    one, other = candidate.subject.casefold(), memory.subject.casefold()
    if one == other:
        return True
    if "user" in (one, other):
        return False
    return bool(
        re.search(rf"\b{re.escape(one)}\b", memory.text, re.IGNORECASE)
        or re.search(rf"\b{re.escape(other)}\b", candidate.text, re.IGNORECASE)
    )


def same_slot(candidate: Candidate, memory: Memory) -> bool:
    """Whether both fill the same slot of the same subject."""
    return (
        candidate.attribute is not None and candidate.attribute == memory.attribute and same_subject(candidate, memory)
    )


_SAID_BY = {("likes", "hobby"), ("hobby", "likes"), ("avoids", "allergy"), ("avoids", "diet")}
_LEFT_OUT = {"vegetarian": "meat ham bacon beef pork", "vegan": "meat dairy eggs cheese milk fish ham bacon beef pork"}
"""What a diet says that one does not eat."""
"""Pairs of a new and a known attribute where the known one says the new one too."""


def same_slot_or_kin(candidate: Candidate, memory: Memory) -> bool:
    """Whether both fill the same slot, or the memory fills one that implies the candidate's."""
    if same_slot(candidate, memory):
        return True
    return (candidate.attribute, memory.attribute) in _SAID_BY and same_subject(candidate, memory)


def different_slots(candidate: Candidate, memory: Memory) -> bool:
    """Whether both have a slot, and not the same."""
    return candidate.attribute is not None and memory.attribute is not None and candidate.attribute != memory.attribute


def value_words(value: str) -> frozenset[str]:
    """Return the content stems of a value, or its words where it has none."""
    value = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b", "", value)
    value = re.sub(r"\bveggie\b", "vegetarian", value, flags=re.IGNORECASE)
    return stems(value) or frozenset(value.casefold().split())


_NAMED = frozenset({"pet", "child", "sibling", "parent", "friend", "colleague", "relative"})
"""Slots whose value is a name or a kind: either may have been told first."""


_KIN = stems(" ".join((*KIN, "kids", "children", "siblings", "parents")))


def same_value(candidate: Candidate, memory: Memory) -> bool:
    """Whether the values are the same, stemmed; in a many-valued slot also when the known one holds the new one."""
    if not candidate.value or not memory.value:
        return False
    new, old = value_words(candidate.value), value_words(memory.value)
    if candidate.attribute == "avoids" and memory.attribute == "diet":
        return any(new <= stems(foods) for diet, foods in _LEFT_OUT.items() if stems(diet) & old)
    if new == old or (slot(candidate.attribute or "").many and new <= old):
        return True
    if candidate.attribute in _NAMED and new - _KIN == old - _KIN and new - _KIN:
        return True
    return candidate.attribute in _NAMED and new <= stems(memory.text) and not _other_count(new, old)


def _other_count(new: frozenset[str], old: frozenset[str]) -> bool:
    return any(w.isdigit() for w in new ^ old)


def adds(candidate: Candidate, memory: Memory) -> bool:
    """Whether the candidate says notably more than the memory: two more content words, or one more detail."""
    more = (
        stems(core(candidate.text))
        - stems(memory.text)
        - stems(aliases(candidate.attribute or ""))
        - stems(memory.subject)
    )
    return len(more) >= 3 or (len(more) >= 2 and bool(details(core(candidate.text)) - details(memory.text)))


_STILL = stems("still")


def paraphrases(candidate: Candidate, near: Known) -> bool:
    """Whether the candidate only says the memory again in other words."""
    memory = near.memory
    if not same_subject(candidate, memory):
        return False
    if _still(candidate, memory):
        return True
    if different_slots(candidate, memory):
        return _another_slot_says(candidate, near)
    about = stems(candidate.subject) | stems(memory.subject) | _STILL
    said = core(candidate.text)
    new, old = stems(said) - about or stems(said), stems(memory.text) - about
    same_details = details(said) == details(memory.text)
    if stance(candidate.text) != stance(memory.text) or not new or not old:
        return False
    if candidate.attribute and memory.attribute and candidate.value and memory.value:
        return False
    if same_details and _numbers_alike(new, old) and _same_in_other_words(candidate, near):
        return True
    if covered(new, old) == 1 and details(said) <= details(memory.text):
        return len(new) >= 2 or new == old or (near.cosine >= SAID_AGAIN and new == value_words(memory.value or ""))
    small = old <= new and len(new - old) <= 1 and not phrases.changes(candidate.text)
    return small and same_details and _numbers_alike(new, old)


def _still(candidate: Candidate, memory: Memory) -> bool:
    """Whether the candidate says that what the memory says still holds, and nothing else."""
    new = stems(candidate.text) - stems(candidate.subject)
    known = stems(memory.text) | stems(memory.value or "")
    negation = phrases.negated(candidate.text) == phrases.negated(memory.text)
    return bool(new & _STILL) and bool(new - _STILL) and negation and covered(new - _STILL, known) == 1


def _another_slot_says(candidate: Candidate, near: Known) -> bool:
    """Whether a memory in another slot says it all the same ("I studied law in Ghent", "I have a law degree from Ghent")."""
    new, old = stems(candidate.text), stems(near.memory.text)
    said = covered(new, old) > 0.6 and covered(stems(candidate.value or ""), old) == 1
    exact = details(candidate.text) <= details(near.memory.text) and _numbers_alike(new, old)
    steady = stance(candidate.text) - {"have"} == stance(near.memory.text) - {"have"} and not phrases.changes(
        candidate.text
    )
    return (
        said and exact and steady and near.cosine >= SAME_MEANING and not _substitutes(candidate.text, near.memory.text)
    )


def _same_in_other_words(candidate: Candidate, near: Known) -> bool:
    """Whether vectors agree and all content words but one in four are said already, and it is not one sentence with one word put for another."""
    new, old = stems(candidate.text), stems(near.memory.text)
    if candidate.kind == "event" or not candidate.text.isascii() or not new & old or phrases.changes(candidate.text):
        return False
    about = stems(candidate.subject) | stems(near.memory.subject)
    more = [w for w in new - about - LIGHT if not any(akin(w, o) for o in old)]
    said = len(more) <= 1 and len(more) * 4 <= len(new - about)
    return said and near.cosine >= SAME_MEANING and not _substitutes(candidate.text, near.memory.text)


def _substitutes(one: str, other: str) -> bool:
    """Whether two statements have the same words but for one stretch of at most two, so that one value replaces another."""
    first, second = (re.findall(r"\w+", phrases.expanded(text).casefold()) for text in (one, other))
    start = next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    end = next((n for n, (a, b) in enumerate(zip(first[::-1], second[::-1], strict=False)) if a != b), 0)
    left = len(first) - start - end, len(second) - start - end
    return start + end >= 2 and all(0 < n <= 2 for n in left)


def _numbers_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return not any(word[:1].isdigit() for word in one ^ other)


def repeats(candidate: Candidate, earlier: Candidate) -> bool:
    """Whether a candidate of the same turn has said this already."""
    if candidate.polarity != earlier.polarity or candidate.history != earlier.history:
        return False
    if same_words(candidate.text, earlier.text):
        return True
    if candidate.subject != earlier.subject or candidate.attribute is None or candidate.attribute != earlier.attribute:
        return False
    same = bool(candidate.value and earlier.value) and value_words(candidate.value or "") == value_words(
        earlier.value or ""
    )
    return same and details(candidate.text) <= details(earlier.text)
