"""The answering node: a chat model that is shown what was recalled, or a template that needs no model."""

import json
import logging
import re
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any, Protocol, runtime_checkable

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.runtime import get_runtime

from sharpwave.graphs.state import STOPPED, Context, State, context_of, last_exchange, milliseconds, moment, turn_of
from sharpwave.memory.context import assemble
from sharpwave.memory.errors import ModelError, SharpwaveError
from sharpwave.memory.gate import worth_reading
from sharpwave.memory.keywords import terms
from sharpwave.memory.records import Precision, Recall
from sharpwave.memory.semantic import CORE
from sharpwave.memory.slots import aliases
from sharpwave.memory.structured import explain
from sharpwave.memory.times import time_zone
from sharpwave.memory.tokens import estimate
from sharpwave.memory.usage import metering, record_call, total
from sharpwave.memory.working import Buffer, Summary, count_messages, default_buffer
from sharpwave.prompts import day, quoted, render

log = logging.getLogger(__name__)

TOOL_ROUNDS = 5
"""Rounds of tool calls in one turn; then the model has to answer without tools."""

UNFINISHED = "I am sorry, I could not finish this: I kept calling tools without coming to an answer."

_CITATION = re.compile(r"\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]")


@runtime_checkable
class Responder(Protocol):
    """Answers the user from what was recalled."""

    def respond(self, messages: Sequence[BaseMessage], recalled: Sequence[Recall], context: Context) -> AIMessage:
        """Return the answer to the last message; `[n]` in it cites the n-th of `recalled`."""
        ...


_ASKS = re.compile(
    r"[?？؟]\s*$|^\W*(?:who|whom|whose|what|when|where|which|why|how|do|does|did|am|is|are|was|were|have|has|can|could|should|would|"
    r"will|may|tell me|remind me|list|show me|suggest|recommend)\b",
    re.IGNORECASE,
)


def asks(text: str) -> bool:
    """Return whether a message ends in, or begins like, a question."""
    return bool(_ASKS.search(text.strip()))


class TemplateResponder:
    """Answers without a model, from the best memory with its date, or says that it does not know."""

    def respond(self, messages: Sequence[BaseMessage], recalled: Sequence[Recall], context: Context) -> AIMessage:
        """Return an answer that quotes what the user once said; see `Responder`."""
        asked = messages[-1].text if messages else ""
        known = [hit for hit in recalled if hit.memory is not None]
        if not asks(asked):
            told = worth_reading(turn_of(last_exchange(messages), context, "-"))
            return AIMessage("Thank you, I will keep that in mind." if told else "All right.")
        if not known:
            return AIMessage("I don't know that yet: nothing you have told me answers it.")
        close = [(n, hit) for n, hit in enumerate(recalled, 1) if hit is known[0] or _close(hit, known[0])][:3]
        lead = _value_asked_for(asked, known[0])
        return AIMessage(lead + "\n".join(_told(label, hit, context) for label, hit in close))


_IDEAS = re.compile(
    r"\b(?:ideas?|suggest\w*|recommend\w*|propos\w+|should (?:I|we)|(?:what|where) (?:can|could|shall) (?:I|we)|plan|tips?)\b",
    re.IGNORECASE,
)
HEEDED = 3
"""Memories of the profile that the template names where ideas are asked for."""


def with_profile(
    answer: AIMessage,
    messages: Sequence[BaseMessage],
    recalled: Sequence[Recall],
    profile: Sequence[Recall],
    context: Context,
) -> AIMessage:
    """Return the template's answer; where ideas are asked for, which it has none of, with what any idea has to heed."""
    if not profile or not messages or not _IDEAS.search(messages[-1].text):
        return answer
    heeded = [_told(label, hit, context) for label, hit in enumerate(profile[:HEEDED], len(recalled) + 1)]
    return AIMessage("\n".join([answer.text, "Whatever you choose, keep in mind:", *heeded]))


def _close(hit: Recall, best: Recall) -> bool:
    return hit.memory is not None and hit.id != best.id and hit.score >= best.score - 0.15


