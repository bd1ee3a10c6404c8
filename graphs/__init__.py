"""How a turn flows: the agent's graph, the writing graph, and what a caller passes to them."""

from sharpwave.graphs.agent import Retriever, build_agent
from sharpwave.graphs.background import BackgroundWriter
from sharpwave.graphs.reader import Reading, build_reader
from sharpwave.graphs.respond import Responder, TemplateResponder
from sharpwave.graphs.state import Context, State, thread_config, threads_of
from sharpwave.graphs.tool_use import ToolRecorder
from sharpwave.graphs.window import buffer_node
from sharpwave.graphs.write import build_write, write_pending
from sharpwave.memory.writing import Applier

__all__ = [
    "Applier",
    "BackgroundWriter",
    "Context",
    "Reading",
    "Responder",
    "Retriever",
    "State",
    "TemplateResponder",
    "ToolRecorder",
    "buffer_node",
    "build_agent",
    "build_reader",
    "build_write",
    "thread_config",
    "threads_of",
    "write_pending",
]
