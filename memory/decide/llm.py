"""Decisions by a chat model: those it proposed while extracting, or one call for all candidates of a turn."""

import logging
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, model_validator

from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.extract.llm import Alias, Lenient, Op, Unit, resolve
from sharpwave.memory.records import Candidate, Decision, Recall, Turn
from sharpwave.memory.structured import ask
from sharpwave.memory.times import time_zone
from sharpwave.prompts import day, quoted, render

log = logging.getLogger(__name__)

_MEMORY_LENGTH = 400
_QUOTE_LENGTH = 200


class LLMPolicy:
    """Lets a chat model decide; what it says that does not fit is rejected, logged, and the candidate is added.

    Args:
        model: any LangChain chat model; None asks none, for extractors that propose what to do in their own call.
    """

    name = "llm/1"

    def __init__(self, model: BaseChatModel | None = None) -> None:
        self._model = model

    def decide(
        self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Recall]], turn: Turn
    ) -> list[Decision]:
        """Return decisions in the order of the candidates; see `Policy`.

        There is no call when nothing is near to any candidate, or when the extraction proposed what to do: then the rules
        decide about what it left open, so that a turn costs one call.
        """
        known = list({recall.id: recall for near in neighbours for recall in near}.values())
        if not known:
            return [self._add(c, "nothing known is near") for c in candidates]
        if self._model is None or any(c.proposed for c in candidates):
            return [
                d for c, near in zip(candidates, neighbours, strict=True) for d in self._proposed(c, near, known, turn)
            ]
        accepted = self._ask(self._model, candidates, known, turn)
        return [d for i, c in enumerate(candidates) for d in self._whole(c, accepted.get(i, []))]

    def _ask(
        self, model: BaseChatModel, candidates: Sequence[Candidate], known: Sequence[Recall], turn: Turn
    ) -> dict[int, list[Decision]]:
        """Ask the model once and return what is usable, by index of the candidate."""
        local = turn.said_at.astimezone(time_zone(turn.timezone))
        prompt = render("decide", date=day(local), timezone=turn.timezone)
        messages = [SystemMessage(prompt), HumanMessage(_listing(candidates, known))]
        accepted: dict[int, list[Decision]] = {}
        for verdict in ask(model, messages, Verdicts, purpose="decide").decisions:
            read = _read(verdict, candidates, known)
            if isinstance(read, str):
                log.warning("Rejected a decision of the model: %s (op %r, target %r)", read, verdict.op, verdict.target)
                continue
            at, target = read
            taken = [d.op for d in accepted.get(at, [])]
            if taken and sorted([*taken, verdict.op or ""]) != ["ADD", "DELETE"]:
                log.warning("Rejected a second decision of the model on candidate %d (op %r)", at, verdict.op)
                continue
            decision = self._decision(verdict, candidates[at], target)
            accepted.setdefault(at, []).append(decision)
        return accepted

    def _whole(self, candidate: Candidate, decisions: list[Decision]) -> list[Decision]:
        """Complete what was decided on one candidate, so that what it asserts is never lost."""
        if not decisions:
            return [self._add(candidate, "the model gave no usable decision")]
        if candidate.polarity == "assert" and {d.op for d in decisions} == {"DELETE"}:
            return [*decisions, self._add(candidate, "what replaces a deleted memory is kept")]
        return decisions

    def _proposed(
        self, candidate: Candidate, near: Sequence[Recall], known: Sequence[Recall], turn: Turn
    ) -> list[Decision]:
        if candidate.proposed is None:
            return RulesPolicy().decide([candidate], [near], turn)
        return self._whole(candidate, [self._proposal(candidate, known)])

    def _proposal(self, candidate: Candidate, known: Sequence[Recall]) -> Decision:
        """Read what the extraction call proposed."""
        op, target = candidate.proposed or "ADD", candidate.proposed_target
        if op == "ADD":
            return self._add(candidate, "proposed with the extraction")
        if target not in {recall.id for recall in known}:
            log.warning("Rejected a proposed %s: its target %r is not among the memories near by", op, target)
            return self._add(candidate, f"{op} was proposed without a usable target")
        return Decision(
            op=op,
            candidate=candidate,
            target=target,
            confidence=candidate.confidence,
            reason="proposed with the extraction",
            policy=self.name,
        )

    def _decision(self, verdict: "Verdict", candidate: Candidate, target: str | None) -> Decision:
        text = (verdict.text or "").strip() if verdict.op == "UPDATE" else ""
        return Decision(
            op=verdict.op or "ADD",
            candidate=candidate,
            target=target,
            text=text or None,
            confidence=verdict.confidence,
            reason=" ".join(verdict.reason.split())[:200] or "decided by the model",
            policy=self.name,
        )

    def _add(self, candidate: Candidate, reason: str) -> Decision:
        return Decision(op="ADD", candidate=candidate, reason=reason, policy=self.name)


