"""The agent: a turn goes begin → retrieve → assemble → respond → keep → extract → decide → apply."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, get_args, runtime_checkable

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime

from sharpwave.graphs.background import BackgroundWriter, background_writer, hand_over
from sharpwave.graphs.nodes import Node, needed, node
from sharpwave.graphs.replay import online_node
from sharpwave.graphs.respond import (
    Responder,
    TemplateResponder,
    model_node,
    template_node,
    tokens_of,
    wants_tools,
)
from sharpwave.graphs.state import Context, State, context_of, milliseconds, moment
from sharpwave.graphs.tool_use import NodeRecorder, tool_failed
from sharpwave.graphs.window import assemble_node, in_view
from sharpwave.graphs.write import add_write_nodes, begin_node, writers
from sharpwave.memory.decide import Policy
from sharpwave.memory.errors import ConfigError, InputError
from sharpwave.memory.extract import Extractor
from sharpwave.memory.index import StoreName
from sharpwave.memory.recall import FLOOR
from sharpwave.memory.records import Recall
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.trust import may_be_shown
from sharpwave.memory.working import Buffer, default_buffer
from sharpwave.memory.writing import Applier

MODEL_FLOOR = 0.2
"""Least relevance of what a model is shown. It can leave aside what does not matter, and cannot recall what is hidden from it:
of 22 plans that an old statement bears on ("I'm making a seafood omelette"), 2 had that statement in the prompt with the
floor of the template, which quotes what it finds, and 9 with this one, at twice the tokens."""

Write = Literal["inline", "background", "off"]
"""When what was said is written to memory: before the run ends, after it, never."""


@runtime_checkable
class Retriever(Protocol):
    """Finds what is known about a message; `MemoryStore` is one."""

    def recall(self, owner: str, query: str, **options: Any) -> list[Recall]:
        """Return what the owner's memory holds about `query`, best first; see `MemoryStore.recall`."""
        ...


def build_agent(
    *,
    model: BaseChatModel | None = None,
    memory: MemoryStore | None = None,
    retrieve: Retriever | Node | None = None,
    respond: Responder | Node | None = None,
    extract: Extractor | Node | None = None,
    decide: Policy | Node | None = None,
    apply: Applier | Node | None = None,
    tools: Sequence[BaseTool | Callable[..., Any]] = (),
    write: Write = "inline",
    writer: BackgroundWriter | None = None,
    confirm: bool | float = False,
    buffer: Buffer | None = None,
    replay: bool = False,
) -> StateGraph[State, Context, State, State]:
    """Return the agent's graph, uncompiled; compile it with your checkpointer and store.

    Args:
        model: any LangChain chat model; None is the keyless agent, which answers by template and writes by rules.
        memory: where to remember; may be left out only when nothing is written and `retrieve` is replaced.
        retrieve: a `Retriever`, or any LangGraph node that returns `recalled`.
        respond: a `Responder`, or any LangGraph node that returns `messages`.
        extract: an `Extractor`, or any LangGraph node that returns `candidates`.
        decide: a `Policy`, or any LangGraph node that returns `decisions`, and the `revision` of the memories that
            they were made for (of `MemoryStore.neighbours`), if they must not be carried out after a change.
        apply: an `Applier`, or any LangGraph node that returns `operations`.
        tools: what the model may call while it answers; each use is recorded in `memory`, unless `write` is `off`.
        write: `inline` writes a turn before the run ends. `background` only queues it durably: the run ends with the
            reply, and a `BackgroundWriter` does the rest, beginning with what an earlier process left. `off` makes an
            agent that answers from memory and never writes to it.
        writer: who writes in the background, with steps of its own; by default one per store, with the `extract`,
            `decide` and `apply` of the agent that was built last. They must be objects then, not LangGraph nodes.
        confirm: ask the user before each DELETE, and before each UPDATE that is less sure than this (0 to 1; True is
            0.8). The run stops with LangGraph's `interrupt`, so it needs a checkpointer; see `sharpwave.graphs.approve`.
            What waits in the queue is asked about by whoever takes it up, if that one asks.
        buffer: fits what the model is shown into its window; by default the newest messages and a summary of those before
            (see `default_buffer`). The messages in the state are never trimmed.
        replay: replay a few records after each turn, by priority and without a model; see `build_replay` for all of it.

    Raises:
        ConfigError: there is no memory for a node that needs one, tools and no model to call them, no such `write`, a
            `confirm` that is no confidence or with nobody to ask, or steps that cannot work in the background.
    """
    if tools and model is None and respond is None:
        raise ConfigError("Tools need a chat model to call them. Pass model=…, or leave the tools out.")
    if write not in get_args(Write):
        raise ConfigError(f"There is no write={write!r}; it is 'inline', 'background' or 'off'.")
    if writer and (write != "background" or extract or decide or apply):
        raise ConfigError("writer= goes with write='background', and brings its own extract, decide and apply.")
    if confirm is not False and write != "inline":
        raise ConfigError(f"confirm= asks the user before a run ends, so write={write!r} cannot. Use write='inline'.")
    if replay and write == "off":
        raise ConfigError(
            "replay= strengthens memories, and with write='off' nothing is written. Leave one of them out."
        )
    toolbox = _toolbox(tools, None if write == "off" else memory) if tools else None
    bound = list(toolbox.tools_by_name.values()) if toolbox else []
    buffer = (buffer or default_buffer(model)) if model is not None and respond is None else None
    respond = respond or (TemplateResponder() if model is None else model_node(model, bound, buffer))
    stores: tuple[StoreName, ...] = ("semantic", "episodic") if model else ("semantic",)
    floor = MODEL_FLOOR if model else FLOOR
    graph = StateGraph(State, context_schema=Context)
    graph.add_node("begin", _begin_node(confirm))
    told = isinstance(respond, TemplateResponder)
    graph.add_node(
        "retrieve",
        node(
            "retrieve",
            retrieve or needed(memory),
            Retriever,
            lambda given: _retrieve(given, stores, floor, buffer, teaches=not told),
        ),
    )
    if memory is not None:
        graph.add_node("assemble", assemble_node(memory, buffer, tokens_of(bound)))
    graph.add_node("respond", node("respond", respond, Responder, template_node))
    graph.add_edge(START, "begin")
    graph.add_edge("begin", "retrieve")
    if memory is None:
        graph.add_edge("retrieve", "respond")
    else:
        graph.add_edge("retrieve", "assemble")
        graph.add_edge("assemble", "respond")
    after = END if write == "off" else "keep"
    if toolbox:
        graph.add_node("tools", toolbox)
        graph.add_conditional_edges("respond", lambda state: "tools" if wants_tools(state) else after, ["tools", after])
        graph.add_edge("tools", "respond")
    else:
        graph.add_edge("respond", after)
    end = "replay" if replay else END
    if replay:
        graph.add_node("replay", online_node(needed(memory)))
        graph.add_edge("replay", END)
    if write == "inline":
        add_write_nodes(graph, memory, model, extract, decide, apply, confirm, end)
    elif write == "background":
        writer = writer or background_writer(needed(memory), *writers(needed(memory), model, extract, decide), apply)
        graph.add_node("keep", hand_over(writer))
        graph.add_edge("keep", end)
    return graph


