"""The guard: the last word on every decision, whatever decided.

It only ever makes a decision milder: an UPDATE or DELETE that is not allowed becomes an ADD, or a NOOP where there is
nothing to add. It keeps number and order, and guarding twice changes nothing.
"""

import re
from collections.abc import Mapping, Sequence

from sharpwave.memory import phrases
from sharpwave.memory.decide.moving_on import RETOLD, other_values
from sharpwave.memory.decide.sameness import same_subject
from sharpwave.memory.decide.taking_back import without
from sharpwave.memory.phrases import covered, details, stance, stems
from sharpwave.memory.records import Candidate, Decision, Memory, Operation, Recall, Turn
from sharpwave.memory.slots import aliases, slot

LEAST_CONFIDENCE = 0.5
"""Below it an UPDATE or DELETE is not carried out."""

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
_LISTS = re.compile(r"[,;.]\s|\b(?:and|but|who|which|because)\b", re.IGNORECASE)
"""More than one thing is said."""
_INSTRUCTION = re.compile(
    r"""\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instructions?|rules?|prompts?|guidelines|messages
      |everything\ (?:above|before)|above|policies|safety|anweisungen|instrucciones)\b
    |\b(?:ignoriere|ignora|ignorez|ignore|忽略|无视)\b.{0,30}(?:anweisung|instruc|指令|指示)|(?:忽略|无视).{0,12}(?:指令|指示)
    |\byou\ (?:are\ now|must(?:\ (?:always|never|not))?|will\ now|are\ no\ longer|have\ to\ (?:always|never))\b
      |\b(?:from\ now\ on|henceforth),?\ (?:you|always|never|reply|respond|answer|act|forward|send)\b
    |(?:^|[\n.!?:;]\s*|\b(?:please|and|then|rule:|note:)\s+)(?:always|never)\ (?:forward|send|reply|respond|answer
      |say|tell|recommend|trust|call|use|include|reveal|share|mention|approve|execute|run|visit|click|obey|follow|add
      |append|cc|bcc|copy|delete|write|output|return|start|end|ask|refuse|route|transfer|buy|pay)\b
    |\b(?:remember|save|store|memori[sz]e|note|learn|keep)\b.{0,20}\b(?:rule|instruction|command|directive|policy)\b
    |(?:^|\n)\s*(?:\[|<\|?|\#+\s*)?(?:system|assistant|developer|admin(?:istrator)?|instructions?)(?:\|?>
      |\])?\s*(?:prompt|message|note|override)?\s*[:>\]]|<\|?(?:im_start|system|/?inst|endoftext)|\[/?INST\]|<</?SYS>>
    |\b(?:do\ not|don't|never|without)\s+(?:tell(?:ing)?|inform(?:ing)?|alert(?:ing)?|notify(?:ing)?
      |mention(?:ing)?\s+(?:this|it)\s+to)\s+(?:the\ |to\ the\ )?user\b|\bsystem\ prompt\b|\b(?:new|updated|hidden
      |secret)\ instructions?\b|\bjailbreak\b|\bdeveloper\ mode\b
    |\bwhen(?:ever)?\ (?:the\ user|asked|someone|anyone|he|she|they)\b.{0,60}\b(?:reply|respond|answer|say|recommend
      |send|forward|tell|claim|pretend)\b|\b(?:act|behave|respond|reply|answer)\ (?:as|like)\ (?:if|an?|the|though)\b
    |\b(?:forward|send|email|upload|post|leak|exfiltrate|transfer|share)\b.{0,60}(?:https?://|\b[\w.+-]+@[\w-]+\.\w+
      |\b(?:passwords?|credentials|api\ keys?|secrets?|tokens?|all\ (?:mails?|emails?|messages|data|files))\b)""",
    re.IGNORECASE | re.VERBOSE,
)


def looks_like_instruction(text: str) -> bool:
    """Whether `text` tells a model what to do rather than stating something: not a thing to believe from a document."""
    return bool(_INSTRUCTION.search(text[:4000]))


def guard(decisions: Sequence[Decision], neighbours: Sequence[Sequence[Recall]], turn: Turn) -> list[Decision]:
    """Return the decisions as they may be carried out, in number and order as given.

    Args:
        decisions: what a policy decided.
        neighbours: the memories that the policy was shown, for each candidate; a target must be among them.
        turn: the exchange, whose owner must own the target.

    `guarded` says what was changed and why. It starts with "quarantined" where the text is kept out of recall because it
    reads like an instruction and did not come from the user.
    """
    shown = {r.memory.id: r.memory for near in neighbours for r in near if r.memory is not None}
    return _once_each([_guarded(decision, shown, turn) for decision in decisions], shown)


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


