"""The data model: what is kept, what is proposed, what is decided, what is found.

Records are frozen. A change is a new version of a `Memory`, never an edit of one.
"""

from typing import Annotated, Any, Literal

import uuid_utils.compat
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from sharpwave.memory.times import UtcTime

Kind = Literal["fact", "preference", "event", "summary", "insight"]
Status = Literal["active", "superseded", "retracted", "merged", "expired", "quarantined"]
Precision = Literal["second", "minute", "hour", "day", "week", "month", "season", "year"]
SourceKind = Literal["user", "assistant", "tool", "document", "inferred", "import"]
Role = Literal["user", "assistant", "system", "tool"]
Operation = Literal["ADD", "UPDATE", "DELETE", "NOOP"]


def new_id() -> str:
    """Return a fresh uuid7 (RFC 9562) as text: unique, and sorted by the time of its making."""
    return str(uuid_utils.compat.uuid7())


def _whole(value: str) -> str:
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


Text = Annotated[str, AfterValidator(_whole)]
"""Text that can be written as UTF-8: halves of surrogate pairs are joined, and replaced where they stand alone."""


class Record(BaseModel):
    """Base of all records: frozen, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(Record):
    """Where a memory comes from."""

    kind: SourceKind = "user"
    thread: str | None = None
    message_id: str | None = None
    quote: Text | None = None
    """The words in the message that support the memory, verbatim."""
    said_at: UtcTime | None = None
    """When the message was said."""


class EventTime(Record):
    """When the thing itself happened, as an interval of the precision that was stated."""

    start: UtcTime
    end: UtcTime
    precision: Precision
    phrase: str | None = None
    """The words that said so ("last month"), verbatim."""


class Memory(Record):
    """One statement that is kept (semantic memory).

    `id` stays the same over versions; `(id, version)` is unique. `[valid_from, valid_to)` is the interval in which
    the statement was held true; `recorded_at` is when this version was written. `subject`, `attribute` and `value` make
    a slot where there is one: ("user", "home_city", "Lisbon"); a contradiction needs the same subject and attribute.
    """

    id: str = Field(default_factory=new_id)
    version: int = 1
    owner: str
    kind: Kind = "fact"
    text: Text
    subject: str = "user"
    attribute: str | None = None
    value: str | None = None
    importance: float = Field(default=0.5, ge=0, le=1)
    confidence: float = Field(default=0.8, ge=0, le=1)
    strength: float = Field(default=0.5, ge=0, le=1)
    source: Source = Source()
    event_time: EventTime | None = None
    recorded_at: UtcTime
    valid_from: UtcTime
    valid_to: UtcTime | None = None
    status: Status = "active"
    derived_from: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    superseded_by: str | None = None
    recalled: int = 0
    last_recalled_at: UtcTime | None = None
    cited: int = 0
    last_cited_at: UtcTime | None = None
    replayed: int = 0
    last_replayed_at: UtcTime | None = None
    contradictions: int = 0
    last_contradicted_at: UtcTime | None = None
    last_confirmed_at: UtcTime | None = None
    stability: float | None = None
    difficulty: float | None = None
    due_at: UtcTime | None = None
    needs_review: bool = False
    synthetic: bool = False
    pinned: bool = False
    expires_at: UtcTime | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}


class Utterance(Record):
    """One message kept verbatim (episodic memory): the evidence that facts point to."""

    id: str = Field(default_factory=new_id)
    owner: str
    thread: str
    message_id: str
    position: int
    """0-based place in its thread; neighbours in `position` are the neighbours that recall smooths over."""
    role: Role
    speaker: str
    text: str
    said_at: UtcTime
    recorded_at: UtcTime
    metadata: dict[str, Any] = {}


class ToolCall(Record):
    """What a model asked a tool for."""

    id: Text
    name: Text
    arguments: dict[str, Any] = {}


class Message(Record):
    """One message of a turn, as plain text: what the writing path reads."""

    id: Text
    role: Role
    text: Text
    speaker: Text | None = None
    calls: tuple[ToolCall, ...] = ()
    """The tools that a model called in this message."""
    answers: Text | None = None
    """Id of the call that a tool's message answers."""
    failed: bool = False
    """A tool failed, or a model had to stop before it was done."""


