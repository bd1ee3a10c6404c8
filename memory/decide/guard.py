"""The guard: the last word on every decision, whatever decided.

It only ever makes a decision milder: an UPDATE or DELETE that is not allowed becomes an ADD, or a NOOP where there is
nothing to add. It keeps number and order, and guarding twice changes nothing.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sharpwave.memory import phrases
from sharpwave.memory.decide.happenings import happened
from sharpwave.memory.decide.moving_on import RETOLD, other_values, part_about
from sharpwave.memory.decide.reading import changes, lists
from sharpwave.memory.decide.sameness import brings_up_another, is_past, of_what_somebody_has, same_subject, same_value
from sharpwave.memory.decide.taking_back import asks_to_forget, theirs, without
from sharpwave.memory.decide.transitions import transition
from sharpwave.memory.meanings import alike
from sharpwave.memory.phrases import LIGHT, covered, details, head, stance, stems
from sharpwave.memory.records import Candidate, Decision, Memory, Operation, Recall, Relation, Turn
from sharpwave.memory.slots import aliases, slot
from sharpwave.memory.trust import TRUST, looks_like_instruction, traced

LEAST_CONFIDENCE = 0.5
"""Below it an UPDATE or DELETE is not carried out."""

NEAREST = 0.25
"""Cosine from which the memory nearest to a statement may be changed by it without a common word ("we're in Antwerp these days",
of who lives in Ghent). Of 143 changes in our dialogues that rules miss, the nearest memory was the right one in 134, and four in
five reach 0.3; of the other memories shown, one in seven does (all-MiniLM-L6-v2)."""

WEIGHTY = 0.9
"""Importance of a slot from which a memory is changed only by what names it."""

LOST_AT_MOST = 3
"""Content words that a change may take away with the value that it replaces."""

_KINDRED = (
    frozenset({"likes", "dislikes", "hobby", "habit", "avoids", "diet"}),
    frozenset({"possession", "vehicle", "pet"}),
    frozenset({"job", "employer"}),
    frozenset({"partner", "spouse", "marital_status"}),
    frozenset({"home_city", "home_country", "address"}),
)
_CHANGE = stems(
    "move moved moving relocate relocated change changed switch switched new started became bought sold got joined"
    " left now currently longer still recently finally actually correction"
)
_HEALTH = re.compile(
    r"\b(?:allerg\w+|anaphyla\w+|epipen|intoleran\w+|c(?:o)?eliac|diabet\w+|insulin|asthma\w*|epilep\w+|pacemaker|blood thinners?"
    r"|\w+ disease|medicat\w+|medicine|\d+ ?mg)\b",
    re.IGNORECASE,
)
_TREATED = re.compile(
    rf"{_HEALTH.pattern}|\b(?:outgr\w+|grown out|diagnos\w+|tests?|tested|negative|reacts?|reaction|can (?:eat|have|drink)|fine with|healed|cured|dose|doctor"
    r"|gp|tablets?|pills?|prescri\w+|takes?|taking|stopped|(?:came|come|am|is|been|me|him|her) (?:off|on)|tolerate\w*|remission|came back)\b",
    re.IGNORECASE,
)
"""What may change what is known of somebody's health."""
_PRONOUN = re.compile(r"(?:he|she|they|his|her|their)\b", re.IGNORECASE)

_LISTS = re.compile(r"[,;.]\s|\b(?:and|but|who|which|because)\b", re.IGNORECASE)
"""More than one thing is said."""


def guard(decisions: Sequence[Decision], neighbours: Sequence[Sequence[Recall]], turn: Turn) -> list[Decision]:
    """Return the decisions as they may be carried out, in number and order as given.

    Args:
        decisions: what a policy decided.
        neighbours: the memories that the policy was shown, for each candidate; a target must be among them.
        turn: the exchange, whose owner must own the target.

    `guarded` says what was changed and why. It starts with "quarantined" where the text is kept out of recall because it
    reads like an instruction and did not come from the user.
    """
    hits = [hit for near in neighbours for hit in near if hit.memory is not None]
    shown = _Shown(
        {hit.id: hit.memory for hit in hits if hit.memory is not None},
        {memory_id for near in neighbours if (memory_id := _nearest(near)) is not None},
        {(hit.relation.said, hit.id): hit.relation for hit in hits if hit.relation is not None},
    )
    return _once_each([_guarded(decision, shown, turn) for decision in decisions], shown.memories)


