"""Decision without a model: slots where both sides have one, shared content words where they have not.

In doubt it adds: a duplicate is a lesser harm than a wrong change. Facts that differ in a number, a date, a name or a
negation are never taken for duplicates.
"""

from collections.abc import Sequence

from sharpwave.memory.decide.contradiction import (
    corrected_value,
    corrects,
    denies,
    elsewhere,
    extends,
    feels,
    other_details,
    replaces,
    succeeds,
)
from sharpwave.memory.decide.moving_on import changed, retells, takes_over
from sharpwave.memory.decide.sameness import (
    Known,
    adds,
    different_slots,
    is_past,
    paraphrases,
    repeats,
    same_slot,
    same_slot_or_kin,
    same_subject,
    same_value,
    says_all,
    usable,
)
from sharpwave.memory.decide.taking_back import (
    asks_to_forget,
    shares_object,
    takes_back,
    theirs,
    thing,
    without,
    without_item,
)
from sharpwave.memory.decide.transitions import transition
from sharpwave.memory.meanings import unsaid
from sharpwave.memory.phrases import same_words, stems
from sharpwave.memory.records import Candidate, Decision, Memory, Operation, Recall, Turn

_OPPOSITE = {"likes": "dislikes", "dislikes": "likes"}

ALONE = "tells too little by itself"
"""Why a candidate that is there only to change something known is not kept."""


