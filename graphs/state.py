"""What travels through the graphs: the state of a turn, and the values that a caller gives for a run."""

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.message import Messages, add_messages
from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict, Field, field_validator

from sharpwave.memory import times
from sharpwave.memory.errors import ConfigError, InputError, OwnershipError
from sharpwave.memory.ledger import check_owner
from sharpwave.memory.records import Message, Role, Turn, new_id
from sharpwave.memory.times import UtcTime


def add_new_messages(left: Messages, right: Messages) -> Messages:
    """Reduce messages as `add_messages` does, except that a history sent again is not added again.

    A caller that keeps no ids may send the whole conversation each time. Messages without ids whose user messages begin
    with all those of the thread, in order, are that: only what follows them is new.
    """
    given = right if isinstance(right, list) else [right]
    known = [m for m in left if isinstance(m, HumanMessage)] if isinstance(left, list) else []
    messages = add_messages([], given) if known else []
    said = [i for i, message in enumerate(messages) if isinstance(message, HumanMessage)]
    resent = (
        len(said) > len(known) > 0
        and not any(_has_id(message) for message in given)
        and all(messages[i].content == old.content for i, old in zip(said, known, strict=False))
    )
    return add_messages(left, messages[said[len(known)] :] if resent else right)


def _has_id(message: object) -> bool:
    found = message.get("id") if isinstance(message, dict) else getattr(message, "id", None)
    return found is not None


class State(TypedDict, total=False):
    """The state of a conversation. All but `messages` is of the current turn, plain data, and set anew by each turn."""

    messages: Annotated[list[AnyMessage], add_new_messages]
    owner: str
    """Whose conversation this is; a thread that another owner comes to is refused."""
    recalled: list[dict[str, Any]]
    """`Recall`s that the answer may draw on; a citation `[n]` means the n-th."""
    citations: list[str]
    """Ids of the memories that the answer cited."""
    turn: dict[str, Any]
    candidates: list[dict[str, Any]]
    decisions: list[dict[str, Any]]
    shown: list[str]
    """Ids of the memories that the policy saw."""
    revision: int
    operations: list[dict[str, Any]]
    """What was done to memory (`Applied`)."""
    errors: list[dict[str, str]]
    """What went wrong while writing (`stage`, `error`); the turn then waits in the queue."""
    usage: dict[str, Any]
    timings_ms: dict[str, float]


class Context(BaseModel):
    """What a caller says about a run: `graph.invoke(..., context=Context(user_id="ana"))`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    user_id: str
    """Whose memory this is."""
    thread: str | None = None
    """Name of the conversation among this user's; by default the `thread_id` of the run's config."""
    now: UtcTime | None = None
    """The moment of the turn; by default the present."""
    timezone: str = "UTC"
    """IANA name of the user's zone."""
    remember: bool = True
    """False makes the turn incognito: it recalls, and writes nothing to memory."""
    recall_budget: int = Field(default=300, ge=0)
    """Tokens of recalled memories that the answer may draw on."""

    @field_validator("user_id")
    @classmethod
    def _owner(cls, value: str) -> str:
        try:
            return check_owner(value)
        except InputError as error:
            raise ValueError(str(error)) from error

    @field_validator("timezone")
    @classmethod
    def _zone(cls, value: str) -> str:
        try:
            times.time_zone(value)
        except InputError as error:
            raise ValueError(str(error)) from error
        return value


def context_of(runtime: Runtime[Context]) -> Context:
    """Return the run's context, with the moment of the turn filled in.

    Raises:
        ConfigError: the caller gave none, so nobody knows whose memory it is.
    """
    context = runtime.context
    if isinstance(context, dict):
        context = Context(**context)
    if context is None or not getattr(context, "user_id", None):
        raise ConfigError('No user for this run. Pass context=Context(user_id="…") to invoke, stream or their async forms.')
    return context if context.now is not None else context.model_copy(update={"now": times.now()})


def moment(context: Context) -> datetime:
    """Return the moment of the turn in UTC."""
    return context.now or times.now()


def thread_of(context: Context, config: RunnableConfig) -> str:
    """Return the name of the conversation among the owner's own."""
    named = context.thread or config.get("configurable", {}).get("thread_id")
    return str(named) if named else "default"


def check_conversation(state: State, context: Context) -> None:
    """Raise `OwnershipError` when the checkpointed conversation belongs to somebody else."""
    owner = state.get("owner")
    if owner is not None and owner != context.user_id:
        raise OwnershipError(
            "This thread_id holds another user's conversation. Checkpoints know no owner: derive the id with "
            "sharpwave.graphs.thread_config(user_id, thread)."
        )


def last_exchange(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the user's latest message, or the latest run of them, and what has answered it so far."""
    end = len(messages)
    while end and not isinstance(messages[end - 1], HumanMessage):
        end -= 1
    start = end
    while start and isinstance(messages[start - 1], HumanMessage):
        start -= 1
    return list(messages[start:]) if end else []


def turn_of(exchange: Sequence[BaseMessage], context: Context, thread: str) -> Turn:
    """Return an exchange as the turn that is written: plain text, images and tool calls left out."""
    return Turn(
        owner=context.user_id,
        thread=thread,
        messages=tuple(
            Message(id=message.id or new_id(), role=_ROLES.get(message.type, "assistant"), text=message.text)
            for message in exchange
        ),
        said_at=moment(context),
        timezone=context.timezone,
    )


_ROLES: dict[str, Role] = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}


def milliseconds(started: float) -> float:
    """Return the milliseconds since `started`, a `time.perf_counter()`."""
    return round((time.perf_counter() - started) * 1000, 2)
