"""Does a candidate tell how things stand now with what a memory is about, in whatever words?

Wordings differ too much for patterns, so three signs count together: words of change, content words in common, and the
cosine of the two statements. What a statement is about (`phrases.head`) may not differ.
"""

import re
from functools import lru_cache

from sharpwave.memory import phrases
from sharpwave.memory.decide.sameness import Known
from sharpwave.memory.decide.taking_back import is_meanwhile
from sharpwave.memory.meanings import alike, unsaid
from sharpwave.memory.phrases import LIGHT, core, covered, details, head, stems
from sharpwave.memory.records import Candidate, Memory
from sharpwave.memory.slots import slot

RETOLD = 0.8
"""Share of a memory's content words that a statement has to say again to take its place."""
NEAR = 0.45
"""Cosine from which a change that shares a word with a memory is about it (all-MiniLM-L6-v2)."""
BRIEF = 0.6
"""The same where they share but a light word ("I work days now", "I work nights")."""
AT_MOST = 5
"""Content words that either may have and the other not: beyond it they are about more than one thing."""

_NOW = re.compile(r"\bthese days\b", re.IGNORECASE)
_PARTS = re.compile(r",? and |[,;.] ")
_CHANGING = stems(
    "moved move moving changed change switched now currently got went going gone correction instead"
    " again new still anymore longer only just actually transferred updated increased"
)
_KINDS = {
    "clock": re.compile(
        r"\b\d{1,2}(?::\d\d|(?:[:.]\d\d)? ?[ap]\.?m\b)|\b(?:at|from|by|till|until) \d{1,2}\b", re.IGNORECASE
    ),
    "day": re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\bweekends?\b", re.IGNORECASE),
    "month": re.compile(
        r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b"
    ),
    "ordinal": re.compile(
        r"\b(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|ground|top|last)\b", re.IGNORECASE
    ),
}

_TITLES = stems("mr mrs ms miss dr prof professor sir dame phd msc bsc mba")


@lru_cache(maxsize=16384)
def values(text: str) -> dict[str, frozenset[str]]:
    """Return the exact values in a statement by kind: times, days, months, places in an order, numbers, names."""
    found = {kind: stems(" ".join(pattern.findall(text))) for kind, pattern in _KINDS.items()}
    known = frozenset().union(*found.values())
    found["number"] = frozenset(w for w in stems(text) if w[:1].isdigit()) - known
    found["name"] = stems(" ".join(d for d in details(text) if not d[:1].isdigit())) - known - _TITLES
    return {kind: words for kind, words in found.items() if words}


def other_values(new: str, old: str) -> frozenset[str]:
    """Return the exact values of `old` that `new` has another of the same kind for."""
    mine, theirs = values(new), values(old)
    pairs = [(mine[kind] - theirs[kind], theirs[kind] - mine[kind]) for kind in mine.keys() & theirs.keys()]
    return frozenset().union(*(gone for come, gone in pairs if come))


def part_about(new: str, old: str) -> str:
    """Return the clause of `old` that is about what `new` is about, all of `old` where none is."""
    mine = head(new)
    return next((part for part in _PARTS.split(old) if mine and covered(mine, head(part)) >= RETOLD), old)


def same_topic(new: str, old: str) -> bool:
    """Whether what `new` is about, where it names it, is what `old` speaks of."""
    mine, theirs = head(new), head(old)
    if mine and theirs:
        return covered(mine, theirs) >= RETOLD or covered(theirs, mine) >= RETOLD
    return not mine or len(unsaid(mine, stems(old))) <= (1 - RETOLD) * len(mine)


def retells(candidate: Candidate, memory: Memory) -> float:
    """Return how much of a memory a candidate says again while it says something else too, 0..1; 0 below `RETOLD`."""
    about = stems(candidate.subject) & stems(memory.subject)
    new, old = stems(candidate.text) - about, stems(memory.text) - about
    event = candidate.kind == "event" and not changed(candidate)
    if event or len(old) < 3 or not new - old:
        return 0.0
    if phrases.negated(candidate.text) != phrases.negated(memory.text):
        return 0.0
    share = covered(old, new)
    return share if share >= RETOLD and same_topic(candidate.text, memory.text) else 0.0


