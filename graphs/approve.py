"""Asking the user before a memory is deleted, or changed by a decision that is not sure.

Two nodes between decide and apply. `question` looks up what the decisions would change and notes that the turn waits;
`approve` stops the run by LangGraph's `interrupt`, until it is resumed with an answer. A resumed node runs again from its
top: `approve` therefore only reads the state, so that an answer is always to the question as it was put.

A run is resumed by `Command(resume=answer)`, where the answer is True or "yes" for all that is asked, False or "no" for
none of it, or a list of the numbers `n` to approve. Anything else is asked again. What is refused becomes a NOOP: no memory
changes, and the ledger says that the user refused. A turn whose question nobody answers waits in the queue, is taken up
before the next one like one that failed, and is then asked about again.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from sharpwave.graphs.nodes import Node
from sharpwave.graphs.state import STALE, Context, State, context_of
from sharpwave.memory.errors import ConfigError, NotFoundError, OwnershipError
from sharpwave.memory.records import Decision, Turn
from sharpwave.memory.store import MemoryStore

SURE = 0.8
"""Confidence from which an UPDATE needs no approval, where `confirm` is True."""
WAITS = "It waits for the user's approval."

Question = dict[str, Any]
"""What one decision would do: `op`, `memory_id`, `old`, `new` (None for a DELETE), `reason`, `confidence`, `quote`."""

_ASKED = ("op", "memory_id", "old", "new")
"""What a question is about; where these are the same, it is the same question."""


def sure_from(confirm: bool | float) -> float | None:
    """Return the confidence from which an UPDATE needs no approval; None where nothing is asked.

    Raises:
        ConfigError: `confirm` is no confidence.
    """
    if isinstance(confirm, bool):
        return SURE if confirm else None
    if not 0 <= confirm <= 1:
        raise ConfigError(f"confirm={confirm!r} is no confidence. Pass True, or a number from 0 to 1.")
    return confirm


def check_can_stop(config: RunnableConfig) -> None:
    """Check that the run can be stopped and resumed; raises `ConfigError` where there is no checkpointer."""
    if not config.get("configurable", {}).get(CONFIG_KEY_CHECKPOINTER):
        raise ConfigError(
            "With confirm= the run stops to ask and is resumed with the answer, which takes a checkpointer. Compile the "
            "graph with one, as in compile(checkpointer=InMemorySaver())."
        )


def question_node(memory: MemoryStore, sure: float) -> Node:
    """Return the node that finds out what to ask, where an UPDATE needs no approval from the confidence `sure` on."""

    def question(state: State) -> dict[str, Any]:
        """Look up what the user is to be asked about, and note in the queue that the turn waits for the answer."""
        turn = Turn.model_validate(state["turn"])
        _, now = memory.neighbours(turn.owner, [])  # read before the texts, so that a change after it is noticed
        revision = now if state["revision"] in (None, STALE) else state["revision"]
        decisions = [Decision.model_validate(decision) for decision in state["decisions"]]
        questions = [_question(memory, turn.owner, decision, sure) for decision in decisions]
        if not any(questions):
            return {"questions": []}
        if _unanswered(questions, state["answers"]):
            memory.fail(turn, WAITS)
        return {"questions": questions, "revision": revision}

    return question


def approve(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
    """Ask the user once about all that is not answered yet; what is refused changes nothing."""
    if state["owner"] != context_of(runtime).user_id:
        raise OwnershipError("The question to be answered is another user's.")
    questions, answers = state["questions"], state["answers"]
    if asked := _unanswered(questions, answers):
        chosen = _ask(Turn.model_validate(state["turn"]), asked)
        answers = [*answers, *({**question, "approved": n in chosen} for n, question in enumerate(asked, 1))]
    decisions = zip(map(Decision.model_validate, state["decisions"]), questions, strict=True)
    settled = [
        decision if question is None else _settled(decision, question, answers) for decision, question in decisions
    ]
    return {"decisions": [decision.model_dump(mode="json") for decision in settled], "answers": answers}


def _question(memory: MemoryStore, owner: str, decision: Decision, sure: float) -> Question | None:
    """Return what there is to ask about a decision, if anything."""
    confidence = min(decision.confidence, decision.candidate.confidence)
    if decision.target is None or not (decision.op == "DELETE" or (decision.op == "UPDATE" and confidence < sure)):
        return None
    try:
        old = memory.get(owner, decision.target).text
    except NotFoundError:  # which carrying it out says, or deciding anew
        return None
    return {
        "op": decision.op,
        "memory_id": decision.target,
        "old": old,
        "new": None if decision.op == "DELETE" else decision.text or decision.candidate.text,
        "reason": decision.reason,
        "confidence": confidence,
        "quote": decision.candidate.quote,
    }


def _same(one: Question, other: Question) -> bool:
    return all(one[key] == other[key] for key in _ASKED)


def _unanswered(questions: Sequence[Question | None], answers: Sequence[Question]) -> list[Question]:
    return [q for q in questions if q is not None and not any(_same(q, answer) for answer in answers)]


def _ask(turn: Turn, questions: Sequence[Question]) -> set[int]:
    """Stop the run until it is resumed, and return the numbers of what was approved."""
    numbered = [{"n": n, **question} for n, question in enumerate(questions, 1)]
    asked = {"thread": turn.thread, "message_id": turn.message_id, "said": turn.user_text, "decisions": numbered}
    answer = interrupt(asked)
    while (chosen := _chosen(answer, len(questions))) is None:
        problem = f"{answer!r} is no answer. Answer yes or no, or with a list of the numbers to approve."
        answer = interrupt({**asked, "problem": problem})
    return chosen


def _chosen(answer: object, count: int) -> set[int] | None:
    """Return the numbers that an answer approves; None where it is no answer."""
    everything = set(range(1, count + 1))
    if isinstance(answer, str):
        answer = {"yes": True, "no": False}.get(answer.strip().casefold())
    if isinstance(answer, bool):
        return everything if answer else set()
    if isinstance(answer, list | tuple) and all(type(n) is int and n in everything for n in answer):
        return set(answer)
    return None


def _settled(decision: Decision, question: Question, answers: Sequence[Question]) -> Decision:
    """Return a decision as the user answered it."""
    if next(answer["approved"] for answer in answers if _same(question, answer)):
        return decision.model_copy(update={"reason": f"{decision.reason}; approved by the user"})
    old, new = question["old"], question["new"]
    change = f"delete {old!r}" if new is None else f"change {old!r} to {new!r}"
    reason = f"the user refused to {change}; {decision.reason}"
    return decision.model_copy(update={"op": "NOOP", "target": None, "text": None, "reason": reason})
