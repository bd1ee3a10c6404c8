"""Decision without a model: slots where both sides have one, shared content words where they have not.

In doubt it adds: a duplicate is a lesser harm than a wrong change. Facts that differ in a number, a date, a name or a
negation are never taken for duplicates.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sharpwave.memory import phrases
from sharpwave.memory.phrases import details, same_words, stance, stems
from sharpwave.memory.records import Candidate, Decision, Memory, Operation, Recall, Turn
from sharpwave.memory.slots import FORMER, aliases, slot

SAME_MEANING = 0.93
"""Cosine from which two statements with the same details and stance are one (all-MiniLM-L6-v2)."""

_OPPOSITE = {"likes": "dislikes", "dislikes": "likes"}
_TASTE = ("likes", "hobby", "habit", "schedule", "favourite")
_TOGETHER = {
    "job": ("job", "employer"),
    "partner": ("partner", "spouse", "marital_status"),
    "hobby": _TASTE,
    "likes": _TASTE,
    "possession": ("possession", "vehicle", "pet"),
    "vehicle": ("vehicle", "possession"),
}
_LIST = re.compile(r"(?:(?:[\w'-]+ ){0,3}[\w'-]+, )*(?:[\w'-]+ ){0,3}[\w'-]+,? (?:and|or|&) (?:[\w'-]+ ){0,3}[\w'-]+")


@dataclass(frozen=True, slots=True)
class _Known:
    memory: Memory
    cosine: float


class RulesPolicy:
    """Decides by rules alone. One instance may serve all threads: it keeps no state."""

    name = "rules/1"

    def decide(
        self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Recall]], turn: Turn
    ) -> list[Decision]:
        """Return one decision a candidate; two where a changed preference leaves the rest of a list standing."""
        made: list[Decision] = []
        for at, candidate in enumerate(candidates):
            earlier = next((c for c in candidates[:at] if _repeats(candidate, c)), None)
            if earlier is not None:
                made.append(self._say("NOOP", candidate, None, f"said already in this turn: {earlier.text!r}"))
                continue
            known = list(_known(neighbours[at]))
            made += self._one(candidate, known, turn)
        return made

    def _one(self, candidate: Candidate, known: Sequence[_Known], turn: Turn) -> list[Decision]:
        if candidate.polarity == "retract":
            return self._succession(candidate, known, turn) or self._retract(candidate, known)
        for step in (self._repeat, self._history, self._slot, self._succession, self._preference, self._contradiction, self._more):
            if decided := step(candidate, known, turn):
                return decided
        return [self._say("ADD", candidate, None, "nothing known says this", 0.9)]

    def _say(
        self, op: Operation, candidate: Candidate, target: Memory | None, reason: str, confidence: float = 0.95, text: str | None = None
    ) -> Decision:
        return Decision(
            op=op,
            candidate=candidate,
            target=target.id if target else None,
            text=text,
            confidence=confidence,
            reason=reason,
            policy=self.name,
        )

    def _rest(self, candidate: Candidate, memory: Memory, text: str) -> Decision:
        """Leave the rest of a list standing, in the slot it was in."""
        value = _cut(memory.value, _object(candidate)) if memory.value else None
        slot_kept = {"subject": memory.subject, "attribute": memory.attribute, "value": value or memory.value, "kind": memory.kind}
        kept = candidate.model_copy(update={**slot_kept, "polarity": "assert"})
        return self._say("UPDATE", kept, memory, f"{candidate.value} no longer belongs to it", 0.85, text)

    def _repeat(self, candidate: Candidate, known: Sequence[_Known], turn: Turn) -> list[Decision]:
        if candidate.history:
            return []
        for near in known:
            memory = near.memory
            if _is_past(memory):
                continue
            if same_words(candidate.text, memory.text):
                return [self._say("NOOP", candidate, memory, "the same words are known already")]
            if _same_slot_or_kin(candidate, memory) and _same_value(candidate, memory) and not _adds(candidate, memory):
                return [self._say("NOOP", candidate, memory, f"{_slot_name(candidate)} is {memory.value} already")]
            if _paraphrases(candidate, near):
                return [self._say("NOOP", candidate, memory, f"says the same as {memory.text!r}", 0.85)]
        return []

    def _history(self, candidate: Candidate, known: Sequence[_Known], turn: Turn) -> list[Decision]:
        """A statement about the past is kept as past; "used to" also ends what was held to be current."""
        if not candidate.history:
            return []
        for memory in (k.memory for k in known):
            if same_words(candidate.text, memory.text):
                return [self._say("NOOP", candidate, memory, "the same words are known already")]
        kept = self._say("ADD", candidate, None, "about the past, kept as such", 0.9)
        if "used to" in candidate.text.casefold():
            for memory in (k.memory for k in known):
                if _same_slot(candidate, memory) and _same_value(candidate, memory) and not _is_past(memory):
                    return [self._say("DELETE", candidate, memory, f"{_slot_name(candidate)} {memory.value} is over", 0.8), kept]
        return [kept]

    def _slot(self, candidate: Candidate, known: Sequence[_Known], turn: Turn) -> list[Decision]:
        """The same single-valued slot with another value is an update, unless what is known is newer than what is said."""
        target = next((k.memory for k in known if _replaces(candidate, k.memory)), None)
        if target is None:
            return []
        if turn.said_at < target.valid_from:
            older = candidate.model_copy(update={"history": True})
            return [self._say("ADD", older, None, f"older than what is known: {_slot_name(candidate)} is {target.value} since", 0.9)]
        return [self._say("UPDATE", candidate, target, f"same slot {_slot_name(candidate)}: {target.value} → {candidate.value}")]

    def _succession(self, candidate: Candidate, known: Sequence[_Known], turn: Turn) -> list[Decision]:
        """ "From A to B", "B instead of A", "left A for B": B takes the place of the memory that holds A."""
        gone, come = _succeeds(candidate.text)
        if not gone:
            return []
        for memory in (k.memory for k in known):
            held = stems(memory.value) if memory.value else stems(memory.text)
            fits = held <= gone if memory.value else len(held & gone) >= 1 and gone <= held
            if not held or not fits or _is_past(memory) or not _same_subject(candidate, memory):
                continue
            slot_kept = {"attribute": candidate.attribute or memory.attribute, "value": come or candidate.value, "polarity": "assert"}
            return [self._say("UPDATE", candidate.model_copy(update=slot_kept), memory, f"takes the place of {memory.text!r}", 0.85)]
        return []

    def _preference(self, candidate: Candidate, known: Sequence[_Known], turn: Turn) -> list[Decision]:
        """Liking what was disliked, or the other way round, takes the old one's place; the rest of a list stays."""
        other = _OPPOSITE.get(candidate.attribute or "")
        for memory in (k.memory for k in known):
            if not other or not _same_subject(candidate, memory) or not _shares_object(candidate, memory):
                continue
            if memory.attribute == other or (memory.attribute is None and _feels(memory.text) == other):
                rest = _without_item(memory, candidate)
                if rest:
                    dropped = self._rest(candidate, memory, rest)
                    return [dropped, self._say("ADD", candidate, None, "the new preference", 0.9)]
                return [self._say("UPDATE", candidate, memory, f"changed preference about {candidate.value}")]
        return []

    def _contradiction(self, candidate: Candidate, known: Sequence[_Known], turn: Turn) -> list[Decision]:
        """Without a common slot: the same frame with another number, date or name, or the same words denied."""
        corrected = _corrects(candidate, turn)
        for memory in (k.memory for k in known):
            if not _same_subject(candidate, memory) or _different_slots(candidate, memory) or _is_past(memory):
                continue
            if corrected and _corrected_value(candidate, memory):
                return [self._say("UPDATE", candidate, memory, f"a correction of {memory.text!r}", 0.9)]
            if _other_details(candidate, memory, corrected):
                return [self._say("UPDATE", candidate, memory, f"the same statement with another detail than {memory.text!r}", 0.8)]
            if _denies(candidate, memory):
                return [self._say("UPDATE", candidate, memory, f"the opposite of {memory.text!r}", 0.8)]
        return []

    def _more(self, candidate: Candidate, known: Sequence[_Known], turn: Turn) -> list[Decision]:
        """Says all that a memory says and more: the fuller statement takes its place."""
        for memory in (k.memory for k in known):
            if candidate.kind != "event" and _same_subject(candidate, memory) and not _is_past(memory) and _extends(candidate, memory):
                return [self._say("UPDATE", candidate, memory, f"adds detail to {memory.text!r}", 0.75)]
        return []

    def _retract(self, candidate: Candidate, known: Sequence[_Known]) -> list[Decision]:
        """Take back what is named: the whole memory, or one item of its list."""
        if candidate.attribute is None and candidate.value is None and not _object(candidate):
            return [self._say("NOOP", candidate, None, "takes something back without naming it", 0.6)]
        for memory in (k.memory for k in known):
            theirs = _same_subject(candidate, memory) or memory.subject.casefold() in (candidate.value or "").casefold().split()
            if _is_past(memory) or not theirs or not _takes_back(candidate, memory):
                continue
            rest = _without_item(memory, candidate)
            if rest:
                return [self._rest(candidate, memory, rest)]
            return [self._say("DELETE", candidate, memory, f"taken back: {memory.text!r}", 0.9)]
        if re.match(r"\W*(?:please\s+)?(?:forget|delete|remove|erase|scrap|drop|ignore|disregard)\b", candidate.text, re.IGNORECASE):
            return [self._say("NOOP", candidate, None, "nothing known to forget", 0.8)]
        past = candidate.model_copy(update={"history": True})
        return [self._say("ADD", past, None, "takes back something that was not known, so it is news", 0.7)]


