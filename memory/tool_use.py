"""What tools were called with, and what came of it: records, and guidance for each tool made of its latest uses."""

import json
import re
import reprlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, computed_field
from sqlalchemy import Connection

from sharpwave.memory.ledger import from_timestamp
from sharpwave.memory.records import Record, Text
from sharpwave.memory.sql import fetch
from sharpwave.memory.times import UtcTime
from sharpwave.memory.wilson import lower_bound

if TYPE_CHECKING:
    from sharpwave.memory.store import MemoryStore

LATEST = 200
"""Uses of a tool that guidance is made of: what has been mended is not held against it for ever."""
COMMON = 5
"""Errors that guidance names at most."""
FAILURES = 10
"""Failures that a warning takes its error from."""
SHARE = 0.6
"""A parameter value in more than this share of the successes is worth knowing."""
FAILED_OFTEN, FAILURE_RATE = 2, 0.3
"""With more failures than this, and a higher rate of them, a tool is warned of."""

LONGEST, WHOLE = 200, 4000
"""Characters that are kept of one parameter, and of all of a call."""
DEEPEST, MOST = 4, 30
"""Levels and entries of nested parameters that are kept."""
ERROR_LENGTH = 500


class _Repr(reprlib.Repr):
    """A `repr` that is short, and never fails."""

    def repr_int(self, x: int, level: int) -> str:
        """Return the digits of a number, unless Python refuses to write so many."""
        return str(x) if x.bit_length() < 500 else f"<integer of {x.bit_length()} bits>"


_shown = _Repr()
_shown.maxother = _shown.maxstring = LONGEST


def plain_parameters(given: Any) -> dict[str, Any]:
    """Return the parameters of a call as JSON can hold them; anything goes in.

    What JSON cannot hold becomes its `repr`; texts, lists and levels beyond the limits above are cut off, and a call that
    is too long as a whole keeps 80 characters of each of its first parameters.
    """
    named = given if isinstance(given, dict) else {"input": given}
    made: dict[str, Any] = _plain(named, DEEPEST)
    if len(json.dumps(made, ensure_ascii=False)) <= WHOLE:
        return made
    return {name: _cut(json.dumps(value, ensure_ascii=False), 80) for name, value in made.items()}


def _plain(value: Any, levels: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) < 1e15:
        return int(value) if isinstance(value, int) else float(value)
    if isinstance(value, str):
        return _cut(value, LONGEST)
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    if isinstance(value, dict) and levels:
        entries = [*value.items()][:MOST]
        return {_cut(str(_plain(key, 0)), 80): _plain(entry, levels - 1) for key, entry in entries}
    if isinstance(value, list | tuple) and levels:
        return [_plain(entry, levels - 1) for entry in value[:MOST]]
    return _cut(_shown.repr(value), LONGEST)  # which also shows what cannot show itself


def _cut(text: str, most: int) -> str:
    whole = text[: most + 1].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


class ToolUse(Record):
    """One call of a tool. `(owner, agent, thread, call_id)` is kept once."""

    owner: str
    agent: Text = "agent"
    thread: Text = "default"
    call_id: Text
    tool: Text
    parameters: Annotated[dict[str, Any], BeforeValidator(plain_parameters)] = Field(default_factory=dict)
    success: bool
    seconds: float | None = Field(default=None, ge=0)
    error: Annotated[str | None, BeforeValidator(lambda text: _cut(text, ERROR_LENGTH) if text else None)] = None
    """Kind and message of a failure: `TimeoutError: no answer`."""
    at: UtcTime


class ErrorKind(Record):
    """An error of a tool, without what differs each time."""

    kind: str
    count: int
    example: str
    """The latest one, as it was."""


class Pattern(Record):
    """A parameter value that most successful calls share."""

    value: Any
    share: float
    """Of the successes (0..1]; 1 is all of them."""


