"""What goes to the model, as LangGraph nodes: gathered from memory, and fitted of the conversation with its summary."""

import time
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.runtime import Runtime

from sharpwave.graphs.nodes import Node
from sharpwave.graphs.respond import system_prompt
from sharpwave.graphs.state import Context, State, context_of, last_exchange, milliseconds, moment, turn_of
from sharpwave.memory.errors import InputError
from sharpwave.memory.gathering import gather
from sharpwave.memory.question import question_in
from sharpwave.memory.records import Recall
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.tokens import estimate
from sharpwave.memory.usage import metering, total
from sharpwave.memory.working import Buffer, Summary, SummaryBuffer


def assemble_node(memory: MemoryStore, buffer: Buffer | None = None, reserve: int = 0) -> Node:
    """Return the node of the agent that gathers what an answer should heed beside what was recalled, and keeps the summary.

    What leaves the window of a `SummaryBuffer` is folded into the summary. A model call for it leaves one for the answer
    (`max_llm_calls_per_turn`), and keeps within `max_tokens_per_day` of the user; past them the summary is made by rules, and
    `degraded` says so.

    Args:
        memory: where it is gathered from.
        buffer: fits the conversation into the window of the model; None where a template answers.
        reserve: tokens of the prompt beside messages and instructions.
    """

    def assemble(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
        """Gather strategies, profile and similar tasks; leave out what something weightier contradicts."""
        started = time.perf_counter()
        context = context_of(runtime)
        gathered = _gathered(state, context, memory)
        condensed = {}
        if isinstance(buffer, SummaryBuffer):
            after: State = {**state, **gathered}  # type: ignore[typeddict-item]
            condensed = _condensed(after, context, memory, buffer, reserve)
        timings = {**state.get("timings_ms", {}), "assemble": milliseconds(started)}
        return {**gathered, **condensed, "timings_ms": timings}

    return assemble


def _gathered(state: State, context: Context, memory: MemoryStore) -> dict[str, Any]:
    said = last_exchange(state["messages"])
    asked = question_in(state["messages"][-1].text)
    recalled = [Recall.model_validate(hit) for hit in state.get("recalled", [])]
    turn = turn_of(said, context, "-") if said else None
    found = gather(
        memory, context.user_id, asked, recalled, said=turn, agent=context.agent, now=moment(context)
    ).model_dump(mode="json")
    return {
        "recalled": found["facts"],
        **{part: found[part] for part in ("profile", "procedural", "experiences", "outweighed", "core")},
    }


def _condensed(
    state: State, context: Context, memory: MemoryStore, buffer: SummaryBuffer, reserve: int
) -> dict[str, Any]:
    before, calls, tokens = _summary(state), None, None
    if context.max_llm_calls_per_turn is not None:
        calls = context.max_llm_calls_per_turn - state["usage"].get("llm_calls", 0) - 1
    if context.max_tokens_per_day is not None:
        tokens = context.max_tokens_per_day - memory.tokens_today(context.user_id)
    taken = reserve + estimate(system_prompt(state, buffer, reserve))
    with metering(calls, tokens) as meter:
        summary = buffer.condense(state["messages"], before, reserve=taken)
    if summary is before or summary is None:
        return {}
    return {
        "summary": summary.model_dump(mode="json"),
        "degraded": summary.degraded,
        "usage": total(state.get("usage"), meter.usage),
    }


def buffer_node(buffer: Buffer) -> Node:
    """Return a node for a graph of your own whose state has `messages`.

    It returns `llm_input_messages`, the messages to send, and with a `SummaryBuffer` also `summary`, which the state must
    keep. `messages` stay as they are.
    """

    def fit(state: dict[str, Any]) -> dict[str, Any]:
        summary = _summary(state)
        if isinstance(buffer, SummaryBuffer):
            summary = buffer.condense(state["messages"], summary)
        shown = buffer.fit(state["messages"], summary)
        kept = {"summary": summary.model_dump(mode="json")} if summary and isinstance(buffer, SummaryBuffer) else {}
        return {"llm_input_messages": shown, **kept}

    return fit


def in_view(state: State, buffer: Buffer | None) -> set[str | None]:
    """Return the ids of the messages that the model is certain to be shown, and that need not be recalled."""
    shown: list[BaseMessage] = list(state["messages"])
    if buffer is not None:
        try:
            shown = buffer.fit(
                shown, _summary(state), reserve=buffer.budget // 2
            )  # the rest: memories and instructions
        except InputError:
            shown = shown[-1:]
    return {message.id for message in shown}


def _summary(state: State | dict[str, Any]) -> Summary | None:
    held = state.get("summary")
    return Summary.model_validate(held) if held else None
