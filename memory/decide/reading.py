"""Decision by what a cross-encoder reads in a statement and the memories near to it (see `memory.cross_encoder`).

Rules know the set forms in which changes are told; most are told in none ("ten minute walk door to door since the office
moved"). What the encoder is sure of is taken for an UPDATE, a DELETE or a NOOP of the one memory that is meant.
"""

import re
from collections.abc import Sequence

from sharpwave.memory import phrases
from sharpwave.memory.decide.sameness import is_past, same_value
from sharpwave.memory.extract.changing import tells_change, tells_end
from sharpwave.memory.meanings import alike, unsaid
from sharpwave.memory.records import Candidate, Decision, Memory, Operation, Recall, Relation

_JOINED = re.compile(r"\b(?:and|but|who|which|because|'?cos|'?cause|cuz)\b", re.IGNORECASE)
_PARTS = re.compile(r"[,;.:!]\s+")
_STATEMENT = re.compile(
    r"(?:I|[Ww]e|[Hh]e|[Ss]he|[Ii]t|[Tt]hey|[Yy]ou|[Tt]here)\b|[a-z]+ed (?:by|in|at|to|with|on)\b"
    r"|(?:[Mm]y|[Oo]ur|[Hh]is|[Hh]er|[Tt]heir|[Tt]h(?:e|is|at)) (?:\w+ ){1,2}?(?:is|are|was|has|have|had|can|\w{3,}s|\w+ed)\b"
    r"|(?:[Mm]y|[Oo]ur|[Hh]is|[Hh]er|[Tt]heir) (?:\w+ )?\w+['’]s\b|[A-Z]\w+(?:['’]s| is| has| \w{3,}s)\b"
)

CHANGED = 0.95
"""Probability from which a memory is taken for changed or ended by a statement."""
TOLD = 0.85
"""The same, of a statement that tells of a change in so many words."""
UNNAMED = 0.98
"""The same, of the end of what a statement does not name."""
KNOWN = 0.8
"""Probability from which a statement is taken for known already."""
APART = 0.95
"""Probability from which a memory is left as it is, whatever decided otherwise."""


def decided_by_reading(candidate: Candidate, near: Sequence[Recall], policy: str) -> Decision | None:
    """Return an UPDATE, a DELETE or a NOOP of the memory whose relation to the candidate is clearest, or else None."""
    read = [(hit.memory, hit.relation) for hit in near if hit.memory is not None and hit.relation is not None]
    read = [(memory, relation) for memory, relation in read if memory.status == "active" and not is_past(memory)]
    if not read:
        return None
    changed, how = max(read, key=lambda pair: pair[1].changes)
    if changes(how):
        ended = how.over > how.new
        if ended and how.changes < UNNAMED and not _names(candidate.text, changed.text):
            return None
        ended = ended and not lists(changed.text)
        why = f"read as {'the end' if ended else 'what takes the place'} of {changed.text!r}"
        return _say("DELETE" if ended else "UPDATE", candidate, changed, how.changes, why, policy)
    known, how = max(read, key=lambda pair: pair[1].same)
    if how.same >= KNOWN and not _other_value(candidate, known):
        return _say("NOOP", candidate, known, how.same, f"read as another way to say {known.text!r}", policy)
    return None


def _other_value(candidate: Candidate, memory: Memory) -> bool:
    """Whether a candidate has a name or number that a memory lacks, another value of its slot, or one other word in its frame.

    To the encoder cats and dogs are much the same.
    """
    if not phrases.details(candidate.text) <= phrases.details(memory.text):
        return True
    if candidate.attribute is not None and candidate.attribute == memory.attribute and candidate.value and memory.value:
        return not same_value(candidate, memory)
    mine, theirs = (re.findall(r"[\w']+", phrases.expanded(text).casefold()) for text in (candidate.text, memory.text))
    other = [pair for pair in zip(mine, theirs, strict=False) if pair[0] != pair[1]]
    return len(mine) == len(theirs) and len(other) == 1 and not alike(*other[0])


def _names(said: str, known: str) -> bool:
    """Whether a statement has a content word of a memory, or another word for it."""
    told = phrases.stems(said)
    return unsaid(told, phrases.stems(known)) < told


def changes(relation: Relation) -> bool:
    """Whether a memory is clearly read as changed or ended."""
    told = tells_change(relation.said) or tells_end(relation.said) or phrases.changes(relation.said)
    return relation.changes >= (TOLD if told else CHANGED)


def lists(text: str) -> bool:
    """Whether a text may hold more than one thing: they do not all end with the first."""
    return bool(_JOINED.search(text) or any(map(_STATEMENT.match, _PARTS.split(text)[1:])))


def apart(decision: Decision, near: Sequence[Recall]) -> bool:
    """Whether the candidate of a decision is read as leaving its target as it is."""
    relation = next((hit.relation for hit in near if hit.id == decision.target), None)
    return relation is not None and relation.said == decision.candidate.text and relation.apart >= APART


def _say(op: Operation, candidate: Candidate, target: Memory, sure: float, why: str, policy: str) -> Decision:
    return Decision(op=op, candidate=candidate, target=target.id, confidence=min(1.0, sure), reason=why, policy=policy)