class Guidance(Record):
    """What the latest uses of a tool (up to `LATEST`) teach."""

    tool: str
    uses: int
    failures: int
    seconds: float | None
    """Mean time of a call, as far as it was measured."""
    errors: tuple[ErrorKind, ...]
    """The commonest ones, at most `COMMON`."""
    parameters: dict[str, Pattern]
    """What parameters were in more than `SHARE` of the successes, two at least."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def success_rate(self) -> float:
        """Share of the uses that succeeded (0..1)."""
        return (self.uses - self.failures) / self.uses

    @computed_field  # type: ignore[prop-decorator]
    @property
    def confidence(self) -> float:
        """Wilson lower bound of that rate."""
        return lower_bound(self.uses - self.failures, self.failures)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def warned(self) -> bool:
        """Whether it failed so often that an agent should be told: more than 2 times, and in more than 30 % of its uses."""
        return fails_often(self.uses, self.failures)


def fails_often(uses: int, failures: int) -> bool:
    """Return whether a tool that failed so often should be warned of."""
    return failures > FAILED_OFTEN and failures > FAILURE_RATE * uses


class Unreliable(Record):
    """A tool that fails often, by its latest uses (up to `LATEST`)."""

    tool: str
    uses: int
    failures: int
    error: str | None
    """The latest error of the kind that its last `FAILURES` failures had most often."""


class ToolUses:
    """The tool uses in a store; usable without any graph."""

    def __init__(self, store: "MemoryStore") -> None:
        self._store = store

    def record(self, owner: str, use: ToolUse) -> bool:
        """Keep a use, secrets masked; False where one with its agent, thread and call id is kept already."""
        return self.record_all(owner, [use]) == 1

    def record_all(self, owner: str, uses: Sequence[ToolUse]) -> int:
        """Keep uses in one transaction; returns how many were new."""
        safe = self._store.masked(owner, list(uses))
        with self._store.transaction(owner, writes=True) as (connection, number):
            return sum(_insert(connection, number, use) for use in safe)

    def find(
        self, owner: str, *, agent: str | None = None, tool: str | None = None, last: int | None = None
    ) -> list[ToolUse]:
        """Return the owner's uses in the order of time: of one agent, of one tool, the latest ones."""
        with self._store.transaction(owner) as (connection, number):
            return read(connection, number, owner, agent=agent, tool=tool, last=last)

    def tools(self, owner: str, agent: str = "agent") -> list[str]:
        """Return the names of the tools that an agent has used for the owner."""
        with self._store.transaction(owner) as (connection, number):
            return _tools(connection, number, agent)

    def guidance(self, owner: str, tool: str, agent: str = "agent") -> Guidance | None:
        """Return what the latest uses of a tool teach, None where there are none."""
        with self._store.transaction(owner) as (connection, number):
            return _guidance(connection, number, agent, tool)

    def warnings(self, owner: str, agent: str = "agent", k: int = 5) -> list[Unreliable]:
        """Return up to `k` tools that fail often, the least reliable first."""
        with self._store.transaction(owner) as (connection, number):
            worst = [one for one in _counted(connection, number, agent) if fails_often(one[1], one[2])]
            worst.sort(key=lambda one: (-one[2] / one[1], one[0]))
            return [
                Unreliable(tool=tool, uses=uses, failures=failures, error=_usual(connection, number, agent, tool))
                for tool, uses, failures in worst[:k]
            ]


def _guidance(connection: Connection, owner: int, agent: str, tool: str) -> Guidance | None:
    statement = f"""SELECT success, seconds, error, parameters FROM tool_uses WHERE owner = ? AND agent = ? AND tool = ?
        ORDER BY at DESC, row DESC LIMIT {LATEST}"""
    found = fetch(connection, statement, (owner, agent, tool))
    if not found:
        return None
    timed = [seconds for _, seconds, _, _ in found if seconds is not None]
    return Guidance(
        tool=tool,
        uses=len(found),
        failures=sum(not success for success, *_ in found),
        seconds=sum(timed) / len(timed) if timed else None,
        errors=_errors([error or "" for success, _, error, _ in found if not success]),
        parameters=dict(_patterns([json.loads(parameters) for success, *_, parameters in found if success])),
    )


def _errors(latest_first: Sequence[str]) -> tuple[ErrorKind, ...]:
    kinds = {error: error_kind(error) for error in latest_first}
    counted = sorted(Counter(kinds[error] for error in latest_first).items(), key=lambda one: (-one[1], one[0]))
    examples = {kinds[error]: error for error in reversed(latest_first)}
    return tuple(ErrorKind(kind=kind, count=count, example=examples[kind]) for kind, count in counted[:COMMON])


def _patterns(calls: Sequence[dict[str, Any]]) -> Iterator[tuple[str, Pattern]]:
    if len(calls) < 2:
        return
    for name in dict.fromkeys(name for call in calls for name in call):
        values = Counter(json.dumps(call[name], sort_keys=True) for call in calls if name in call)
        value, count = values.most_common(1)[0]
        if count > SHARE * len(calls):
            yield name, Pattern(value=json.loads(value), share=count / len(calls))