def _begin_node(confirm: bool | float) -> Node:
    begun = begin_node(confirm)

    def begin(state: State, runtime: Runtime[Context], config: RunnableConfig) -> dict[str, Any]:
        """Check whose conversation it is and that something was said, and forget what the turn before left in the state."""
        if not state.get("messages"):
            raise InputError('There is no message to answer. Pass {"messages": [{"role": "user", "content": "…"}]}.')
        return begun(state, runtime, config)

    return begin


def _retrieve(
    retriever: Retriever, stores: Sequence[StoreName], floor: float, buffer: Buffer | None, *, teaches: bool
) -> Node:
    # What the template cites is what came first anyway: nothing is to be learned from that.
    beside = None if teaches else {"features"}

    def retrieve(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
        """Recall what the user's last message is about, within the token budget."""
        started = time.perf_counter()
        context = context_of(runtime)
        spoken = in_view(state, buffer)

        def fresh(hit: Recall) -> bool:
            return (hit.utterance is None or hit.utterance.message_id not in spoken) and may_be_shown(hit)

        hits = retriever.recall(
            context.user_id,
            state["messages"][-1].text,
            budget=context.recall_budget,
            stores=stores,
            floor=floor,
            only=fresh,
            now=moment(context),
            timezone=context.timezone,
        )
        return {
            "recalled": [
                hit.model_dump(mode="json", exclude=beside) for hit in hits if fresh(hit)
            ],  # whoever found them
            "timings_ms": {"retrieve": milliseconds(started)},
        }

    return retrieve


def _toolbox(tools: Sequence[BaseTool | Callable[..., Any]], memory: MemoryStore | None) -> ToolNode:
    """Return the node that calls tools, and records in `memory`, if there is one, what came of it."""
    if memory is None:
        return ToolNode(tools, handle_tool_errors=tool_failed)
    recorder = NodeRecorder(memory)
    return ToolNode(tools, handle_tool_errors=tool_failed, wrap_tool_call=recorder.call, awrap_tool_call=recorder.acall)
