"""Structured answers from chat models whose text is not to be trusted.

A model is asked in the strictest way that its server takes: JSON schema, else JSON mode, else plain text. Whatever comes
back is read as text, repaired where its damage is plain, checked against the schema, asked for once more, and refused.
"""

import json
import logging
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

import json_repair
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, ValidationError

from sharpwave.memory.errors import ModelError, SharpwaveError
from sharpwave.memory.usage import check_budget, record_call

log = logging.getLogger(__name__)

Answer = TypeVar("Answer", bound=BaseModel)

_MODES = ("json_schema", "json_object", "text")
_known_modes: dict[tuple[str, str, str], int] = {}
_lock = threading.Lock()

_REFUSED_FORMAT = re.compile(
    r"response_format|json_schema|json_object|json mode|structured output|grammar", re.IGNORECASE
)
_SECRET = re.compile(
    r"\b(?:sk|pk|key|hf|gsk)[-_][\w*.-]{6,}|\bbearer\s+\S+|://[^/\s@]+@|(?<=provided: )\S+|(?<=key: )\S+|(?<=key=)\S+|(?<=token=)\S+",
    re.IGNORECASE,
)
_THINK = re.compile(r"<(/?)(?:think(?:ing)?|thought|reasoning|reflection)>", re.IGNORECASE)
_QUIET: RunnableConfig = {"tags": ["nostream"]}
"""Keeps these answers out of LangGraph's stream of messages: they are not for the user."""
_ASKED_NOW = ("respond", "read", "answer")
"""Purposes of calls that somebody waits for, who may ask again."""
_START = re.compile(r"[{\[]")
_BROKEN = re.compile(r"\{\s*(?:[\"'}]|\w+\s*:)|\[\s*(?:[{\"'\[\]]|$)")
_MOST_STARTS = 500
"""Brackets tried before an answer is given up: bounds the work that hostile text can cause."""


def ask(model: BaseChatModel, messages: Sequence[BaseMessage], schema: type[Answer], *, purpose: str) -> Answer:
    """Ask `model` and return its answer as a valid `schema`.

    An answer that cannot be used is asked for once more, with a word on what was wrong. `purpose` names the call in
    errors and in the usage.

    Raises:
        ModelError: the provider failed, or the second answer could not be used either. Holds no part of the messages.
    """
    answer = _call(model, messages, schema, purpose)
    try:
        return read(answer.text, schema)
    except ValueError as error:
        wrong = f"{error}{_cut_off(answer)}"
    log.info("The answer for %s is asked for once more: %s", purpose, wrong)
    note = f"Your last answer could not be used: {wrong}. Reply again, with the JSON object only."
    again = [*messages[:-1], HumanMessage(f"{messages[-1].text}\n\n{note}")]
    answer = _call(model, again, schema, purpose)
    try:
        return read(answer.text, schema)
    except ValueError as error:
        raise ModelError(
            f"The chat model's answer for '{purpose}' could not be used, twice: {error}{_cut_off(answer)}. "
            "Try again later, or use a model that follows a JSON format."
        ) from None


def read(text: str, schema: type[Answer]) -> Answer:
    """Return the first JSON value in `text` that fits `schema`, whatever stands around it.

    Thinking blocks are left out. JSON that breaks off counts up to its last complete list element; other damage is repaired.

    Raises:
        ValueError: nothing in `text` fits. The message says why, without quoting `text`.
    """
    text = _without_thinking(text)
    if not text.strip():
        raise ValueError("it was empty")
    found, broken = _values(text)
    wrong = "it held no JSON" if broken is None else "its JSON was broken"
    for value in [*(value for _, _, value in found), *(_repaired(broken) if broken else ())]:
        try:
            return schema.model_validate(value)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "the JSON"
            wrong = f"{where}: {first['msg']}"
        except RecursionError:
            wrong = "its JSON was nested too deep"
    raise ValueError(wrong)


def _without_thinking(text: str) -> str:
    """Cut what comes before the last closing tag and after an opening one without end; tags in JSON strings are content."""
    tags = list(_THINK.finditer(text))
    if tags:
        spans = [(start, end) for start, end, _ in _values(text)[0]]
        tags = [tag for tag in tags if not any(start < tag.start() < end for start, end in spans)]
    start = max((tag.end() for tag in tags if tag[1]), default=0)
    end = min((tag.start() for tag in tags if not tag[1] and tag.start() >= start), default=len(text))
    return text[start:end]


def _values(text: str) -> tuple[list[tuple[int, int, Any]], str | None]:
    """Return the outermost JSON values of `text` with their places, and the text from where JSON first begins but breaks.

    Inside broken JSON only objects count: a list found there is a part of something, and would pass for the whole.
    """
    decoder = json.JSONDecoder(strict=False)
    found: list[tuple[int, int, Any]] = []
    broken: int | None = None
    at = 0
    for _ in range(_MOST_STARTS):
        start = _START.search(text, at)
        if start is None:
            break
        try:
            value, at = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            at = start.end()
            if broken is None and _BROKEN.match(text, start.start()):
                broken = start.start()
        else:
            if _storable(value) and (broken is None or isinstance(value, dict)):
                found.append((start.start(), at, value))
    return found, None if broken is None else text[broken:]