@dataclass(frozen=True)
class _Shown:
    """What the policy was shown."""

    memories: Mapping[str, Memory]
    nearest: Collection[str]
    """The memory nearest in meaning to each candidate."""
    relations: Mapping[tuple[str, str], Relation]
    """What was read in a statement and a memory, by the text of the one and the id of the other."""

    def relation(self, decision: Decision) -> Relation | None:
        """Return what was read in the candidate and the target."""
        return self.relations.get((decision.candidate.text, decision.target or ""))


def _nearest(near: Sequence[Recall]) -> str | None:
    """Return the id of the memory that is nearest in meaning, if it is near at all."""
    known = [(hit.parts.cosine, hit.memory.id) for hit in near if hit.memory is not None and hit.parts is not None]
    cosine, memory_id = max(known, default=(0.0, None))
    return memory_id if cosine >= NEAREST else None


def _once_each(decisions: Sequence[Decision], shown: Mapping[str, Memory]) -> list[Decision]:
    """Let a turn change each memory once: nothing is deleted that the turn replaces, and a detail is not lost to the next."""
    replaced = {decision.target for decision in decisions if decision.op == "UPDATE"}
    changed: set[str | None] = set()
    deleted: set[str | None] = set()
    kept = []
    for decision in decisions:
        if decision.op == "DELETE" and decision.target in replaced | changed:
            decision = _instead(decision, "NOOP", "its target is replaced or deleted in the same turn already")
        elif decision.op == "UPDATE" and decision.target in changed and not _same_single_slot(decision, shown):
            decision = _instead(decision, "ADD", "its target is changed in the same turn already")
        elif decision.op == "NOOP" and decision.target is not None and decision.target in deleted:
            decision = _instead(decision, "NOOP", "its target is deleted in the same turn already")
        if decision.op in ("UPDATE", "DELETE"):
            changed.add(decision.target)
        if decision.op == "DELETE":
            deleted.add(decision.target)
        kept.append(decision)
    return kept


def _same_single_slot(decision: Decision, shown: Mapping[str, Memory]) -> bool:
    attribute = shown[decision.target or ""].attribute
    return attribute is not None and attribute == decision.candidate.attribute and not slot(attribute).many


def _guarded(decision: Decision, shown: _Shown, turn: Turn) -> Decision:
    decision = decision.model_copy(update={"candidate": traced(decision.candidate, turn)})
    candidate = decision.candidate
    if candidate.source_kind != "user" and looks_like_instruction(f"{candidate.text}\n{candidate.quote}"):
        return _instead(decision, "ADD", "quarantined: it reads like an instruction and is not the user's own words")
    if decision.op == "ADD":
        return _added(decision, shown.memories.values(), turn)
    target = shown.memories.get(decision.target) if decision.target else None
    if decision.op == "NOOP":
        wrong = decision.target is not None and (target is None or target.owner != turn.owner)
        return _instead(decision, "NOOP", "confirms no memory that was shown") if wrong else decision
    if target is None:
        return _instead(decision, "ADD", "its target was not among the memories shown")
    if target.owner == turn.owner and target.status == "active" and turn.said_at < last_said(target):
        late = f"said before what is known: {target.text!r}"
        return _past(_instead(decision, "ADD", late), target)
    if problem := _forbidden(decision, target, shown, turn):
        milder = _instead(decision, *problem)
        if candidate.tentative:
            return milder.model_copy(update={"op": "NOOP"})
        doubts = _unsure(decision) and same_subject(candidate, target) and candidate.attribute == target.attribute
        return milder.model_copy(update={"contradicts": target.id}) if doubts and target.attribute else milder
    read = shown.relation(decision)
    replaced = read is not None and changes(read) and not lists(target.text)
    return _merged(decision, target, turn) if decision.op == "UPDATE" and not replaced else decision


