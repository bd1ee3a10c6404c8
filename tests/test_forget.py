"""Forgetting: each rule at its edge, nothing that is used or pinned, never nearly everything, and a way back."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings

from sharpwave.memory import rows, semantic, times
from sharpwave.memory.errors import InputError
from sharpwave.memory.forget import Forgetting, forget
from sharpwave.memory.kinds import Episode
from sharpwave.memory.rehearsal import effective
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.verify import verify


@pytest.fixture
def store(tmp_path: Path):
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings(), collections=2) as opened:
        yield opened


def add(store: MemoryStore, text: str, **fields: Any) -> str:
    return store.add("ana", text, **fields).memory_id or ""


def live(store: MemoryStore, task: str, outcome: str, **fields: Any) -> str:
    at = datetime(2020, 1, 1, tzinfo=UTC)
    episode = Episode(owner="ana", task=task, outcome=outcome, started_at=at, ended_at=at, **fields)  # type: ignore[arg-type]
    store.embed([episode.searched])
    with store.transaction("ana", writes=True) as (connection, number):
        rows.put(
            connection,
            number,
            episode,
            op="EPISODE",
            at=times.now(),
            policy="test",
            reason="test",
            embed=store.vector,
        )
    return episode.id


def after(store: MemoryStore, days: float, **options: Any) -> Forgetting:
    return forget(store, "ana", now=times.now() + timedelta(days=days), **options)


def doomed(found: Forgetting) -> dict[str, str]:
    return {one.text: one.rule for one in found.doomed}


def test_each_rule_for_memories_at_its_edge(store: MemoryStore) -> None:
    add(store, "Doubted", confidence=0.29)
    add(store, "Hardly doubted", confidence=0.3, attribute="allergy", value="x")
    add(store, "Contradicted often", contradictions=4)
    add(store, "Contradicted", contradictions=3)
    add(store, "Stale and doubted", confidence=0.59)
    add(store, "Stale and believed", confidence=0.6)
    add(store, "Until tomorrow", expires_at=times.now() + timedelta(days=1))
    add(store, "Pinned", confidence=0.1, pinned=True)
    assert doomed(after(store, 0)) == {"Doubted": "doubted", "Contradicted often": "contradicted"}
    assert doomed(after(store, 2)) == {"Until tomorrow": "expired"}
    assert doomed(after(store, 31)) == {"Stale and doubted": "stale"}
    with store.transaction("ana") as (connection, number):
        left = {memory.text for memory in semantic.find(connection, number)}
    assert left == {"Hardly doubted", "Contradicted", "Stale and believed", "Pinned"}


def test_each_rule_for_episodes_at_its_edge(store: MemoryStore) -> None:
    live(store, "given up", "abandoned")
    live(store, "failed", "failure", reflection="Test first.")
    live(store, "went well", "success")
    live(store, "went well, and taught something", "success", reflection="Test first.")
    live(store, "kept", "abandoned", pinned=True)
    assert doomed(after(store, 6.9)) == {}
    assert doomed(after(store, 7.1)) == {"given up": "age"}
    assert doomed(after(store, 90.1, dry_run=True)) == {"failed": "age", "went well": "age"}
    assert set(doomed(after(store, 271))) == {"failed", "went well", "went well, and taught something"}
    with store.transaction("ana") as (connection, number):
        left = rows.find(connection, number, "ana", Episode, statuses=("active",))
    assert [episode.task for episode in left] == ["kept"]
    assert verify(store).healthy


def test_a_first_pass_over_old_conversations_imported_today_forgets_nothing(store: MemoryStore) -> None:
    long_ago = times.now() - timedelta(days=730)
    for n in range(60):
        add(store, f"Fact {n}", valid_from=long_ago, importance=0.5)
        live(store, f"task {n}", "success")
    assert after(store, 0).doomed == ()


def test_a_pass_that_would_take_nearly_everything_stops_and_asks(store: MemoryStore) -> None:
    for n in range(30):
        add(store, f"Fact {n}", confidence=0.2 if n < 7 else 0.9)
    asked = after(store, 0)
    assert asked.stopped and len(asked.doomed) == 7 and len(store.memories("ana", statuses=())) == 30
    assert len(store.events("ana")) == 30
    done = after(store, 0, largest_share=0.5)
    assert not done.stopped and len(done.doomed) == 7
    assert sum(memory.status == "expired" for memory in store.memories("ana", statuses=())) == 7


def test_a_dry_run_changes_nothing_and_names_what_the_real_one_takes(store: MemoryStore) -> None:
    add(store, "Doubted", confidence=0.2)
    live(store, "given up", "abandoned")
    before = len(store.events("ana"))
    dry = after(store, 10, dry_run=True)
    assert dry.dry_run and len(dry.doomed) == 2 and len(store.events("ana")) == before
    assert after(store, 10).doomed == dry.doomed
    assert after(store, 10).doomed == ()


def test_over_capacity_the_least_worth_goes_and_what_is_used_stays(store: MemoryStore) -> None:
    dear = add(store, "Allergic to penicillin", importance=0.95)
    used = add(store, "Took the tram", importance=0.1)
    add(store, "Had soup on Tuesday", importance=0.1)
    add(store, "Pinned soup", importance=0.0, pinned=True)
    with store.ledger.write() as connection:
        number = connection.exec_driver_sql("SELECT id FROM owners").scalar_one()
        connection.exec_driver_sql(
            "INSERT INTO uses (owner, memory_id, recalled, last_recalled_at, cited) VALUES (?, ?, 50, ?, 0)",
            (number, used, times.now().timestamp()),
        )
    assert doomed(after(store, 400, capacity=3)) == {"Had soup on Tuesday": "capacity"}
    assert {memory.id for memory in store.memories("ana")} >= {dear, used}


def test_what_was_forgotten_comes_back(store: MemoryStore) -> None:
    one, other = add(store, "Doubted", confidence=0.2), add(store, "Too", confidence=0.2)
    after(store, 0)
    assert store.recall("ana", "Doubted") == [] and store.get("ana", one).status == "expired"
    assert store.restore("ana", one).op == "RESTORE" and store.get("ana", one).status == "active"
    store.undo("ana", last=2)
    assert store.get("ana", other).status == "active"
    events = [event for event in store.history("ana", one) if event.op == "EXPIRE"]
    assert [event.policy for event in events] == ["forget/1"] and "confidence 0.20" in events[0].reason
    assert verify(store).healthy


@pytest.mark.parametrize("options", [{"capacity": 0}, {"largest_share": 1.1}, {"largest_share": -0.1}])
def test_limits_outside_of_their_range_are_refused(store: MemoryStore, options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        forget(store, "ana", **options)


def test_somebody_unknown_has_nothing_to_forget(store: MemoryStore) -> None:
    assert forget(store, "nobody") == Forgetting(dry_run=False, considered=0, doomed=())


def test_ranking_and_forgetting_go_by_the_same_strength_and_say_it(store: MemoryStore) -> None:
    long_ago = times.now() - timedelta(days=4000)
    shared = {"importance": 0.5, "valid_from": long_ago, "last_confirmed_at": long_ago, "attribute": "allergy"}
    old = add(store, "Allergic to hazelnuts", strength=0.6, value="hazelnuts", recorded_at=long_ago, **shared)
    fresh = add(store, "Allergic to chestnuts", strength=0.3, value="chestnuts", **shared)
    now = {one: effective(store.get("ana", one), times.now()) for one in (old, fresh)}
    assert now[old] < 0.2 < now[fresh] < 0.31  # whatever was noted once
    assert [hit.id for hit in store.recall("ana", "allergic", stores=("semantic",))] == [fresh, old]
    found = forget(store, "ana", capacity=1, dry_run=True)
    assert doomed(found) == {"Allergic to hazelnuts": "capacity"}
    assert f"strength {now[old]:.2f}" in found.doomed[0].reason