def _value_asked_for(asked: str, hit: Recall) -> str:
    """Return the value of the slot that the question asks for: "Where do I live?" wants the city alone."""
    memory = hit.memory
    if (
        memory is None
        or not memory.attribute
        or not memory.value
        or memory.value.casefold() not in memory.text.casefold()
    ):
        return ""
    return f"{memory.value}. " if set(terms(asked)) & set(terms(aliases(memory.attribute))) else ""


def _told(label: int, hit: Recall, context: Context) -> str:
    local = hit.said_at.astimezone(time_zone(context.timezone))
    review = " This may have changed since: what it rests on has." if hit.memory and hit.memory.needs_review else ""
    concluded = hit.memory is not None and hit.memory.source.kind == "inferred"
    lead = "I concluded on" if concluded else "You told me on"
    return f"{lead} {local.day} {local:%B %Y}: “{hit.text}”{_of(hit, context)} [{label}]{review}"


def _of(hit: Recall, context: Context) -> str:
    """Return the time that a memory tells of, as " (May 2023)"; nothing where it tells none."""
    event = hit.memory.event_time if hit.memory else None
    if event is None:
        return ""
    zone = time_zone(context.timezone)
    start, end = event.start.astimezone(zone), (event.end - timedelta(microseconds=1)).astimezone(zone)
    first, last = (_written(moment, event.precision, hit.said_at.astimezone(zone)) for moment in (start, end))
    if first == last:
        return f" ({first})"
    if event.end >= hit.said_at > event.start and event.precision != "week":
        return f" (since {first})"
    return f" (week of {first})" if event.end - event.start <= timedelta(days=7) else f" ({first} – {last})"


def _written(moment: datetime, precision: Precision, said: datetime) -> str:
    """Return a time as exactly as it is known; a day of the year in which it was said, without the year."""
    if precision == "year":
        return str(moment.year)
    if precision in ("month", "season"):
        return f"{moment:%B %Y}"
    return f"{moment.day} {moment:%B}" if moment.year == said.year else f"{moment.day} {moment:%B %Y}"


def rendered(recalled: Sequence[Recall], context: Context) -> str:
    """Return memories as quoted data, a line each: `[label] date, origin (time told of): "text"`. Line ends and quotes inside are escaped."""
    return "\n".join(labelled(recalled, context)) or "(nothing is known)"


def labelled(recalled: Sequence[Recall], context: Context, first: int = 1) -> list[str]:
    """Return memories as lines of a prompt, with labels from `first` on; see `rendered`."""
    zone = time_zone(context.timezone)
    return [
        f"[{label}] {hit.said_at.astimezone(zone):%Y-%m-%d}, {_origin(hit)}{_of(hit, context)}: {quoted(hit.text, 600)}"
        for label, hit in enumerate(recalled, first)
    ]


def _origin(hit: Recall) -> str:
    if hit.utterance is not None:
        return f"said by {hit.utterance.role}"
    source = hit.memory.source.kind if hit.memory else "user"
    review = ", may be out of date" if hit.memory and hit.memory.needs_review else ""
    return ("told by the user" if source == "user" else f"from {source}") + review


def cited(text: str, recalled: Sequence[Recall]) -> list[str]:
    """Return the ids of the memories that `text` cites as `[n]`, each once, in order; labels that were not shown are ignored."""
    labels = [int(n) for group in _CITATION.findall(text) for n in group.split(",")]
    shown = [recalled[n - 1] for n in labels if 1 <= n <= len(recalled)]
    return list(dict.fromkeys(hit.id for hit in shown))


def template_node(responder: Responder) -> Callable[..., dict[str, Any]]:
    """Return the node that answers by a `Responder`."""

    def respond(state: State) -> dict[str, Any]:
        started = time.perf_counter()
        context = context_of(get_runtime(Context))
        recalled, profile = shown_in(state)
        answer = responder.respond(state["messages"], recalled, context)
        if isinstance(responder, TemplateResponder):
            answer = with_profile(answer, state["messages"], recalled, profile, context)
        return {
            "messages": [answer],
            "citations": cited(answer.text, [*recalled, *profile]),
            "timings_ms": {**state.get("timings_ms", {}), "respond": milliseconds(started)},
        }

    return respond


