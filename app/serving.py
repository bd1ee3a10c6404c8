"""The graphs that `langgraph.json` serves. The server brings its own checkpointer, and each run its `Context`.

The factories are async because they open files and may ask a server for its models, which must not hold up an event loop.
"""

import asyncio
import threading

from langgraph.graph import StateGraph

from sharpwave.assembly import agent_graph, reader_graph, replay_graph, write_graph
from sharpwave.graphs import Context, Reading, State
from sharpwave.graphs.replay import ReplayGraph
from sharpwave.memory.store import MemoryStore
from sharpwave.models import embeddings
from sharpwave.settings import Settings

Graph = StateGraph[State, Context, State, State]

_stores: dict[Settings, MemoryStore] = {}
_lock = threading.Lock()


async def agent() -> Graph:
    """Return the agent that answers and remembers."""
    return await asyncio.to_thread(lambda: agent_graph(*_opened()))


async def memory_manager() -> Graph:
    """Return the graph that writes to memory what a conversation says, and answers nothing."""
    return await asyncio.to_thread(lambda: write_graph(*_opened()))


async def answer_agent() -> Graph:
    """Return the agent that answers from memory and never writes to it."""
    return await asyncio.to_thread(lambda: agent_graph(*_opened(), write="off"))


async def replay() -> ReplayGraph:
    """Return the graph that rehearses, consolidates and forgets."""
    return await asyncio.to_thread(lambda: replay_graph(*_opened()))


async def reader() -> StateGraph[Reading, Context, Reading, Reading]:
    """Return the graph that answers from documents: those in the folder `documents` of the settings, and no other files."""
    return await asyncio.to_thread(lambda: _reader(*_opened()))


def _reader(settings: Settings, store: MemoryStore) -> StateGraph[Reading, Context, Reading, Reading]:
    return reader_graph(settings, store, root=settings.documents or settings.home / "documents")


def _opened() -> tuple[Settings, MemoryStore]:
    """Return the settings and their store, which is opened once and stays open until the process ends."""
    settings = Settings.load()
    with _lock:
        if settings not in _stores:
            _stores[settings] = MemoryStore.open(
                settings.home,
                embeddings=embeddings(settings),
                collections=settings.collections,
                learn_recall=settings.learn_recall,
            )
        return settings, _stores[settings]
