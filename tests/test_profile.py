"""The profile: standing facts and preferences of the user, and of nobody else."""

import time
from pathlib import Path

import pytest
from fakes import HashEmbeddings

from sharpwave.memory.profile import profile
from sharpwave.memory.store import MemoryStore


@pytest.fixture
def store(tmp_path: Path):
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings(), collections=2) as opened:
        yield opened


def texts(store: MemoryStore, owner: str = "ana", most: int = 15) -> list[str]:
    return [memory.text for memory in profile(store, owner, most)]


def test_standing_facts_and_preferences_come_by_importance(store: MemoryStore) -> None:
    store.add("ana", "Likes jazz", kind="preference", importance=0.4)
    store.add("ana", "Speaks Dutch", attribute="language", value="Dutch", importance=0.6)
    store.add("ana", "Allergic to shellfish", attribute="allergy", value="shellfish", importance=0.95)
    store.add("ana", "Bought milk", importance=0.5)
    store.add("ana", "The wifi is in the drawer", importance=0.1, pinned=True)
    assert texts(store) == ["The wifi is in the drawer", "Allergic to shellfish", "Speaks Dutch", "Likes jazz"]
    assert texts(store, most=2) == ["The wifi is in the drawer", "Allergic to shellfish"]


def test_others_the_past_and_the_doubted_stay_out(store: MemoryStore) -> None:
    store.add("ben", "Allergic to nuts", attribute="allergy", value="nuts", importance=0.95)
    store.add("ana", "My sister is allergic to nuts", subject="user's sister", attribute="allergy", importance=0.95)
    store.add("ana", "Was vegan", kind="preference", attribute="former:diet", value="vegan", importance=0.8)
    store.add("ana", "May hate tea", kind="preference", confidence=0.3)
    gone = store.add("ana", "Loves rain", kind="preference")
    store.delete("ana", gone.memory_id or "")
    assert texts(store) == [] and texts(store, "nobody") == []


def test_thousands_of_memories_do_not_make_it_slow(store: MemoryStore) -> None:
    def cost() -> float:
        started = time.process_time()
        for _ in range(20):
            profile(store, "ana")
        return time.process_time() - started

    store.add("ana", "Allergic to shellfish", attribute="allergy", value="shellfish", importance=0.95)
    small = cost()
    with store.ledger.write() as connection:
        connection.exec_driver_sql(
            """WITH RECURSIVE s(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM s WHERE value < 10000)
               INSERT INTO memories (id, version, owner, current, status, kind, subject, attribute, folded, recorded_at,
                   valid_from, valid_to, record, term_count, vector, indexed)
               SELECT 'n' || s.value, 1, owner, 1, status, 'preference', subject, NULL, folded, recorded_at, valid_from, NULL,
                   json_set(record, '$.id', 'n' || s.value, '$.importance', 0.5, '$.attribute', NULL), 1, vector, 1
               FROM memories, s WHERE id NOT LIKE 'n%'"""
        )
    assert texts(store)[0] == "Allergic to shellfish" and len(texts(store)) == 15
    assert cost() < 20 * max(small, 0.005)