def _known(near: Sequence[Recall]) -> Iterator[_Known]:
    for recall in near:
        if recall.memory is not None and recall.memory.status == "active":
            yield _Known(recall.memory, recall.parts.cosine if recall.parts else 0.0)


def _is_past(memory: Memory) -> bool:
    return memory.valid_to is not None or (memory.attribute or "").startswith(FORMER)


def _slot_name(candidate: Candidate) -> str:
    return f"{candidate.subject}.{candidate.attribute}"


def _same_subject(candidate: Candidate, memory: Memory) -> bool:
    """Whether both speak of one subject; "sister" and "Oona" are one when a text names both."""
    one, other = candidate.subject.casefold(), memory.subject.casefold()
    if one == other:
        return True
    if "user" in (one, other):
        return False
    return bool(re.search(rf"\b{re.escape(one)}\b", memory.text, re.IGNORECASE) or re.search(rf"\b{re.escape(other)}\b", candidate.text, re.IGNORECASE))


def _same_slot(candidate: Candidate, memory: Memory) -> bool:
    return candidate.attribute is not None and candidate.attribute == memory.attribute and _same_subject(candidate, memory)


def _same_slot_or_kin(candidate: Candidate, memory: Memory) -> bool:
    if _same_slot(candidate, memory):
        return True
    return (candidate.attribute, memory.attribute) in _SAID_BY and _same_subject(candidate, memory)


