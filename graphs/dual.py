"""Two agents on one memory, each of which can run apart and with a model of its own: one writes it, one answers from it."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.graph import StateGraph
from langgraph.runtime import Runtime

from sharpwave.graphs.agent import MODEL_FLOOR, build_agent
from sharpwave.graphs.nodes import Node
from sharpwave.graphs.respond import Responder, rendered
from sharpwave.graphs.state import Context, State, context_of, milliseconds, moment
from sharpwave.graphs.window import in_view
from sharpwave.graphs.write import build_write
from sharpwave.memory.decide import Policy
from sharpwave.memory.distil import CANDIDATES, CHOSEN, distil
from sharpwave.memory.extract import Extractor
from sharpwave.memory.index import StoreName
from sharpwave.memory.recall import FLOOR
from sharpwave.memory.records import Recall
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.trust import may_be_shown
from sharpwave.memory.usage import metering, total
from sharpwave.memory.working import Buffer, default_buffer
from sharpwave.memory.writing import Applier

Graph = StateGraph[State, Context, State, State]


def memory_manager(
    memory: MemoryStore,
    model: BaseChatModel | None = None,
    *,
    extract: Extractor | Node | None = None,
    decide: Policy | Node | None = None,
    apply: Applier | Node | None = None,
    confirm: bool | float = False,
) -> Graph:
    """Return the agent that writes, uncompiled: it is given an exchange and keeps memory up to date. See `build_write`."""
    return build_write(memory=memory, model=model, extract=extract, decide=decide, apply=apply, confirm=confirm)


def answer_agent(
    memory: MemoryStore,
    model: BaseChatModel | None = None,
    *,
    distiller: BaseChatModel | None = None,
    candidates: int = CANDIDATES,
    most: int = CHOSEN,
    respond: Responder | Node | None = None,
    tools: Sequence[BaseTool | Callable[..., Any]] = (),
    buffer: Buffer | None = None,
) -> Graph:
    """Return the agent that answers, uncompiled: it recalls much, distils it to the few that matter, and cites these.

    It never writes. What it distils is held to `recall_budget` of the context.

    Args:
        memory: what it answers from.
        model: answers; None answers by template.
        distiller: chooses what matters, in one call; by default `model`, and without one the best by score.
        candidates: memories and messages that are recalled, at most 60.
        most: so many of them are left at most.
        respond, tools, buffer: as of `build_agent`.
    """
    buffer = (buffer or default_buffer(model)) if model is not None and respond is None else buffer
    stores: tuple[StoreName, ...] = ("semantic", "episodic") if model else ("semantic",)
    retrieve = _distilling(
        memory, distiller or model, stores, MODEL_FLOOR if model else FLOOR, candidates, most, buffer
    )
    return build_agent(
        model=model, memory=memory, retrieve=retrieve, respond=respond, tools=tools, buffer=buffer, write="off"
    )


def _distilling(
    memory: MemoryStore,
    model: BaseChatModel | None,
    stores: Sequence[StoreName],
    floor: float,
    candidates: int,
    most: int,
    buffer: Buffer | None,
) -> Node:
    def retrieve(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
        """Recall what the user's last message may be about, and distil what matters."""
        started = time.perf_counter()
        context, question = context_of(runtime), state["messages"][-1].text
        spoken = in_view(state, buffer)

        def fresh(hit: Recall) -> bool:
            return (hit.utterance is None or hit.utterance.message_id not in spoken) and may_be_shown(hit)

        about: dict[str, Any] = {"now": moment(context), "timezone": context.timezone}
        found = memory.recall(
            context.user_id, question, k=min(candidates, CANDIDATES), stores=stores, floor=floor, only=fresh, **about
        )
        with metering(*_left(memory, context)) as meter:
            kept, degraded = distil(
                *(question, found, model),
                budget=context.recall_budget,
                most=most,
                shown=lambda hits: rendered(hits, context),
            )
        memory.spend(context.user_id, meter.usage)
        return {
            "recalled": [hit.model_dump(mode="json") for hit in kept],
            "degraded": degraded,
            "usage": total(state.get("usage"), meter.usage),
            "timings_ms": {"retrieve": milliseconds(started)},
        }

    return retrieve


def _left(memory: MemoryStore, context: Context) -> tuple[int | None, int | None]:
    """Return the calls and tokens that distilling may take: one call is left for the answer."""
    calls, tokens = context.max_llm_calls_per_turn, context.max_tokens_per_day
    return (
        None if calls is None else calls - 1,
        None if tokens is None else tokens - memory.tokens_today(context.user_id),
    )
