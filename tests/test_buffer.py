"""The replay buffer: what comes in, how surprising it was, what leaves, and what a rehearsal changes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from fakes import HashEmbeddings

from sharpwave.memory import buffer, rows
from sharpwave.memory.errors import InputError
from sharpwave.memory.kinds import Episode
from sharpwave.memory.records import Message, Turn
from sharpwave.memory.rehearsal import rehearsed, retrievability, strengthened
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.verify import verify

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path):
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings(), collections=2) as opened:
        yield opened


def take_in(store: MemoryStore, owner: str = "ana", size: int = 1000) -> int:
    with store.transaction(owner, writes=True) as (connection, number):
        return buffer.take_in(connection, number, NOW, size)


def held(store: MemoryStore, owner: str = "ana", **options: bool):
    with store.transaction(owner) as (connection, number):
        return buffer.load(connection, number, **options)


def replay(store: MemoryStore, ids: list[str], weight: float = 1.0, now: datetime = NOW, rate: float = 0.1) -> float:
    with store.transaction("ana", writes=True) as (connection, number):
        chosen = [(trace, weight) for trace in buffer.traces(connection, number, ids)]
        return buffer.rehearse(connection, number, chosen, now, rate)


def add(store: MemoryStore, text: str, days: int = 0, owner: str = "ana", **fields: object) -> str:
    at = NOW - timedelta(days=days)
    return store.add(owner, text, valid_from=at, **fields).memory_id or ""


def test_memories_episodes_and_what_the_user_said_come_in_once(store: MemoryStore) -> None:
    memory = add(store, "Lives in Oslo", days=3, importance=0.7)
    said = Message(id="m1", role="user", text="I went to the market with Ben")
    store.queue([Turn(owner="ana", thread="t", messages=(said,), said_at=NOW - timedelta(days=2))])
    episode = Episode(owner="ana", task="deploy", outcome="failure", started_at=NOW, ended_at=NOW)
    store.embed([episode.searched])
    with store.transaction("ana", writes=True) as (connection, number):
        rows.put(connection, number, episode, op="EPISODE", at=NOW, policy="test", reason="test", embed=store.vector)
    add(store, "Lives in Rome", owner="ben")
    assert (take_in(store), take_in(store)) == (3, 0)
    traces = held(store)
    assert (traces.ids[0], traces.ids[2]) == (memory, episode.id)
    assert traces.importance == pytest.approx([0.7, buffer.UTTERED, 0.5])
    assert traces.success == pytest.approx([0.5, 0.5, 0.0])
    assert np.isnan(traces.last).all() and np.isnan(traces.due).all()
    vectors = held(store, vectors=True).vectors
    assert vectors is not None and vectors[0] @ store.embed_query("Lives in Oslo") == pytest.approx(1, abs=0.01)


def test_what_was_known_already_surprises_less(store: MemoryStore) -> None:
    for days, text in ((3, "Lives in Oslo"), (2, "Plays the cello"), (1, "Lives in Oslo"), (0, "Lives in Olso now")):
        add(store, text, days)
    take_in(store)
    first, new, same, alike = held(store).surprise
    assert first == 1.0 and same == pytest.approx(0, abs=0.01) and same < alike < new <= first
    add(store, "Lives in Oslo")
    take_in(store)
    assert held(store).surprise[-1] == pytest.approx(0, abs=0.01)


def test_surprise_is_the_same_whatever_is_taken_in_at_once(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer, "COMPARED", 4)
    texts = [f"{word} number {n}" for n in range(11) for word in ("apple", "cello")]
    for at, text in enumerate(texts):
        add(store, text, days=99 - at)
        add(store, text, days=99 - at, owner="ben")
        take_in(store)
    take_in(store, "ben")
    assert held(store).surprise == pytest.approx(held(store, "ben").surprise, abs=1e-3)


def test_the_buffer_is_bounded_and_what_leaves_has_the_least_priority(store: MemoryStore) -> None:
    ids = [add(store, text, days=d) for d, text in ((9, "Lives in Oslo"), (8, "Lives in Oslo"), (7, "Plays cello"))]
    take_in(store, size=2)
    assert list(held(store).ids) == [ids[0], ids[2]]
    assert take_in(store, size=2) == 0 and len(held(store)) == 2
    assert len(store.memories("ana")) == 3


def test_what_is_taken_back_leaves_the_buffer_and_returns_when_it_is_restored(store: MemoryStore) -> None:
    memory_id = add(store, "Lives in Oslo")
    take_in(store)
    store.delete("ana", memory_id)
    take_in(store)
    assert len(held(store)) == 0
    store.restore("ana", memory_id)
    assert take_in(store) == 1 and list(held(store).ids) == [memory_id]


def test_a_rehearsal_strengthens_and_is_seen_on_the_memory(store: MemoryStore) -> None:
    memory_id = add(store, "Lives in Oslo", strength=0.5)
    take_in(store)
    assert replay(store, [memory_id], weight=0.5) == pytest.approx(0.05)
    memory = store.get("ana", memory_id)
    assert memory.strength == pytest.approx(0.55) and memory.replayed == 1
    assert memory.last_replayed_at == NOW and memory.due_at is not None and memory.due_at > NOW
    first = memory.stability or 0
    replay(store, [memory_id], now=memory.due_at)
    again = store.get("ana", memory_id)
    assert (again.stability or 0) > 2 * first and again.replayed == 2
    for _ in range(20):
        replay(store, [memory_id])
    assert store.get("ana", memory_id).strength == 1.0
    assert verify(store).healthy and len(store.history("ana", memory_id)) == 1


def test_an_update_keeps_what_replay_has_made_of_a_memory(store: MemoryStore) -> None:
    memory_id = add(store, "Lives in Oslo", strength=0.5)
    take_in(store)
    replay(store, [memory_id])
    store.edit("ana", memory_id, "Lives in Bergen")
    take_in(store)
    memory = store.get("ana", memory_id)
    assert (memory.strength, memory.replayed) == (pytest.approx(0.6), 1)
    assert verify(store).healthy


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1, float("nan")])
def test_a_rate_outside_of_its_range_is_refused(rate: float) -> None:
    with pytest.raises(InputError, match="above 0 and at most 1"):
        strengthened(0.5, 1.0, rate)


def test_the_forgetting_curve() -> None:
    first = rehearsed(None, None, None, NOW)
    assert retrievability(first.stability, NOW, NOW) == 1.0
    assert retrievability(first.stability, NOW, NOW + timedelta(days=first.stability)) == pytest.approx(0.9, abs=1e-6)
    assert retrievability(None, NOW, NOW + timedelta(days=240)) < 0.55
    good = rehearsed(first.stability, first.difficulty, NOW, first.due_at)
    missed = rehearsed(first.stability, first.difficulty, NOW, first.due_at, missed=True)
    assert missed.stability < first.stability < good.stability and missed.difficulty > good.difficulty
    back = rehearsed(first.stability, first.difficulty, NOW + timedelta(days=9), NOW)
    assert back.stability >= first.stability and back.due_at > NOW
    assert rehearsed(None, None, None, NOW) == first
