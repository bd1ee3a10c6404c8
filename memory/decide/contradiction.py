"""Does a candidate put something in the place of what a memory says?"""

import re

from sharpwave.memory import phrases
from sharpwave.memory.decide.sameness import different_slots, is_past, same_slot, same_subject, same_value
from sharpwave.memory.extract.values import KIN
from sharpwave.memory.phrases import LIGHT, akin, covered, details, stance, stems
from sharpwave.memory.records import Candidate, Memory, Turn
from sharpwave.memory.slots import slot

_SUCCESSION = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        (
            r"\b(?:switched|changed|moved|shifted|gone|went|swapped|rescheduled|upgraded|migrated"
            r"|converted|updated|increased|decreased|reduced|risen|rose|fell|fallen|grew|grown|dropped|cut|raised"
            r"|extended|pushed|postponed|transferred|transitioned|evolved|turned)\b.*?\bfrom (?P<a>.+?) (?:on|over )?"
            r"to (?P<b>.+)"
        ),
        (r"\b(?:switched|changed|moved|gone|went|come|migrated|transferred)(?: \w+)? to (?P<b>.+?) from (?P<a>.+)"),
        r"\bfrom (?P<a>.+?) .*?(?:went|moved|shifted|switched|changed) to (?P<b>.+)",
        r"(?P<b>.+?)(?: instead of| rather than| and not|, not) (?P<a>.+)",
        (
            r"\b(?:swapped|traded|exchanged|replaced|left|ditched|dropped|put|sold)(?: in)? (?P<a>.+?) (?:aside"
            r" )?(?:for|with|in favou?r of|and (?:got|bought|started|joined|took up)) (?P<b>.+)"
        ),
        r"(?P<b>.+?) (?:has|have)? ?replaced (?P<a>.+?)(?: as .*)?$",
        (
            r"\b(?:finished|done with|gone off|quit|stopped|gave up|given up) (?P<a>.+?)(?:,| and) (?:(?:it is|it's|I"
            r"|am|now|just|have|started|began|took up|reading|on to|i'm) )*(?P<b>(?!gone|over|done|(?:too|so|not|no|never|because|since|it|way|last|after|just|very)\b).+)"
        ),
        (
            r"\bafter (?:(?:many )?years (?:as|with|of|in|at) (?:an? )?|(?=(?-i:[A-Z])))(?P<a>.+?),? (?:I|we"
            r"|it)\b(?P<b>.+)"
        ),
        r"\b(?:the|my) (?P<a>[\w -]+?) (?:is gone|broke|died|was stolen|packed up)(?:,| so| and) (?P<b>.+)",
    )
)


def succeeds(text: str) -> tuple[frozenset[str], str | None]:
    """Return the words of what goes, and what comes, where a statement names both."""
    for pattern in _SUCCESSION:
        if found := pattern.search(phrases.straight(text).rstrip(" .!")):
            come = re.sub(
                r"\s+(?:now|these days|for me.*|as my .*|any ?more|instead)$", "", found["b"], flags=re.IGNORECASE
            )
            return stems(found["a"]), come if len(come.split()) <= 5 else None
    return frozenset(), None


def replaces(candidate: Candidate, memory: Memory) -> bool:
    """Whether the candidate has another value for the memory's single-valued slot."""
    single = memory.attribute == "marital_status" and (memory.value or "").casefold() == "single"
    if single and candidate.attribute in ("partner", "spouse") and candidate.value and not is_past(memory):
        return same_subject(candidate, memory)
    return (
        same_slot(candidate, memory)
        and not slot(candidate.attribute or "").many
        and not is_past(memory)
        and bool(candidate.value)
        and not same_value(candidate, memory)
    )


def feels(text: str) -> str | None:
    """Return "likes" or "dislikes" for a statement of taste, None for any other."""
    taken = stance(text)
    if not taken & {"like", "hate"}:
        return None
    return "likes" if ("hate" in taken) == ("not" in taken) else "dislikes"


def corrects(candidate: Candidate, turn: Turn) -> bool:
    """Whether the candidate, or the words of its sentence before it, say that something was wrong."""
    if phrases.corrects(candidate.quote) or phrases.corrects(candidate.text):
        return True
    before = turn.user_text.partition(candidate.quote)[0].rstrip()
    return phrases.corrects(re.split(r"(?<=[.!?\n])\s*", before)[-1] if before else "") and not before.endswith(
        (".", "!", "?")
    )