class Verdict(Lenient):
    """One decision, as the model gives it."""

    candidate: Alias = None
    op: Op = None
    target: Alias = None
    text: str | None = None
    confidence: Unit = 0.8
    reason: str = ""


class Verdicts(BaseModel):
    """The whole answer. Accepts a bare list, and the names `actions`, `event` and `id` that other prompts use."""

    decisions: list[Verdict]

    @model_validator(mode="before")
    @classmethod
    def _lenient(cls, data: Any) -> Any:
        given = data.get("decisions", data.get("actions")) if isinstance(data, dict) else data
        if not isinstance(given, list) or not any(isinstance(item, dict) for item in given):
            raise ValueError("there is no list 'decisions' of objects")
        if stray := sum(not isinstance(item, dict) for item in given):
            log.warning("Dropped %d of %d decisions: they are no objects", stray, len(given))
        return {"decisions": [_renamed(item) for item in given if isinstance(item, dict)]}


def _renamed(item: dict[str, Any]) -> dict[str, Any]:
    """Give `event` and `id` the names they have here."""
    names = {"event": "op", "action": "op", "id": "target"}
    return {new: item[old] for old, new in names.items() if old in item} | item


def _listing(candidates: Sequence[Candidate], known: Sequence[Recall]) -> str:
    """What the model is shown: known memories and candidates, numbered from 0, as quotes."""
    lines = ["Known memories:"]
    lines += [f"[{i}] {quoted(r.text, _MEMORY_LENGTH)} ({r.said_at:%Y-%m-%d})" for i, r in enumerate(known)]
    lines.append("Candidates:")
    for i, candidate in enumerate(candidates):
        no_longer = " NO LONGER SO" if candidate.polarity == "retract" else ""
        said = quoted(candidate.quote, _QUOTE_LENGTH)
        lines.append(f"[{i}]{no_longer} {quoted(candidate.text, _MEMORY_LENGTH)} (user said: {said})")
    return "\n".join(lines)


def _read(verdict: Verdict, candidates: Sequence[Candidate], known: Sequence[Recall]) -> tuple[int, str | None] | str:
    """Return the index of the candidate and the memory id that a verdict is about, or why it cannot be used."""
    if verdict.op is None:
        return "it names no known operation"
    place = resolve(verdict.target, len(known))
    if place is None and verdict.op != "ADD":
        return "its target was not shown"
    target = None if place is None else known[place]
    at = _candidate_of(verdict, target, candidates)
    if at is None:
        return "it belongs to no candidate"
    if verdict.op == "UPDATE" and verdict.candidate is None and not (verdict.text or "").strip():
        return "it updates without a text"
    return at, target.id if target and verdict.op != "ADD" else None


def _candidate_of(verdict: Verdict, target: Recall | None, candidates: Sequence[Candidate]) -> int | None:
    """Find the candidate by its number; a verdict without one by its text, by its target's text, or as the only one."""
    if verdict.candidate is not None:
        return resolve(verdict.candidate, len(candidates))
    texts = {candidate.text.casefold(): i for i, candidate in enumerate(candidates)}
    for text in (verdict.text, target.text if target else None):
        if text and text.strip().casefold() in texts:
            return texts[text.strip().casefold()]
    return 0 if len(candidates) == 1 else None
