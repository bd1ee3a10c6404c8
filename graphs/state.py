"""What travels through the graphs: the state of a turn, and the values that a caller gives for a run."""

import hashlib
import json
import time
from collections.abc import Sequence
from datetime import datetime
from itertools import dropwhile
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.runnables import RunnableConfig
from langgraph.graph.message import Messages, add_messages
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from sharpwave.memory import times
from sharpwave.memory.errors import ConfigError, InputError, OwnershipError
from sharpwave.memory.ledger import check_owner
from sharpwave.memory.records import Message, Role, ToolCall, Turn, new_id
from sharpwave.memory.times import UtcTime
from sharpwave.memory.working import WorkingMemory

STALE = -2
"""Revision that says: somebody else wrote in between, decide again."""


def add_new_messages(left: Messages, right: Messages) -> Messages:
    """Reduce messages as `add_messages` does, except that a history sent again is not added again.

    A caller that keeps no ids may send the whole conversation each time, or its end. Where user messages without ids
    repeat the end of the thread, in order and answered where it is answered, only what follows them is new. So a message
    without an answer may be sent again; one that was answered, and comes alone, is said once more.
    """
    given = convert_to_messages(right if isinstance(right, list) else [right])
    said = [message for message in given if isinstance(message, HumanMessage)]
    if not isinstance(left, list) or not said or any(message.id for message in said):
        return add_messages(left, right)
    known, _ = _outline(convert_to_messages(left))
    sent, ends = _outline(given)
    repeated = _overlap(known, sent)
    if not repeated and known[-1:] == [_ANSWER] and _overlap(known[:-1], sent) == len(sent):
        repeated = len(sent) - 1  # answered before, and to be answered anew
    return add_messages(left, list[Any](given[ends[repeated - 1] :]) if repeated else right)


_ANSWER = object()
"""Stands for whatever answered the user: callers need not keep its words."""


def _outline(messages: Sequence[BaseMessage]) -> tuple[list[object], list[int]]:
    """Return what the user said and where it was answered, and after how many messages each of these ends."""
    entries: list[object] = []
    ends: list[int] = []
    for count, message in enumerate(messages, 1):
        if isinstance(message, HumanMessage):
            entries.append(message.content)
            ends.append(count)
        elif entries and entries[-1] is _ANSWER:
            ends[-1] = count
        elif entries and not isinstance(message, SystemMessage):
            entries.append(_ANSWER)
            ends.append(count)
    return entries, ends


def _overlap(known: list[object], sent: list[object]) -> int:
    """Return how many entries that `sent` begins with are the last ones of `known`."""
    return next((n for n in range(min(len(known), len(sent)), 0, -1) if known[-n:] == sent[:n]), 0)


class State(TypedDict, total=False):
    """The state of a conversation: `messages`, `summary` and `working` go on from turn to turn; all else is of the current
    turn, and set anew by each. Plain data, but for the messages."""

    messages: Annotated[list[AnyMessage], add_new_messages]
    summary: dict[str, Any] | None
    """`Summary` of the oldest messages, in place of which the model is shown it; the messages themselves stay."""
    working: dict[str, Any]
    """`WorkingMemory` of the session; a caller or a tool may set it, and each turn brings it up to date."""
    owner: str
    """Whose conversation this is; a thread that another owner comes to is refused."""
    recalled: list[dict[str, Any]]
    """`Recall`s that the answer may draw on; a citation `[n]` means the n-th."""
    citations: list[str]
    """Ids of the memories that the answer cited."""
    profile: list[dict[str, Any]]
    """`Recall`s of what holds of the user, whatever is asked; citations count on from `recalled`."""
    procedural: list[str]
    """Strategies that work and tools that fail, as lines of a prompt."""
    experiences: list[str]
    """Similar tasks and how they ended, for a prompt."""
    core: str
    """Core memory, for a prompt."""
    outweighed: list[dict[str, str]]
    """What is not shown, because something weightier says otherwise (`gathering.Outweighed`)."""
    turn: dict[str, Any]
    candidates: list[dict[str, Any]]
    decisions: list[dict[str, Any]]
    shown: list[str]
    """Ids of the memories that the policy saw."""
    revision: int | None
    """Of the owner's memories when it was decided; None where the decision does not depend on it."""
    questions: list[dict[str, Any] | None]
    """What the user is asked about each decision, None where nothing; see `sharpwave.graphs.approve`."""
    answers: list[dict[str, Any]]
    """What the user was asked about the turn, each with `approved`."""
    operations: list[dict[str, Any]]
    """What was done to memory (`Applied`)."""
    errors: list[dict[str, str]]
    """What went wrong while writing (`stage`, `error`); the turn then waits in the queue."""
    masked: list[str]
    """Kinds of the secrets that the user's message held (`password`, `card`, …); memory keeps none of them."""
    incognito: list[str]
    """Ids of the messages last said in an incognito turn; they are not written later either."""
    caught_up: int
    """Turns that had failed earlier and were taken up again before this one."""
    degraded: str | None
    """Why this turn was summarised or written by rules though a model was at hand; None when it was not."""
    usage: dict[str, Any]
    timings_ms: dict[str, float]
    said_at: str
    """The moment of the turn, ISO 8601."""
    began: float
    """When it began by the machine's clock, in seconds since 1970."""