class Turn(Record):
    """One exchange, the unit of writing. `(owner, thread, message_id)` is processed once."""

    owner: str
    thread: Text
    messages: tuple[Message, ...] = Field(min_length=1)
    """The user's message first, then whatever answered it."""
    said_at: UtcTime
    timezone: str = "UTC"
    seconds: float = Field(default=0.0, ge=0)
    """How long answering it took, as far as that is known."""
    agent: str = "agent"
    """Which of the owner's agents answered it."""

    @property
    def message_id(self) -> str:
        """Id of the message that the turn is known by: the user's, or the first one."""
        return next((m.id for m in self.messages if m.role == "user"), self.messages[0].id)

    @property
    def user_text(self) -> str:
        """What the user said in this turn, all of it."""
        return "\n".join(m.text for m in self.messages if m.role == "user")


class Candidate(Record):
    """What extraction proposes to keep."""

    text: str
    kind: Kind = "fact"
    subject: str = "user"
    attribute: str | None = None
    value: str | None = None
    quote: str
    """Words of the turn that support it, verbatim: a candidate without support is not made."""
    message_id: str
    source_kind: SourceKind = "user"
    importance: float = Field(default=0.5, ge=0, le=1)
    confidence: float = Field(default=0.8, ge=0, le=1)
    event_time: EventTime | None = None
    tags: tuple[str, ...] = ()
    pinned: bool = False
    """What it becomes is pinned."""
    polarity: Literal["assert", "retract"] = "assert"
    """`retract` says that something is no longer so, and offers nothing in its place."""
    history: bool = False
    """The statement is about the past ("I used to live in Rome"): kept, but never the present."""
    tentative: bool = False
    """Kept only where it changes, ends or says again what is known: by itself it tells too little."""
    proposed: Operation | None = None
    """What a model that saw the neighbours proposed in the same call, if it did."""
    proposed_target: str | None = None


class Decision(Record):
    """What to do about one candidate."""

    op: Operation
    candidate: Candidate
    target: str | None = None
    """Memory id that UPDATE, DELETE and NOOP refer to."""
    text: str | None = None
    """New text of the target for an UPDATE; the candidate's own text when absent."""
    confidence: float = Field(default=1.0, ge=0, le=1)
    reason: str
    policy: str
    """Name and version of what decided, as `rules/1`."""
    guarded: str | None = None
    """What the guard changed and why; absent when it let the decision pass."""
    outdated_by: str | None = None
    """Id of a memory that was said later than the candidate and holds in its place: what an ADD writes is past already."""
    contradicts: str | None = None
    """Id of a memory that the candidate speaks against without being sure enough to change it."""


class Score(Record):
    """The parts of a recall score. `total` is the sum of all but `cosine` and `coverage`, which are as they were measured."""

    keyword: float = 0.0
    dense: float = 0.0
    subject: float = 0.0
    time: float = 0.0
    tie_break: float = 0.0
    summary: float = 0.0
    """What a summary loses to what it sums up, 0 or less."""
    cosine: float = 0.0
    """Raw cosine similarity to the query, -1..1, higher is nearer."""
    coverage: float = 0.0
    """Share of the query's content words that the record holds, 0..1."""
    learned: float = 0.0
    """What earlier citations have taught (see `rerank`)."""
    total: float = 0.0


class Relation(Record):
    """What a statement does to a memory, as the cross-encoder reads it: probabilities, which sum to 1."""

    said: str
    """The statement."""
    apart: float
    """Both stand."""
    new: float
    """It takes the memory's place."""
    over: float
    """It ends the memory."""
    same: float
    """It says the memory again."""
    more: float
    """It adds a detail."""

    @property
    def changes(self) -> float:
        """Probability that the memory no longer holds as it is."""
        return self.new + self.over


class Recall(Record):
    """One thing that was found: a memory or an utterance, with its score."""

    id: str
    store: Literal["semantic", "episodic"]
    text: str
    said_at: UtcTime
    score: float
    parts: Score | None = None
    """Present when `explain=True`."""
    memory: Memory | None = None
    utterance: Utterance | None = None
    relation: Relation | None = None
    """What the statement that a decision is about does to it, where that was read."""
    features: tuple[float, ...] = ()
    """What a citation of it can teach, where recall learns from citations (see `features.FEATURES`)."""


class Usage(Record):
    """What a turn cost in model calls, by purpose (`respond`, `extract`, `decide`)."""

    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    by_purpose: dict[str, dict[str, int]] = {}
