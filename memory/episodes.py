"""Episodes: tasks that were lived through, with what was tried and how it ended; found when something like it comes up again."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, get_args

from langchain_core.language_models.chat_models import BaseChatModel
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from sharpwave.memory import choosing, keywords, reflect, rows, times
from sharpwave.memory import recall as finding
from sharpwave.memory.errors import InputError, OwnershipError
from sharpwave.memory.kinds import Episode, Outcome, Step
from sharpwave.memory.ledger import check_owner
from sharpwave.memory.lived import LONGEST_TASK, episodes_of
from sharpwave.memory.records import Memory, Record, Source, Turn
from sharpwave.memory.reflect import Pattern, Reflection
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.usage import booked

FLOOR = finding.FLOOR
"""Least score of an episode that has to do with what was asked; see `rows.nearest`."""
INFERRED = 0.6
"""Confidence of what was concluded from episodes."""


class Found(Record):
    """An episode that was found, and how near it is (cosine and half the share of words held, -1..1.5)."""

    episode: Episode
    score: float


class Episodes:
    """The episodes in a store. Every call names its owner, and no call reaches anybody else's.

    Args:
        store: where they are kept.
    """

    def __init__(self, store: MemoryStore) -> None:
        self.store = store

    # Recording

    def add(
        self,
        owner: str,
        task: str,
        trajectory: Sequence[Step | Mapping[str, Any] | str] = (),
        outcome: str = "success",
        *,
        reflection: str | None = None,
        started_at: datetime | None = None,
        ended_at: datetime | None = None,
        tags: Sequence[str] = (),
        thread: str | None = None,
        agent: str = "agent",
        **more: Any,
    ) -> Episode:
        """Record an episode by hand and return it, as it was written (secrets masked).

        Args:
            owner: whose.
            task: what was to be done.
            trajectory: its steps, each a `Step`, its fields, or an action alone. Without steps the episode is found by
                its task all the same, but teaches nothing beyond its outcome.
            outcome: success, partial, failure or abandoned.
            reflection: what was learned, in your own words.
            started_at: when it began; `ended_at`, else now, when it is left out.
            ended_at: when it ended; `started_at`, else now, when it is left out.
            tags: what it is to be found by, in any case.
            thread: the conversation that it belongs to.
            agent: whose it is, among the owner's agents.
            more: further fields of `Episode` (topics, importance, pinned, metadata).

        Raises:
            InputError: a blank task, an unknown outcome, a step or field that cannot be kept, or an end before the start.
        """
        check_owner(owner)
        if outcome not in get_args(Outcome):
            raise InputError(f"Unknown outcome {outcome!r}. Use one of {', '.join(get_args(Outcome))}.")
        if not isinstance(task, str) or not task.strip():
            raise InputError("An episode needs a task: say what was to be done.")
        began = started_at or ended_at or times.now()
        fields: dict[str, Any] = {
            "reflection": reflection,
            "started_at": began,
            "ended_at": ended_at or began,
            "thread": thread,
        }
        fields |= {"tags": _folded(tags), "agent": agent, "outcome": outcome, **more}
        try:
            steps = tuple(_step(step) for step in trajectory)
            episode = Episode.model_validate({"owner": owner, "task": task.strip(), "trajectory": steps, **fields})
            episode.model_dump_json()
        except PydanticSerializationError as error:
            raise InputError(f"The episode cannot be kept: its metadata must be JSON: {error}.") from error
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in problem["loc"])
            raise InputError(f"The episode cannot be kept: {where}: {problem['msg']}.") from error
        if episode.owner != owner:
            raise OwnershipError("An episode of another owner was about to be written; the call was stopped.")
        if episode.ended_at < episode.started_at:
            raise InputError(f"The episode ends ({episode.ended_at}) before it starts ({episode.started_at}).")
        episode = self.store.masked(owner, episode)
        self._write(episode, "EPISODE", policy="user", reason="recorded by hand")
        return episode

    def record(self, turn: Turn, *, agent: str | None = None) -> list[Episode]:
        """Record what a turn did with tools; returns the episodes that were new, or are more complete now.

        Idempotent by owner, thread, message and agent. Costs nothing where no tool was called.

        Args:
            turn: with the tool calls in its messages.
            agent: whose episodes they are; by default those of the agent that answered the turn.
        """
        check_owner(turn.owner)
        if not any(message.calls for message in turn.messages):
            return []
        lived = episodes_of(self.store.masked(turn.owner, turn), agent or turn.agent)
        with self.store.transaction(turn.owner) as (connection, number):
            known = {
                episode.id: rows.get(connection, number, turn.owner, Episode, episode.id)
                for episode in lived
                if rows.known(connection, number, episode)
            }
        new = [episode for episode in lived if _adds(episode, known.get(episode.id))]
        for episode in new:
            reason = f"a turn that called {', '.join(episode.tags)}"
            self._write(episode, "EPISODE", policy="graph/1", reason=reason, turn=turn)
        return new

    def restore(self, owner: str, episode_id: str) -> Episode:
        """Bring back an episode that was forgotten, and return it; its age counts anew.

        Raises:
            NotFoundError: no such episode.
            InputError: it was not forgotten.
        """
        episode = self.get(owner, episode_id)
        if episode.status == "active":
            raise InputError(f"The episode {episode_id} was not forgotten; there is nothing to restore.")
        episode = episode.model_copy(update={"status": "active"})
        self._write(episode, "RESTORE", policy="user", reason="restored by hand")
        return episode

    # Finding

    def get(self, owner: str, episode_id: str) -> Episode:
        """Return the episode with this id, whatever its status; raises `NotFoundError` for an unknown one, or another's."""
        with self.store.transaction(owner) as (connection, number):
            return rows.get(connection, number, owner, Episode, episode_id)

    def find(
        self,
        owner: str,
        *,
        outcome: Outcome | None = None,
        tags: Sequence[str] = (),
        thread: str | None = None,
        agent: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        last: int | None = None,
        statuses: Sequence[str] = ("active",),
    ) -> list[Episode]:
        """Return episodes in the order in which they ended.

        Args:
            owner: whose.
            outcome: those that ended so only.
            tags: those that have all of these tags only, in any case.
            thread: those of this conversation only.
            agent: those of this agent only.
            since: those that ended at this moment or later.
            until: those that ended before this moment.
            last: so many at most, the latest.
            statuses: which; none is all.
        """
        choosing.check_limits(last, None)
        with self.store.transaction(owner) as (connection, number):
            return rows.find(
                *(connection, number, owner, Episode),
                **_filters(outcome, tags, thread, agent, since, until),
                statuses=statuses,
                last=last,
            )

    def search(
        self,
        owner: str,
        query: str,
        *,
        k: int = 10,
        outcome: Outcome | None = None,
        tags: Sequence[str] = (),
        thread: str | None = None,
        agent: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        floor: float = FLOOR,
    ) -> list[Found]:
        """Return up to `k` episodes that have to do with `query`, best first; empty where none does.

        What it says is compared with task, outcome and reflection by meaning, and with all steps word by word, so that an
        error code or the name of a file finds its episode.

        Args:
            owner: whose.
            query: any text.
            k: so many at most.
            outcome, tags, thread, agent, since, until: as of `find`.
            floor: least score that counts.
        """
        choosing.check_limits(k, None)
        check_owner(owner)
        if not query.strip():
            return []
        vector, terms = self.store.embed_query(query[:LONGEST_TASK]), keywords.terms(query)
        with self.store.transaction(owner) as (connection, number):
            near = rows.nearest(
                *(connection, number, owner, Episode, vector),
                **_filters(outcome, tags, thread, agent, since, until),
                statuses=("active",),
                k=k,
                terms=terms,
                floor=floor,
            )
            return [Found(episode=episode, score=round(score, 4)) for episode, score in near]

    def similar(
        self,
        owner: str,
        text: str,
        k: int = 3,
        outcome: Outcome | None = None,
        max_age: timedelta | None = None,
        *,
        agent: str | None = None,
        now: datetime | None = None,
    ) -> list[Found]:
        """Return up to `k` episodes whose task is like `text`, best first: what an agent should know before it begins.

        Args:
            owner: whose.
            text: what is at hand.
            k: so many at most.
            outcome: those that ended so only.
            max_age: those that ended within this time only.
            agent: those of this agent only.
            now: the present.
        """
        since = (now or times.now()) - max_age if max_age is not None else None
        return self.search(owner, text, k=k, outcome=outcome, agent=agent, since=since)

    # Learning

    def reflect(self, owner: str, episode_id: str, model: BaseChatModel | None = None) -> Episode:
        """Reflect on an episode, write what it teaches into it, and return it.

        Without a model the reflection is read off the steps, and `reflected_by` says `extractive/1`.

        Raises:
            NotFoundError: no such episode.
            ModelError: the model failed; the episode stays as it is.
        """
        episode = self.get(owner, episode_id)
        with booked(self.store, owner):
            made: Reflection = self.store.masked(owner, reflect.reflect(episode, model))
        changes = {"reflection": made.text, "lesson": made.lesson, "reflected_by": made.policy}
        episode = self.get(owner, episode_id).model_copy(update=changes)
        self._write(episode, "REFLECT", policy=made.policy, reason="reflected on")
        return episode

    def synthesise(
        self, owner: str, episode_ids: Sequence[str], model: BaseChatModel | None = None, *, keep: bool = False
    ) -> tuple[Pattern, Memory | None]:
        """Return the pattern in several episodes and, where it is to be kept, the insight that it became.

        The insight is a memory of kind `insight`, derived from the episodes; the same pattern is kept once.

        Raises:
            InputError: fewer than two episodes, or more than fifty.
            NotFoundError: an id is unknown.
            ModelError: the model failed.
        """
        episodes = [self.get(owner, one) for one in dict.fromkeys(episode_ids)]
        with booked(self.store, owner):
            found: Pattern = self.store.masked(owner, reflect.synthesise(episodes, model))
        return found, self._kept(owner, found) if keep else None

    def _kept(self, owner: str, found: Pattern) -> Memory:
        text = found.text if found.lesson in found.text else f"{found.text} {found.lesson}"
        known = self.store.memories(owner, kinds=("insight",))
        same = next((m for m in known if m.text == text and set(m.derived_from) == set(found.episodes)), None)
        if same is not None:
            return same
        added = self.store.add(
            *(owner, text),
            kind="insight",
            subject="agent",
            confidence=INFERRED,
            source=Source(kind="inferred"),
            derived_from=found.episodes,
            metadata={"policy": found.policy},
        )
        return self.store.get(owner, added.memory_id or "")

    def _write(self, episode: Episode, op: str, *, policy: str, reason: str, turn: Turn | None = None) -> None:
        self.store.embed([episode.searched])
        with self.store.transaction(episode.owner, writes=True) as (connection, number):
            rows.put(
                *(connection, number, episode),
                op=op,
                at=times.now(),
                policy=policy,
                reason=reason,
                embed=self.store.vector,
                turn=turn,
            )