class Context(BaseModel):
    """What a caller says about a run: `graph.invoke(..., context=Context(user_id="ana"))`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    user_id: str = Field(strict=True)
    """Whose memory this is."""
    thread: str | None = None
    """Name of the conversation among this user's; by default the `thread_id` of the run's config."""
    agent: str = Field(default="agent", min_length=1)
    """Name of the agent: what it learns about tools and procedures is kept apart from the user's other agents."""
    now: UtcTime | None = None
    """The moment of the turn; by default the present."""
    timezone: str = "UTC"
    """IANA name of the user's zone."""
    remember: bool = True
    """False makes the turn incognito: it recalls, and writes nothing to memory."""
    max_llm_calls_per_turn: int | None = Field(default=None, ge=1)
    """Model calls that a turn may take, the answer's included; past them memory is written by rules."""
    max_tokens_per_day: int | None = Field(default=None, ge=0)
    """Tokens a day (UTC) that model calls for this user may take; past them memory is written by rules."""
    over_budget: Literal["rules", "wait"] = "rules"
    """What becomes of a turn that may ask no model: written by rules, or left in the queue."""
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


def context_of(runtime: Runtime[Context] | ToolRuntime[Any, Any]) -> Context:
    """Return the run's context, with the moment of the turn filled in.

    Raises:
        ConfigError: the caller gave none, so nobody knows whose memory it is.
    """
    given: object = runtime.context
    if given is None:
        raise ConfigError(
            'No user for this run. Pass context=Context(user_id="…") to invoke, stream or their async forms.'
        )
    # Inside another graph the context may be of that graph's type: what it says about the run is taken from it.
    context = given if isinstance(given, Context) else Context.model_validate(given, from_attributes=True)
    return context if context.now is not None else context.model_copy(update={"now": times.now()})


def moment(context: Context) -> datetime:
    """Return the moment of the turn in UTC."""
    return context.now or times.now()


def thread_of(context: Context, config: RunnableConfig) -> str:
    """Return the name of the conversation among the owner's own."""
    named = context.thread or config.get("configurable", {}).get("thread_id")
    return str(named) if named else "default"