def _storable(value: Any) -> bool:
    """Whether the value holds no half of a surrogate pair, which no store can write."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def _repaired(broken: str) -> Iterator[Any]:
    """Yield what JSON that does not decode can be read as."""
    whole = _whole_part(broken)
    if whole is None:
        return
    try:
        value = json_repair.loads(whole)
    except (ValueError, RecursionError):
        return
    if isinstance(value, dict | list) and _storable(value):
        yield value


def _whole_part(text: str) -> str | None:
    """Return `text` up to where its first bracket closes or, where it breaks off, up to its last complete list element.

    What stays open then is closed by the repair. None when no element is complete: half a statement may say the opposite
    of the whole.
    """
    closers: list[str] = []
    best: int | None = None
    in_string = escaped = False
    for at, char in enumerate(text):
        if in_string:
            in_string, escaped = escaped or char != '"', char == "\\" and not escaped
        elif char == '"':
            in_string = True
        elif char in "{[":
            closers.append("}" if char == "{" else "]")
        elif char in "}]" and closers:
            closers.pop()
        if not closers:
            return text[: at + 1]
        if not in_string and char in '"}]' and closers[-1] == "]":
            best = at + 1
    return None if best is None else text[:best]


def _cut_off(answer: AIMessage) -> str:
    """Say so when the model ran into its token limit."""
    return " (cut off at its token limit)" if answer.response_metadata.get("finish_reason") == "length" else ""


def _call(model: BaseChatModel, messages: Sequence[BaseMessage], schema: type[BaseModel], purpose: str) -> AIMessage:
    """Call the model in the strictest mode its server takes, and count the call."""
    check_budget()
    server = _server(model)
    finding_out = server is not None and server not in _known_modes
    mode = len(_MODES) - 1 if server is None else _known_modes.get(server, 0)
    while True:
        try:
            with _without_advice() if finding_out else nullcontext():
                answer = _invoke(model, messages, schema, _MODES[mode])
            break
        except (SharpwaveError, AssertionError):  # ours, or a bug: no provider failed
            raise
        except Exception as error:
            if mode == len(_MODES) - 1 or not _refuses_format(error):
                raise ModelError(explain(error, messages, purpose)) from error
        log.info("The server does not take response_format %s; trying %s", _MODES[mode], _MODES[mode + 1])
        mode += 1
    if server is not None:
        with _lock:
            _known_modes[server] = mode
    record_call(purpose, answer, sum(len(message.text) for message in messages))
    return answer


@contextmanager
def _without_advice() -> Iterator[None]:
    """Keep LangChain's advice on `with_structured_output` to itself when a server refuses: the refusal is handled here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(?s).*with_structured_output", category=UserWarning)
        warnings.filterwarnings("ignore", message="Invalid schema for OpenAI", category=UserWarning)
        yield


def _invoke(model: BaseChatModel, messages: Sequence[BaseMessage], schema: type[BaseModel], mode: str) -> AIMessage:
    if mode == "text":
        return model.invoke(list(messages), _QUIET)
    wanted: dict[str, Any] = {"type": mode}
    if mode == "json_schema":
        strict = _strict(schema.model_json_schema())
        wanted["json_schema"] = {"name": schema.__name__, "schema": strict, "strict": True}
    return model.bind(**_format(model, wanted)).invoke(list(messages), _QUIET)


def _format(model: BaseChatModel, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the call option that sends `response_format`.

    As an extra field of the body it reaches the server as it is; as an option of its own, the client would refuse answers
    that were cut off before we see them. Only the Responses API needs the option, to translate it.
    """
    if getattr(model, "use_responses_api", None):
        return {"response_format": wanted}
    return {"extra_body": {**(getattr(model, "extra_body", None) or {}), "response_format": wanted}}


def _server(model: BaseChatModel) -> tuple[str, str, str] | None:
    """What the mode is remembered by: class, address and model name; None for models that take no `response_format`."""
    if not any(kind.__name__ == "BaseChatOpenAI" for kind in type(model).__mro__):
        return None
    client = getattr(model, "root_client", None)
    return type(model).__name__, str(getattr(client, "base_url", "")), str(getattr(model, "model_name", ""))


def _refuses_format(error: Exception) -> bool:
    return getattr(error, "status_code", None) in (400, 422, 501) and bool(_REFUSED_FORMAT.search(str(error)))


def _strict(schema: Any) -> Any:
    """Return a JSON schema in the form that strict mode wants: every property required, no others, no defaults."""
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: _strict(value) for key, value in schema.items() if key not in ("default", "title", "description")}
    if "properties" in schema:
        out["properties"] = {name: _strict(value) for name, value in schema["properties"].items()}
        out |= {"required": list(schema["properties"]), "additionalProperties": False}
    return out


def explain(error: Exception, messages: Sequence[BaseMessage], purpose: str) -> str:
    """One line on what the provider said, without keys and without the messages."""
    cause = " ".join(str(error).split()).rstrip(".")
    for message in messages:
        text = " ".join(message.text.split())
        cause = cause.replace(text, "…") if text else cause
    cause = _SECRET.sub("…", cause)[:200]
    later = "" if purpose in _ASKED_NOW else "; the turn waits and is written later"
    advice = f"Check the model name, the base URL and the key{later}."
    return f"The chat model failed on '{purpose}': {type(error).__name__}: {cause or 'no details'}. {advice}"
