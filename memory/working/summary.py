"""The running summary of a conversation: by a model, or by rules that pick out what was said."""

import logging
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, Self

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel, ConfigDict

from sharpwave.memory.errors import BudgetExceeded, ModelError
from sharpwave.memory.evidence import asks, own_words, sentences
from sharpwave.memory.gate import may_tell
from sharpwave.memory.structured import ask
from sharpwave.memory.tokens import shorten
from sharpwave.memory.working.counting import Count
from sharpwave.prompts import quoted, render

log = logging.getLogger(__name__)

SHARE = 10
"""A summary takes at most the budget divided by this: 800 of 8,000 tokens."""
_BESIDE = 100
"""Tokens of a call beside the prompt, the summary so far and the messages: headings, and a word on what was wrong."""
LONGEST_LINE = 300
READ_AT_MOST = 4_000
"""Characters of a message that are read for a summary by rules."""

_SECTIONS = {
    "facts": "Facts",
    "decisions": "Decisions",
    "preferences": "Preferences",
    "questions": "Open questions",
}
_DECIDES = re.compile(
    r"\b(?:decided|we agreed|agreed (?:to|on|that)|let's (?!see\b|say\b)|let us|we(?:'ll| will| are going to)|I(?:'ll| will) (?:go with|take)"
    r"|chose|going with|settled on|the plan is|it's settled|deal:)",
    re.IGNORECASE,
)
_PREFERS = re.compile(
    r"\b(?:prefer|I (?:really |also )?(?:like|love|enjoy|hate|dislike|avoid)|favou?rite|I'd rather|(?:don't|do not) (?:like|want)"
    r"|please (?:always|never|use|keep|don't|avoid))\b",
    re.IGNORECASE,
)
_PENDS = re.compile(r"\b(?:to-?do|still (?:have|need) to|pending|not (?:decided|sure) yet|remind me)\b", re.IGNORECASE)


