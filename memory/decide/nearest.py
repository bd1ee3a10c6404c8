"""A change told in so many words, of nothing that it names: it is the memory nearest in meaning that it changes.

"We're in Antwerp as of last week" shares no word with "I live in Ghent". But who says so tells of a change, and what is
changed is nearly always what is nearest. So the form of the statement has to be plain, and only one memory may be meant.
English; nearness as all-MiniLM-L6-v2 sees it.
"""

import re
from collections.abc import Sequence

from sharpwave.memory import phrases
from sharpwave.memory.decide.moving_on import moves_another, other_measure
from sharpwave.memory.decide.sameness import brings_up_another, is_past
from sharpwave.memory.decide.taking_back import LASTING, is_meanwhile, passes
from sharpwave.memory.extract.changing import tells_change, tells_end
from sharpwave.memory.extract.slotting import mentioned
from sharpwave.memory.meanings import unsaid
from sharpwave.memory.records import Candidate, Decision, Memory, Recall
from sharpwave.memory.slots import slot

NEAR = 0.3
"""Least cosine of the memory that is changed."""
LEAD = 0.05
"""By how much it has to be nearer than the next that speaks of something else."""
LONGEST = 20
"""Words from which on a statement says too much for its form to tell what it is about."""
SURE = 0.75
"""Confidence of such a decision."""

_ABOUT = re.compile(
    r"(?:the|this|that|my|our|his|her|their) (?P<thing>[\w'’ -]+?) (?:is|are|was|were|has|have|had|got|died|passed|broke|split|stopped|closed"
    r"|left|retired|moved|went|came|did|does|costs?|starts?)\b",
    re.IGNORECASE,
)
_MOVED = re.compile(r"\bmoved\b", re.IGNORECASE)
_MOVED_OUT = re.compile(r"\bmoved out\b", re.IGNORECASE)
_HOUSEHOLD = re.compile(
    r"\b(?:roommates?|flatmates?|housemates?|lodgers?|tenants?|liv(?:e|es|ing)|shares?|sharing)\b", re.IGNORECASE
)
_SOMEWHERE = re.compile(
    r"\b(?:in|on|at|by|near|next|under|behind|with|from|lives?|stands?|sits?|uses?|using|goes?|meets?|away|streets?)\b|days?\b",
    re.IGNORECASE,
)
_STOPPED = re.compile(r"\b(?:has|have) stopped (?P<what>(?!(?:go|do|hav|tak|see|us|be)ing\b)\w+ing)\b", re.IGNORECASE)
_OF_WHO_IS_NAMED = re.compile(
    r"\b(?:died|dead|passed (?:away|in)|graduated|retired|moved out|dumped (?:me|us)|pulled out|dropped out|nicked|stolen|sold|lost|rehomed)\b",
    re.IGNORECASE,
)
_ONE_OF = re.compile(
    r"\b(?:first|second|last|next) (?!(?:week|month|year|night|time|summer|winter|spring|autumn|term)\b)\w+|\b(?:one|some|half) of\b",
    re.IGNORECASE,
)
_PARTS = re.compile(r"[,;.] (?:and |but )?|,? and (?=(?:my|our|his|her|their|I|we|he|she|it|they|\w+s)\b)")
_STATEMENT = re.compile(r"(?:I|we|he|she|it|they|my|our|his|her|their|the|this|\w+s)\b", re.IGNORECASE)
_SPEAKER = re.compile(
    r"(?:I|we|not|no more|quit|stopped|cancell?ed|dropped|binned|ditched|sold|closed|gave|hung|let)\b", re.IGNORECASE
)
_INSTEAD = re.compile(r"\b(?:instead|and (?:now|got|bought|opened|started)|now)\b", re.IGNORECASE)


def nearest_changed(candidate: Candidate, near: Sequence[Recall], policy: str) -> Decision | None:
    """Return an UPDATE or a DELETE of the nearest memory, where a statement tells of a change in so many words, else None.

    Args:
        candidate: what was said.
        near: the memories near it, with their cosine.
        policy: the name to decide in.
    """
    said = phrases.expanded(candidate.text)
    ended = tells_end(said)
    if not (ended or tells_change(said)) or len(said.split()) > LONGEST:
        return None
    target = _nearest(near)
    if target is None or target.memory is None or is_past(target.memory):
        return None
    if (
        brings_up_another(candidate, target.memory)
        or of_other_thing(said, target.memory)
        or (ended and (passes(candidate, target.memory) or only_named(said, target.memory)))
        or (not ended and other_measure(said, target.memory.text))
    ):
        return None
    if is_meanwhile(said) or phrases.besides(said) or _ONE_OF.search(said):
        return None
    over = ended and not _INSTEAD.search(said)
    if ended and not _SPEAKER.match(said) and _lasts(target.memory, over):
        return None
    several = any(map(_STATEMENT.match, _PARTS.split(target.memory.text)[1:]))  # they do not all end with the first
    return Decision(
        op="DELETE" if over and not several else "UPDATE",
        candidate=candidate,
        target=target.memory.id,
        confidence=SURE,
        reason=f"tells of a change, and nearest to it is {target.memory.text!r}",
        policy=policy,
    )


def _lasts(memory: Memory, over: bool) -> bool:
    """Whether a memory is of what no single event that is over takes back: a match is off, not the love of it."""
    if memory.attribute is None:
        return bool(phrases.stance(memory.text) & {"like", "hate"})
    return slot(memory.attribute).kind == "preference" or (over and memory.attribute in LASTING)


def of_other_thing(said: str, memory: Memory) -> bool:
    """Whether a statement is about a thing of which the memory names but a part: the garden party is not the garden."""
    known = phrases.stems(memory.text)
    left = _MOVED_OUT.search(said) and _HOUSEHOLD.search(memory.text)
    if moves_another(said, memory) or (_MOVED.search(said) and not left and not _SOMEWHERE.search(memory.text)):
        return True
    stopped = _STOPPED.search(said)
    if stopped and not _SPEAKER.match(said) and unsaid(phrases.stems(stopped["what"]), known):
        return True
    return names_other(said, memory)


def names_other(said: str, memory: Memory) -> bool:
    """Whether the thing that a statement begins with is not, or not only, what the memory names: "the teacher from upstairs retired"."""
    found = _ABOUT.match(said)
    about = phrases.stems(found["thing"]) if found else frozenset()
    return bool(unsaid(about, phrases.stems(memory.text)))


def only_named(said: str, memory: Memory) -> bool:
    """Whether a statement shares no more than a name with a memory: "Mia has stopped crying", of a daughter called Mia."""
    if _SPEAKER.match(said) or _OF_WHO_IS_NAMED.search(said):
        return False
    known = phrases.stems(memory.text)
    first = said.split()[0].removesuffix("'s")
    name = first if first.istitle() and first in memory.text.split() else ""
    named = phrases.stems(f"{memory.subject} {mentioned(memory.text) or ''} {name}")
    told = phrases.stems(said) - phrases.LIGHT
    return bool(told & named & known) and not (told - unsaid(told, known)) - named


def _nearest(near: Sequence[Recall]) -> Recall | None:
    """Return the one memory that can be meant."""
    known = [hit for hit in near if hit.memory is not None and hit.memory.status == "active"]
    known.sort(key=_cosine, reverse=True)
    if not known or _cosine(known[0]) < NEAR:
        return None
    return known[0] if len(known) == 1 or _cosine(known[0]) - _cosine(known[1]) >= LEAD else None


def _cosine(hit: Recall) -> float:
    return hit.parts.cosine if hit.parts is not None else 0.0