_SAID_BY = {("likes", "hobby"), ("hobby", "likes"), ("avoids", "allergy")}
"""Pairs of a new and a known attribute where the known one says the new one too."""


def _different_slots(candidate: Candidate, memory: Memory) -> bool:
    return candidate.attribute is not None and memory.attribute is not None and candidate.attribute != memory.attribute


def _value_words(value: str) -> frozenset[str]:
    return stems(value) or frozenset(value.casefold().split())


def _same_value(candidate: Candidate, memory: Memory) -> bool:
    """Whether the values are the same, stemmed; in a many-valued slot also when the known one holds the new one."""
    if not candidate.value or not memory.value:
        return False
    new, old = _value_words(candidate.value), _value_words(memory.value)
    if new == old or (slot(candidate.attribute or "").many and new <= old):
        return True
    return candidate.attribute in _NAMED and new <= stems(memory.text) and not _other_count(new, old)


_NAMED = frozenset({"pet", "child", "sibling", "parent", "friend", "colleague", "relative"})
"""Slots whose value is a name or a kind: either may have been told first."""


def _other_count(new: frozenset[str], old: frozenset[str]) -> bool:
    return any(w.isdigit() for w in new ^ old)


def _adds(candidate: Candidate, memory: Memory) -> bool:
    """Whether the candidate says notably more than the memory: two more content words, or one more detail."""
    more = stems(candidate.text) - stems(memory.text) - stems(aliases(candidate.attribute or "")) - stems(memory.subject)
    return len(more) >= 3 or (len(more) >= 2 and bool(details(candidate.text) - details(memory.text)))


