"""Working memory as LangGraph nodes: the running summary, and what of a conversation goes to the model."""

import time
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.runtime import Runtime

from sharpwave.graphs.nodes import Node
from sharpwave.graphs.respond import system_prompt
from sharpwave.graphs.state import Context, State, context_of, milliseconds
from sharpwave.memory.errors import InputError
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.tokens import estimate
from sharpwave.memory.usage import metering, total
from sharpwave.memory.working import Buffer, Summary, SummaryBuffer


def condense_node(buffer: SummaryBuffer, memory: MemoryStore | None = None, reserve: int = 0) -> Node:
    """Return the node of the agent that folds what leaves the window into the summary.

    A model call for it leaves one for the answer (`max_llm_calls_per_turn`), and keeps within `max_tokens_per_day` of
    the user in `memory`; past them the summary is made by rules, and `degraded` says so.

    Args:
        buffer: makes the summary.
        memory: knows what the user has spent today.
        reserve: tokens of the prompt beside messages and instructions.
    """

    def condense(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
        """Keep the summary up to date with what the window no longer holds."""
        started = time.perf_counter()
        context = context_of(runtime)
        before, calls, tokens = _summary(state), None, None
        if context.max_llm_calls_per_turn is not None:
            calls = context.max_llm_calls_per_turn - state["usage"].get("llm_calls", 0) - 1
        if context.max_tokens_per_day is not None and memory is not None:
            tokens = context.max_tokens_per_day - memory.tokens_today(context.user_id)
        taken = reserve + estimate(system_prompt(state, buffer.budget))
        with metering(calls, tokens) as meter:
            summary = buffer.condense(state["messages"], before, reserve=taken)
        if summary is before or summary is None:
            return {}
        return {
            "summary": summary.model_dump(mode="json"),
            "degraded": summary.degraded,
            "usage": total(state.get("usage"), meter.usage),
            "timings_ms": {**state.get("timings_ms", {}), "condense": milliseconds(started)},
        }

    return condense


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
