"""Writing to memory: keep the turn verbatim, extract candidates, decide about each, have it approved if so wanted, apply.

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
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from sharpwave.graphs.approve import approve, check_can_stop, question_node, sure_from
from sharpwave.graphs.keep import PATIENCE, after_keep, catching_up, keep_node
from sharpwave.graphs.nodes import Node, needed, node
from sharpwave.graphs.state import STALE, Context, State, begun, context_of, failure, thread_config, timed
from sharpwave.memory.decide import Policy
from sharpwave.memory.decide.guard import guard
from sharpwave.memory.decide.learned import keyless
from sharpwave.memory.decide.llm import LLMPolicy
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.errors import BudgetExceeded, ModelError, SharpwaveError
from sharpwave.memory.extract import Extractor, extracted
from sharpwave.memory.extract.llm import LLMExtractor
from sharpwave.memory.extract.rules import rules_for
from sharpwave.memory.records import Candidate, Decision, Recall, Turn
from sharpwave.memory.rerank import Lesson
from sharpwave.memory.store import MemoryStore, StaleDecision
from sharpwave.memory.turn_queue import TurnQueue
from sharpwave.memory.usage import Meter, metering, total
from sharpwave.memory.writing import Applier

KNOWN = 10
"""Memories that an extractor is shown."""


def build_write(
    *,
    memory: MemoryStore | None = None,
    model: BaseChatModel | None = None,
    extract: Extractor | Node | None = None,
    decide: Policy | Node | None = None,
    apply: Applier | Node | None = None,
    confirm: bool | float = False,
) -> StateGraph[State, Context, State, State]:
    """Return the writing graph, uncompiled: it remembers the last exchange in `messages`, or the `turn` it is given.

    Args: as of `build_agent`.
    """
    graph = StateGraph(State, context_schema=Context)
    graph.add_node("begin", begin_node(confirm))
    add_write_nodes(graph, memory, model, extract, decide, apply, confirm)
    graph.add_edge(START, "begin")
    graph.add_edge("begin", "keep")
    return graph


def begin_node(confirm: bool | float) -> Callable[..., dict[str, Any]]:
    """Return the node that a run begins with."""

    def begin(state: State, runtime: Runtime[Context], config: RunnableConfig) -> dict[str, Any]:
        """Check whose conversation it is, and forget what an earlier turn left in the state."""
        if confirm is not False:
            check_can_stop(config)
        return begun(state, context_of(runtime))

    return begin


def add_write_nodes(
    graph: StateGraph[State, Context, State, State],
    memory: MemoryStore | None,
    model: BaseChatModel | None,
    extract: Extractor | Node | None,
    decide: Policy | Node | None,
    apply: Applier | Node | None,
    confirm: bool | float,
    end: str = END,
) -> None:
    """Add keep → extract → decide → apply → `end` to a graph, with question → approve before apply where something is asked."""
    store, sure = needed(memory), sure_from(confirm)
    extract, decide = writers(store, model, extract, decide)
    graph.add_node("keep", keep_node(store))
    graph.add_node("extract", node("extract", extract, Extractor, lambda given: _extract(store, given)))
    graph.add_node("decide", node("decide", decide, Policy, lambda given: _decide(store, given)))
    graph.add_node("apply", node("apply", apply or store, Applier, lambda given: _apply(store, given)))
    graph.add_conditional_edges("keep", after_keep, {"extract": "extract", "apply": "apply", END: end})
    graph.add_conditional_edges("extract", _after_extract, {"decide": "decide", "apply": "apply", END: end})
    if sure is not None:
        graph.add_node("question", question_node(store, sure))
        graph.add_node("approve", approve)
        graph.add_conditional_edges(
            "question", lambda state: "approve" if state["questions"] else "apply", ["approve", "apply"]
        )
        graph.add_edge("approve", "apply")
    after = "apply" if sure is None else "question"
    graph.add_conditional_edges("decide", lambda state: END if state["errors"] else after, {after: after, END: end})
    graph.add_conditional_edges("apply", _after_apply, {"decide": "decide", "keep": "keep", END: end})


def writers(
    store: MemoryStore, model: BaseChatModel | None, extract: Extractor | Node | None, decide: Policy | Node | None
) -> tuple[Extractor | Node, Policy | Node]:
    """Return who extracts and who decides: those that are given, else the model, else what needs none."""
    extract = extract or (rules_for(store.embeddings) if model is None else LLMExtractor(model))
    asked = isinstance(extract, LLMExtractor)  # it proposes what to do in the same call; a turn costs one
    return extract, decide or (keyless(store.embeddings) if model is None else LLMPolicy(None if asked else model))


def _extract(memory: MemoryStore, extractor: Extractor) -> Node:
    def extract(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
        """Find what the turn says that is worth keeping; by rules where the budget allows no model call."""
        started = time.perf_counter()
        context, turn = context_of(runtime), Turn.model_validate(state["turn"])
        degraded = state["degraded"]
        with _within_budget(memory, state, context, turn) as meter:
            try:
                known = memory.known(turn, KNOWN)
                candidates = extracted(extractor, turn, known)
            except BudgetExceeded as error:
                if context.over_budget == "wait":
                    return _failed(memory, state, "extract", turn, error, meter)
                candidates, degraded = extracted(rules_for(memory.embeddings), turn, known), str(error)
            except ModelError as error:
                return _failed(memory, state, "extract", turn, error, meter)
        return {
            "candidates": [candidate.model_dump(mode="json") for candidate in candidates],
            "degraded": degraded,
            "usage": total(state.get("usage"), meter.usage),
            "timings_ms": timed(state, "extract", started),
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
        degraded = state["degraded"]
        with _within_budget(memory, state, context, turn) as meter:
            try:
                neighbours, revision = memory.neighbours(turn.owner, candidates)
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
            "timings_ms": timed(state, "decide", started),
        }

    return decide


def _apply(memory: MemoryStore, applier: Applier) -> Node:
    def apply(state: State) -> dict[str, Any]:
        """Carry out the decisions, in one transaction with the mark that the turn is written."""
        started = time.perf_counter()
        turn = Turn.model_validate(state["turn"])
        decisions = [Decision.model_validate(decision) for decision in state["decisions"]]
        uses: dict[str, Any] = {} if catching_up(state) else used(state)
        try:
            done = applier.apply(turn, decisions, revision=state["revision"], shown=state["shown"], **uses)
        except StaleDecision:
            return {"revision": STALE}
        except ModelError as error:  # of the embedder
            memory.fail(turn, str(error))
            return {"revision": None, **failure("apply", str(error))}
        return {
            "operations": [*state["operations"], *(item.model_dump(mode="json") for item in done)],
            "revision": None,
            "timings_ms": timed(state, "apply", started),
        }

    return apply


def used(state: State) -> dict[str, Any]:
    """Return what `MemoryStore.apply` is to count: the ids of the memories that the turn recalled, and of those among them that its
    answer cited; and, where recall learns from citations, the lesson in them."""
    recalled = [hit["id"] for hit in state["recalled"] if hit["store"] == "semantic"]
    uses: dict[str, Any] = {
        "recalled": recalled,
        "cited": [memory_id for memory_id in state["citations"] if memory_id in recalled],
    }
    lesson = Lesson.of([Recall.model_validate(hit) for hit in state["recalled"]], state["citations"])
    return {**uses, "lesson": lesson} if lesson else uses


def _after_apply(state: State) -> Literal["decide", "keep", "__end__"]:
    if state["revision"] == STALE:
        return "decide"
    return "keep" if catching_up(state) and not state["errors"] else "__end__"


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
    return {**failure(stage, str(error)), "usage": total(state.get("usage"), meter.usage)}


Ask = Callable[[dict[str, Any]], bool | list[int] | None]
"""Puts what a graph stops to ask to somebody, and returns the answer; None where there is none yet."""


def write_pending(memory: MemoryStore, graph: Any, owner: str | None = None, *, ask: Ask | None = None) -> int:
    """Write the turns that wait in the queue, in order, by a compiled `build_write` graph; returns how many were written.

    A turn that fails again stays in the queue, and so do the later ones of its owner, whose order matters; unless it has
    failed `PATIENCE` times. Owners whose turns are being written in the background meanwhile are left alone. Where the
    graph stops for an approval, `ask` gives it; without an answer the turn stays in the queue as well.
    """
    written = 0
    stuck = TurnQueue(memory.ledger).claimed()
    for turn, attempts, _ in memory.pending(owner):
        if turn.owner in stuck:
            continue
        if _write_one(graph, turn, ask):
            written += 1
        elif attempts + 1 < PATIENCE:
            stuck.add(turn.owner)
    return written


def _write_one(graph: Any, turn: Turn, ask: Ask | None) -> bool:
    config = thread_config(turn.owner, f"{turn.thread} {turn.message_id}")
    context = Context(user_id=turn.owner, now=turn.said_at, timezone=turn.timezone)
    result = graph.invoke({"turn": turn.model_dump(mode="json"), "messages": []}, config, context=context)
    while stopped := result.get("__interrupt__"):
        answer = ask(stopped[0].value) if ask else None
        if answer is None:
            return False
        result = graph.invoke(Command(resume=answer), config, context=context)
    return not result["errors"]
