"""Writing to memory: keep the turn verbatim, extract candidates, decide about each, apply.

The turn is kept durably before anything can fail. A failing model is an error in the state and a turn that stays in the
queue, never an empty result; the user has the answer either way. What waits because it failed is taken up again before
the owner's next turn, since order matters: if it fails again, that turn waits too. What a killed process left is written
by `write_pending`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from sharpwave.graphs.state import Context, State, begun, context_of, last_exchange, milliseconds, thread_of, turn_of
from sharpwave.memory.decide import Policy
from sharpwave.memory.decide.guard import guard
from sharpwave.memory.decide.llm import LLMPolicy
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.errors import BudgetExceeded, ConfigError, ModelError, OwnershipError, SharpwaveError
from sharpwave.memory.extract import Extractor, extracted
from sharpwave.memory.extract.llm import LLMExtractor
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.gate import worth_reading
from sharpwave.memory.records import Candidate, Decision, Turn, Usage
from sharpwave.memory.secrets import kinds_in
from sharpwave.memory.store import MemoryStore, StaleDecision
from sharpwave.memory.turn_queue import TurnQueue
from sharpwave.memory.usage import Meter, metering, total
from sharpwave.memory.writing import Applier

KNOWN = 10
"""Memories that an extractor is shown."""

CATCH_UP = 3
"""Turns that failed earlier, and are taken up again before one turn."""
PATIENCE = 5
"""Failures after which a turn no longer holds up the later ones of its owner; it stays in the queue."""

Node = Callable[..., Any] | Runnable[Any, Any]
"""Anything that LangGraph takes as a node."""


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
    graph.add_node("begin", _begin)
    add_write_nodes(graph, memory, model, extract, decide, apply)
    graph.add_edge(START, "begin")
    graph.add_edge("begin", "keep")
    return graph


def _begin(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
    """Check whose conversation it is, and forget what an earlier turn left in the state."""
    return begun(state, context_of(runtime))


def add_write_nodes(
    graph: StateGraph[State, Context, State, State],
    memory: MemoryStore | None,
    model: BaseChatModel | None,
    extract: Extractor | Node | None,
    decide: Policy | Node | None,
    apply: Applier | Node | None,
) -> None:
    """Add keep → extract → decide → apply to a graph."""
    store = needed(memory)
    extract, decide = writers(model, extract, decide)
    graph.add_node("keep", _keep(store))
    graph.add_node("extract", node("extract", extract, Extractor, lambda given: _extract(store, given)))
    graph.add_node("decide", node("decide", decide, Policy, lambda given: _decide(store, given)))
    graph.add_node("apply", node("apply", apply or store, Applier, _apply))
    graph.add_conditional_edges("keep", _after_keep, ["extract", "apply", END])
    graph.add_conditional_edges("extract", _after_extract, ["decide", "apply", END])
    graph.add_conditional_edges("decide", _after_decide, ["apply", END])
    graph.add_conditional_edges("apply", _after_apply, ["decide", "keep", END])


def writers(
    model: BaseChatModel | None, extract: Extractor | Node | None, decide: Policy | Node | None
) -> tuple[Extractor | Node, Policy | Node]:
    """Return who extracts and who decides: those that are given, else by the model, else by rules."""
    extract = extract or (RulesExtractor() if model is None else LLMExtractor(model))
    asked = isinstance(extract, LLMExtractor)  # it proposes what to do in the same call; a turn costs one
    return extract, decide or (RulesPolicy() if model is None else LLMPolicy(None if asked else model))


def node(name: str, given: Any, shape: type, wrap: Callable[[Any], Node]) -> Any:
    """Return what does the work of the node `name`: an object of its protocol, wrapped, or any LangGraph node as it is.

    Raises:
        ConfigError: it is neither.
    """
    if isinstance(given, shape) and not isinstance(given, type):
        return wrap(given)
    if isinstance(given, Runnable) or (callable(given) and not isinstance(given, type)):
        return given
    what = f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
    protocol = f"{shape.__module__}.{shape.__name__}"
    raise ConfigError(f"{name}= was given {what}, which is neither an object like {protocol} nor a LangGraph node.")


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
        if not state["caught_up"]:
            memory.spend(context.user_id, Usage.model_validate(state["usage"]))  # what answering has cost
        fresh: dict[str, Any] = {"turn": {}, "candidates": [], "decisions": [], "shown": [], "revision": None}
        told = said(state, context, config)
        kept = memory.queue([told]) if told is not None and context.remember else []
        if not kept:
            return fresh
        turn = kept[0]  # its secrets masked, as it will be read
        fresh["masked"] = kinds_in(turn.user_text)
        older = _failed_before(memory, turn) if _exchange(state) else None
        if older is not None:
            if not state["caught_up"]:
                memory.fail(turn, "It waits for an earlier turn of this user, which could not be written.")
            elif state["caught_up"] == CATCH_UP:
                return {
                    **fresh,
                    **_failure("keep", "Too many earlier turns wait to be written; this one waits behind them."),
                }
        return {
            **fresh,
            "turn": (older or turn).model_dump(mode="json"),
            "caught_up": state["caught_up"] + bool(older),
            "timings_ms": _timed(state, "keep", started),
        }

    return keep


def _exchange(state: State) -> list[BaseMessage]:
    """Return the messages that this run is to remember."""
    return [m for m in last_exchange(state.get("messages", [])) if m.id not in state["incognito"]]


def said(state: State, context: Context, config: RunnableConfig) -> Turn | None:
    """Return the turn to be written: the last exchange of the conversation, else the one that was given."""
    exchange = _exchange(state)
    if not exchange and not state.get("turn"):
        return None
    turn = turn_of(exchange, context, thread_of(context, config)) if exchange else Turn.model_validate(state["turn"])
    if turn.owner != context.user_id:
        raise OwnershipError("The turn to be written belongs to another user than the context names.")
    return turn if turn.user_text.strip() else None


def _failed_before(memory: MemoryStore, turn: Turn) -> Turn | None:
    """Return the oldest turn of the same owner that failed and holds up this one."""
    failed = TurnQueue(memory.ledger).failed(turn.owner, PATIENCE)
    return next((other for other in failed if (other.thread, other.message_id) != (turn.thread, turn.message_id)), None)


def _after_keep(state: State) -> Literal["extract", "apply", "__end__"]:
    if not state["turn"]:
        return "__end__"
    return "extract" if worth_reading(Turn.model_validate(state["turn"])) else "apply"


def _extract(memory: MemoryStore, extractor: Extractor) -> Node:
    def extract(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
        """Find what the turn says that is worth keeping; by rules where the budget allows no model call."""
        started = time.perf_counter()
        context, turn = context_of(runtime), Turn.model_validate(state["turn"])
        known = memory.known(turn, KNOWN)
        degraded = state["degraded"]
        with _within_budget(memory, state, context, turn) as meter:
            try:
                candidates = extracted(extractor, turn, known)
            except BudgetExceeded as error:
                if context.over_budget == "wait":
                    return _failed(memory, state, "extract", turn, error, meter)
                candidates, degraded = extracted(RulesExtractor(), turn, known), str(error)
            except ModelError as error:
                return _failed(memory, state, "extract", turn, error, meter)
        return {
            "candidates": [candidate.model_dump(mode="json") for candidate in candidates],
            "degraded": degraded,
            "usage": total(state.get("usage"), meter.usage),
            "timings_ms": _timed(state, "extract", started),
        }

    return extract


def _after_extract(state: State) -> Literal["decide", "apply", "__end__"]:
    if state["errors"]:
        return "__end__"
    return "decide" if state["candidates"] else "apply"


def _decide(memory: MemoryStore, policy: Policy) -> Node:
    def decide(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
        """Decide about each candidate, given the memories nearest to it; the guard has the last word."""
        started = time.perf_counter()
        context, turn = context_of(runtime), Turn.model_validate(state["turn"])
        candidates = [Candidate.model_validate(candidate) for candidate in state["candidates"]]
        neighbours, revision = memory.neighbours(turn.owner, candidates)
        degraded = state["degraded"]
        with _within_budget(memory, state, context, turn) as meter:
            try:
                made = policy.decide(candidates, neighbours, turn)
            except BudgetExceeded as error:
                if context.over_budget == "wait":
                    return {"decisions": [], **_failed(memory, state, "decide", turn, error, meter)}
                made, degraded = RulesPolicy().decide(candidates, neighbours, turn), str(error)
            except ModelError as error:
                return {"decisions": [], **_failed(memory, state, "decide", turn, error, meter)}
        decisions = guard(made, neighbours, turn)
        return {
            "decisions": [decision.model_dump(mode="json") for decision in decisions],
            "degraded": degraded,
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
        turn = Turn.model_validate(state["turn"])
        decisions = [Decision.model_validate(decision) for decision in state["decisions"]]
        recalled, cited = ([], []) if _catching_up(state) else used(state)
        try:
            done = applier.apply(
                turn, decisions, revision=state["revision"], shown=state["shown"], recalled=recalled, cited=cited
            )
        except StaleDecision:
            return {"revision": STALE}
        return {
            "operations": [*state["operations"], *(item.model_dump(mode="json") for item in done)],
            "revision": None,
            "timings_ms": _timed(state, "apply", started),
        }

    return apply


def used(state: State) -> tuple[list[str], list[str]]:
    """Return the ids of the memories that the turn recalled, and of those among them that its answer cited."""
    recalled = [hit["id"] for hit in state["recalled"] if hit["store"] == "semantic"]
    return recalled, [memory_id for memory_id in state["citations"] if memory_id in recalled]


STALE = -2
"""Revision that says: somebody else wrote in between, decide again."""


def _after_decide(state: State) -> Literal["apply", "__end__"]:
    return "__end__" if state["errors"] else "apply"


def _after_apply(state: State) -> Literal["decide", "keep", "__end__"]:
    if state["revision"] == STALE:
        return "decide"
    return "keep" if _catching_up(state) else "__end__"


def _catching_up(state: State) -> bool:
    """Whether the turn at work is an earlier one, so that this run's own still waits."""
    exchange = _exchange(state)
    return bool(exchange) and Turn.model_validate(state["turn"]).message_id not in {message.id for message in exchange}