def model_node(
    model: BaseChatModel, tools: Sequence[BaseTool], buffer: Buffer | None = None
) -> Runnable[State, dict[str, Any]]:
    """Return the node that answers by a chat model, with tools if there are any. One node for sync and async runs.

    What the model is shown is fitted into its window by `buffer`; by default `default_buffer(model)`.
    """
    bound: Runnable[Any, AIMessage] = model.bind_tools(tools) if tools else model
    buffer = buffer or default_buffer(model)
    schemas = tokens_of(tools)

    def asked(state: State) -> tuple[list[BaseMessage], Runnable[Any, AIMessage], float]:
        started = time.perf_counter()
        summary = Summary.model_validate(state["summary"]) if state.get("summary") else None
        shown = _prompt(state["messages"], system_prompt(state, buffer, schemas))
        prompt = buffer.fit(shown, summary, reserve=schemas)
        return prompt, model if _worn_out(state) else bound, started

    def respond(state: State, config: RunnableConfig) -> dict[str, Any]:
        prompt, chosen, started = asked(state)
        try:
            answer = chosen.invoke(prompt, config)
        except Exception as error:
            raise _failed(error, prompt) from error
        return _answered(state, answer, prompt, started, bool(tools))

    async def arespond(state: State, config: RunnableConfig) -> dict[str, Any]:
        prompt, chosen, started = asked(state)
        try:
            answer = await chosen.ainvoke(prompt, config)
        except Exception as error:
            raise _failed(error, prompt) from error
        return _answered(state, answer, prompt, started, bool(tools))

    return RunnableLambda(respond, afunc=arespond, name="respond")


def tokens_of(tools: Sequence[BaseTool]) -> int:
    """Return the tokens that the schemas of tools take in a prompt, by estimate."""
    return sum(estimate(json.dumps(convert_to_openai_tool(tool), ensure_ascii=False)) for tool in tools)


def system_prompt(state: State, buffer: Buffer, reserve: int = 0) -> str:
    """Return the instructions with what was gathered, each section within its share of the window (see `memory.context`).

    Args:
        state: of the turn.
        buffer: whose budget all of the prompt has to fit into.
        reserve: tokens that the schemas of tools take.
    """
    context = context_of(get_runtime(Context))
    local = moment(context).astimezone(time_zone(context.timezone))

    core = state.get("core", "")

    def told(memories: str, guidance: str) -> str:
        given = {"date": day(local), "timezone": context.timezone, "memories": memories, "guidance": guidance}
        return "\n\n".join(part for part in (render("respond", **given).rstrip(), core) if part)

    own = [message for message in state["messages"] if isinstance(message, SystemMessage)]
    said = [message for message in state["messages"] if not isinstance(message, SystemMessage)]
    asked = count_messages(said[-1:], estimate)
    summary = Summary.model_validate(state["summary"]) if state.get("summary") else None
    before = said[summary.covers(said) : -1] if summary else said[:-1]
    fixed = estimate(told(PROFILE, render("guidance", lines=EXPERIENCES))) + count_messages(own, estimate)
    recalled, profile = shown_in(state)
    sections = {
        "summary": [summary.text] if summary else [],
        "procedural": state.get("procedural", []),
        "profile": labelled_profile(profile, context, len(recalled) + 1, core),
        "facts": labelled(recalled, context),
        "experiences": state.get("experiences", []),
    }
    made = assemble(
        buffer.budget,
        system=min(fixed, max(0, buffer.budget - reserve - asked)),  # too little room is for the buffer to say
        query=asked,
        recent=count_messages(before, estimate),
        tools=reserve,
        sections=sections,
        reserve=0,
    )
    left_out = {section.name: len(section.left_out) for section in made.sections if section.left_out}
    if left_out:
        log.warning("The window has no room for all of it; left out: %s.", left_out)
    facts, held = made.section("facts").lines, made.section("profile").lines
    lessons = [*made.section("procedural").lines, *_after(EXPERIENCES, made.section("experiences").lines)]
    memories = "\n".join([*facts, *_after(PROFILE, held)]) or "(nothing is known)"
    return told(memories, render("guidance", lines="\n".join(lessons)) if lessons else "")


