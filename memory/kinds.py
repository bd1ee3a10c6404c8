"""The records of the other kinds of memory: what was lived (episodes), what works (procedures), who and what there is
(entities), which conversations there were (sessions), and questions that test what can be found (probes).

Each is one row (see `rows`), written anew as a whole; the event of each write holds it before and after.
"""

from datetime import datetime
from typing import Any, ClassVar, Literal

from pydantic import Field

from sharpwave.memory.records import Record, Text, new_id
from sharpwave.memory.times import UtcTime
from sharpwave.memory.wilson import lower_bound

Outcome = Literal["success", "partial", "failure", "abandoned"]
EntityType = Literal["user", "project", "tool", "concept", "organization", "person", "place"]


class Kept(Record):
    """Base of the records that are kept as rows of `records`."""

    kind: ClassVar[str]
    """Name of the kind in the rows and the log."""

    id: str = Field(default_factory=new_id)
    owner: str
    status: str = "active"

    @property
    def moment(self) -> datetime:
        """When it was: what searches by time go by."""
        raise NotImplementedError

    @property
    def key(self) -> str | None:
        """What it is looked up by exactly, if anything."""
        return None

    @property
    def place(self) -> str | None:
        """The thread it belongs to, if any."""
        return None

    @property
    def of(self) -> str | None:
        """Which of the owner's agents it belongs to, if to one."""
        return None

    @property
    def searched(self) -> str | None:
        """The text that similar ones are found by, if any; its vector is kept with the row."""
        return None

    @property
    def worded(self) -> str | None:
        """The text that is searched for exact words, if any."""
        return self.searched


class Step(Record):
    """One step of a trajectory."""

    thought: Text = ""
    action: Text = ""
    observation: Text = ""
    failed: bool = False
    at: UtcTime | None = None


class Episode(Kept):
    """A task or a conversation that was lived through, from its start to its outcome."""

    kind: ClassVar[str] = "episode"

    status: Literal["active", "expired"] = "active"
    task: Text
    trajectory: tuple[Step, ...] = ()
    outcome: Outcome
    reflection: Text | None = None
    """What worked, what failed, what to do differently, and the lesson that carries over."""
    lesson: Text | None = None
    """The one lesson of the reflection that carries over to other tasks."""
    reflected_by: str | None = None
    """What made the reflection, with its version: `extractive/1` read it off the steps, `llm/1` is a model's."""
    started_at: UtcTime
    ended_at: UtcTime
    thread: str | None = None
    message_id: str | None = None
    """Of the message that asked for it, where it was recorded from a conversation."""
    agent: str = "agent"
    topics: tuple[Text, ...] = ()
    tags: tuple[Text, ...] = ()
    importance: float = Field(default=0.5, ge=0, le=1)
    strength: float = Field(default=0.5, ge=0, le=1)
    replayed: int = 0
    last_replayed_at: UtcTime | None = None
    pinned: bool = False
    metadata: dict[str, Any] = Field(default_factory=dict)

    @property
    def moment(self) -> datetime:
        """When it ended."""
        return self.ended_at

    @property
    def key(self) -> str:
        """Its outcome."""
        return self.outcome

    @property
    def place(self) -> str | None:
        """The thread it was lived in."""
        return self.thread

    @property
    def of(self) -> str:
        """Its agent."""
        return self.agent

    @property
    def searched(self) -> str:
        """The task, its outcome, and what was learned."""
        return " | ".join(part for part in (self.task, self.outcome, self.reflection) if part)

    @property
    def worded(self) -> str:
        """All that it says: of an error message or the name of a file, every word counts."""
        steps = (part for step in self.trajectory for part in (step.thought, step.action, step.observation))
        return "\n".join((self.searched, *self.topics, *self.tags, *steps))

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.ended_at - self.started_at).total_seconds()