def _folded(tags: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag.strip().casefold() for tag in tags if tag.strip()))


def _step(step: Step | Mapping[str, Any] | str) -> Step:
    if isinstance(step, Step):
        return step
    if not isinstance(step, str | Mapping):
        raise InputError(f"A step is an action, a Step or its fields; got {step!r}.")
    return Step(action=step) if isinstance(step, str) else Step.model_validate(dict(step))


def _adds(episode: Episode, known: Episode | None) -> bool:
    """Whether an episode is new, or the rest of one that was cut off when it was last recorded."""
    if known is None:
        return True
    more = len(episode.trajectory) > len(known.trajectory) or episode.outcome != "abandoned"
    return known.outcome == "abandoned" and known.status == "active" and more


def _filters(
    outcome: str | None,
    tags: Sequence[str],
    thread: str | None,
    agent: str | None,
    since: datetime | None,
    until: datetime | None,
) -> dict[str, Any]:
    if outcome is not None and outcome not in get_args(Outcome):
        raise InputError(f"Unknown outcome {outcome!r}. Use one of {', '.join(get_args(Outcome))}.")
    return {
        "key": outcome,
        "tags": _folded(tags),
        "thread": thread,
        "agent": agent,
        "since": since and times.utc(since),
        "until": until and times.utc(until),
    }
