"""Learning from what is lived: the wrapper with its own rhythm, and the small replay after a turn of the agent."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings

from sharpwave.graphs import Context, LearningAgent, build_agent
from sharpwave.memory.errors import ConfigError, InputError
from sharpwave.memory.store import MemoryStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings(), collections=2) as opened:
        yield opened


def test_every_so_many_experiences_are_replayed(store: MemoryStore) -> None:
    agent = LearningAgent(store, "ana", every=3, buffer=4)
    reports = [
        agent.experience(f"Task {n}", "at work", importance=0.9 if n == 4 else 0.4, success=n / 6) for n in range(7)
    ]
    assert [report and report["replayed"] for report in reports] == [None, None, 3, None, None, 3, None]
    assert agent.statistics()["runs"] == 2 and agent.statistics()["new"] == 1
    report = agent.consolidate()
    assert report["replayed"] == 4  # what the buffer holds
    strong = agent.strong_memories(2)
    assert [one["strength"] for one in strong] == sorted((one["strength"] for one in strong), reverse=True)
    assert strong[0]["strength"] > 0.5 and strong[0]["text"].startswith("Task ")
    found = agent.statistics()
    assert (found["runs"], found["buffer"], found["buffer_size"], found["strategy"]) == (3, 4, 4, "prioritized")
    assert found["mean_strength"] > 0.5 and len(found["history"]) == 3
    again = LearningAgent(store, "ana", every=3)  # what is new is counted in the store, not in the object
    assert again.experience("Task 7") is None and again.experience("Task 8") is None
    assert again.experience("Task 9", success=1.0) is not None


def test_strong_memories_are_of_every_kind(store: MemoryStore) -> None:
    agent = LearningAgent(store, "ana")
    build_agent(memory=store).compile().invoke(
        {"messages": [("user", "I live in Lisbon.")]}, context=Context(user_id="ana")
    )
    agent.experience("Deploy the site", success=0.0)
    agent.consolidate()
    texts = {one["text"] for one in agent.strong_memories(10)}
    assert {"I live in Lisbon.", "Deploy the site"} <= texts and len(agent.strong_memories(10)) == 3


@pytest.mark.parametrize("fields", [{"success": 1.1}, {"importance": -1.0}, {"content": " "}])
def test_experiences_that_cannot_be_are_refused(store: MemoryStore, fields: dict[str, Any]) -> None:
    agent = LearningAgent(store, "ana")
    with pytest.raises(InputError):
        agent.experience(**{"content": "Task", **fields})
    with pytest.raises(InputError, match="every=0"):
        LearningAgent(store, "ana", every=0)


def test_a_few_records_are_replayed_after_a_turn(store: MemoryStore) -> None:
    for n in range(8):
        store.add("ana", f"Fact number {n}")
    agent = build_agent(memory=store, replay=True).compile()

    def said(text: str, **options: Any) -> None:
        agent.invoke({"messages": [("user", text)]}, context=Context(user_id="ana", **options))

    def rehearsals() -> int:
        with store.transaction("ana") as (connection, number):
            return int(
                connection.exec_driver_sql("SELECT sum(replayed) FROM uses WHERE owner = ?", (number,)).scalar_one()
            )

    said("I live in Lisbon.")
    assert rehearsals() == 5
    said("Thanks!")
    assert rehearsals() == 10
    said("I like tea.", remember=False)
    assert rehearsals() == 10
    with pytest.raises(ConfigError, match="nothing is written"):
        build_agent(memory=store, replay=True, write="off")