_AGAIN = re.compile(r"\bagain\b", re.IGNORECASE)


def changed(candidate: Candidate) -> bool:
    """Whether a candidate tells of a change that puts one thing in another's place; what happened again changes nothing."""
    return phrases.replaces(_AGAIN.sub("", candidate.text) if candidate.kind == "event" else candidate.text)


_NUMBER = re.compile(
    r"\b(?:\d[\d.,]*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|(?<=to )one|(?<=at )one|once|twice)\b"
    r"(?:\s+(?!(?:now|after|in|on|at|of|for|and|or|to|since|because|so|by|from|with|a|an|the|o'clock)\b)(?P<what>[a-z]{3,}))?",
    re.IGNORECASE,
)
_DATES = stems("january february march april may june july august september october november december")
_EXACT = ("clock", "day", "month", "ordinal")


def other_measure(new: str, old: str) -> bool:
    """Whether `new` counts or dates something of which `old` counts and dates nothing: a colour is not replaced by a mileage."""
    mine, theirs = ({kind for kind in values(text) if kind in _EXACT} for text in (new, old))
    numbers, known = list(_NUMBER.finditer(new)), list(_NUMBER.finditer(old))
    if not mine and not numbers:
        return False
    if not mine & theirs and not (numbers and known):
        return True
    counted, before = ({s for found in some for s in stems(found["what"] or "")} - _DATES for some in (numbers, known))
    return bool(counted) and bool(before) and not any(alike(c, k) for c in counted for k in before)


_MOVES = re.compile(
    r"\b(?:moved|shifted|switched|swapped|changed|set|turned(?! (?:\d|one\b|two\b|three\b|four\b|five\b|six\b|seven\b|eight\b|nine\b|ten\b))|put|pushed|bumped)\b(?P<thing>(?: [\w'-]+){1,4}?) (?:down |over |up |back |off )?"
    r"(?:to|into|onto|at|in|from|for|on)\b",
    re.IGNORECASE,
)


def moves_another(text: str, memory: Memory) -> bool:
    """Whether what a statement moves or changes is a thing that the memory does not name: who switched trains in York has not moved."""
    found = _MOVES.search(text)
    moved = stems(found["thing"]) if found else frozenset()
    return bool(moved) and not any(alike(m, k) for m in moved for k in stems(memory.text))


def takes_over(candidate: Candidate, near: Known) -> bool:
    """Whether a candidate that tells of a change is about this memory, and says something else of it."""
    memory = near.memory
    if (
        is_meanwhile(candidate.text)
        or moves_another(candidate.text, memory)
        or other_measure(candidate.text, memory.text)
    ):
        return False
    if _collects(candidate, memory) or not same_topic(candidate.text, part_about(candidate.text, memory.text)):
        return False
    about = (stems(candidate.subject) & stems(memory.subject)) | _CHANGING
    new, old = stems(_NOW.sub("", core(candidate.text))) - about, stems(memory.text) - about
    shared = frozenset(w for w in new if any(alike(w, o) for o in old))
    mine, theirs = new - shared, frozenset(o for o in old if not any(alike(o, w) for w in new))
    if not mine or not theirs or len(mine) > AT_MOST or len(theirs) > AT_MOST:
        return False
    other = bool(other_values(candidate.text, memory.text))
    if shared - LIGHT:
        return near.cosine >= NEAR or other or len(shared) >= max(1, min(len(mine), len(theirs)) - 1)
    brief = max(len(mine), len(theirs)) <= 2 and near.cosine >= BRIEF
    return bool(shared) and (brief or (other and near.cosine >= NEAR))


def _collects(candidate: Candidate, memory: Memory) -> bool:
    """Whether both fill a slot that takes several values, each with one of its own, and neither counts nor is swapped."""
    if not candidate.value or not memory.value or candidate.attribute != memory.attribute:
        return False
    if "number" in values(candidate.value) and "number" in values(memory.value):
        return False
    return slot(candidate.attribute or "").many and not phrases.swaps(candidate.text)
