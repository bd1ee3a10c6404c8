"""Three ways to fit a conversation into a window: the newest, the newest with a summary of the rest, the most important."""

import math
from collections.abc import Callable, Sequence
from enum import IntEnum
from itertools import dropwhile
from typing import Protocol, runtime_checkable

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    MessageLikeRepresentation,
    SystemMessage,
    trim_messages,
)

from sharpwave.memory.errors import InputError
from sharpwave.memory.tokens import estimate
from sharpwave.memory.working.counting import PER_MESSAGE, Count, count_message, count_messages
from sharpwave.memory.working.fitting import Unit, exchange_within, joined, no_larger, split
from sharpwave.memory.working.summary import Summarizer, Summary, with_summary


@runtime_checkable
class Buffer(Protocol):
    """Fits a conversation into a window; changes nothing of what it is given.

    Every buffer keeps the system messages whole, the last user message (shortened only if it does not fit by itself) and
    each tool call with its results, and returns what a server takes, within the budget. A message larger than the whole
    budget is shortened, with an ellipsis where it was cut.
    """

    budget: int
    """Tokens of the messages that come out."""

    def fit(
        self, messages: Sequence[MessageLikeRepresentation], summary: Summary | None = None, *, reserve: int = 0
    ) -> list[BaseMessage]:
        """Return the messages to send.

        Args:
            messages: the conversation, oldest first; LangChain messages, or dicts as OpenAI has them.
            summary: stands for the oldest messages; a buffer that makes none ignores it.
            reserve: tokens of the budget that something else takes, such as the schemas of tools.

        Raises:
            InputError: the system messages leave no room for the user's.
        """
        ...


