"""Extraction by a chat model: one call a turn, and nothing kept that the user's own words do not support."""

import logging
import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, BeforeValidator, ValidationError, WithJsonSchema, field_validator, model_validator
from pydantic_core import PydanticUndefined

from sharpwave.memory.evidence import denies, find_quote, own_words
from sharpwave.memory.records import Candidate, Message, Operation, Recall, Turn
from sharpwave.memory.structured import ask
from sharpwave.memory.times import time_zone
from sharpwave.prompts import day, quoted, render

log = logging.getLogger(__name__)

_MOST_KNOWN = 10
_KNOWN_LENGTH = 120
_REPLY_LENGTH = 300
_USER_LENGTH = 8_000
"""Characters of one message that the model is shown: about 2,000 tokens."""
_TEXT_KEYS = ("text", "fact", "memory", "content", "statement")


class LLMExtractor:
    """Asks a chat model what a turn says that is worth keeping.

    Args:
        model: any LangChain chat model.
    """

    name = "llm/1"

    def __init__(self, model: BaseChatModel) -> None:
        self._model = model

    def extract(self, turn: Turn, known: Sequence[Recall]) -> list[Candidate]:
        """Return the supported statements of the turn; see `Extractor`. No call when the user said nothing of their own."""
        own = {m.id: words for m in turn.messages if m.role == "user" and (words := _shown(m))}
        if not own:
            return []
        shown = list(known[:_MOST_KNOWN])
        local = turn.said_at.astimezone(time_zone(turn.timezone))
        prompt = render("extract", date=day(local), timezone=turn.timezone)
        messages = [SystemMessage(prompt), HumanMessage(_exchange(turn, own, shown))]
        reply = ask(self._model, messages, Facts, purpose="extract")
        return list(_candidates(reply.facts, own, shown))


def unit(value: Any) -> Any:
    """Clamp a number, or a text that is one, to 0..1; anything else is left for validation to refuse."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return value
    return None if math.isnan(number) else min(1.0, max(0.0, number))


def operation(value: Any) -> Any:
    """Read the name of an operation in any case; `NONE` is `NOOP`."""
    name = value.strip().upper() if isinstance(value, str) else value
    return "NOOP" if name == "NONE" else name


Unit = Annotated[float, BeforeValidator(unit)]
Op = Annotated[Operation | None, BeforeValidator(operation)]
Alias = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "null"}]})]
"""A number that stands for an id in a prompt; whatever the model made of it, until `resolve` reads it."""


def resolve(alias: Any, count: int) -> int | None:
    """Return `alias` as an index below `count`, or None when it is no number that was shown."""
    if isinstance(alias, bool) or not isinstance(alias, int | float | str):
        return None
    text = str(alias).strip().strip("[]").removesuffix(".0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 and int(text) < count else None


class Lenient(BaseModel):
    """A part of a model's answer: a field of the wrong type falls back to its default, one without a default fails."""

    @field_validator("*", mode="wrap")
    @classmethod
    def _default_when_wrong(cls, value: Any, handler: Any, info: Any) -> Any:
        try:
            return handler(value)
        except ValidationError:
            default = cls.model_fields[info.field_name].default
            if default is PydanticUndefined:
                raise
            return default


class Fact(Lenient):
    """One statement, as the model gives it."""

    text: str
    quote: str | None = None
    kind: Literal["fact", "preference", "event"] = "fact"
    subject: str = "user"
    attribute: str | None = None
    value: str | None = None
    importance: Unit = 0.5
    confidence: Unit = 0.8
    retracts: bool = False
    past: bool = False
    op: Op = None
    target: Alias = None


