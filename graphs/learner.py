"""`LearningAgent`: an agent of one's own that learns from what it lives, in a few calls and without a graph of its own."""

from typing import Any

from sharpwave.graphs.replay import build_replay
from sharpwave.graphs.state import Context
from sharpwave.memory import buffer, waking
from sharpwave.memory.episodes import Episodes
from sharpwave.memory.errors import InputError
from sharpwave.memory.kinds import Episode
from sharpwave.memory.ledger import check_owner
from sharpwave.memory.store import MemoryStore


class LearningAgent:
    """Keeps experiences as episodes, and replays them whenever enough of them are new.

    Args:
        store: the memory.
        owner: whose.
        every: new records after which a replay runs.
        buffer: records that may be replayed.
        strategy: what each replay goes by; see `build_replay`.

    Raises:
        InputError: a blank owner, or an `every` or `buffer` below 1.
    """

    def __init__(
        self,
        store: MemoryStore,
        owner: str,
        every: int = 10,
        buffer: int = 500,
        strategy: str | dict[str, float] = "prioritized",
    ) -> None:
        if every < 1 or buffer < 1:
            raise InputError(
                f"A replay is after 1 experience or more, of 1 or more; got every={every}, buffer={buffer}."
            )
        self.store, self.owner = store, check_owner(owner)
        self.every, self.size, self.strategy = every, buffer, strategy
        self._graph = build_replay(memory=store, buffer=buffer).compile()

    def experience(
        self, content: str, context: str = "", importance: float = 0.5, success: float = 0.5
    ) -> dict[str, Any] | None:
        """Keep an experience; returns the report of the replay that it set off, None where it set off none.

        Args:
            content: what was lived.
            context: in which situation.
            importance: 0..1.
            success: how well it went, 0..1: from 2/3 a success, below 1/3 a failure, else partial.

        Raises:
            InputError: a blank content, or a number outside of 0..1.
        """
        if not 0 <= success <= 1:
            raise InputError(f"The success of an experience must be 0 to 1; got {success}.")
        outcome = "success" if success >= 2 / 3 else "failure" if success < 1 / 3 else "partial"
        topics = (context,) if context.strip() else ()
        Episodes(self.store).add(self.owner, content, outcome=outcome, topics=topics, importance=importance)
        with self.store.transaction(self.owner) as (connection, number):
            waiting = buffer.waiting(connection, number)
        return self._replay(self.every) if waiting >= self.every else None

    def consolidate(self) -> dict[str, Any]:
        """Replay all that may be replayed, and forget what the rules let go of; returns the report."""
        return self._replay(self.size)

    def strong_memories(self, n: int = 5) -> list[dict[str, Any]]:
        """Return the `n` strongest records, the strongest first: `id`, `text`, `strength` and `replayed`."""
        with self.store.transaction(self.owner) as (connection, number):
            found = buffer.strongest(connection, number, n)
        said = {one.id: one.text for one in self.store.utterances(self.owner)} if found else {}
        return [
            {"id": one.id, "text": self._text(one, said), "strength": one.strength, "replayed": one.replayed}
            for one in found
        ]

    def statistics(self) -> dict[str, Any]:
        """Return counts and means over what may be replayed, as `waking.status` does, and the strategy."""
        found = waking.status(self.store, self.owner)._asdict()
        return {**found, "buffer_size": self.size, "strategy": self.strategy}

    def _replay(self, n: int) -> dict[str, Any]:
        asked: Any = {"n": n, "strategy": self.strategy}
        report: dict[str, Any] = self._graph.invoke(asked, context=Context(user_id=self.owner))["report"]
        return report

    def _text(self, one: buffer.Trace, said: dict[str, str]) -> str:
        if one.store == "semantic":
            return self.store.get(self.owner, one.id).text
        if one.store == "episodic":
            return said[one.id]
        episode: Episode = Episodes(self.store).get(self.owner, one.id)
        return episode.task