def _guarded(decision: Decision, shown: Mapping[str, Memory], turn: Turn) -> Decision:
    candidate = decision.candidate
    if candidate.source_kind != "user" and looks_like_instruction(f"{candidate.text}\n{candidate.quote}"):
        return _instead(decision, "ADD", "quarantined: it reads like an instruction and is not the user's own words")
    if decision.op == "ADD":
        return decision if decision.target is None else decision.model_copy(update={"target": None})
    target = shown.get(decision.target) if decision.target else None
    if decision.op == "NOOP":
        wrong = decision.target is not None and (target is None or target.owner != turn.owner)
        return _instead(decision, "NOOP", "confirms no memory that was shown") if wrong else decision
    if target is None:
        return _instead(decision, "ADD", "its target was not among the memories shown")
    if problem := _forbidden(decision, target, turn):
        return _instead(decision, *problem)
    return _merged(decision, target, turn) if decision.op == "UPDATE" else decision


def _forbidden(decision: Decision, target: Memory, turn: Turn) -> tuple[Operation, str] | None:
    """Why an UPDATE or DELETE of `target` may not be, with what happens in its place; None when it may."""
    candidate = decision.candidate
    if target.owner != turn.owner:
        return "ADD", "its target belongs to another owner"
    if target.pinned:
        return "ADD", "its target is pinned"
    if target.status != "active":
        return "ADD", f"its target is {target.status}"
    if decision.confidence < LEAST_CONFIDENCE:
        return "ADD", f"confidence {decision.confidence:.2f} is too low to change what is known"
    if decision.op == "DELETE" and not _supported(candidate, turn):
        return "NOOP", "no words of the turn support the deletion"
    if not _about_the_same(decision, target, turn):
        return "ADD", f"its target is about something else: {target.text!r}"
    return None


def _supported(candidate: Candidate, turn: Turn) -> bool:
    quote = candidate.quote.strip()
    return bool(quote) and any(quote in message.text for message in turn.messages)


def _about_the_same(decision: Decision, target: Memory, turn: Turn) -> bool:
    """Same subject and slot; where either has no slot, content words in common."""
    candidate = decision.candidate
    if not same_subject(candidate, target):
        return (
            candidate.polarity == "retract" and target.subject.casefold() in (candidate.value or "").casefold().split()
        )
    shared = (stems(candidate.text) | stems(candidate.value or "")) & (stems(target.text) | stems(target.value or ""))
    shared -= stems(candidate.subject)
    if candidate.attribute is None or target.attribute is None:
        return bool(shared)
    if candidate.attribute == target.attribute:
        return not slot(candidate.attribute).many or bool(
            shared - stems(aliases(candidate.attribute)) or _corrects(candidate, turn) or phrases.swaps(candidate.text)
        )
    return (bool(shared) and any({candidate.attribute, target.attribute} <= kin for kin in _KINDRED)) or _retracts(
        candidate, target
    )


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
    gone = other_values(candidate.text, target.text)
    kept = _standing(target.text, gone) if gone else target.text
    if not kept:
        return decision
    joined = f"{kept.rstrip(' .;')}. {new}"
    why = f"merged: the new text would have lost {', '.join(sorted(lost))}"
    return decision.model_copy(update={"text": joined, "guarded": _and(decision.guarded, why)})


def _standing(text: str, gone: frozenset[str]) -> str:
    """Return what stays of `text` when the values `gone` are replaced: the rest of a list, or the other clauses."""
    if rest := without(text, gone):
        return rest
    return ", ".join(part for part in re.split(r"[,;.]\s+(?:and |but )?", text) if not gone & stems(part))


def _lost(target: Memory, candidate: Candidate, new: str, turn: Turn) -> frozenset[str]:
    """Content words of the old text that would be gone and are not what the update replaces."""
    lost = stems(target.text) - stems(new) - _CHANGE - stems(target.subject) - stems(candidate.subject)
    lost -= stems(aliases(candidate.attribute or "")) | stems(aliases(target.attribute or ""))
    replaces = _replaces(candidate, target, turn)
    if replaces and target.value:
        lost -= _phrase(target)
    fresh = details(new) - details(target.text)
    exact = stems(" ".join(details(target.text)))
    if fresh and lost <= exact and (replaces or candidate.attribute is None or target.attribute is None):
        return frozenset()
    if replaces and len(lost) == 1 and not lost & exact:
        return frozenset()
    return frozenset() if _replaced(target, candidate, lost, turn) else lost


def _replaced(target: Memory, candidate: Candidate, lost: frozenset[str], turn: Turn) -> bool:
    """Whether all of the old text goes: it is told again for the most part, or it is one short clause that no longer holds."""
    if _LISTS.search(target.text):
        return False
    said = stems(target.text) - stems(target.subject)
    told_again = covered(said, stems(candidate.text)) >= RETOLD
    changed = phrases.replaces(candidate.text) or _corrects(candidate, turn)
    return told_again or (changed and len(lost) <= LOST_AT_MOST)


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