def last_said(memory: Memory) -> datetime:
    """Return when a memory was last stated or confirmed, at the latest."""
    return max(memory.valid_from, memory.last_confirmed_at or memory.valid_from)


def _added(decision: Decision, shown: Iterable[Memory], turn: Turn) -> Decision:
    """Let an ADD pass; into a single-valued slot that a later statement fills otherwise, as what is past."""
    candidate = decision.candidate
    if candidate.tentative:
        return _instead(decision, "NOOP", "it tells too little by itself")
    decision = decision if decision.target is None else decision.model_copy(update={"target": None})
    open_slot = candidate.attribute is None or slot(candidate.attribute).many or candidate.polarity == "retract"
    if open_slot or candidate.history or decision.outdated_by is not None:
        return decision
    for memory in shown:
        fills = memory.owner == turn.owner and memory.status == "active" and memory.attribute == candidate.attribute
        other = fills and not is_past(memory) and same_subject(candidate, memory) and not same_value(candidate, memory)
        if other and turn.said_at < last_said(memory):
            why = _and(decision.guarded, f"said before what is known: {memory.text!r}")
            return _past(decision.model_copy(update={"guarded": why}), memory)
    return decision


def _past(decision: Decision, newer: Memory) -> Decision:
    """Keep what an ADD writes as what was so before `newer`."""
    candidate = decision.candidate.model_copy(update={"history": True})
    return decision.model_copy(update={"candidate": candidate, "outdated_by": newer.id})


def _unsure(decision: Decision) -> bool:
    return min(decision.confidence, decision.candidate.confidence) < LEAST_CONFIDENCE


def _forbidden(decision: Decision, target: Memory, shown: _Shown, turn: Turn) -> tuple[Operation, str] | None:
    """Why an UPDATE or DELETE of `target` may not be, with what happens in its place; None when it may."""
    candidate = decision.candidate
    if target.owner != turn.owner:
        return "ADD", "its target belongs to another owner"
    if target.pinned:
        return "ADD", "its target is pinned"
    if target.status != "active":
        return "ADD", f"its target is {target.status}"
    if TRUST[candidate.source_kind] < TRUST[target.source.kind]:
        return (
            "ADD",
            f"its target comes from the {target.source.kind}, who is trusted more than the {candidate.source_kind}",
        )
    if _unsure(decision):
        sure = min(decision.confidence, candidate.confidence)
        return "ADD", f"confidence {sure:.2f} is too low to change what is known"
    if decision.op == "DELETE" and not _supported(candidate, turn):
        return "NOOP", "no words of the turn support the deletion"
    same = candidate.attribute is not None and candidate.attribute == target.attribute
    if _HEALTH.search(target.text) and not same and not _TREATED.search(candidate.text):
        return "ADD", "nothing that says nothing of health changes what is known of it"
    if of_what_somebody_has(candidate, target):
        return "ADD", f"it is about what somebody in {target.text!r} has"
    if _stays(decision, target, turn):
        return "ADD", f"what happened stays so: {target.text!r}"
    read = shown.relation(decision)
    if read is not None and changes(read):
        return None
    if not _about_the_same(decision, target, turn) and not (target.id in shown.nearest and _tied(candidate, target)):
        return "ADD", f"its target is about something else: {target.text!r}"
    return None


def _stays(decision: Decision, target: Memory, turn: Turn) -> bool:
    """Whether a memory tells of what happened once: nothing changes it but a correction, the same told with more, or a request.

    Of logs and tickets nothing is said here: they report how things stand in the past tense.
    """
    candidate = decision.candidate
    if target.attribute is not None or not happened(target.text) or _corrects(candidate, turn):
        return False
    if asks_to_forget(candidate.text) or not (phrases.of_oneself(target.text) or phrases.of_oneself(candidate.text)):
        return False
    return decision.op == "DELETE" or not stems(target.text) <= stems(decision.text or decision.candidate.text)


