"""What a prompt is put together from: at a cost that does not grow with what is not looked at."""

from pathlib import Path

import numpy as np
import pytest
from fakes import HashEmbeddings

from sharpwave.benchmarks import assembling
from sharpwave.memory import index as indexing
from sharpwave.memory.gathering import gather
from sharpwave.memory.index import VectorIndex
from sharpwave.memory.procedures import Procedures
from sharpwave.memory.store import MemoryStore


def test_the_cost_of_a_context_is_told_by_its_parts() -> None:
    found = assembling.measure(memories=80, episodes=10, procedures=4, uses=80, questions=4)
    assert found["memories"] == 80 and found["questions"] == 4
    assert set(found["parts_cpu_ms"]) == {"recall", "gather", "fit"}
    assert 0 < found["cpu_ms"] <= found["cpu_ms_p95"] and found["filtered_chroma_query_cpu_ms"] > 0


def test_what_was_recalled_is_not_embedded_again(tmp_path: Path) -> None:
    embeddings = HashEmbeddings()
    with MemoryStore.open(tmp_path / "home", embeddings=embeddings, collections=2) as store:
        Procedures(store).add("ana", "Pay", "pay an invoice", ["open(bank)", "pay(invoice)"], successes=9)
        for n in range(20):
            store.add("ana", f"Paid invoice {n}")
        recalled = store.recall("ana", "pay an invoice")
        store.forget_vectors()
        before = embeddings.texts
        found = gather(store, "ana", "pay an invoice", recalled)
        assert len(found.facts) == len(recalled) > 5 and found.procedural
        assert embeddings.texts - before <= 3  # the question, and what the strategy says


@pytest.mark.parametrize("crowd", [40, 4])
def test_in_a_crowded_collection_an_owner_finds_the_same(
    crowd: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = np.random.default_rng(1)
    vectors = chance.standard_normal((200, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = [
        ("ana" if n % 40 < crowd else "ben", f"{n}", vector, {"live": n % 7 > 0, "at": 0.0})
        for n, vector in enumerate(vectors)
    ]
    index = VectorIndex(tmp_path, collections=1)
    index.upsert("semantic", rows, 0)
    own = np.array([owner == "ana" and meta["live"] for owner, _, _, meta in rows])
    lives = {f"{n}" for n in np.flatnonzero(own)}
    for asked in vectors[:5]:
        found = {}
        for crowded in (1000, 50):
            monkeypatch.setattr(indexing, "CROWDED", crowded)
            found[crowded] = index.nearest(
                "semantic", "ana", asked, 10, 0, live=True, own=lambda store, ids: lives & {*ids}
            )
        nearest = np.argsort(-np.where(own, vectors @ asked, -2), kind="stable")[:10]
        assert found[50] == found[1000] and len(set(found[50]) & {f"{n}" for n in nearest}) >= min(9, own.sum())
    index.forget()
