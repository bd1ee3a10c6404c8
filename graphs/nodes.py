"""What may stand for a node of a graph: an object of the node's protocol, or any LangGraph node."""

from collections.abc import Callable
from typing import Any

from langchain_core.runnables import Runnable

from sharpwave.memory.errors import ConfigError
from sharpwave.memory.store import MemoryStore

Node = Callable[..., Any] | Runnable[Any, Any]
"""Anything that LangGraph takes as a node."""


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