@contextmanager
def _within_budget(memory: MemoryStore, state: State, context: Context, turn: Turn) -> Iterator[Meter]:
    """Count the model calls of the block, hold them to what this turn and this day have left, and book them."""
    calls = tokens = None
    if context.max_llm_calls_per_turn is not None:
        calls = context.max_llm_calls_per_turn - state["usage"].get("llm_calls", 0)
    if context.max_tokens_per_day is not None:
        tokens = context.max_tokens_per_day - memory.tokens_today(turn.owner)
    with metering(calls, tokens) as meter:
        try:
            yield meter
        finally:
            memory.spend(turn.owner, meter.usage)


def _failed(
    memory: MemoryStore, state: State, stage: str, turn: Turn, error: SharpwaveError, meter: Meter
) -> dict[str, Any]:
    """Leave the turn in the queue, and say why."""
    memory.fail(turn, str(error))
    return {**_failure(stage, str(error)), "usage": total(state.get("usage"), meter.usage)}


def _failure(stage: str, error: str) -> dict[str, Any]:
    return {"errors": [{"stage": stage, "error": error}]}


def _timed(state: State, stage: str, started: float) -> dict[str, float]:
    return {**state.get("timings_ms", {}), stage: milliseconds(started)}


def write_pending(memory: MemoryStore, graph: Any, owner: str | None = None) -> int:
    """Write the turns that wait in the queue, in order, by a compiled `build_write` graph; returns how many were written.

    A turn that fails again stays in the queue, and so do the later ones of its owner, whose order matters; unless it has
    failed `PATIENCE` times. Owners whose turns are being written in the background meanwhile are left alone.
    """
    written = 0
    stuck = TurnQueue(memory.ledger).claimed()
    for turn, attempts, _ in memory.pending(owner):
        if turn.owner in stuck:
            continue
        context = Context(user_id=turn.owner, now=turn.said_at, timezone=turn.timezone)
        result = graph.invoke({"turn": turn.model_dump(mode="json"), "messages": []}, context=context)
        if not result["errors"]:
            written += 1
        elif attempts + 1 < PATIENCE:
            stuck.add(turn.owner)
    return written
