"""What is worth keeping: what is like what answered questions, what is known well, and never what was superseded."""

from pathlib import Path

import numpy as np
from fakes import HashEmbeddings

from sharpwave.memory import times
from sharpwave.memory.forget import forget
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.worth import BLOCK, Standing, affinity, need, needs, worth


def standing(n: int, **columns: list[float]) -> Standing:
    names = ("answered", "recalled", "length", "importance", "retained", "current", "superseded")
    given = {name: np.array(columns.get(name, [0.0] * n), float) for name in names}
    return Standing(need=np.array(columns.get("need", [1.0] * n)), **given)


def unit(*angles: float) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def test_need_is_higher_near_what_answered_and_lower_near_what_never_did() -> None:
    known = unit(0.0, 0.1, 1.5, 1.6)
    found = needs(unit(0.05, 1.55), known, np.array([1, 1, 0, 0]))
    assert found[0] > 1.5 and found[1] < 0.3


def test_without_feedback_all_needs_are_the_same_and_far_from_all_is_average() -> None:
    known = unit(0.0, 0.1, 0.2)
    assert needs(known, known, np.zeros(3)).tolist() == [1, 1, 1]
    assert np.allclose(needs(-known, known, np.array([1, 0, 0])), 1.0, atol=1e-6)
    assert needs(np.empty((0, 2)), known, np.array([1, 0, 0])).tolist() == []


def test_a_record_is_no_evidence_about_itself() -> None:
    known = unit(0.0, 1.5)
    assert affinity(known, known).diagonal().tolist() == [0, 0]
    assert need(affinity(known, known), np.array([1.0, 0.0]))[0] < 1.01


def test_needs_are_the_same_in_blocks() -> None:
    rng = np.random.default_rng(0)
    some = rng.normal(size=(BLOCK + 7, 4))
    some /= np.linalg.norm(some, axis=1, keepdims=True)
    answered = rng.random(len(some)) < 0.1
    assert np.allclose(needs(some, some, answered), need(affinity(some, some), answered))


def test_each_part_raises_worth_and_what_was_superseded_comes_last() -> None:
    plain = worth(standing(1))[0]
    for part in ("need", "answered", "recalled", "length", "importance", "retained", "current"):
        assert worth(standing(1, **{part: [2.0]}))[0] > plain, part
    best = {"need": [50.0], "answered": [1.0], "length": [200.0], "importance": [1.0], "superseded": [1.0]}
    assert worth(standing(1, **best))[0] < worth(standing(1, need=[0.0]))[0]


def test_forgetting_keeps_what_is_like_what_was_cited(tmp_path: Path) -> None:
    likely, unlikely = "My tabby cat Milo sleeps on the sofa", "The tram to the office was late again"
    with MemoryStore.open(tmp_path, embeddings=HashEmbeddings(), collections=2) as store:
        for text in ("My tabby cat Milo sleeps in a basket", "The tram to the office was late today"):
            store.add("ana", text)
        store.add("ana", likely)
        store.add("ana", unlikely)
        cited, *_ = (memory.id for memory in store.memories("ana") if "basket" in memory.text)
        with store.ledger.write() as connection:
            number = connection.exec_driver_sql("SELECT id FROM owners").scalar_one()
            connection.exec_driver_sql(
                "INSERT INTO uses (owner, memory_id, recalled, cited) VALUES (?, ?, 3, 2)", (number, cited)
            )
        gone = forget(store, "ana", now=times.now(), capacity=2, dry_run=True).doomed
        assert {one.rule for one in gone} == {"capacity"}
        assert {one.text for one in gone} == {"The tram to the office was late today", unlikely}