_FOLDED = (
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+", re.IGNORECASE), "<url>"),
    (re.compile(r"(?<!\w)(?:[A-Za-z]:\\|~?/|\.{1,2}/)[^\s'\":;,()]+"), "<path>"),
    (re.compile(r"\b(?:0x[0-9a-f]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b", re.IGNORECASE), "<id>"),
    (
        re.compile(
            r"\b(?=[a-f]*\d)[0-9a-f]*[a-f][0-9a-f]*\b(?<=[0-9a-f]{8})|\b[a-z]+_(?=\w*\d)\w{4,}\b", re.IGNORECASE
        ),
        "<id>",
    ),
    (re.compile(r"(?<![A-Za-z_])\d+(?:[.,:]\d+)*"), "#"),
)


@lru_cache(maxsize=1024)
def error_kind(error: str) -> str:
    """Return an error without what differs each time: what stands before its first colon; numbers, paths and ids folded."""
    kind = " ".join(error.split())
    for pattern, sign in _FOLDED:
        kind = pattern.sub(sign, kind)
    return _cut(kind.partition(":")[0].strip(), 80) or "unknown"


_COLUMNS = "agent, thread, call_id, tool, parameters, success, seconds, error, at"


def read(
    connection: Connection,
    owner: int,
    name: str,
    *,
    agent: str | None = None,
    tool: str | None = None,
    last: int | None = None,
) -> list[ToolUse]:
    """Return tool uses of an owner (number and name) in the order of time; see `ToolUses.find`."""
    given = [(column, value) for column, value in (("agent", agent), ("tool", tool)) if value is not None]
    condition = " AND ".join(["owner = ?", *(f"{column} = ?" for column, _ in given)])
    statement = f"SELECT {_COLUMNS} FROM tool_uses WHERE {condition} ORDER BY at DESC, row DESC LIMIT ?"
    found = fetch(connection, statement, (owner, *(value for _, value in given), -1 if last is None else last))
    return [_read(row, name) for row in reversed(found)]


def _read(row: Sequence[Any], name: str) -> ToolUse:
    fields = dict(zip(_COLUMNS.split(", "), row, strict=True))
    at = from_timestamp(fields["at"])
    return ToolUse.model_validate({**fields, "owner": name, "at": at, "parameters": json.loads(fields["parameters"])})


def _insert(connection: Connection, owner: int, use: ToolUse) -> int:
    values = use.model_dump(exclude={"owner", "at", "parameters"})
    values |= {"owner": owner, "at": use.at.timestamp(), "parameters": json.dumps(use.parameters, ensure_ascii=False)}
    statement = f"INSERT OR IGNORE INTO tool_uses ({', '.join(values)}) VALUES ({', '.join(f':{n}' for n in values)})"
    return connection.exec_driver_sql(statement, values).rowcount


def _tools(connection: Connection, owner: int, agent: str) -> list[str]:
    statement = "SELECT DISTINCT tool FROM tool_uses WHERE owner = ? AND agent = ? ORDER BY tool"
    return [tool for (tool,) in fetch(connection, statement, (owner, agent))]


def _counted(connection: Connection, owner: int, agent: str) -> list[tuple[str, int, int]]:
    """Return each tool with how often it was used and failed, among its latest uses."""
    latest = f"""(SELECT success FROM tool_uses
        WHERE owner = ?1 AND agent = ?2 AND tool = tools.tool ORDER BY at DESC LIMIT {LATEST})"""
    statement = f"""
        WITH RECURSIVE tools(tool) AS (
            SELECT min(tool) FROM tool_uses WHERE owner = ?1 AND agent = ?2 UNION ALL
            SELECT (SELECT min(tool) FROM tool_uses WHERE owner = ?1 AND agent = ?2 AND tool > tools.tool)
            FROM tools WHERE tool IS NOT NULL
        )
        SELECT tool, (SELECT count(*) FROM {latest}), (SELECT sum(NOT success) FROM {latest})
        FROM tools WHERE tool IS NOT NULL
    """
    return [(tool, uses, failures) for tool, uses, failures in fetch(connection, statement, (owner, agent))]


def _usual(connection: Connection, owner: int, agent: str, tool: str) -> str | None:
    """Return the latest error of the kind that a tool's latest failures had most often; None where none says anything."""
    statement = f"""SELECT error FROM (
            SELECT success, error FROM tool_uses WHERE owner = ? AND agent = ? AND tool = ? ORDER BY at DESC LIMIT {LATEST}
        ) WHERE NOT success LIMIT {FAILURES}"""
    kinds = _errors([error or "" for (error,) in fetch(connection, statement, (owner, agent, tool))])
    return (kinds[0].example if kinds else None) or None