def _supported(candidate: Candidate, turn: Turn) -> bool:
    quote = candidate.quote.strip()
    return bool(quote) and any(quote in message.text for message in turn.messages)


def _about_the_same(decision: Decision, target: Memory, turn: Turn) -> bool:
    """Same subject and slot; where either has no slot, content words in common; or an event and the state that it ends."""
    candidate = decision.candidate
    if transition(candidate, target):
        return True
    if not same_subject(candidate, target):
        return candidate.polarity == "retract" and theirs(candidate, target)
    shared = (stems(candidate.text) | stems(candidate.value or "")) & (stems(target.text) | stems(target.value or ""))
    shared -= stems(candidate.subject) if candidate.polarity == "assert" else frozenset()
    if candidate.attribute is None or target.attribute is None:
        about = LIGHT | stems(candidate.subject) | stems(target.subject)
        mine, theirs_ = stems(candidate.text) - about, stems(target.text) - about
        return bool(shared) or any(alike(one, other) for one in mine for other in theirs_)
    if candidate.attribute == target.attribute:
        return not slot(candidate.attribute).many or bool(
            shared - stems(aliases(candidate.attribute)) or _corrects(candidate, turn) or phrases.swaps(candidate.text)
        )
    return (bool(shared) and any({candidate.attribute, target.attribute} <= kin for kin in _KINDRED)) or _retracts(
        candidate, target
    )


def _tied(candidate: Candidate, target: Memory) -> bool:
    """Whether two texts of which one has no slot speak of one subject, or one names what the other is about.

    What weighs most (an allergy, an illness, a medicine, a name) is changed by nothing that does not name it.
    """
    if _HEALTH.search(target.text):
        return False
    slots = [attribute for attribute in (candidate.attribute, target.attribute) if attribute is not None]
    if len(slots) == 2 or any(slot(attribute).importance >= WEIGHTY for attribute in slots):
        return False
    if brings_up_another(candidate, target):
        return False
    named = stems(candidate.subject) <= stems(f"{target.text} {target.value or ''}") and candidate.subject != "user"
    told = target.subject != "user" and stems(target.subject) <= stems(candidate.text)
    calls = target.subject != "user" and _PRONOUN.match(candidate.text)
    shares = details(candidate.text) & details(target.text)
    return bool(same_subject(candidate, target) or named or told or calls or shares)


def _retracts(candidate: Candidate, target: Memory) -> bool:
    """Whether a retraction names the target's thing, or leaves its value open within one family of slots."""
    if candidate.polarity != "retract":
        return False
    if candidate.value is None:
        return any({candidate.attribute, target.attribute} <= kin for kin in _KINDRED)
    return bool(stems(candidate.value) & (stems(target.text) | stems(target.value or "")))


def _corrects(candidate: Candidate, turn: Turn) -> bool:
    return phrases.corrects(candidate.quote) or phrases.corrects(candidate.text)


def _merged(decision: Decision, target: Memory, turn: Turn) -> Decision:
    """Keep what the old text says and the new one neither repeats nor contradicts: the old text, then the new sentence."""
    candidate = decision.candidate
    new = decision.text or candidate.text
    lost = _lost(target, candidate, f"{new} {candidate.text} {candidate.quote}", turn)
    if not lost or target.text in new:
        return decision
    if TRUST[target.source.kind] < TRUST[candidate.source_kind]:
        return _instead(decision, "ADD", "its target says more than that, on the word of a less trusted source")
    gone = other_values(candidate.text, part_about(candidate.text, target.text))
    brought = stems(" ".join(details(new))) - stems(target.text)
    kept = _standing(target.text, gone, candidate.text, len(brought))
    if not kept and len(lost & _named(target)) <= len(brought):
        return decision
    kept = kept or target.text
    joined = f"{kept.rstrip(' .;')}. {new}"
    why = f"merged: the new text would have lost {', '.join(sorted(lost))}"
    return decision.model_copy(update={"text": joined, "guarded": _and(decision.guarded, why)})


