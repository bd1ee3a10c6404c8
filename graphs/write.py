"""Writing to memory: keep the turn verbatim, extract candidates, decide about each, apply.

The turn is kept durably before anything can fail. A failing model is an error in the state and a turn that stays in the
queue, never an empty result; the user has the answer either way.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from sharpwave.graphs.state import Context, State, check_conversation, context_of, last_exchange, milliseconds, thread_of, turn_of
from sharpwave.memory.applying import Applied
from sharpwave.memory.decide import Policy
from sharpwave.memory.decide.guard import guard
from sharpwave.memory.decide.llm import LLMPolicy
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.errors import ConfigError, ModelError
from sharpwave.memory.extract import Extractor
from sharpwave.memory.extract.llm import LLMExtractor
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.gate import worth_reading
from sharpwave.memory.records import Candidate, Decision, Turn
from sharpwave.memory.store import MemoryStore, StaleDecision
from sharpwave.memory.usage import metering, total

KNOWN = 10
"""Memories that an extractor is shown."""

Node = Callable[..., Any] | Runnable[Any, Any]
"""Anything that LangGraph takes as a node."""


@runtime_checkable
class Applier(Protocol):
    """Carries out decisions."""

    def apply(self, turn: Turn, decisions: Sequence[Decision], *, revision: int, **more: Any) -> list[Applied]:
        """Carry out decisions about a turn, all or nothing; see `MemoryStore.apply`."""
        ...


def build_write(
    *,
    memory: MemoryStore | None = None,
    model: BaseChatModel | None = None,
    extract: Extractor | Node | None = None,
    decide: Policy | Node | None = None,
    apply: Applier | Node | None = None,
) -> StateGraph[State, Context, State, State]:
    """Return the writing graph, uncompiled: it remembers the last exchange in `messages`, or the `turn` it is given.

    Args: as of `build_agent`.
    """
    graph = StateGraph(State, context_schema=Context)
    add_write_nodes(graph, memory, model, extract, decide, apply)
    graph.add_edge(START, "keep")
    return graph


def add_write_nodes(
    graph: StateGraph[State, Context, State, State],
    memory: MemoryStore | None,
    model: BaseChatModel | None,
    extract: Extractor | Node | None,
    decide: Policy | Node | None,
    apply: Applier | Node | None,
) -> None:
    """Add keep → extract → decide → apply to a graph."""
    extract = extract or (RulesExtractor() if model is None else LLMExtractor(model))
    decide = decide or (RulesPolicy() if model is None else LLMPolicy(model))
    graph.add_node("keep", _keep(needed(memory)))
    graph.add_node("extract", _extract(needed(memory), extract) if isinstance(extract, Extractor) else extract)
    graph.add_node("decide", _decide(needed(memory), decide) if isinstance(decide, Policy) else decide)
    apply = apply or needed(memory)
    graph.add_node("apply", _apply(apply) if isinstance(apply, Applier) else apply)
    graph.add_conditional_edges("keep", _after_keep, ["extract", "apply", END])
    graph.add_conditional_edges("extract", _after_extract, ["decide", "apply", END])
    graph.add_edge("decide", "apply")
    graph.add_conditional_edges("apply", _after_apply, ["decide", END])


def needed(memory: MemoryStore | None) -> MemoryStore:
    """Return `memory`; raises `ConfigError` when a node needs one and there is none."""
    if memory is None:
        raise ConfigError("This graph needs a memory. Pass memory=MemoryStore.open(folder).")
    return memory


def _keep(memory: MemoryStore) -> Node:
    def keep(state: State, runtime: Runtime[Context], config: RunnableConfig) -> dict[str, Any]:
        """Keep the turn verbatim and durably; what follows may fail, and is then done later."""
        started = time.perf_counter()
        context = context_of(runtime)
        check_conversation(state, context)
        fresh: dict[str, Any] = {"turn": {}, "candidates": [], "decisions": [], "shown": [], "operations": [], "errors": []}
        exchange = last_exchange(state.get("messages", []))
        given = state.get("turn") if not exchange else None
        if not context.remember or not (exchange or given):
            return fresh
        turn = Turn.model_validate(given) if given else turn_of(exchange, context, thread_of(context, config))
        if turn.owner != context.user_id:
            raise ConfigError("The turn to be written belongs to another user than the context names.")
        waiting = memory.queue([turn]) if turn.user_text.strip() else []
        return {**fresh, "turn": turn.model_dump(mode="json") if waiting else {}, "timings_ms": _timed(state, "keep", started)}

    return keep


def _after_keep(state: State) -> Literal["extract", "apply", "__end__"]:
    if not state["turn"]:
        return END
    return "extract" if worth_reading(Turn.model_validate(state["turn"])) else "apply"


def _extract(memory: MemoryStore, extractor: Extractor) -> Node:
    def extract(state: State) -> dict[str, Any]:
        """Find what the turn says that is worth keeping."""
        started = time.perf_counter()
        turn = Turn.model_validate(state["turn"])
        known = memory.recall(turn.owner, turn.user_text, k=KNOWN, stores=("semantic",), floor=-1.0, now=turn.said_at)
        with metering() as meter:
            try:
                candidates = extractor.extract(turn, known)
            except ModelError as error:
                memory.fail(turn, str(error))
                return {**_failure("extract", error), "usage": total(state.get("usage"), meter.usage)}
        return {
            "candidates": [candidate.model_dump(mode="json") for candidate in candidates],
            "usage": total(state.get("usage"), meter.usage),
            "timings_ms": _timed(state, "extract", started),
        }

    return extract


def _after_extract(state: State) -> Literal["decide", "apply", "__end__"]:
    if state["errors"]:
        return END
    return "decide" if state["candidates"] else "apply"


def _decide(memory: MemoryStore, policy: Policy) -> Node:
    def decide(state: State) -> dict[str, Any]:
        """Decide about each candidate, given the memories nearest to it; the guard has the last word."""
        started = time.perf_counter()
        turn = Turn.model_validate(state["turn"])
        candidates = [Candidate.model_validate(candidate) for candidate in state["candidates"]]
        neighbours, revision = memory.neighbours(turn.owner, candidates)
        with metering() as meter:
            try:
                decisions = guard(policy.decide(candidates, neighbours, turn), neighbours, turn)
            except ModelError as error:
                memory.fail(turn, str(error))
                return {**_failure("decide", error), "decisions": [], "usage": total(state.get("usage"), meter.usage)}
        return {
            "decisions": [decision.model_dump(mode="json") for decision in decisions],
            "shown": sorted({hit.id for near in neighbours for hit in near}),
            "revision": revision,
            "usage": total(state.get("usage"), meter.usage),
            "timings_ms": _timed(state, "decide", started),
        }

    return decide


def _apply(applier: Applier) -> Node:
    def apply(state: State) -> dict[str, Any]:
        """Carry out the decisions, in one transaction with the mark that the turn is written."""
        started = time.perf_counter()
        if state["errors"]:
            return {"revision": -1}
        turn = Turn.model_validate(state["turn"])
        decisions = [Decision.model_validate(decision) for decision in state["decisions"]]
        recalled = [hit["id"] for hit in state.get("recalled", []) if hit["store"] == "semantic"]
        cited = [memory_id for memory_id in state.get("citations", []) if memory_id in recalled]
        try:
            done = applier.apply(
                turn, decisions, revision=state.get("revision", 0), shown=state["shown"], recalled=recalled, cited=cited
            )
        except StaleDecision:
            return {"revision": STALE}
        return {
            "operations": [item.model_dump(mode="json") for item in done],
            "revision": -1,
            "timings_ms": _timed(state, "apply", started),
        }

    return apply


STALE = -2
"""Revision that says: somebody else wrote in between, decide again."""


def _after_apply(state: State) -> Literal["decide", "__end__"]:
    return "decide" if state.get("revision") == STALE else END


def _failure(stage: str, error: ModelError) -> dict[str, Any]:
    return {"errors": [{"stage": stage, "error": str(error)}]}


def _timed(state: State, stage: str, started: float) -> dict[str, float]:
    return {**state.get("timings_ms", {}), stage: milliseconds(started)}


def write_pending(memory: MemoryStore, graph: Any, owner: str | None = None) -> int:
    """Write the turns that wait in the queue, in order, by a compiled `build_write` graph; returns how many were written.

    A turn that fails again stays in the queue, and so do the later ones of its owner, whose order matters.
    """
    written = 0
    stuck: set[str] = set()
    for turn, _, _ in memory.pending(owner):
        if turn.owner in stuck:
            continue
        context = Context(user_id=turn.owner, now=turn.said_at, timezone=turn.timezone)
        result = graph.invoke({"turn": turn.model_dump(mode="json"), "messages": []}, context=context)
        if result["errors"]:
            stuck.add(turn.owner)
        else:
            written += 1
    return written
