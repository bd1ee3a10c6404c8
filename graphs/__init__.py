"""How a turn flows: the agent's graph, the writing graph, and what a caller passes to them."""

from sharpwave.graphs.agent import Retriever, build_agent
from sharpwave.graphs.background import BackgroundWriter
from sharpwave.graphs.dual import answer_agent, memory_manager
from sharpwave.graphs.learner import LearningAgent
from sharpwave.graphs.memory_tools import memory_tools
from sharpwave.graphs.reader import Reading, build_reader
from sharpwave.graphs.replay import Consolidator, build_replay, replay_due
from sharpwave.graphs.respond import Responder, TemplateResponder
from sharpwave.graphs.sections import Sections, sections_for
from sharpwave.graphs.state import Context, State, thread_config, threads_of
from sharpwave.graphs.tool_use import ToolRecorder
from sharpwave.graphs.window import buffer_node
from sharpwave.graphs.write import build_write, write_pending
from sharpwave.memory.writing import Applier

__all__ = [
    "Applier",
    "BackgroundWriter",
    "Consolidator",
    "Context",
    "LearningAgent",
    "Reading",
    "Responder",
    "Retriever",
    "Sections",
    "State",
    "TemplateResponder",
    "ToolRecorder",
    "answer_agent",
    "buffer_node",
    "build_agent",
    "build_reader",
    "build_replay",
    "build_write",
    "memory_manager",
    "memory_tools",
    "replay_due",
    "sections_for",
    "thread_config",
    "threads_of",
    "write_pending",
]