def corrected_value(candidate: Candidate, memory: Memory) -> bool:
    """Whether the candidate names what was wrong ("…, not 3B") and the memory holds it, or both share all but the value."""
    if wrong := re.search(
        r"\b(?:not|instead of|rather than)\s+(?:an? |the |in |at |on )?([\w' -]+)", candidate.text, re.IGNORECASE
    ):
        named = stems(wrong[1])
        if named and named <= stems(memory.text) and bool(stems(candidate.text[: wrong.start()]) & stems(memory.text)):
            return True
    if candidate.attribute and candidate.attribute == memory.attribute:
        rest = stems(candidate.text) - stems(candidate.value or "")
        return bool(rest & (stems(memory.text) - stems(memory.value or "")))
    return False


_CHANGE = stems(
    "moved move changed change switched now currently these days got went up down gone correction instead again new"
)
_ORDINALS = stems("first second third fourth fifth sixth seventh eighth ninth tenth ground top")
_TOLD = re.compile(r"\b(?:was|were|had|did|went|\w{3,}ed|ran|bought|saw|got|met)\b", re.IGNORECASE)
"""Verbs of what happened, which can happen again on another day."""


def other_details(candidate: Candidate, memory: Memory, corrected: bool) -> bool:
    """Whether both are one statement but for a number, a date or a name."""
    new, old = stems(candidate.text), stems(memory.text)
    shared, mine, theirs = new & old, new - old - _CHANGE, old - new - _CHANGE
    if (
        not shared
        or not mine
        or not theirs
        or (candidate.kind == "event" and not corrected)
        or stance(candidate.text) != stance(memory.text)
    ):
        return False
    exact = (
        stems(" ".join(details(candidate.text) | details(memory.text)))
        | _ORDINALS
        | {w for w in new | old if w.isdigit()}
    )
    if not (mine <= exact and theirs <= exact):
        return False
    if any(w[:1].isdigit() for w in mine) != any(w[:1].isdigit() for w in theirs):
        return False
    single = len(mine) == len(theirs) == 1 or all(w[:1].isdigit() for w in mine | theirs)
    return corrected or (
        single and 2 * len(shared) >= len(new) and (phrases.changes(candidate.text) or not _TOLD.search(candidate.text))
    )


_PLACE_OF = re.compile(
    r"(?:my|our|the) (?P<t>[\w' -]+?) (?:is|are|hangs?|lies|sits?|stands?)(?: \w+ed| kept| now)? (?:in|on|under|at"
    r"|behind|near|inside|with|by|next to|above|below) (?P<v>.+)",
    re.IGNORECASE,
)


def elsewhere(candidate: Candidate, memory: Memory) -> bool:
    """Whether both tell where one thing is, and not in the same place."""
    here, there = (_PLACE_OF.fullmatch(phrases.expanded(t).strip(" .!")) for t in (candidate.text, memory.text))
    if not here or not there or stems(here["t"]) != stems(there["t"]) or stems(here["v"]) == stems(there["v"]):
        return False
    return here["t"].split()[-1].casefold() not in KIN


_SINCE = stems("since summer winter spring autumn week month year finally longer last time again learn learned can")
_ONCE = re.compile(
    r"\b(?:did|was|were|will) not\b|\b(?:yesterday|today|tonight|tomorrow|this (?:morning|afternoon|evening|time)"
    r"|last night)\b",
    re.IGNORECASE,
)


def of_one_day(text: str) -> bool:
    """Whether a statement denies something of a single day or occasion, which says nothing of other days."""
    return bool(_ONCE.search(phrases.expanded(text)))


def denies(candidate: Candidate, memory: Memory) -> bool:
    """Whether both say the same words, one of them with a negation, and perhaps since when; not of a single day."""
    if phrases.negated(candidate.text) == phrases.negated(memory.text) or of_one_day(candidate.text):
        return False
    new, old = stems(candidate.text), stems(memory.text)
    shared = frozenset(word for word in new if any(akin(word, known) for known in old)) - LIGHT
    more = new - shared - _SINCE - stems(" ".join(details(candidate.text))) - LIGHT
    return new == old or (bool(shared) and not more and covered(shared, new - _SINCE) >= 0.5 and len(old - new) <= 3)


def extends(candidate: Candidate, memory: Memory) -> bool:
    """Whether the candidate says what the memory says, in its words, and more."""
    new, old = stems(candidate.text), stems(memory.text)
    if (
        not old
        or not old < new
        or stance(candidate.text) - {"name"} != stance(memory.text) - {"name"}
        or different_slots(candidate, memory)
    ):
        return False
    return details(memory.text) <= details(candidate.text) and _within(memory.text, candidate.text)


def _within(old: str, new: str) -> bool:
    """Whether the words of `old` occur in `new` in their order."""
    rest = iter(re.findall(r"\w+", phrases.without_adverbs(phrases.expanded(new)).casefold()))
    return all(word in rest for word in re.findall(r"\w+", phrases.without_adverbs(phrases.expanded(old)).casefold()))