def _paraphrases(candidate: Candidate, near: _Known) -> bool:
    memory = near.memory
    if not _same_subject(candidate, memory) or _different_slots(candidate, memory):
        return False
    new, old = stems(candidate.text), stems(memory.text)
    same_details = details(candidate.text) == details(memory.text)
    if stance(candidate.text) != stance(memory.text) or not new or not old:
        return False
    if candidate.attribute and memory.attribute and candidate.value and memory.value:
        return False
    if near.cosine >= SAME_MEANING and same_details and _numbers_alike(new, old) and candidate.text.isascii():
        return True
    if new <= old and details(candidate.text) <= details(memory.text):
        return len(new) >= 2 or new == old or bool(re.search(r"\bstill\b", candidate.text))
    return old <= new and same_details and len(new - old) <= 1 and _numbers_alike(new, old)


def _numbers_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return not any(word[:1].isdigit() for word in one ^ other)


def _repeats(candidate: Candidate, earlier: Candidate) -> bool:
    if candidate.polarity != earlier.polarity or candidate.history != earlier.history:
        return False
    if same_words(candidate.text, earlier.text):
        return True
    if candidate.subject != earlier.subject or candidate.attribute is None or candidate.attribute != earlier.attribute:
        return False
    same = bool(candidate.value and earlier.value) and _value_words(candidate.value or "") == _value_words(earlier.value or "")
    return same and details(candidate.text) <= details(earlier.text)


def _replaces(candidate: Candidate, memory: Memory) -> bool:
    return (
        _same_slot(candidate, memory)
        and not slot(candidate.attribute or "").many
        and not _is_past(memory)
        and bool(candidate.value)
        and not _same_value(candidate, memory)
    )


_SUCCESSION = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:switched|changed|moved|shifted|gone|went|swapped|rescheduled|upgraded|migrated|converted)\b.*?\bfrom (?P<a>.+?) (?:on|over )?to (?P<b>.+)",
        r"\bfrom (?P<a>.+?) .*?(?:went|moved|shifted|switched|changed) to (?P<b>.+)",
        r"(?P<b>.+?)(?: instead of| rather than| and not|, not) (?P<a>.+)",
        r"\b(?:swapped|traded|exchanged|replaced|left|ditched|dropped|put|sold)(?: in)? (?P<a>.+?) (?:aside )?(?:for|with|in favou?r of|and (?:got|bought|started|joined|took up)) (?P<b>.+)",
        r"(?P<b>.+?) (?:has|have)? ?replaced (?P<a>.+?)(?: as .*)?$",
        r"\b(?:finished|done with|gone off|quit|stopped|gave up|given up) (?P<a>.+?)(?:,| and) (?:(?:it is|it's|I|am|now|just|have|started|began|took up|reading|on to|i'm) )*(?P<b>(?!gone|over|done).+)",
        r"\bafter (?:(?:many )?years (?:as|with|of|in|at) (?:an? )?|(?=(?-i:[A-Z])))(?P<a>.+?),? (?:I|we|it)\b(?P<b>.+)",
        r"\b(?:the|my) (?P<a>[\w -]+?) (?:is gone|broke|died|was stolen|packed up)(?:,| so| and) (?P<b>.+)",
    )
)


