"""Is a candidate the same statement as a memory, in other words?

Facts that differ in a number, a date, a name or a negation are never the same.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sharpwave.memory import phrases
from sharpwave.memory.extract.slotting import mentioned
from sharpwave.memory.extract.values import KIN
from sharpwave.memory.meanings import synonyms, telling, unsaid
from sharpwave.memory.phrases import core, details, same_words, stance, stems
from sharpwave.memory.records import Candidate, Memory, Recall
from sharpwave.memory.slots import FORMER, aliases, slot

SAME_MEANING = 0.68
"""Cosine from which a statement with one word more than a memory is the same (all-MiniLM-L6-v2)."""

CONFIRMED = 0.5
"""The same where the statement says itself that it is known ("yes, I write with my left hand")."""

IN_OTHER_WORDS, LITTLE = 0.7, 2
"""The same for one that says all that the memory says, in other words, and so many words more at most."""

SAID_AGAIN = 0.44
"""The same for a brief statement whose words the memory says all."""

SAID_AT_LENGTH = 0.9
"""The same where either is long, so that its words may stand in another order of things."""

BRIEF = 6
"""Content words of a brief statement; a memory may have twice as many."""


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


_ANOTHER = re.compile(r"(?:other|another|first|second|third|former|ex)\b")


def same_subject(candidate: Candidate, memory: Memory) -> bool:
    """Whether both speak of one subject; "sister" and "Oona" are one when a text names both."""
    one, other = candidate.subject.casefold(), memory.subject.casefold()
    if one == other or synonyms(one, other):
        return True
    if one.split()[-1] == other.split()[-1] and (_ANOTHER.match(one) or _ANOTHER.match(other)):
        return False
    if one == "user" and candidate.attribute is None:  # "We moved Jonah to another school"
        acted = re.match(r"(?:I|we|they)\b", candidate.text, re.IGNORECASE)
        return bool(acted and re.search(rf"\b{re.escape(other)}\b", candidate.text, re.IGNORECASE))
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


_NAMED = frozenset("pet child sibling parent friend colleague relative partner spouse".split())
"""Slots whose value is a name or a kind: either may have been told first."""


_KIN = stems(" ".join((*KIN, "kids", "children", "siblings", "parents")))


def same_value(candidate: Candidate, memory: Memory) -> bool:
    """Whether the values say the same; the known one may say more, but for its names and numbers where one value holds."""
    if not candidate.value or not memory.value:
        return False
    new, old = value_words(candidate.value), value_words(memory.value)
    if candidate.attribute == "avoids" and memory.attribute == "diet":
        return any(new <= stems(foods) for diet, foods in _LEFT_OUT.items() if stems(diet) & old)
    if new == old or (slot(candidate.attribute or "").many and new <= old):
        return True
    if candidate.attribute in _NAMED:
        more = new - _KIN - old
        return (bool(new - _KIN) and not more) or (new <= stems(memory.text) and not _other_count(new, old))
    names = details(f"- {candidate.value}") ^ details(f"- {memory.value}")
    other = bool(names) or _other_count(new, old) or phrases.changes(candidate.text)
    return not other and not unsaid(new, old)


def _other_count(new: frozenset[str], old: frozenset[str]) -> bool:
    return any(w.isdigit() for w in new ^ old)


def adds(candidate: Candidate, memory: Memory) -> bool:
    """Whether the candidate says notably more than the memory: two more content words, or one more detail."""
    more = (
        unsaid(stems(core(candidate.text)), stems(memory.text))
        - stems(aliases(candidate.attribute or ""))
        - stems(memory.subject)
    )
    return len(more) >= 3 or (len(more) >= 2 and bool(details(core(candidate.text)) - details(memory.text)))


_AS_BEFORE = re.compile(r"还是|还(?=在)|仍然|依然|まだ|今でも|今も")
"""Words for "still" in scripts without spaces, where they would blur the words around them."""
_AVERSE = {"diet": True, "allergy": True, "avoids": None, "dislikes": None}
"""Slots of what one keeps off, and whether a negation turns that round."""


_AFRAID = re.compile(r"\b(?:afraid|scared?|scares|terrif\w+|frighten\w*|fears?)\b", re.IGNORECASE)
_ABSTAINS = re.compile(r"\b(?:teetotal\w*|sober|abstain\w*|abstinent)\b", re.IGNORECASE)


def averse(text: str, attribute: str | None) -> bool:
    """Whether a statement denies something, or says that one keeps off it."""
    denied = phrases.negated(text)
    if attribute in _AVERSE:
        return not (_AVERSE[attribute] and denied)
    if _AFRAID.search(text):
        return not denied
    return denied or "hate" in stance(text) or bool(_ABSTAINS.search(text))


def paraphrases(candidate: Candidate, near: Known) -> bool:
    """Whether the candidate only says the memory again: it has no word, number or name that the memory does not say."""
    memory, said = near.memory, _AS_BEFORE.sub("", core(candidate.text))
    new, old = (
        stems(said) | _who(candidate.subject),
        stems(f"{memory.text} {memory.value or ''}") | _who(memory.subject),
    )
    if unsaid(_who(memory.subject), new) or averse(said, candidate.attribute) != averse(memory.text, memory.attribute):
        return False
    if _one_value(candidate, memory) and not same_value(candidate, memory):
        return False
    if "want" in stance(memory.text) and "want" not in stance(said):  # what was planned is done
        return False
    likes = "like" in stance(said) and "like" not in stance(memory.text) and memory.attribute not in _TASTES
    exact = stems(" ".join(details(said) | details(memory.text)))
    left = unsaid(new, old, exact)
    if likes or not telling(new) or (exact & left) or (details(said) - details(memory.text) - old):
        return False
    if not left:
        brief = max(len(new), len(old) / 2) <= BRIEF
        return near.cosine >= (SAID_AGAIN if brief else SAID_AT_LENGTH) or confirms(candidate.quote)
    happened = candidate.kind == "event" or _HAPPENED.search(said)
    steady = not happened and not phrases.changes(said) and 2 <= len(telling(new)) <= BRIEF
    return (
        steady
        and len(left) == 1
        and near.cosine >= (CONFIRMED if confirms(candidate.quote) else SAME_MEANING)
        and not _substitutes(said, memory.text)
    )


def says_all(candidate: Candidate, near: Known) -> bool:
    """Whether the candidate says in other words all that the memory says, and a little more: no number and no name."""
    memory, said = near.memory, _AS_BEFORE.sub("", core(candidate.text))
    new = stems(said) | _who(candidate.subject)
    old = stems(f"{memory.text} {memory.value or ''}") | _who(memory.subject)
    left = unsaid(new, old)
    if not same_subject(candidate, memory) and unsaid(_who(candidate.subject), old):
        return False
    if not telling(old) or unsaid(old, new) or not 1 <= len(left) <= LITTLE or near.cosine < IN_OTHER_WORDS:
        return False
    if averse(said, candidate.attribute) != averse(memory.text, memory.attribute) or details(said) - details(
        memory.text
    ):
        return False
    if _one_value(candidate, memory) and not same_value(candidate, memory):
        return False
    happened = candidate.kind == "event" or _HAPPENED.search(said)
    return not (happened or phrases.changes(said) or phrases.besides(said) or _substitutes(said, memory.text))


_HAPPENED = re.compile(r"\b(?:broke|broken|had|was|were|went|came|left|lost|\w{3,}ed)\b", re.IGNORECASE)
_TASTES = ("likes", "hobby", "habit")
_CONFIRMS = re.compile(
    r"^\W*(?:yes|yep|yeah|yup|aye|remember|don'?t forget|like I said|as I said|as you know|you know|reminder|confirm\w*)\b|\bstill\b"
    r"|\b(?:remember|as you know|you know|as (?:ever|always)|(?:as|like) I (?:said|told you|mentioned)|mine|ours|don't forget|in case you forgot)\W*$",
    re.IGNORECASE,
)


def confirms(quote: str) -> bool:
    """Whether a statement says of itself that it is known ("yes, …", "…, remember", "the bike is mine")."""
    return bool(_CONFIRMS.search(phrases.straight(quote)))


def _who(subject: str) -> frozenset[str]:
    return frozenset() if subject == "user" else stems(subject)


def _one_value(candidate: Candidate, memory: Memory) -> bool:
    """Whether both fill a slot that holds one value at a time."""
    attribute = candidate.attribute
    return attribute is not None and attribute == memory.attribute and not slot(attribute).many


def _substitutes(one: str, other: str) -> bool:
    """Whether two statements have the same words but for one stretch of at most two, so that one value replaces another."""
    first, second = (re.findall(r"\w+", phrases.expanded(text).casefold()) for text in (one, other))
    start = next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    end = next((n for n, (a, b) in enumerate(zip(first[::-1], second[::-1], strict=False)) if a != b), 0)
    left = len(first) - start - end, len(second) - start - end
    return start + end >= 2 and all(0 < n <= 2 for n in left)


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


def brings_up_another(candidate: Candidate, memory: Memory) -> bool:
    """Whether a candidate speaks of somebody close that the memory does not: "my brother's bike got stolen" is not of mine."""
    if memory.subject != "user" and _PRONOUN.match(candidate.text):  # "she has moved in with my aunt"
        return False
    return not stems(mentioned(candidate.text) or "") <= stems(f"{memory.text} {memory.subject}")


_PRONOUN = re.compile(r"(?:he|she|they)\b", re.IGNORECASE)
_POSSESSED = re.compile(
    r"\b[\w-]+['’]s (?P<thing>[a-z][\w-]+)(?: [\w-]+)? (?:is|are|was|were|has|have|had|got|died|passed|stopped|broke|left|retired)\b"
)


def of_what_somebody_has(candidate: Candidate, memory: Memory) -> bool:
    """Whether a candidate is about a thing of somebody's that the memory does not name: my brother's car is not my brother."""
    found = _POSSESSED.search(candidate.text)
    return found is not None and bool(unsaid(stems(found["thing"]), stems(f"{memory.text} {memory.value or ''}")))