class Facts(BaseModel):
    """The whole answer. Accepts a bare list, plain strings and nested lists; what holds no text is dropped and counted."""

    facts: list[Fact]

    @model_validator(mode="before")
    @classmethod
    def _lenient(cls, data: Any) -> Any:
        given = data.get("facts") if isinstance(data, dict) else data
        flat = list(_flat(given if isinstance(given, list) else [given]))
        kept = [item | {"text": text} for item in flat if (text := _text(item)) is not None]
        if flat and not kept:
            raise ValueError("no item of 'facts' holds a statement")
        if len(kept) < len(flat):
            log.warning("Dropped %d of %d extracted items: they hold no statement", len(flat) - len(kept), len(flat))
        return {"facts": kept}


def _flat(items: list[Any]) -> Iterator[Any]:
    """Yield the items of nested lists; a text becomes an object with that text."""
    for item in items:
        if isinstance(item, list):
            yield from _flat(item)
        else:
            yield {"text": item} if isinstance(item, str) else item


def _text(item: Any) -> str | None:
    """The statement in an item, if it holds one that can be stored."""
    if not isinstance(item, dict):
        return None
    texts = (item.get(key) for key in _TEXT_KEYS)
    text = next((text.strip() for text in texts if isinstance(text, str) and text.strip()), "")
    return text if text and text[0] not in "{[" and "\0" not in text else None


def _shown(message: Message) -> str:
    """The user's own words in a message, as far as the model is shown them."""
    words = own_words(message.text)
    if len(words) > _USER_LENGTH:
        log.warning("Message %s is long: facts are taken from its first %d characters", message.id, _USER_LENGTH)
    return words[:_USER_LENGTH]


def _exchange(turn: Turn, own: dict[str, str], known: Sequence[Recall]) -> str:
    """What the model is shown of the turn: known memories as numbered quotes, then who said what."""
    lines = ["Known memories:"] if known else []
    lines += [
        f"[{i}] {quoted(recall.text, _KNOWN_LENGTH)} ({recall.said_at:%Y-%m-%d})" for i, recall in enumerate(known)
    ]
    for message in turn.messages:
        if words := own.get(message.id):
            if len(words) > _USER_LENGTH:
                log.warning(
                    "Message %s is long: facts are taken from its first %d characters", message.id, _USER_LENGTH
                )
            lines.append(f"USER: {words[:_USER_LENGTH]}")
        elif message.role == "assistant" and message.text.strip():
            lines.append(f"ASSISTANT (context only): {quoted(message.text, _REPLY_LENGTH)}")
    return "\n".join(lines)


def _candidates(facts: Sequence[Fact], own: dict[str, str], known: Sequence[Recall]) -> Iterator[Candidate]:
    """Yield the facts that the user's own words support, each once."""
    said = "\n".join(own.values())
    seen: set[str] = set()
    for fact in facts:
        quote = find_quote(fact.text, said, fact.quote)
        source = next((id for id, words in own.items() if quote and quote in words), None)
        if quote is None or source is None or (denies(quote, fact.text) and not fact.retracts):
            log.warning("Dropped an extracted statement that the user's words do not support: %r", fact.text)
        elif fact.text not in seen:
            seen.add(fact.text)
            yield _candidate(fact, quote, source, known)


def _candidate(fact: Fact, quote: str, message_id: str, known: Sequence[Recall]) -> Candidate:
    at = resolve(fact.target, len(known))
    if fact.target is not None and at is None:
        log.warning("The model named memory %r, which it was not shown, for %s of %r", fact.target, fact.op, fact.text)
    subject = fact.subject.strip()
    return Candidate(
        text=fact.text,
        kind=fact.kind,
        subject="user" if subject.casefold() in ("", "user", "the user") else subject,
        attribute=_slot(fact.attribute),
        value=(fact.value or "").strip() or None,
        quote=quote,
        message_id=message_id,
        importance=fact.importance,
        confidence=fact.confidence,
        polarity="retract" if fact.retracts else "assert",
        history=fact.past,
        proposed=fact.op,
        proposed_target=None if at is None else known[at].id,
    )


def _slot(attribute: str | None) -> str | None:
    """Write an attribute in one way: `Home city` as `home_city`."""
    return "_".join((attribute or "").casefold().split()) or None