_PARTS = re.compile(
    r"(?:[,;]|(?<!\bMr|\bDr|\bMs|\bSt)(?<!\bMrs)(?<!\bProf)\.|\sand(?= (?:my|our|his|her|its|the) ))\s+(?:and |but )?"
)


def _standing(text: str, gone: frozenset[str], new: str, brought: int) -> str:
    """Return what stays of `text` when `new` replaces the values `gone`: the rest of a list, or the other clauses.

    Of several clauses, one that shares no word with `new` stays, too, where `new` names its thing, or brings fewer names than would go.
    """
    if not gone:
        return text
    if rest := without(text, gone):
        return rest
    parts, said = _PARTS.split(text), stems(new)
    choosy = len(parts) > 1 and (bool(head(new)) or len(gone) > max(1, brought))
    return ", ".join(part for part in parts if not gone & stems(part) or (choosy and not said & stems(part)))


def _lost(target: Memory, candidate: Candidate, new: str, turn: Turn) -> frozenset[str]:
    """Content words of the old text that would be gone and are not what the update replaces."""
    lost = stems(target.text) - stems(new) - _CHANGE - stems(target.subject) - stems(candidate.subject)
    lost -= stems(aliases(candidate.attribute or "")) | stems(aliases(target.attribute or ""))
    replaces = _replaces(candidate, target, turn)
    if replaces and target.value:
        lost -= _phrase(target)
    fresh = details(new) - details(target.text)
    exact = stems(" ".join(details(target.text) & details(f". {part_about(candidate.text, target.text)}")))
    many = len(lost & _named(target)) > len(fresh) + 1  # a detail takes the place of one, or of two that go together
    if many and not _told_again(target, candidate):
        return lost
    if fresh and lost <= exact and (replaces or candidate.attribute is None or target.attribute is None):
        return frozenset()
    if replaces and len(lost) == 1 and not lost & exact:
        return frozenset()
    return frozenset() if _replaced(target, candidate, lost, turn) else lost


def _named(target: Memory) -> frozenset[str]:
    """Names, numbers and days of a memory."""
    return stems(" ".join(details(target.text)))


def _replaced(target: Memory, candidate: Candidate, lost: frozenset[str], turn: Turn) -> bool:
    """Whether all of the old text goes: it is told again for the most part, or it is one short clause that no longer holds."""
    if _LISTS.search(target.text):
        return False
    changed = phrases.replaces(candidate.text) or _corrects(candidate, turn)
    return _told_again(target, candidate) or (changed and len(lost) <= LOST_AT_MOST)


def _told_again(target: Memory, candidate: Candidate) -> bool:
    """Whether the candidate says most of what the old text says."""
    return covered(stems(target.text) - stems(target.subject), stems(candidate.text)) >= RETOLD


def _replaces(candidate: Candidate, target: Memory, turn: Turn) -> bool:
    """Whether the candidate's value takes the place of the target's, rather than standing beside it."""
    if candidate.attribute is None or target.attribute is None:
        return stance(candidate.text) != stance(target.text)
    if candidate.attribute != target.attribute:
        return True
    return not slot(candidate.attribute).many or _corrects(candidate, turn)


def _phrase(target: Memory) -> frozenset[str]:
    """Words of the part of the old text that holds its value: they go when the value goes."""
    value = stems(target.value or "")
    parts = re.split(r"[,;.](?:\s|$)|\s+(?:and|but|with)\s+", target.text)
    return value.union(*(stems(part) for part in parts if value & stems(part)))


def _instead(decision: Decision, op: Operation, why: str) -> Decision:
    """Return `decision` made milder; what a retraction named is not kept as if it were so now."""
    candidate = decision.candidate
    if op == "ADD" and candidate.polarity == "retract" and not candidate.history:
        candidate = candidate.model_copy(update={"history": True})
    update = {"op": op, "candidate": candidate, "target": None, "text": None, "guarded": _and(decision.guarded, why)}
    return decision.model_copy(update=update)


def _and(before: str | None, why: str) -> str:
    if before is None or why.startswith("quarantined"):
        return why
    return before if why in before else f"{before}; {why}"
