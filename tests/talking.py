"""Talking to an agent in tests, and looking at what it wrote."""

from typing import Any

from langchain_core.messages import AnyMessage

from sharpwave.graphs import Context, thread_config
from sharpwave.memory import MemoryStore


def user(text: str) -> dict[str, Any]:
    """The input of a turn."""
    return {"messages": [{"role": "user", "content": text}]}


def say(agent: Any, text: str, who: str = "ana", thread: str = "t1", **context: Any) -> dict[str, Any]:
    """Take one turn with a compiled agent and return the state after it."""
    result: dict[str, Any] = agent.invoke(
        user(text), thread_config(who, thread), context=Context(user_id=who, **context)
    )
    return result


def reply(state: dict[str, Any]) -> str:
    last: AnyMessage = state["messages"][-1]
    return last.text


def done(state: dict[str, Any]) -> list[tuple[str, str]]:
    """What the turn did to memory: operations and texts."""
    return [(item["op"], item["text"]) for item in state["operations"]]


def texts(store: MemoryStore, who: str = "ana") -> list[str]:
    """Texts of the active memories, sorted."""
    return sorted(memory.text for memory in store.memories(who))


def written(store: MemoryStore, who: str = "ana") -> tuple[int, int, int]:
    """How much is kept of a user: events, utterances, waiting turns."""
    return len(store.events(who)), len(store.utterances(who)), len(store.pending(who))