def begun(state: State, context: Context) -> dict[str, Any]:
    """Return the state of a turn that has just begun, with nothing of the turn before it.

    Raises:
        OwnershipError: the checkpointed conversation belongs to somebody else.
        InputError: a caller put into `working` what is no `WorkingMemory`.
    """
    owner = state.get("owner")
    if owner is not None and owner != context.user_id:
        raise OwnershipError(
            "This thread_id holds another user's conversation. Checkpoints know no owner: derive the id with "
            "sharpwave.graphs.thread_config(user_id, thread)."
        )
    messages = state.get("messages", [])
    asked = last_exchange(messages)
    try:
        working = WorkingMemory.model_validate(state.get("working") or {"started_at": moment(context)})
    except ValidationError as error:
        raise InputError(f"The state's 'working' is no WorkingMemory: {error.errors()[0]['msg']}.") from None
    return {
        "owner": context.user_id,
        "incognito": state.get("incognito", []) if context.remember else [message.id for message in asked],
        "working": working.begun(messages).model_dump(mode="json"),
        "recalled": [],
        "citations": [],
        "profile": [],
        "procedural": [],
        "experiences": [],
        "outweighed": [],
        "core": "",
        "candidates": [],
        "decisions": [],
        "shown": [],
        "revision": None,
        "questions": [],
        "answers": [],
        "operations": [],
        "errors": [],
        "masked": [],
        "caught_up": 0,
        "degraded": None,
        "usage": {},
        "timings_ms": {},
        "said_at": moment(context).isoformat(),
        "began": time.time(),
    }


def last_exchange(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the user's latest message, those before it that got no answer, and what has answered so far."""
    end = len(messages)
    while end and not isinstance(messages[end - 1], HumanMessage):
        end -= 1
    start = end
    while start and not _is_answer(messages[start - 1]):
        start -= 1
    said = [message for message in messages[start:] if not isinstance(message, SystemMessage)]
    return list(dropwhile(lambda message: not isinstance(message, HumanMessage), said)) if end else []


def _is_answer(message: BaseMessage) -> bool:
    return isinstance(message, AIMessage) and not message.tool_calls


def turn_of(exchange: Sequence[BaseMessage], context: Context, thread: str, seconds: float = 0.0) -> Turn:
    """Return an exchange as the turn that is written: plain text and tool calls, images left out.

    `seconds` is how long answering it took.
    """
    return Turn(
        owner=context.user_id,
        thread=thread,
        messages=tuple(_message(message) for message in exchange),
        said_at=moment(context),
        timezone=context.timezone,
        seconds=seconds,
        agent=context.agent,
    )


STOPPED = "stopped"
"""Key in the `response_metadata` of an answer that was asked for while the model still wanted to call tools."""


def _message(message: BaseMessage) -> Message:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    result = message if isinstance(message, ToolMessage) else None
    return Message(
        id=message.id or new_id(),
        role=_ROLES.get(message.type, "assistant"),
        text=message.text,
        calls=tuple(ToolCall(id=call["id"] or "", name=call["name"], arguments=_plain(call["args"])) for call in calls),
        answers=result.tool_call_id if result else None,
        failed=(result is not None and result.status == "error") or STOPPED in message.response_metadata,
    )


def _plain(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what a tool was given as it can be kept: what JSON does not know is written as text."""
    try:
        written = json.dumps(arguments, ensure_ascii=False, default=str, skipkeys=True)
    except (ValueError, RecursionError):  # it contains itself, or is nested too deep
        return {"arguments": "(cannot be written down)"}
    kept: dict[str, Any] = json.loads(written.encode("utf-8", "replace"))
    return kept


_ROLES: dict[str, Role] = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}


def milliseconds(started: float) -> float:
    """Return the milliseconds since `started`, a `time.perf_counter()`."""
    return round((time.perf_counter() - started) * 1000, 2)


def timed(state: State, stage: str, started: float) -> dict[str, float]:
    """Return the times of the turn so far, with that of a stage that began at `started`."""
    return {**state.get("timings_ms", {}), stage: milliseconds(started)}


def failure(stage: str, error: str) -> dict[str, Any]:
    """Return the update of the state that says what went wrong."""
    return {"errors": [{"stage": stage, "error": error}]}


def thread_config(user_id: str, thread: str) -> RunnableConfig:
    """Return the config of a conversation: a checkpointer thread id made of owner and thread, so that two users who both
    say `t1` never share messages."""
    return {"configurable": {"thread_id": threads_of(user_id) + _digest(thread)}}


def threads_of(user_id: str) -> str:
    """Return what the checkpointer thread ids of all conversations of a user, and of nobody else, begin with."""
    return f"{_digest(user_id)}-"


def _digest(name: str) -> str:
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
