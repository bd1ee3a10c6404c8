"""How many tokens messages take in a prompt. Nothing here loads a tokenizer, and so nothing can be downloaded."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from sharpwave.memory.tokens import estimate

Count = Callable[[str], int]
"""Counts the tokens of a text."""

PER_MESSAGE = 4
"""Tokens that a message takes beside its content: its role and what sets it apart."""

PER_MEDIUM = 1_600
"""Tokens that an image, a sound or a file counts for: the most that Anthropic counts for an image, while OpenAI counts
85 to about 1,100. What an audio or PDF takes is known only to the server."""

WINDOW = 8_000
"""Tokens of context of a model that nothing is known about."""
LARGEST_WINDOW = 32_000
"""Tokens of context that are used of a model which has more, unless asked for: a longer prompt is slow and dear."""
OUTPUT_SHARE = 0.0875
"""Share of the window that is left for the answer: 700 of 8,000 tokens."""


def counter(model: BaseChatModel | None) -> Count:
    """Return what counts tokens for `model`: its own `custom_get_token_ids`, else the estimate.

    No other count of a LangChain model is asked: by default it fetches the tokenizer of GPT-2, with OpenAI's models
    tables for tiktoken (and images by their address), with Anthropic's and Google's it is a request to the server.
    """
    encode = model.custom_get_token_ids if model is not None else None
    return estimate if encode is None else lambda text: len(encode(text))


def window_of(model: BaseChatModel | None) -> int:
    """Return the tokens of context to use with `model`: what its `profile` knows, at most 32,000, else 8,000."""
    known = (model.profile or {}).get("max_input_tokens") if model is not None else None
    return min(known, LARGEST_WINDOW) if known else WINDOW


def count_message(message: BaseMessage, count: Count = estimate) -> int:
    """Return the tokens of one message with its tool calls, as they are sent."""
    parts = [message.content] if isinstance(message.content, str) else message.content
    tokens = PER_MESSAGE + sum(count_part(part, count) for part in parts)
    if message.name:
        tokens += count(message.name)
    if isinstance(message, AIMessage):
        for call in (*message.tool_calls, *message.invalid_tool_calls):
            tokens += PER_MESSAGE + count(f"{call['name']}{as_json(call['args'])}{call['id']}")
    if isinstance(message, ToolMessage):
        tokens += count(message.tool_call_id)
    return tokens


def count_messages(messages: Sequence[BaseMessage], count: Count = estimate) -> int:
    """Return the tokens of messages in a prompt."""
    return sum(count_message(message, count) for message in messages)


def count_part(part: str | Mapping[str, Any], count: Count = estimate) -> int:
    """Return the tokens of a content block: text as such, an image and the like as `PER_MEDIUM`, others as JSON."""
    if is_medium(part):
        return PER_MEDIUM
    text = text_of(part)
    return count(as_json(part)) if text is None else count(text)


def is_medium(part: str | Mapping[str, Any]) -> bool:
    """Whether a content block is an image, a sound, a film or a file, in the form of any provider."""
    return isinstance(part, Mapping) and str(part.get("type", "")).removeprefix("input_") in _MEDIA


_MEDIA = frozenset("image image_url audio video file media document".split())


def text_of(part: str | Mapping[str, Any]) -> str | None:
    """Return the text of a content block; None of one that is no text."""
    if isinstance(part, str):
        return part
    return str(part.get("text", "")) if part.get("type") in _TEXT else None


_TEXT = frozenset("text input_text output_text text-plain".split())


def as_json(value: Any) -> str:
    """Return `value` as a provider sends it; a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
