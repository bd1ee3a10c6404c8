"""Sharpwave: a LangGraph agent that remembers.

from sharpwave import Context, MemoryStore, build_agent

agent = build_agent(memory=MemoryStore.open("memory")).compile()
agent.invoke({"messages": [("user", "I live in Lisbon.")]}, context=Context(user_id="ana"))
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sharpwave.graphs import Context, build_agent, build_write, thread_config
    from sharpwave.memory import MemoryStore

__all__ = ["Context", "MemoryStore", "build_agent", "build_write", "thread_config"]


def __getattr__(name: str) -> Any:
    # Resolved when first used, so that `import sharpwave.prompts` does not load LangGraph.
    if name == "MemoryStore":
        from sharpwave.memory import MemoryStore

        return MemoryStore
    if name in __all__:
        from sharpwave import graphs

        return getattr(graphs, name)
    raise AttributeError(f"module 'sharpwave' has no attribute {name!r}")