class FifoBuffer:
    """Keeps the newest messages, and lets the oldest go first.

    What is left of the history begins with a user message, as several servers demand.

    Args:
        budget: tokens of the messages that come out; 64 or more.
        count: counts the tokens of a text; by default an estimate.
    """

    def __init__(self, budget: int, count: Count = estimate) -> None:
        self.budget, self.count = _checked(budget), count

    def fit(
        self, messages: Sequence[MessageLikeRepresentation], summary: Summary | None = None, *, reserve: int = 0
    ) -> list[BaseMessage]:
        """Return the system messages and the newest others; see `Buffer`."""
        system, before, asked = split(messages)
        room = self.budget - reserve - count_messages(system, self.count)
        exchange = joined(exchange_within(asked, room, self.count))
        left = room - count_messages(exchange, self.count)
        return [*system, *self._newest(before, left), *exchange]

    def _newest(self, before: Sequence[Unit], left: int) -> list[BaseMessage]:
        """Return the end of the history within `left` tokens; no more messages are counted than could fit."""
        most = max(0, left // PER_MESSAGE)
        last = before[-most:] if most else []
        sizes = {id(message): count_message(message, self.count) for message in joined(last)}
        parts = [no_larger(unit, sum(sizes[id(one)] for one in unit), self.budget, self.count) for unit in last]
        history = joined(parts)
        sizes |= {id(one): count_message(one, self.count) for one in history if id(one) not in sizes}
        if len(last) == len(before) and sum(sizes[id(message)] for message in history) <= left:
            return history
        return trim_messages(
            history,
            max_tokens=left,
            token_counter=lambda some: sum(sizes[id(message)] for message in some),
            start_on="human",
        )


class SummaryBuffer:
    """Keeps a window of the newest messages verbatim, and a running summary of all before it.

    `condense` folds what has left the window into the summary, once the conversation fills so much of the budget that
    it must; `fit` shows summary and window. The summary belongs to the caller: keep it, and pass it to both.

    Args:
        budget: tokens of the messages that come out; 64 or more.
        count: counts the tokens of a text; by default an estimate.
        summarizer: makes the summary; by default one that works by rules.
        trigger: share of the budget, 0..1, that starts a summary.
        window: messages kept verbatim when one is made; fewer where these would take more than half of the budget.
    """

    def __init__(
        self,
        budget: int,
        count: Count = estimate,
        *,
        summarizer: Summarizer | None = None,
        trigger: float = 0.75,
        window: int = 6,
    ) -> None:
        if not 0 < trigger <= 1 or window < 1:
            raise InputError(f"trigger={trigger} must be above 0 and at most 1, and window={window} at least 1.")
        self.budget, self.count, self.trigger, self.window = _checked(budget), count, trigger, window
        self.summarizer = summarizer or Summarizer()
        self._fifo = FifoBuffer(budget, count)

    def condense(
        self, messages: Sequence[MessageLikeRepresentation], summary: Summary | None = None, *, reserve: int = 0
    ) -> Summary | None:
        """Return the summary for these messages: the given one as long as there is room, else one that covers more.

        Asks the model of the summarizer, if it has one; a failing one is replaced by rules, and the summary says so.
        `reserve` counts the system messages too, if they are not among `messages`.
        """
        system, before, asked = split(messages)
        covered = summary.covers(joined(before)) if summary else 0
        fresh = _after(before, covered)
        taken = reserve + count_messages([*system, *joined(fresh), *joined(asked)], self.count)
        taken += self.count(summary.text) if summary else 0
        if taken <= self.trigger * self.budget:
            return summary
        kept = self._window(fresh, asked)
        folded = joined(fresh[: len(fresh) - len(kept)])
        if not folded:
            return summary
        return self.summarizer.fold(summary, folded, covered + len(folded), self.budget, self.count)

    def fit(
        self, messages: Sequence[MessageLikeRepresentation], summary: Summary | None = None, *, reserve: int = 0
    ) -> list[BaseMessage]:
        """Return the system messages, the last with the summary, and what the summary does not cover; see `Buffer`."""
        system, before, asked = split(messages)
        if summary is None or not summary.text:
            return self._fifo.fit(messages, reserve=reserve)
        rest = [*joined(_after(before, summary.covers(joined(before)))), *joined(asked)]
        told = with_summary(system, summary)
        least = count_messages([*told, *(asked[0] if asked else [])], self.count)
        return self._fifo.fit([*(told if least + reserve <= self.budget else system), *rest], reserve=reserve)

    def _window(self, fresh: Sequence[Unit], asked: Sequence[Unit]) -> list[Unit]:
        """Return the last units that stay verbatim: whole exchanges, the last of which is `asked`."""
        messages, room = self.window - len(joined(asked)), self.budget // 2 - count_messages(joined(asked), self.count)
        at = len(fresh)
        while at and messages >= len(fresh[at - 1]) and room >= count_messages(fresh[at - 1], self.count):
            at -= 1
            messages, room = messages - len(fresh[at]), room - count_messages(fresh[at], self.count)
        return list(dropwhile(lambda unit: not isinstance(unit[0], HumanMessage), fresh[at:]))


def _after(parts: Sequence[Unit], covered: int) -> list[Unit]:
    """Return the units after the first `covered` messages."""
    at = 0
    for number, unit in enumerate(parts):
        if at >= covered:
            return list(parts[number:])
        at += len(unit)
    return []


class Priority(IntEnum):
    """How important a message is; the least important goes first."""

    LOW = 1
    MEDIUM = 2
    HIGH = 3
    CRITICAL = 4


def priority_of(message: BaseMessage) -> Priority:
    """Return what `additional_kwargs["priority"]` of a message names, such as "high"; else system critical, user high,
    assistant medium, tool calls and results low.

    Raises:
        InputError: it names no priority.
    """
    named = message.additional_kwargs.get("priority")
    if named is not None:
        try:
            return Priority[str(named).upper()]
        except KeyError:
            names = ", ".join(one.name.lower() for one in Priority)
            raise InputError(f"A message has the priority {str(named)[:40]!r}; it must be one of {names}.") from None
    if isinstance(message, SystemMessage):
        return Priority.CRITICAL
    if isinstance(message, HumanMessage):
        return Priority.HIGH
    return Priority.MEDIUM if isinstance(message, AIMessage) and not message.tool_calls else Priority.LOW


class PriorityBuffer:
    """Lets the least important messages go first, and of these the oldest.

    Critical messages go last of all, and only if they do not fit together. A tool call and its results are as important
    as the most important of them.

    Args:
        budget: tokens of the messages that come out; 64 or more.
        count: counts the tokens of a text; by default an estimate.
        priority: tells how important a message is.
    """

    def __init__(
        self, budget: int, count: Count = estimate, *, priority: Callable[[BaseMessage], Priority] = priority_of
    ) -> None:
        self.budget, self.count, self.priority = _checked(budget), count, priority

    def fit(
        self, messages: Sequence[MessageLikeRepresentation], summary: Summary | None = None, *, reserve: int = 0
    ) -> list[BaseMessage]:
        """Return the system messages, the last exchange, and of the others the most important; see `Buffer`."""
        system, before, asked = split(messages)
        room = self.budget - reserve - count_messages(system, self.count)
        exchange = joined(exchange_within(asked, room, self.count))
        left = room - count_messages(exchange, self.count)
        sizes = [count_messages(unit, self.count) for unit in before]
        parts = [no_larger(unit, size, self.budget, self.count) for unit, size in zip(before, sizes, strict=True)]
        sizes = [
            size if size <= self.budget else count_messages(parts[at], self.count) for at, size in enumerate(sizes)
        ]
        over = sum(sizes) - left
        for at in sorted(range(len(parts)), key=lambda at: (max(map(self.priority, parts[at])), at)):
            if over <= 0:
                break
            over -= sizes[at]
            parts[at] = []
        return [*system, *joined(parts), *exchange]


def _checked(budget: int) -> int:
    if budget < 64 or not math.isfinite(budget):
        raise InputError(f"A budget of {budget} tokens is too small for a prompt. Allow at least 64.")
    return budget
