"""The first step of writing: keep the turn verbatim and durably, and take up what waits before it."""

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from sharpwave.graphs.nodes import Node
from sharpwave.graphs.state import Context, State, context_of, failure, last_exchange, thread_of, timed, turn_of
from sharpwave.memory.episodes import Episodes
from sharpwave.memory.errors import ModelError, OwnershipError
from sharpwave.memory.gate import worth_reading
from sharpwave.memory.procedures import Procedures
from sharpwave.memory.records import Turn, Usage
from sharpwave.memory.secrets import kinds_in
from sharpwave.memory.sessions import Sessions
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.turn_queue import TurnQueue

CATCH_UP = 3
"""Turns that failed earlier, and are taken up again before one turn."""
PATIENCE = 5
"""Failures after which a turn no longer holds up the later ones of its owner; it stays in the queue."""


def keep_node(memory: MemoryStore) -> Node:
    """Return the node that writing begins with."""

    def keep(state: State, runtime: Runtime[Context], config: RunnableConfig) -> dict[str, Any]:
        """Keep the turn verbatim and durably; what follows may fail, and is then done later."""
        started = time.perf_counter()
        context = context_of(runtime)
        if not state["caught_up"]:
            memory.spend(context.user_id, Usage.model_validate(state["usage"]))  # what answering has cost
        fresh: dict[str, Any] = {"turn": {}, "candidates": [], "decisions": [], "shown": [], "revision": None}
        fresh |= {"questions": [], "answers": []}
        told = said(state, context, config)
        if told is None or not context.remember:
            return fresh
        try:
            kept = memory.queue([told])
            learn(memory, told)
            Sessions(memory).heed(told)
            older = _failed_before(memory, told) if kept and exchange_of(state) else None
            if older is not None:
                memory.queue([older])  # it may have failed before it was kept verbatim
        except ModelError as error:  # of the embedder
            TurnQueue(memory.ledger).put(told)
            memory.fail(told, str(error))
            return {**fresh, **failure("keep", str(error))}
        if not kept:
            return fresh
        turn = kept[0]  # its secrets masked, as it will be read
        fresh["masked"] = kinds_in(turn.user_text)
        if older is not None:
            if not state["caught_up"]:
                memory.fail(turn, "It waits for an earlier turn of this user, which could not be written.")
            elif state["caught_up"] == CATCH_UP:
                return {
                    **fresh,
                    **failure("keep", "Too many earlier turns wait to be written; this one waits behind them."),
                }
        return {
            **fresh,
            "turn": (older or turn).model_dump(mode="json"),
            "caught_up": state["caught_up"] + bool(older),
            "timings_ms": timed(state, "keep", started),
        }

    return keep


def learn(memory: MemoryStore, turn: Turn) -> None:
    """Keep what a turn did with tools as episodes, and learn from each what worked."""
    for episode in Episodes(memory).record(turn):
        Procedures(memory).learn(turn.owner, episode)


def exchange_of(state: State) -> list[BaseMessage]:
    """Return the messages that this run is to remember: nothing of an incognito turn, nor what was done about it."""
    kept: list[BaseMessage] = []
    hidden = False
    for message in last_exchange(state.get("messages", [])):
        hidden = message.id in state["incognito"] or (hidden and not isinstance(message, HumanMessage))
        kept += [] if hidden else [message]
    return kept


def said(state: State, context: Context, config: RunnableConfig) -> Turn | None:
    """Return the turn to be written: the last exchange of the conversation, else the one that was given."""
    exchange = exchange_of(state)
    if not exchange and not state.get("turn"):
        return None
    turn = _turn(exchange, state, context, config) if exchange else Turn.model_validate(state["turn"])
    if turn.owner != context.user_id:
        raise OwnershipError("The turn to be written belongs to another user than the context names.")
    return turn if turn.user_text.strip() else None


def _turn(exchange: Sequence[BaseMessage], state: State, context: Context, config: RunnableConfig) -> Turn:
    """Return the exchange of this run as a turn of the moment at which the run began."""
    began = context.model_copy(update={"now": datetime.fromisoformat(state["said_at"])})
    seconds = max(0.0, time.time() - state["began"])
    return turn_of(exchange, began, thread_of(context, config), round(seconds, 3))


def _failed_before(memory: MemoryStore, turn: Turn) -> Turn | None:
    """Return the oldest turn of the same owner that failed and holds up this one."""
    failed = TurnQueue(memory.ledger).failed(turn.owner, PATIENCE)
    return next((other for other in failed if (other.thread, other.message_id) != (turn.thread, turn.message_id)), None)


def after_keep(state: State) -> Literal["extract", "apply", "__end__"]:
    """Return the next step: an extractor is not asked about small talk."""
    if not state["turn"]:
        return "__end__"
    return "extract" if worth_reading(Turn.model_validate(state["turn"])) else "apply"


def catching_up(state: State) -> bool:
    """Whether the turn at work is an earlier one, so that this run's own still waits."""
    exchange = exchange_of(state)
    return bool(exchange) and Turn.model_validate(state["turn"]).message_id not in {message.id for message in exchange}