def _succeeds(text: str) -> tuple[frozenset[str], str | None]:
    """Return the words of what goes, and what comes, where a statement names both."""
    for pattern in _SUCCESSION:
        if found := pattern.search(phrases.straight(text).rstrip(" .!")):
            come = re.sub(r"\s+(?:now|these days|for me.*|as my .*|any ?more|instead)$", "", found["b"], flags=re.IGNORECASE)
            return stems(found["a"]), come if len(come.split()) <= 5 else None
    return frozenset(), None


def _object(candidate: Candidate) -> frozenset[str]:
    """What a candidate is about: the words of its value, else its content words without those of giving up."""
    named = _value_words(candidate.value) if candidate.value else stems(candidate.text)
    rest = named - _GIVING_UP
    return rest or named if candidate.value else rest


_GIVING_UP = stems("gave given give up quit stopped stop dropped cancelled sold lost forget delete remove scrap told anymore longer finally recently done out after over rid away true wrong altogether completely drink drinking eat eating using use play playing watch wear take taking read smoke doing go going")


def _feels(text: str) -> str | None:
    """Return "likes" or "dislikes" for a statement of taste, None for any other."""
    taken = stance(text)
    if not taken & {"like", "hate"}:
        return None
    return "likes" if ("hate" in taken) == ("not" in taken) else "dislikes"


def _shares_object(candidate: Candidate, memory: Memory) -> bool:
    wanted = _object(candidate)
    return bool(wanted) and wanted <= stems(memory.text) | stems(memory.value or "") | stems(memory.subject)


def _takes_back(candidate: Candidate, memory: Memory) -> bool:
    attribute = candidate.attribute
    kindred = _TOGETHER.get(attribute or "", (attribute,))
    same = memory.attribute in kindred or re.split("[:_]", memory.attribute or "")[0] in kindred
    if candidate.value is None and attribute is not None:
        return same and (not slot(memory.attribute or "").many or bool(stems(candidate.text) & stems(memory.text)))
    if stance(memory.text) >= {"not"} and memory.attribute is None:
        return False
    if _shares_object(candidate, memory):
        return same or memory.attribute is None or attribute is None or memory.attribute == "name"
    return False


def _without_item(memory: Memory, candidate: Candidate) -> str | None:
    """Return the memory's text without the one item of its list that the candidate names; None if it holds only that.

    The list's own words are kept. Where the item cannot be cut out cleanly the text stays, with a remark.
    """
    gone = _object(candidate)
    if not gone or not gone <= stems(memory.text):
        return None
    cut = _cut(memory.text, gone)
    if cut is None and "," in memory.text and len(stems(memory.text) - gone) >= 4:
        return f"{memory.text.rstrip(' .')} (no longer: {candidate.value or candidate.text})"
    return cut


def _cut(text: str, gone: frozenset[str]) -> str | None:
    """Return `text` without the item of a list ("a, b and c") that `gone` names; None where there is no such list."""
    listed = _LIST.search(text)
    if not listed:
        return None
    items = [item for item in re.split(r",? (?:and|or|&) |, ", listed[0]) if item]
    kept = [item for item in items if not gone & stems(item)]
    if any(re.match(r"(?:I|me|we|us)\b", item) for item in items[1:]):
        return None
    if len(kept) != len(items) - 1 or not any(stems(item) for item in kept):
        return None
    lead = _lead(items[0], gone) if items[0] not in kept else ""
    joined = kept[0] if len(kept) == 1 else f"{', '.join(kept[:-1])} and {kept[-1]}"
    return text[: listed.start()] + lead + joined + text[listed.end() :]