class Summary(BaseModel):
    """What a conversation said up to a point. Plain data by `model_dump(mode="json")`."""

    model_config = ConfigDict(frozen=True)

    facts: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    preferences: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    """What is asked or to be done, and not settled."""
    covered: int = 0
    """Messages that it stands for, system messages not counted."""
    last: str | None = None
    """Id of the last of them, if it has one."""
    by: Literal["model", "rules"] = "rules"
    degraded: str | None = None
    """Why it was made by rules though there is a model."""

    @property
    def text(self) -> str:
        """The lines under their headings, quoted; empty if there are none."""
        parts = [
            "\n".join([f"{title}:", *(f"- {quoted(line, LONGEST_LINE)}" for line in getattr(self, name))])
            for name, title in _SECTIONS.items()
            if getattr(self, name)
        ]
        return "\n".join(parts)

    def covers(self, messages: Sequence[BaseMessage]) -> int:
        """Return how many messages of a conversation this stands for; 0 if the last of them is no longer there."""
        if self.last is None:
            return min(self.covered, len(messages))
        return next((at for at, message in enumerate(messages, 1) if message.id == self.last), 0)

    def within(self, tokens: int, count: Count) -> Self:
        """Return a copy of at most `tokens`: of the longest sections the first lines and the last ones stay."""
        kept = {
            name: [(line, count(f"- {quoted(line, LONGEST_LINE)}\n")) for line in getattr(self, name)]
            for name in _SECTIONS
        }
        size = sum(cost for lines in kept.values() for _, cost in lines)
        size += sum(count(f"{_SECTIONS[name]}:\n") for name, lines in kept.items() if lines)
        while size > tokens and any(kept.values()):
            longest = max(kept.values(), key=len)
            size -= longest.pop(len(longest) // 2)[1]
        return self.model_copy(update={name: tuple(line for line, _ in lines) for name, lines in kept.items()})


class _Answer(BaseModel):
    facts: list[str] = []
    decisions: list[str] = []
    preferences: list[str] = []
    questions: list[str] = []


class Summarizer:
    """Folds messages into a summary: by a chat model, or without one by rules, which only pick out sentences.

    The rules keep the user's own sentences that tell something, what was decided, and what was asked and got no answer.
    They know English best; of other languages they keep plain statements.

    Args:
        model: any LangChain chat model. Its calls are counted under the purpose "summarise".
    """

    def __init__(self, model: BaseChatModel | None = None) -> None:
        self.model = model

    def fold(
        self, earlier: Summary | None, messages: Sequence[BaseMessage], covered: int, budget: int, count: Count
    ) -> Summary:
        """Return a summary of `earlier` and `messages`, the last of which is the `covered`-th of the conversation.

        Where the model fails, answers nothing or may not be asked, the rules add to the earlier summary, which is never lost.
        """
        made, degraded, limit = earlier or Summary(), None, budget // SHARE
        prompt = render("summarise", words=str(max(30, limit // 2)))
        room = max(64, budget - count(prompt) - limit - _BESIDE)
        for some in _chunks(messages, room, count) if self.model else [list(messages)]:
            try:
                made = self._asked(prompt, made, some, room + limit, count) if not degraded else _added(made, some)
            except (ModelError, BudgetExceeded) as error:
                log.warning("A conversation is summarised by rules: %s", error)
                degraded, made = str(error), _added(made, some)
        place = {"covered": covered, "last": messages[-1].id, "degraded": degraded}
        return made.within(limit, count).model_copy(update=place)

    def _asked(
        self, prompt: str, earlier: Summary, messages: Sequence[BaseMessage], room: int, count: Count
    ) -> Summary:
        if self.model is None:
            return _added(earlier, messages)
        transcript = "\n".join(_told(message) for message in messages)
        given = f"Summary so far:\n{earlier.text or '(none)'}\n\nMessages:\n{transcript}"
        asked = [SystemMessage(prompt), HumanMessage(shorten(given, room, tail=0.7, count=count))]
        answer = ask(self.model, asked, _Answer, purpose="summarise")
        lines = {name: tuple(filter(None, map(_line, getattr(answer, name)))) for name in _SECTIONS}
        if not any(lines.values()):
            raise ModelError("The chat model's summary of the conversation was empty.")
        return Summary(**lines, by="model")


def with_summary(system: Sequence[SystemMessage | BaseMessage], summary: Summary) -> list[BaseMessage]:
    """Return system messages, the last of them followed by the summary: many servers take one system message only."""
    origin = "written by a model" if summary.by == "model" else "sentences picked out by rules"
    text = render("summary", origin=origin, summary=summary.text)
    if not system:
        return [SystemMessage(text)]
    *others, last = system
    content = (
        f"{last.content}\n\n{text}"
        if isinstance(last.content, str)
        else [*last.content, {"type": "text", "text": text}]
    )
    return [*others, last.model_copy(update={"content": content})]


def _chunks(messages: Sequence[BaseMessage], tokens: int, count: Count) -> Iterator[list[BaseMessage]]:
    """Yield messages in order, as many at a time as a model can be shown."""
    chunk: list[BaseMessage] = []
    size = 0
    for message in messages:
        cost = count(_told(message))
        if chunk and size + cost > tokens:
            yield chunk
            chunk, size = [], 0
        chunk.append(message)
        size += cost
    yield chunk


def _told(message: BaseMessage) -> str:
    """Return a message as a quoted line: who, what, which tools were called."""
    called = [call["name"] for call in message.tool_calls] if isinstance(message, AIMessage) else []
    who = {"human": "user", "ai": "assistant"}.get(message.type, message.type)
    said = quoted(message.text, 100_000)
    return f"{who}: {said}" + (f" (called {', '.join(called)})" if called else "")


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"


def _added(earlier: Summary, messages: Sequence[BaseMessage]) -> Summary:
    """Return a summary with the sentences of `messages` that the rules pick out, each once."""
    lines = {name: list(getattr(earlier, name)) for name in _SECTIONS}
    known = {line.casefold() for some in lines.values() for line in some}
    for message, following in pairwise([*messages, None]):
        answered = following is not None and not isinstance(following, HumanMessage) and bool(following.text)
        for section, sentence in _picked(message, answered) if message else ():
            if (line := _line(sentence)).casefold() not in known:
                known.add(line.casefold())
                lines[section].append(line)
    return Summary(**{name: tuple(some) for name, some in lines.items()}, by="rules")


def _picked(message: BaseMessage, answered: bool) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a message that are worth keeping, each with its section."""
    if isinstance(message, ToolMessage):
        return
    own = isinstance(message, HumanMessage)
    for sentence in sentences(own_words(message.text[:READ_AT_MOST])):
        if _DECIDES.search(sentence) and not asks(sentence):
            yield "decisions", sentence
        elif not own:
            continue
        elif _PENDS.search(sentence) or (asks(sentence) and not answered):
            yield "questions", sentence
        elif asks(sentence):
            continue
        elif _PREFERS.search(sentence):
            yield "preferences", sentence
        elif may_tell(sentence):
            yield "facts", sentence