class RulesPolicy:
    """Decides by rules alone. One instance may serve all threads: it keeps no state."""

    name = "rules/1"

    def decide(
        self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Recall]], turn: Turn
    ) -> list[Decision]:
        """Return one decision a candidate; two where a changed preference leaves the rest of a list standing."""
        made: list[Decision] = []
        for at, candidate in enumerate(candidates):
            earlier = next((c for c in candidates[:at] if repeats(candidate, c)), None)
            if earlier is not None:
                made.append(self._say("NOOP", candidate, None, f"said already in this turn: {earlier.text!r}"))
                continue
            if candidate.tentative:
                made.append(self._say("NOOP", candidate, None, ALONE, 0.9))
                continue
            near = list(usable(neighbours[at]))
            made += self._one(candidate, near, turn)
        return made

    def _one(self, candidate: Candidate, known: Sequence[Known], turn: Turn) -> list[Decision]:
        if candidate.polarity == "retract":
            steps = (self._succession, self._transition)
            return next(filter(None, (step(candidate, known, turn) for step in steps)), self._retract(candidate, known))
        for step in (
            self._repeat,
            self._history,
            self._slot,
            self._succession,
            self._preference,
            self._contradiction,
            self._transition,
            self._more,
        ):
            if decided := step(candidate, known, turn):
                return decided
        return [self._say("ADD", candidate, None, "nothing known says this", 0.9)]

    def _say(
        self,
        op: Operation,
        candidate: Candidate,
        target: Memory | None,
        reason: str,
        confidence: float = 0.95,
        text: str | None = None,
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
        value = without(memory.value, thing(candidate)) if memory.value else None
        slot_kept = {
            "subject": memory.subject,
            "attribute": memory.attribute,
            "value": value or memory.value,
            "kind": memory.kind,
        }
        kept = candidate.model_copy(update={**slot_kept, "polarity": "assert"})
        return self._say("UPDATE", kept, memory, f"{candidate.value} no longer belongs to it", 0.85, text)

    def _repeat(self, candidate: Candidate, known: Sequence[Known], turn: Turn) -> list[Decision]:
        if candidate.history:
            return []
        for near in known:
            memory = near.memory
            if is_past(memory):
                continue
            if same_words(candidate.text, memory.text):
                return [self._say("NOOP", candidate, memory, "the same words are known already")]
            if same_slot_or_kin(candidate, memory) and same_value(candidate, memory) and not adds(candidate, memory):
                return [self._say("NOOP", candidate, memory, f"{_slot_name(candidate)} is {memory.value} already")]
            if paraphrases(candidate, near):
                return [self._say("NOOP", candidate, memory, f"says the same as {memory.text!r}", 0.85)]
        return []

    def _history(self, candidate: Candidate, known: Sequence[Known], turn: Turn) -> list[Decision]:
        """A statement about the past is kept as past; "used to" also ends what was held to be current."""
        if not candidate.history:
            return []
        for memory in (k.memory for k in known):
            if same_words(candidate.text, memory.text):
                return [self._say("NOOP", candidate, memory, "the same words are known already")]
        kept = self._say("ADD", candidate, None, "about the past, kept as such", 0.9)
        if "used to" in candidate.text.casefold():
            for memory in (k.memory for k in known):
                if same_slot(candidate, memory) and same_value(candidate, memory) and not is_past(memory):
                    return [
                        self._say("DELETE", candidate, memory, f"{_slot_name(candidate)} {memory.value} is over", 0.8),
                        kept,
                    ]
        return [kept]

    def _slot(self, candidate: Candidate, known: Sequence[Known], turn: Turn) -> list[Decision]:
        """The same single-valued slot with another value is an update, unless what is known is newer than what is said."""
        target = next((k.memory for k in known if replaces(candidate, k.memory)), None)
        if target is None:
            return []
        if turn.said_at < target.valid_from:
            older = candidate.model_copy(update={"history": True})
            why = f"older than what is known: {_slot_name(candidate)} is {target.value} since"
            return [self._say("ADD", older, None, why, 0.9).model_copy(update={"outdated_by": target.id})]
        return [
            self._say(
                "UPDATE", candidate, target, f"same slot {_slot_name(candidate)}: {target.value} → {candidate.value}"
            )
        ]

    def _succession(self, candidate: Candidate, known: Sequence[Known], turn: Turn) -> list[Decision]:
        """ "From A to B", "B instead of A", "left A for B": B takes the place of the memory that holds A."""
        gone, come = succeeds(candidate.text)
        if not gone:
            return []
        for memory in (k.memory for k in known):
            held = stems(memory.value) if memory.value else stems(memory.text)
            fits = held <= gone if memory.value else len(held & gone) >= 1 and gone <= held
            comes = come is None or unsaid(stems(come), stems(memory.text))
            if not held or not fits or not comes or is_past(memory) or not same_subject(candidate, memory):
                continue
            slot_kept = {
                "attribute": candidate.attribute or memory.attribute,
                "value": come or candidate.value,
                "polarity": "assert",
            }
            return [
                self._say(
                    "UPDATE",
                    candidate.model_copy(update=slot_kept),
                    memory,
                    f"takes the place of {memory.text!r}",
                    0.85,
                )
            ]
        return []

    def _preference(self, candidate: Candidate, known: Sequence[Known], turn: Turn) -> list[Decision]:
        """Liking what was disliked, or the other way round, takes the old one's place; the rest of a list stays."""
        other = _OPPOSITE.get(candidate.attribute or "")
        for memory in (k.memory for k in known):
            if not other or not same_subject(candidate, memory) or not shares_object(candidate, memory):
                continue
            if memory.attribute == other or (memory.attribute is None and feels(memory.text) == other):
                rest = without_item(memory, candidate)
                if rest:
                    dropped = self._rest(candidate, memory, rest)
                    return [dropped, self._say("ADD", candidate, None, "the new preference", 0.9)]
                return [self._say("UPDATE", candidate, memory, f"changed preference about {candidate.value}")]
        return []

    def _contradiction(self, candidate: Candidate, known: Sequence[Known], turn: Turn) -> list[Decision]:
        """Without a common slot: the same frame with another number, date or name, or the same words denied."""
        corrected = corrects(candidate, turn)
        open_ = [
            k
            for k in known
            if same_subject(candidate, k.memory) and not different_slots(candidate, k.memory) and not is_past(k.memory)
        ]
        for memory in (k.memory for k in open_):
            if corrected and corrected_value(candidate, memory):
                return [self._say("UPDATE", candidate, memory, f"a correction of {memory.text!r}", 0.9)]
            if other_details(candidate, memory, corrected):
                why = f"the same statement with another detail than {memory.text!r}"
                return [self._say("UPDATE", candidate, memory, why, 0.8)]
            if elsewhere(candidate, memory):
                return [self._say("UPDATE", candidate, memory, f"another place than {memory.text!r}", 0.75)]
            if denies(candidate, memory):
                return [self._say("UPDATE", candidate, memory, f"the opposite of {memory.text!r}", 0.8)]
        if corrected or changed(candidate):
            over = [k for k in open_ if takes_over(candidate, k)]
            if over:
                memory = max(over, key=lambda k: k.cosine).memory
                return [self._say("UPDATE", candidate, memory, f"the present state of {memory.text!r}", 0.75)]
        told = max(open_, key=lambda k: (retells(candidate, k.memory), k.cosine), default=None)
        if told and retells(candidate, told.memory):
            return [self._say("UPDATE", candidate, told.memory, f"tells more than {told.memory.text!r}", 0.75)]
        return []

    def _transition(self, candidate: Candidate, known: Sequence[Known], turn: Turn) -> list[Decision]:
        """After an event, a state that it ends is over."""
        for memory in (k.memory for k in known):
            if op := transition(candidate, memory):
                return [self._say(op, candidate, memory, f"after that no longer so: {memory.text!r}", 0.8)]
        return []

    def _more(self, candidate: Candidate, known: Sequence[Known], turn: Turn) -> list[Decision]:
        """Says all that a memory says and more: the fuller statement takes its place."""
        if candidate.kind == "event":
            return []
        for near in known:
            memory = near.memory
            if is_past(memory):
                continue
            if same_subject(candidate, memory) and extends(candidate, memory):
                return [self._say("UPDATE", candidate, memory, f"adds detail to {memory.text!r}", 0.75)]
            if says_all(candidate, near):
                slot_kept = {"subject": memory.subject, "attribute": memory.attribute, "value": memory.value}
                fuller = candidate.model_copy(update=slot_kept)
                return [self._say("UPDATE", fuller, memory, f"says {memory.text!r} in other words", 0.75)]
        return []

    def _retract(self, candidate: Candidate, known: Sequence[Known]) -> list[Decision]:
        """Take back what is named: the whole memory, or one item of its list."""
        if candidate.attribute is None and candidate.value is None and not thing(candidate):
            return [self._say("NOOP", candidate, None, "takes something back without naming it", 0.6)]
        for memory in (k.memory for k in known):
            if is_past(memory) or not theirs(candidate, memory) or not takes_back(candidate, memory):
                continue
            rest = without_item(memory, candidate)
            if rest:
                return [self._rest(candidate, memory, rest)]
            return [self._say("DELETE", candidate, memory, f"taken back: {memory.text!r}", 0.9)]
        if asks_to_forget(candidate.text):
            return [self._say("NOOP", candidate, None, "nothing known to forget", 0.8)]
        past = candidate.model_copy(update={"history": True})
        return [self._say("ADD", past, None, "takes back something that was not known, so it is news", 0.7)]


def _slot_name(candidate: Candidate) -> str:
    return f"{candidate.subject}.{candidate.attribute}"
