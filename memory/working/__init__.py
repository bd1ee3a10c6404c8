"""Working memory: what of a conversation a model is shown, and what the agent has in mind during a session."""

from langchain_core.language_models.chat_models import BaseChatModel

from sharpwave.memory.working.buffers import (
    Buffer,
    FifoBuffer,
    Priority,
    PriorityBuffer,
    SummaryBuffer,
    priority_of,
)
from sharpwave.memory.working.counting import (
    OUTPUT_SHARE,
    PER_MEDIUM,
    count_message,
    count_messages,
    counter,
    window_of,
)
from sharpwave.memory.working.record import ToolCall, WorkingMemory
from sharpwave.memory.working.summary import Summarizer, Summary


def default_buffer(model: BaseChatModel | None, window: int | None = None) -> SummaryBuffer:
    """Return the buffer that an agent with this model has unless it is given one: a window with a summary by the model.

    Args:
        model: the chat model; None summarises by rules.
        window: tokens of its context, the answer included; by default what is known of the model (see `window_of`).
    """
    tokens = window or window_of(model)
    return SummaryBuffer(int(tokens * (1 - OUTPUT_SHARE)), counter(model), summarizer=Summarizer(model))


__all__ = [
    "PER_MEDIUM",
    "Buffer",
    "FifoBuffer",
    "Priority",
    "PriorityBuffer",
    "Summarizer",
    "Summary",
    "SummaryBuffer",
    "ToolCall",
    "WorkingMemory",
    "count_message",
    "count_messages",
    "counter",
    "default_buffer",
    "priority_of",
    "window_of",
]