PROFILE = "What holds of this user, whatever is asked:"
EXPERIENCES = "Similar tasks before:"


def labelled_profile(profile: Sequence[Recall], context: Context, first: int, core: str) -> list[str]:
    """Return the profile as lines with labels from `first` on, without what core memory (if it is shown) says already."""
    lines = labelled(profile, context, first)
    return [line for hit, line in zip(profile, lines, strict=True) if not (core and _in_core(hit))]


def _in_core(hit: Recall) -> bool:
    return hit.memory is not None and any(tag.startswith(CORE) for tag in hit.memory.tags)


def _after(heading: str, lines: Sequence[str]) -> list[str]:
    return [heading, *lines] if lines else []


def shown_in(state: State) -> tuple[list[Recall], list[Recall]]:
    """Return what was recalled, and the profile: citations count through both."""
    recalled = [Recall.model_validate(hit) for hit in state.get("recalled", [])]
    return recalled, [Recall.model_validate(hit) for hit in state.get("profile", [])]


def _prompt(messages: Sequence[BaseMessage], system: str) -> list[BaseMessage]:
    """Return the conversation as every server takes it: one system message, the caller's own first."""
    own = [message.text for message in messages if isinstance(message, SystemMessage)]
    spoken = [message for message in messages if not isinstance(message, SystemMessage)]
    return [SystemMessage("\n\n".join(dict.fromkeys([*own, system]))), *spoken]


def _worn_out(state: State) -> bool:
    """Whether this call must be the last: the rounds of tools, or the calls that this turn may take, are used up."""
    since = takewhile(lambda message: not isinstance(message, HumanMessage), reversed(state["messages"]))
    rounds = sum(isinstance(message, AIMessage) and bool(message.tool_calls) for message in since)
    allowed = context_of(get_runtime(Context)).max_llm_calls_per_turn
    return rounds >= TOOL_ROUNDS or (allowed is not None and state["usage"].get("llm_calls", 0) + 1 >= allowed)


def _answered(
    state: State, answer: AIMessage, prompt: Sequence[BaseMessage], started: float, has_tools: bool
) -> dict[str, Any]:
    with metering() as meter:
        record_call("respond", answer, sum(len(message.text) for message in prompt))
    answer = _sound(answer, may_call=has_tools and not _worn_out(state))
    recalled, profile = shown_in(state)
    timings = state.get("timings_ms", {})
    return {
        "messages": [answer],
        "citations": cited(answer.text, [*recalled, *profile]),
        "usage": total(state.get("usage"), meter.usage),
        "timings_ms": {**timings, "respond": timings.get("respond", 0.0) + milliseconds(started)},
    }


def _sound(answer: AIMessage, *, may_call: bool) -> AIMessage:
    """Return an answer without the tool calls that nothing will carry out: a conversation that holds one is refused later.

    Raises:
        ModelError: it says nothing at all.
    """
    calls = answer.tool_calls if may_call else []
    if not answer.content and not answer.tool_calls and not answer.invalid_tool_calls:
        refusal = answer.additional_kwargs.get("refusal")
        if not refusal:
            raise ModelError("The chat model gave an empty answer. Try again, or allow it more tokens.")
        return AIMessage(str(refusal), id=answer.id, usage_metadata=answer.usage_metadata)
    if calls == answer.tool_calls and not answer.invalid_tool_calls:
        return answer
    if not calls:
        text, marked = answer.text or UNFINISHED, {STOPPED: True}
        return AIMessage(text, id=answer.id, usage_metadata=answer.usage_metadata, response_metadata=marked)
    kept = {key: value for key, value in answer.additional_kwargs.items() if key != "tool_calls"}
    return answer.model_copy(update={"invalid_tool_calls": [], "additional_kwargs": kept})


def _failed(error: Exception, prompt: Sequence[BaseMessage]) -> Exception:
    if isinstance(error, SharpwaveError | AssertionError):
        return error
    return ModelError(explain(error, prompt, "respond"))


def wants_tools(state: State) -> bool:
    """Return whether the last message asks for tools."""
    last = state["messages"][-1]
    return isinstance(last, AIMessage) and bool(last.tool_calls)
