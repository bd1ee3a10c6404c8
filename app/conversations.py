"""Reading conversation files as turns.

    openai   one JSON document: messages, `{"messages": […]}`, or a list of such conversations
    jsonl    one message, or one `{"messages": […]}`, a line; read line by line, however long the file is
    locomo   the LoCoMo benchmark: samples with `session_<n>` lists of `{speaker, dia_id, text}`

A turn is a user's message and the assistant's and tools' messages up to the next one of a user or of another thread.
Messages without text (tool calls, images) and those of the system or a developer are instructions and wiring, not
things that were said: they make no turn.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from datetime import MAXYEAR, UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from sharpwave import locomo
from sharpwave.json_files import check, checked_name, kind, load, parse, well_formed
from sharpwave.memory.errors import InputError
from sharpwave.memory.records import Message, Role, Turn
from sharpwave.memory.times import parse_time, time_zone, utc

Format = Literal["auto", "openai", "jsonl", "locomo"]
Fields = dict[str, Any]

ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
    "system": "system",
    "developer": "system",
}
OWNER = ("user", "owner")
THREAD = ("thread", "thread_id", "conversation_id")
SPEAKER = ("speaker", "name")
TIME = ("timestamp", "created_at", "create_time")
NO_CONTENT = {"tool_calls", "function_call", "refusal", "audio"}
"""Fields of messages that may go without `content`."""
SECOND = timedelta(seconds=1)
LOOKED_FOR = (
    'a list of {"role", "content"} messages, {"messages": […]} or a list of these (openai), '
    'one of them a line (jsonl), or samples with "conversation" (locomo)'
)


def read(
    path: Path,
    format: Format = "auto",
    *,
    owner: str | None,
    thread: str | None = None,
    said_at: datetime | None = None,
    timezone: str = "UTC",
) -> Iterator[Turn]:
    """Return the turns of a file, in its order. The same file gives the same ids each time, also after it has grown.

    Args:
        path: UTF-8 text, with or without a byte order mark.
        format: `auto` tells by the content.
        owner: whose memory it is where the file names nobody ("user" or "owner" of a message or conversation).
            LoCoMo has an owner of its own for each sample: its `sample_id`.
        thread: thread where the file names none ("thread", "thread_id", "conversation_id"); by default the name of
            the file. Of several conversations they are `thread/1`, `thread/2`, ….
        said_at: time of the first message where the file has no times; by default the last one is as old as the file.
            Messages without a time follow the one before by a second.
        timezone: zone in which naive times of the file and `said_at` are read.

    Raises:
        InputError: the file cannot be read or is not of the format; says where. May come while iterating.
    """
    time_zone(timezone)
    check(path)
    document: Any = None
    if format == "auto":
        format, document = _detect(path)
    elif format not in get_args(Format):
        raise InputError(f"Unknown format {format!r}. Use one of {', '.join(get_args(Format))}.")
    elif format != "jsonl":
        document = load(path)
    if format == "locomo":
        return locomo.turns(path, document, timezone)
    start = utc(said_at, timezone) if said_at else _written(path) - SECOND * _size(path)
    reader = _Reader(path, owner, path.stem if thread is None else thread, start, timezone)
    return _turns(reader.lines() if format == "jsonl" else reader.document(document), timezone)


def count(path: Path, format: Format = "auto", *, owner: str | None) -> int:
    """Return how many turns `read` gives. It reads to the end, so a broken file is refused before any of it is used."""
    return sum(1 for _ in read(path, format, owner=owner))


class _Said(NamedTuple):
    """One message in its place. Without a text it is only the end of the turn before."""

    owner: str
    thread: str
    said_at: datetime
    message: Message


def _turns(said: Iterator[_Said], zone: str) -> Iterator[Turn]:
    turn: list[_Said] = []
    for one in said:
        if turn and (one.message.role == "user" or (one.owner, one.thread) != (turn[0].owner, turn[0].thread)):
            yield from _turn(turn, zone)
            turn = []
        turn.append(one)
    yield from _turn(turn, zone)


def _turn(said: list[_Said], zone: str) -> Iterator[Turn]:
    spoken = [one for one in said if one.message.text]
    if spoken:
        first = spoken[0]
        messages = tuple(one.message for one in spoken)
        yield Turn(owner=first.owner, thread=first.thread, messages=messages, said_at=first.said_at, timezone=zone)


class _Reader:
    """Reads the messages of one file, and remembers what the next one depends on: counts, ids and the time."""

    def __init__(self, path: Path, owner: str | None, thread: str, start: datetime, zone: str) -> None:
        self.path, self.zone, self.next = path, zone, start
        self.owner = None if owner is None else checked_name(owner, "owner")
        self.thread = checked_name(thread, "thread")
        self.counts: Counter[tuple[str, str]] = Counter()
        self.seen: set[int] = set()

    def lines(self) -> Iterator[_Said]:
        """Read one message or one conversation a line."""
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                fields, where = parse(self.path, line, number), f"line {number}"
                if not isinstance(fields, dict):
                    raise self.error(where, 'is neither a message ("role", "content") nor a conversation ("messages")')
                if "messages" in fields:
                    yield from self.conversation(fields, where, f"{self.thread}/{number}")
                else:
                    yield from self.message(fields, where, self.owner, self.thread)

    def document(self, document: Any) -> Iterator[_Said]:
        """Read one conversation, or a list of them."""
        if isinstance(document, list) and document and all(_is_conversation(one) for one in document):
            for number, one in enumerate(document, 1):
                yield from self.conversation(one, f"conversation {number}", f"{self.thread}/{number}")
        elif isinstance(document, list) or _is_conversation(document):
            yield from self.conversation(document, "", self.thread)
        else:
            raise InputError(f'{self.path}: no list of messages and no "messages" in it. Looked for {LOOKED_FOR}.')

    def conversation(self, whole: Any, where: str, thread: str) -> Iterator[_Said]:
        """Read a list of messages, or an object that has one and may name user, thread and time for all of them."""
        fields = whole if isinstance(whole, dict) else {"messages": whole}
        messages = fields["messages"]
        if not isinstance(messages, list):
            raise self.error(where, f'"messages" is {kind(messages)}, not a list')
        owner = self.text(fields, where, *OWNER) or self.owner
        thread = self.text(fields, where, *THREAD, "id") or thread
        self.next = self.time(fields, where) or self.next
        for number, message in enumerate(messages, 1):
            place = f"{where}, message {number}".removeprefix(", ")
            if not isinstance(message, dict):
                raise self.error(place, f'is {kind(message)}, not an object with "role" and "content"')
            yield from self.message(message, place, owner, thread)

    def message(self, fields: Fields, where: str, owner: str | None, thread: str) -> Iterator[_Said]:
        """Read one message; those of the system give nothing."""
        owner = self.text(fields, where, *OWNER) or owner
        thread = self.text(fields, where, *THREAD) or thread
        if owner is None:
            raise self.error(where, 'names no "user". Say whose memory it is (--user)')
        role = fields.get("role")
        if not isinstance(role, str) or role not in ROLES:
            what = f"has the unknown role {role!r}" if "role" in fields else 'has no "role"'
            raise self.error(where, f"{what}. Known are {', '.join(ROLES)}")
        text = self.content(fields, where)
        said_at = self.time(fields, where) or self.next
        self.next = said_at + SECOND
        index = self.counts[owner, thread]
        self.counts[owner, thread] += 1
        if ROLES[role] != "system":
            name = self.id(fields, where, owner, thread) or _digest(thread, index, role, text)
            speaker = self.text(fields, where, *SPEAKER)
            yield _Said(owner, thread, said_at, Message(id=name, role=ROLES[role], text=text, speaker=speaker))

    def content(self, fields: Fields, where: str) -> str:
        """Return the text of a message: of a list of blocks, that of the text blocks. Empty if it has none."""
        content = fields.get("content")
        if content is None and ("content" in fields or fields.keys() & NO_CONTENT):
            return ""
        if isinstance(content, list):
            content = "\n".join(_block(block) for block in content if _block(block))
        if not isinstance(content, str):
            raise self.error(where, f'"content" is {kind(content)}' if "content" in fields else 'has no "content"')
        return well_formed(content) if content.strip() else ""

    def id(self, fields: Fields, where: str, owner: str, thread: str) -> str | None:
        """Return the id that the file gives a message. A second message of that id would be taken for the first."""
        name = self.text(fields, where, "id")
        if name is not None:
            key = hash((owner, thread, name))
            if key in self.seen:
                raise self.error(where, f"has the id {name!r} of an earlier message of the thread {thread!r}")
            self.seen.add(key)
        return name

    def text(self, fields: Fields, where: str, *keys: str) -> str | None:
        """Return the first of these fields that is there. Numbers pass as ids of messages and threads, not of users."""
        for key in keys:
            value = fields.get(key)
            if value is None or (value == "" and key in SPEAKER):
                continue
            if type(value) is int and key in ("id", *THREAD):
                return str(value)
            if not (isinstance(value, str) and value.strip()):
                raise self.error(where, f'"{key}" is {kind(value)}; it must be a text that is not blank')
            return well_formed(value)
        return None

    def time(self, fields: Fields, where: str) -> datetime | None:
        """Return the time that the file gives, if any."""
        key = next((key for key in TIME if fields.get(key) is not None), None)
        if key is None:
            return None
        try:
            return _time(fields[key], self.zone)
        except (ValueError, OverflowError, OSError, InputError) as error:
            raise self.error(where, f'"{key}" is no time: {error}'.rstrip(".")) from error

    def error(self, where: str, what: str) -> InputError:
        """Make the error that names the file, the place in it and the trouble."""
        return InputError(f"{self.path}: {where or 'the conversation'} {what}.")


def _detect(path: Path) -> tuple[Literal["openai", "jsonl", "locomo"], Any]:
    """Return the format, and the document where it had to be read to tell."""
    with path.open("rb") as file:
        lines = (line for line in file if line.strip())
        line, more = next(lines), next(lines, None)
    first, second = _attempt(path, line), _attempt(path, more) if more else None
    if _is_message(first) or (isinstance(first, dict) and more) or _is_message(second):
        return "jsonl", None
    document = first if first is not None and not more else load(path)
    samples = document if isinstance(document, list) else [document]
    if samples and locomo.is_locomo(samples[0]):
        return "locomo", document
    if samples and (_is_conversation(samples[0]) or _is_message(samples[0])):
        return "openai", document
    raise InputError(f"{path}: no conversation in it. Looked for {LOOKED_FOR}.")


def _attempt(path: Path, line: bytes) -> Any:
    """Parse a line that may be a part of a document; None if it is one, whose own parse then says what is wrong."""
    try:
        return parse(path, line)
    except InputError:
        return None


def _is_message(one: Any) -> bool:
    return isinstance(one, dict) and "role" in one


def _is_conversation(one: Any) -> bool:
    return isinstance(one, list) if not isinstance(one, dict) else "messages" in one


def _time(value: Any, zone: str) -> datetime:
    """Read ISO 8601, or seconds since 1970; numbers from 10¹¹ on are milliseconds."""
    if isinstance(value, str):
        time = parse_time(value, zone)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        time = datetime.fromtimestamp(value / 1000 if abs(value) >= 1e11 else value, UTC)
    else:
        raise InputError(f"it is {kind(value)}")
    if time.year == MAXYEAR:
        raise InputError(f"{value!r} stands for no time at all")
    return time


def _size(path: Path) -> int:
    """Return how many messages a file has: each has one role, and inside of a text the quotes would be escaped."""
    with path.open("rb") as file:
        return sum(line.count(b'"role"') for line in file)


def _written(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _digest(thread: str, index: int, role: str, text: str) -> str:
    """Make the id of a message that has none: of its place and its words."""
    return hashlib.blake2b(json.dumps([thread, index, role, text]).encode(), digest_size=16).hexdigest()


def _block(block: Any) -> str:
    if not isinstance(block, dict):
        return block if isinstance(block, str) else ""
    text = block.get("text") if block.get("type") in ("text", "input_text", "output_text") else None
    text = text.get("value") if isinstance(text, dict) else text
    return text if isinstance(text, str) else ""