class Procedure(Kept):
    """A strategy: under which conditions to do what, and how often that has worked."""

    kind: ClassVar[str] = "procedure"

    status: Literal["candidate", "active", "demoted", "expired"] = "candidate"
    """A candidate was learned from one episode, and becomes active when it has worked again. What fails too often is
    demoted; what somebody has retired is expired."""
    name: Text
    agent: str = "agent"
    version: int = 1
    conditions: Text
    """When it applies, as one text: what situations are compared with."""
    steps: tuple[Text, ...]
    actions: tuple[Text, ...] = ()
    """Names of what is called, in order: what a later use is recognised by."""
    successes: int = Field(default=0, ge=0)
    failures: int = Field(default=0, ge=0)
    learned_from: tuple[str, ...] = ()
    """Ids of the episodes that were counted, the latest ones."""
    created_at: UtcTime
    used_at: UtcTime | None = None
    pinned: bool = False

    @property
    def moment(self) -> datetime:
        """When it was used last, or made."""
        return self.used_at or self.created_at

    @property
    def key(self) -> str:
        """Whose it is among the agents, and its name."""
        return f"{self.agent}\n{self.name.casefold()}"

    @property
    def of(self) -> str:
        """Its agent."""
        return self.agent

    @property
    def searched(self) -> str:
        """What it is for."""
        named = self.conditions.casefold().startswith(self.name.rstrip("…").casefold())
        return self.conditions if named else f"{self.name}: {self.conditions}"

    @property
    def confidence(self) -> float:
        """Wilson lower bound (0..1) of how often it works."""
        return lower_bound(self.successes, self.failures)


class Entity(Kept):
    """Somebody or something that memories tell of.

    It comes into being with the memories (see `linking`); what is kept as a row is what a person said about it.
    """

    kind: ClassVar[str] = "entity"

    status: Literal["active", "merged"] = "active"
    name: Text
    type: EntityType = "concept"
    aliases: tuple[Text, ...] = ()
    """Other names; of a row, those that were given by hand."""
    merged_into: str | None = None
    first_seen_at: UtcTime
    last_seen_at: UtcTime

    @property
    def moment(self) -> datetime:
        """When it was spoken of last."""
        return self.last_seen_at

    @property
    def key(self) -> str:
        """Its name, in any case."""
        return self.name.casefold()


class Session(Kept):
    """One sitting in a thread: from the first message until it is ended or has been idle for too long."""

    kind: ClassVar[str] = "session"

    status: Literal["open", "ended"] = "open"
    thread: str
    started_at: UtcTime
    last_at: UtcTime
    ended_at: UtcTime | None = None
    messages: int = 0
    summary: Text | None = None
    """Two or three sentences, once it has ended."""
    topics: tuple[Text, ...] = ()

    @property
    def moment(self) -> datetime:
        """When something was said last."""
        return self.last_at

    @property
    def place(self) -> str:
        """Its thread."""
        return self.thread

    @property
    def searched(self) -> str | None:
        """What it was about, once that is known."""
        return " | ".join((*self.topics, *filter(None, [self.summary]))) or None


class Probe(Kept):
    """A question whose answer is known: it tells whether a memory can still be found. No fact, and never recalled.

    It is a record of its own and not a `Memory` marked `synthetic`, so that nothing that reads memories can meet it.
    """

    kind: ClassVar[str] = "probe"

    status: Literal["active", "expired"] = "active"
    """Expired once its memory says something else, or is gone."""
    text: Text
    derived_from: tuple[str, ...] = Field(min_length=1)
    """Id of the memory that answers it."""
    version: int
    """Version of that memory."""
    synthetic: bool = True
    """False for a question that somebody has asked."""
    importance: float = Field(default=0.4, ge=0, le=1)
    words: tuple[Text, ...] = ()
    """Other words by which the memory may be looked for."""
    by: str
    """What made it, with its version: `rules/1` from the words of the memory, `llm/1`, or `asked/1` for a real question."""
    thread: str | None = None
    message_id: str | None = None
    """Of the message in which it was asked, where it was."""
    created_at: UtcTime

    @property
    def moment(self) -> datetime:
        """When it was made."""
        return self.created_at

    @property
    def key(self) -> str:
        """The memory that answers it."""
        return self.derived_from[0]


KINDS: dict[str, type[Kept]] = {kind.kind: kind for kind in (Episode, Procedure, Entity, Session, Probe)}