def _lead(item: str, gone: frozenset[str]) -> str:
    """Return the words before the thing in the first item, which belong to the whole list ("Enjoys climbing, …")."""
    words = item.split()
    at = next(n for n, word in enumerate(words) if gone & stems(word))
    return "".join(f"{word} " for word in words[:at])


def _corrects(candidate: Candidate, turn: Turn) -> bool:
    if phrases.corrects(candidate.quote) or phrases.corrects(candidate.text):
        return True
    before = turn.user_text.partition(candidate.quote)[0].rstrip()
    return phrases.corrects(re.split(r"(?<=[.!?\n])\s*", before)[-1] if before else "") and not before.endswith((".", "!", "?"))


def _corrected_value(candidate: Candidate, memory: Memory) -> bool:
    """Whether the candidate names what was wrong ("…, not 3B") and the memory holds it, or both share all but the value."""
    if wrong := re.search(r"\b(?:not|instead of|rather than)\s+(?:an? |the |in |at |on )?([\w' -]+)", candidate.text, re.IGNORECASE):
        named = stems(wrong[1])
        if named and named <= stems(memory.text) and bool(stems(candidate.text[: wrong.start()]) & stems(memory.text)):
            return True
    if candidate.attribute and candidate.attribute == memory.attribute:
        rest = stems(candidate.text) - stems(candidate.value or "")
        return bool(rest & (stems(memory.text) - stems(memory.value or "")))
    return False


def _other_details(candidate: Candidate, memory: Memory, corrected: bool) -> bool:
    """Whether both are one statement but for a number, a date or a name."""
    new, old = stems(candidate.text), stems(memory.text)
    shared, mine, theirs = new & old, new - old - _CHANGE, old - new - _CHANGE
    if not shared or not mine or not theirs or (candidate.kind == "event" and not corrected) or stance(candidate.text) != stance(memory.text):
        return False
    exact = stems(" ".join(details(candidate.text) | details(memory.text))) | _ORDINALS | {w for w in new | old if w.isdigit()}
    if not (mine <= exact and theirs <= exact):
        return False
    if any(w[:1].isdigit() for w in mine) != any(w[:1].isdigit() for w in theirs):
        return False
    single = len(mine) == len(theirs) == 1 or all(w[:1].isdigit() for w in mine | theirs)
    return corrected or (single and 2 * len(shared) >= len(new) and not _TOLD.search(candidate.text))


_ORDINALS = stems("first second third fourth fifth sixth seventh eighth ninth tenth ground top")
_CHANGE = stems("moved move changed change switched now currently these days got went up down gone correction instead again new")
_TOLD = re.compile(r"\b(?:was|were|had|did|went|\w{3,}ed|ran|bought|saw|got|met)\b", re.IGNORECASE)
"""Verbs of what happened, which can happen again on another day."""


def _denies(candidate: Candidate, memory: Memory) -> bool:
    """Whether both say the same words, one of them with a negation."""
    new, old = stems(candidate.text), stems(memory.text)
    if not new or new != old or details(candidate.text) != details(memory.text):
        return False
    return ("not" in stance(candidate.text)) != ("not" in stance(memory.text))


def _extends(candidate: Candidate, memory: Memory) -> bool:
    new, old = stems(candidate.text), stems(memory.text)
    if not old or not old < new or stance(candidate.text) - {"name"} != stance(memory.text) - {"name"} or _different_slots(candidate, memory):
        return False
    return details(memory.text) <= details(candidate.text) and _within(memory.text, candidate.text)


def _within(old: str, new: str) -> bool:
    """Whether the words of `old` occur in `new` in their order."""
    rest = iter(re.findall(r"\w+", phrases.without_adverbs(phrases.expanded(new)).casefold()))
    return all(word in rest for word in re.findall(r"\w+", phrases.without_adverbs(phrases.expanded(old)).casefold()))
