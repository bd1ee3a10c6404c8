"""What every buffer rests on: units that are never split, and messages that are shortened visibly."""

from collections.abc import Iterator, Sequence

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    MessageLikeRepresentation,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

from sharpwave.memory.errors import InputError
from sharpwave.memory.tokens import shorten
from sharpwave.memory.working.counting import (
    Count,
    as_json,
    count_message,
    count_messages,
    count_part,
    is_medium,
    text_of,
)

Unit = list[BaseMessage]
"""Messages that stay together: one, or an assistant's tool calls with all their results."""

LEAST = 16
"""Tokens under which a message is not shortened any further; it is left out, and the last user message is an error."""
TAIL = 0.5
"""Share of a shortened message that is its end, where what is asked usually stands."""


def split(messages: Sequence[MessageLikeRepresentation]) -> tuple[list[BaseMessage], list[Unit], list[Unit]]:
    """Return the system messages, the units before the last user message, and those from it on.

    Messages may be LangChain's, or dicts and tuples as OpenAI has them. A conversation without a user message is all
    "before".
    """
    given = convert_to_messages(list(messages))
    system: list[BaseMessage] = [message for message in given if isinstance(message, SystemMessage)]
    parts = units([message for message in given if not isinstance(message, SystemMessage)])
    asked = max((at for at, unit in enumerate(parts) if isinstance(unit[0], HumanMessage)), default=len(parts))
    return system, parts[:asked], parts[asked:]


def settled(messages: Sequence[BaseMessage]) -> Iterator[BaseMessage]:
    """Yield messages as every server takes them: with a result for each tool call that was cut off by an interrupt or a
    crash, and without results that answer no call."""
    waiting: list[str | None] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                continue
            waiting.remove(message.tool_call_id)
        else:
            yield from (_cut_off(call) for call in waiting)
            waiting = [call["id"] for call in message.tool_calls] if isinstance(message, AIMessage) else []
        yield message
    yield from (_cut_off(call) for call in waiting)


def _cut_off(call: str | None) -> ToolMessage:
    return ToolMessage("The call was cut off.", tool_call_id=call or "")


def units(messages: Sequence[BaseMessage]) -> list[Unit]:
    """Return messages grouped: an assistant's tool calls with all their results, and each other one alone."""
    found: list[Unit] = []
    for message in settled(messages):
        if isinstance(message, ToolMessage):
            found[-1].append(message)
        else:
            found.append([message])
    return found


def joined(parts: Sequence[Unit]) -> list[BaseMessage]:
    """Return the messages of units in order."""
    return [message for unit in parts for message in unit]


def exchange_within(asked: Sequence[Unit], room: int, count: Count) -> list[Unit]:
    """Return the last user message and what has followed it within `room` tokens.

    The user message is shortened only if it does not fit by itself; of what followed, the newest stays longest, and is
    shortened where it does not fit.

    Raises:
        InputError: there is no room even for a shortened user message.
    """
    if not asked:
        return []
    alone = count_messages(asked[0], count) <= room
    limit = room if len(asked) == 1 else min(room, max(LEAST, room * 3 // 4))  # leave some for what followed
    first = asked[0] if alone else shortened(asked[0], limit, count)
    if first is None:
        raise InputError(
            f"The system messages leave {max(0, room)} tokens for the user's message, too few to show it. Shorten them, "
            "recall fewer memories, or allow a larger budget."
        )
    left = room - count_messages(first, count)
    kept = newest(asked[1:], left, count)
    if len(asked) > 1 and not kept:
        last = shortened(asked[-1], left, count)
        kept = [last] if last else []
    return [first, *kept]


def newest(parts: Sequence[Unit], room: int, count: Count) -> list[Unit]:
    """Return as many of the last units as fit into `room` tokens."""
    for at in range(len(parts) - 1, -1, -1):
        room -= count_messages(parts[at], count)
        if room < 0:
            return list(parts[at + 1 :])
    return list(parts)


def no_larger(unit: Unit, size: int, budget: int, count: Count) -> Unit:
    """Return a unit of `size` tokens as it is, or, if it is larger than the whole budget, shortened to a quarter of it."""
    return unit if size <= budget else shortened(unit, budget // 4, count) or unit


def shortened(unit: Unit, room: int, count: Count) -> Unit | None:
    """Return a unit within `room` tokens, its longest messages shortened with an ellipsis; None if that cannot be."""
    sizes = [count_message(message, count) for message in unit]
    level, left = room, room
    for at, size in enumerate(sorted(sizes)):
        level = left // (len(sizes) - at)
        left -= min(size, level)
    fitted = [
        message if size <= level else _shortened(message, level, count)
        for message, size in zip(unit, sizes, strict=True)
    ]
    whole = [message for message in fitted if message is not None]
    return whole if len(whole) == len(unit) and count_messages(whole, count) <= room else None


def _shortened(message: BaseMessage, room: int, count: Count) -> BaseMessage | None:
    """Return a message within `room` tokens: images give way first, then text, then the arguments of tool calls."""
    if room < LEAST:
        return None
    for frame, text in _frames(message, room, count):
        left = room - count_message(frame, count)
        if left >= (1 if text else 0):
            short = shorten(text, left, tail=TAIL, count=count) if text else ""
            full = _with_text(frame, short)
            if count_message(full, count) <= room:
                return full
    return None


def _frames(message: BaseMessage, room: int, count: Count) -> Iterator[tuple[BaseMessage, str]]:
    """Yield a message without its text, and the text, each time with less beside the text."""
    parts = [message.content] if isinstance(message.content, str) else message.content
    media = [part for part in parts if is_medium(part)]
    text = "\n".join(filter(None, map(text_of, parts)))
    if media and sum(count_part(part, count) for part in media) <= room // 2:
        yield message.model_copy(update={"content": media}), text
    text = "\n".join([text] * bool(text) + ["[image or file left out]"] * len(media))
    yield message.model_copy(update={"content": ""}), text
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    for tokens in (room // (2 * len(calls)), 1) if calls else ():
        cut = [{**call, "args": {"…": shorten(as_json(call["args"]), max(1, tokens), count=count)}} for call in calls]
        kept = {name: value for name, value in message.additional_kwargs.items() if name != "tool_calls"}
        update = {"content": "", "tool_calls": cut, "invalid_tool_calls": [], "additional_kwargs": kept}
        yield message.model_copy(update=update), text


def _with_text(frame: BaseMessage, text: str) -> BaseMessage:
    beside = frame.content if isinstance(frame.content, list) else []
    content = [{"type": "text", "text": text}, *beside] if beside else text
    return frame.model_copy(update={"content": content})
