"""The agent: a turn goes retrieve → respond → keep → extract → decide → apply."""

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime

from sharpwave.graphs.respond import Responder, TemplateResponder, model_node, template_node, wants_tools
from sharpwave.graphs.state import Context, State, check_conversation, context_of, milliseconds, moment
from sharpwave.graphs.write import Applier, Node, add_write_nodes, needed
from sharpwave.memory.decide import Policy
from sharpwave.memory.errors import ConfigError
from sharpwave.memory.extract import Extractor
from sharpwave.memory.index import StoreName
from sharpwave.memory.records import Recall
from sharpwave.memory.store import MemoryStore


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
    write: Literal["inline", "off"] = "inline",
) -> StateGraph[State, Context, State, State]:
    """Return the agent's graph, uncompiled; compile it with your checkpointer and store.

    Args:
        model: any LangChain chat model; None is the keyless agent, which answers by template and writes by rules.
        memory: where to remember; may be left out only when every node that needs it is replaced.
        retrieve: a `Retriever`, or any LangGraph node that returns `recalled`.
        respond: a `Responder`, or any LangGraph node that returns `messages`.
        extract: an `Extractor`, or any LangGraph node that returns `candidates`.
        decide: a `Policy`, or any LangGraph node that returns `decisions` and `revision`.
        apply: an `Applier`, or any LangGraph node that returns `operations`.
        tools: what the model may call while it answers.
        write: `off` makes an agent that answers from memory and never writes to it.

    Raises:
        ConfigError: there is no memory for a node that needs one, or there are tools and no model to call them.
    """
    if tools and model is None and respond is None:
        raise ConfigError("Tools need a chat model to call them. Pass model=…, or leave the tools out.")
    graph = StateGraph(State, context_schema=Context)
    retrieve = retrieve or needed(memory)
    stores: tuple[StoreName, ...] = ("semantic", "episodic") if model else ("semantic",)
    graph.add_node("retrieve", _retrieve(retrieve, stores) if isinstance(retrieve, Retriever) else retrieve)
    toolbox = ToolNode(tools) if tools else None
    graph.add_node("respond", _respond(respond, model, list(toolbox.tools_by_name.values()) if toolbox else []))
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "respond")
    after = "keep" if write == "inline" else END
    if toolbox:
        graph.add_node("tools", toolbox)
        graph.add_conditional_edges("respond", lambda state: "tools" if wants_tools(state) else after, ["tools", after])
        graph.add_edge("tools", "respond")
    else:
        graph.add_edge("respond", after)
    if write == "inline":
        add_write_nodes(graph, memory, model, extract, decide, apply)
    return graph


def _retrieve(retriever: Retriever, stores: Sequence[StoreName]) -> Node:
    def retrieve(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
        """Recall what the user's last message is about, within the token budget, and begin the turn afresh."""
        started = time.perf_counter()
        context = context_of(runtime)
        check_conversation(state, context)
        if not state.get("messages"):
            raise ConfigError('There is no message to answer. Pass {"messages": [{"role": "user", "content": "…"}]}.')
        query = state["messages"][-1].text
        hits = retriever.recall(
            context.user_id, query, budget=context.recall_budget, stores=stores, now=moment(context)
        )
        spoken = {message.id for message in state["messages"]}
        fresh = [hit for hit in hits if hit.utterance is None or hit.utterance.message_id not in spoken]
        return {
            "owner": context.user_id,
            "recalled": [hit.model_dump(mode="json") for hit in fresh],
            "citations": [],
            "candidates": [],
            "decisions": [],
            "operations": [],
            "errors": [],
            "usage": {},
            "timings_ms": {"retrieve": milliseconds(started)},
        }

    return retrieve


def _respond(respond: Responder | Node | None, model: BaseChatModel | None, tools: Sequence[BaseTool]) -> Node:
    if respond is None:
        return model_node(model, tools) if model is not None else template_node(TemplateResponder())
    return template_node(respond) if isinstance(respond, Responder) else respond


def thread_config(user_id: str, thread: str) -> RunnableConfig:
    """Return the config of a conversation: a checkpointer thread id made of owner and thread, so that two users who both
    say `t1` never share messages."""
    digest = hashlib.blake2b(f"{len(user_id)}:{user_id}{thread}".encode("utf-8", "surrogatepass"), digest_size=16)
    return {"configurable": {"thread_id": digest.hexdigest()}}
