"""The store as a whole: every sequence of changes leaves rows, events, keywords and vectors that agree."""

import itertools
import json
import os
import stat
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import HashEmbeddings
from filelock import FileLock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sharpwave.memory import edits, episodic, keywords, ledger, lock, rebuild, retrace, semantic
from sharpwave.memory.errors import InputError, NotFoundError, StoreError
from sharpwave.memory.indexing import INDEXED_FROM
from sharpwave.memory.records import Candidate, Decision, Memory, Message, Operation, Turn
from sharpwave.memory.store import MemoryStore, StaleDecision

TEXTS = (
    "Lives in Oslo",
    "Lives in Lisbon",
    "Is allergic to shellfish",
    "住在北京",
    "Has a dog named Pixel",
    "Likes jazz 🎷",
)
MARCH = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
COUNTERS = {"recalled", "last_recalled_at", "cited", "last_cited_at"}
serial = itertools.count()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryStore]:
    """One store for many owners; each test takes owners of its own."""
    with MemoryStore.open(tmp_path_factory.mktemp("store"), embeddings=HashEmbeddings(16), collections=2) as opened:
        yield opened


@pytest.fixture
def ana() -> str:
    return f"ana-{next(serial)}"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def a_store(home: Path) -> MemoryStore:
    return MemoryStore.open(home, embeddings=HashEmbeddings(16), collections=2)


def a_turn(owner: str, text: str = "Hello", thread: str = "t1", message_id: str | None = None, days: float = 0) -> Turn:
    message = Message(id=message_id or f"m{next(serial)}", role="user", text=text)
    return Turn(owner=owner, thread=thread, messages=(message,), said_at=MARCH + timedelta(days=days))


def a_decision(turn: Turn, op: Operation, text: str = "Lives in Oslo", target: str | None = None) -> Decision:
    candidate = Candidate(text=text, quote=turn.user_text, message_id=turn.message_id)
    return Decision(op=op, candidate=candidate, target=target, reason="because", policy="test/1")


def revision(store: MemoryStore, owner: str) -> int:
    return store.neighbours(owner, [])[1]


def put(store: MemoryStore, turn: Turn, *decisions: Decision) -> list[Any]:
    store.queue([turn])
    return store.apply(turn, decisions, revision=revision(store, turn.owner))


def rows(store: MemoryStore, owner: str) -> list[dict[str, Any]]:
    """Return every version of every memory of an owner, as it lies in the table."""
    with store.ledger.read() as connection:
        number = ledger.owner_number(connection, owner)
        found = connection.exec_driver_sql("SELECT * FROM memories WHERE owner = ? ORDER BY row", (number,))
        return [dict(row) for row in found.mappings()]


def everything(store: MemoryStore, owner: str) -> str:
    """Return all that the store holds for an owner, as one text to compare. Whether it is indexed yet is nothing of theirs."""
    events = [event.model_dump_json() for event in store.events(owner)]
    kept = [{k: str(v) for k, v in row.items() if k != "indexed"} for row in rows(store, owner)]
    return json.dumps([events, kept])


def active(store: MemoryStore, owner: str) -> dict[str, tuple[Any, ...]]:
    return {m.id: (m.text, m.pinned, m.confidence, m.valid_from) for m in store.memories(owner)}


OPERATION = st.tuples(
    st.sampled_from(("add", "edit", "delete", "restore", "pin", "undo", "ADD", "UPDATE", "DELETE", "NOOP")),
    st.integers(0, 3),
    st.sampled_from(TEXTS),
    st.integers(-400, 400),
)


def perform(store: MemoryStore, owner: str, operation: tuple[str, int, str, int]) -> None:
    op, choice, text, days = operation
    known = store.memories(owner, statuses=())
    target = known[choice % len(known)].id if known else "none"
    if op == "add":
        store.add(owner, text)
    elif op == "edit":
        store.edit(owner, target, text)
    elif op == "delete":
        store.delete(owner, target)
    elif op == "restore":
        store.restore(owner, target, choice or None)
    elif op == "pin":
        store.pin(owner, target, bool(choice % 2))
    elif op == "undo":
        store.undo(owner, last=1 + choice % 2)
    else:
        turn = a_turn(owner, text, days=days)
        put(store, turn, a_decision(turn, op, text, None if op == "ADD" else target))  # type: ignore[arg-type]


def check_versions(store: MemoryStore, owner: str) -> None:
    by_id: dict[str, list[dict[str, Any]]] = {}
    for row in rows(store, owner):
        by_id.setdefault(row["id"], []).append(row)
    for versions in by_id.values():
        assert [row["version"] for row in versions] == list(range(1, len(versions) + 1))
        assert [bool(row["current"]) for row in versions] == [False] * (len(versions) - 1) + [True]
        spans = sorted((r["valid_from"], r["valid_to"] or np.inf) for r in versions if r["valid_to"] != r["valid_from"])
        assert all(start < end for start, end in spans)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans)), spans
        assert all(row["status"] != "active" or row["current"] for row in versions)
        for row in versions:
            assert Memory.model_validate_json(row["record"]).owner == owner


def check_replay(store: MemoryStore, owner: str) -> None:
    replayed: dict[str, dict[str, Any]] = {}
    for event in store.events(owner):
        if event.detail["after"]:
            replayed[event.detail["after"]["id"]] = event.detail["after"]
    made = {key: Memory(**row).model_dump(exclude=COUNTERS) for key, row in replayed.items()}
    assert made == {m.id: m.model_dump(exclude=COUNTERS) for m in store.memories(owner, statuses=())}
    with store.ledger.read() as connection:
        assert retrace.differences(connection) == []


def check_indexes(store: MemoryStore, owner: str) -> None:
    """Check keywords, vectors and what recall finds of all there is, before the last of it has been indexed and after."""
    live = {m.id for m in store.memories(owner)}
    assert found_of_all(store, owner) == live
    store.index_pending()
    with store.ledger.read() as connection:
        number = ledger.owner_number(connection, owner) or 0
        generation = ledger.generation(connection)
        expected: dict[str, set[int]] = {}
        for row in rows(store, owner):
            assert row["indexed"]
            for term in semantic.index_terms(Memory.model_validate_json(row["record"])):
                expected.setdefault(term, set()).add(row["row"])
        found = keywords.postings(connection, semantic.VIEW, number, list(expected))
        assert {term: set(held.tolist()) for term, held in found.items()} == expected
        total = sum(row["term_count"] for row in rows(store, owner))
        assert ledger.statistics(connection, number, semantic.VIEW)[0] == len(rows(store, owner))
        assert ledger.statistics(connection, number, semantic.VIEW)[1] * len(rows(store, owner)) == pytest.approx(total)
    vectors = {semantic.vector_id(number, row["id"], row["version"]): row["vector"] for row in rows(store, owner)}
    held = store.index.vectors("semantic", owner, list(vectors), generation)
    assert held.keys() == vectors.keys()
    for key, vector in held.items():
        assert np.allclose(vector, np.frombuffer(vectors[key], np.float16), atol=5e-3)
    anything = np.ones(16, np.float32) / 4
    nearest = store.index.nearest("semantic", owner, anything, 1000, generation, live=True)
    assert {key.split(":")[1] for key in nearest} == live and len(nearest) == len(live)
    assert found_of_all(store, owner) == live


def found_of_all(store: MemoryStore, owner: str) -> set[str]:
    return {hit.id for hit in store.recall(owner, "住在 Oslo Lisbon", floor=-9, stores=("semantic",))}


@settings(max_examples=20, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(OPERATION, min_size=1, max_size=10))
def test_any_sequence_of_changes_leaves_rows_events_and_indexes_that_agree(
    store: MemoryStore, operations: list[tuple[str, int, str, int]]
) -> None:
    owner, other = f"ana-{next(serial)}", f"bo-{next(serial)}"
    perform(store, other, ("add", 0, "Lives in Rome", 0))
    others = everything(store, other)
    for operation in operations:
        before = everything(store, owner)
        try:
            perform(store, owner, operation)
        except InputError:
            assert everything(store, owner) == before
        check_versions(store, owner)
    check_replay(store, owner)
    check_indexes(store, owner)
    assert everything(store, other) == others
    assert [hit.text for hit in store.recall(other, "Oslo Lisbon", floor=-9)] == ["Lives in Rome"]


@settings(max_examples=20, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(OPERATION.filter(lambda o: o[0] != "undo"), min_size=1, max_size=7))
def test_undoing_goes_back_step_by_step_to_nothing(
    store: MemoryStore, operations: list[tuple[str, int, str, int]]
) -> None:
    owner = f"ana-{next(serial)}"
    past = [active(store, owner)]
    for operation in operations:
        try:
            perform(store, owner, operation)
        except InputError:
            continue
        past.append(active(store, owner))
    while len(past) > 1:
        past.pop()
        store.undo(owner)
        assert active(store, owner) == past[-1]
    check_versions(store, owner)
    check_replay(store, owner)
    check_indexes(store, owner)
    with pytest.raises(InputError, match="nothing to undo"):
        store.undo(owner)


def test_all_changes_undone_at_once_leave_nothing_that_ever_held(store: MemoryStore, ana: str) -> None:
    added = store.add(ana, "Lives in Oslo")
    store.edit(ana, added.memory_id, "Lives in Lisbon")
    store.delete(ana, added.memory_id)
    store.restore(ana, added.memory_id)
    assert len(store.undo(ana, last=9)) == 4
    assert store.memories(ana) == []
    assert store.memories(ana, as_of=datetime.now(UTC)) == []
    assert [v.status for v in store.versions(ana, added.memory_id)][-1] == "retracted"


def test_undoing_a_restoration_brings_the_tombstone_back(store: MemoryStore, ana: str) -> None:
    added = store.add(ana, "Lives in Oslo")
    store.delete(ana, added.memory_id)
    store.restore(ana, added.memory_id)
    store.undo(ana)
    assert store.get(ana, added.memory_id).status == "retracted"


def test_an_undone_update_keeps_since_when_the_old_text_held(store: MemoryStore, ana: str) -> None:
    first = a_turn(ana, "I live in Oslo", days=0)
    memory_id = put(store, first, a_decision(first, "ADD"))[0].memory_id
    second = a_turn(ana, "I live in Lisbon", days=10)
    put(store, second, a_decision(second, "UPDATE", "Lives in Lisbon", memory_id))
    assert [m.text for m in store.memories(ana, as_of=MARCH + timedelta(days=5))] == ["Lives in Oslo"]
    assert [m.text for m in store.memories(ana, as_of=MARCH + timedelta(days=15))] == ["Lives in Lisbon"]
    store.undo(ana)
    now = store.get(ana, memory_id)
    assert (now.text, now.version, now.valid_from, now.valid_to) == ("Lives in Oslo", 3, MARCH, None)
    assert [m.text for m in store.memories(ana, as_of=MARCH + timedelta(days=15))] == ["Lives in Oslo"]


def test_a_turn_is_undone_as_a_whole_and_only_when_nothing_stands_on_it(store: MemoryStore, ana: str) -> None:
    turn = a_turn(ana, "I live in Oslo and like jazz")
    done = put(store, turn, a_decision(turn, "ADD"), a_decision(turn, "ADD", "Likes jazz"))
    store.edit(ana, done[0].memory_id, "Lives in Bergen")
    before = everything(store, ana)
    with pytest.raises(InputError, match="undo the later ones first"):
        store.undo(ana, turn=("t1", turn.message_id))
    assert everything(store, ana) == before
    store.undo(ana)
    assert len(store.undo(ana, turn=("t1", turn.message_id))) == 2
    assert store.memories(ana) == []


def test_what_was_retracted_later_is_still_in_the_past(store: MemoryStore, ana: str) -> None:
    turn = a_turn(ana, "I have a dog", days=0)
    memory_id = put(store, turn, a_decision(turn, "ADD", "Has a dog"))[0].memory_id
    later = a_turn(ana, "The dog is gone", days=30)
    put(store, later, a_decision(later, "DELETE", "The dog is gone", memory_id))
    assert store.recall(ana, "dog", floor=-9, stores=("semantic",)) == []
    past = store.recall(ana, "dog", floor=-9, stores=("semantic",), as_of=MARCH + timedelta(days=10))
    assert [hit.text for hit in past] == ["Has a dog"]
    assert store.recall(ana, "dog", floor=-9, stores=("semantic",), as_of=MARCH + timedelta(days=40)) == []


# Writing once


def test_a_turn_applied_again_changes_nothing(store: MemoryStore, ana: str) -> None:
    turn = a_turn(ana, "I live in Oslo")
    assert len(put(store, turn, a_decision(turn, "ADD"))) == 1
    assert store.queue([turn]) == []
    assert store.apply(turn, [a_decision(turn, "ADD")], revision=revision(store, ana)) == []
    assert [m.text for m in store.memories(ana)] == ["Lives in Oslo"]
    assert [u.text for u in store.utterances(ana)] == ["I live in Oslo"]
    assert store.is_written(turn) and store.pending(ana) == []


def test_a_turn_that_was_never_queued_is_still_applied_once(store: MemoryStore, ana: str) -> None:
    turn = a_turn(ana, "I live in Oslo")
    for _ in range(2):
        store.apply(turn, [a_decision(turn, "ADD")], revision=revision(store, ana))
    assert [m.text for m in store.memories(ana)] == ["Lives in Oslo"]


def test_two_threads_that_write_one_turn_write_it_once(store: MemoryStore, ana: str) -> None:
    turn, outcomes = a_turn(ana, "I live in Oslo"), []
    barrier = threading.Barrier(4)

    def write() -> None:
        barrier.wait()
        store.queue([turn])
        try:
            outcomes.append(len(store.apply(turn, [a_decision(turn, "ADD")], revision=revision(store, ana))))
        except StaleDecision:
            outcomes.append(-1)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count(1) == 1
    assert len(store.memories(ana)) == 1 and len(store.utterances(ana)) == 1


def test_a_decision_about_memories_that_changed_since_is_refused_whole(store: MemoryStore, ana: str) -> None:
    turn = a_turn(ana, "I live in Oslo")
    store.queue([turn])
    seen = revision(store, ana)
    store.add(ana, "Likes jazz")
    with pytest.raises(StaleDecision):
        store.apply(turn, [a_decision(turn, "ADD")], revision=seen)
    assert [m.text for m in store.memories(ana)] == ["Likes jazz"]
    assert [t.message_id for t, _, _ in store.pending(ana)] == [turn.message_id]


def test_a_candidate_of_very_many_words_is_compared(store: MemoryStore, ana: str) -> None:
    kept = store.add(ana, "Word w5 and more")
    text = " ".join(f"w{i}" for i in range(40_000))
    found, _ = store.neighbours(ana, [Candidate(text=text, quote="x", message_id="m")])
    assert [hit.id for hit in found[0]] == [kept.memory_id]


def test_a_message_that_a_later_turn_repeats_is_kept_once(store: MemoryStore, ana: str) -> None:
    first = Message(id="m1", role="user", text="I live in Oslo")
    answer = Message(id="m2", role="assistant", text="Nice")
    second = Message(id="m3", role="user", text="And I like jazz")
    blank = Message(id="m4", role="assistant", text=" \n ")
    store.queue([Turn(owner=ana, thread="t1", messages=(first, answer), said_at=MARCH)])
    store.queue([Turn(owner=ana, thread="t1", messages=(first, answer, second, blank), said_at=MARCH)])
    kept = store.utterances(ana)
    assert [(u.message_id, u.position) for u in kept] == [("m1", 0), ("m2", 1), ("m3", 2)]
    store.queue([Turn(owner=ana, thread="t2", messages=(first,), said_at=MARCH)])
    assert len(store.utterances(ana)) == 4


def test_the_same_thread_and_message_ids_of_two_owners_stay_apart(store: MemoryStore, ana: str) -> None:
    for owner, text in ((ana, "I live in Lima"), (ana + "-bo", "I live in Oslo")):
        turn = a_turn(owner, text, message_id="m1")
        put(store, turn, a_decision(turn, "ADD", text))
    assert [u.text for u in store.utterances(ana)] == ["I live in Lima"]
    assert [m.text for m in store.memories(ana + "-bo")] == ["I live in Oslo"]


def test_waiting_turns_keep_the_order_in_which_they_were_said(store: MemoryStore, ana: str) -> None:
    turns = [a_turn(ana, f"Line {i}", message_id=f"m{i}") for i in range(12)]
    store.queue(turns[:3])
    store.queue(turns)
    assert [turn.message_id for turn, _, _ in store.pending(ana)] == [f"m{i}" for i in range(12)]
    store.fail(turns[0], "the model is down")
    assert store.pending(ana)[0][1:] == (1, "the model is down")
    assert not store.is_written(turns[0])


def test_a_failing_decision_in_a_batch_keeps_none_of_it(store: MemoryStore, ana: str) -> None:
    turn = a_turn(ana, "I live in Oslo")
    with pytest.raises(NotFoundError):
        put(store, turn, a_decision(turn, "ADD"), a_decision(turn, "UPDATE", "x", "no-such-memory"))
    assert store.memories(ana, statuses=()) == [] and store.events(ana) == []
    assert len(store.pending(ana)) == 1


def test_two_facts_of_the_same_words_in_one_batch_are_both_kept(store: MemoryStore, ana: str) -> None:
    turn = a_turn(ana, "Coffee. Coffee.")
    done = put(store, turn, *[a_decision(turn, "ADD", "Drinks coffee") for _ in range(2)])
    assert len({item.memory_id for item in done}) == 2
    assert len(store.recall(ana, "coffee", stores=("semantic",))) == 2


def test_owners_cannot_touch_what_is_not_theirs(store: MemoryStore, ana: str) -> None:
    memory_id = store.add(ana, "Lives in Lima").memory_id
    bo = ana + "-bo"
    store.add(bo, "Lives in Oslo")
    before = everything(store, ana)
    turn = a_turn(bo)
    for call in (
        lambda: store.get(bo, memory_id),
        lambda: store.versions(bo, memory_id),
        lambda: store.history(bo, memory_id),
        lambda: store.edit(bo, memory_id, "x"),
        lambda: store.delete(bo, memory_id),
        lambda: store.restore(bo, memory_id),
        lambda: store.pin(bo, memory_id),
        lambda: put(store, turn, a_decision(turn, "UPDATE", "x", memory_id)),
        lambda: put(store, turn, a_decision(turn, "DELETE", "x", memory_id)),
    ):
        with pytest.raises(NotFoundError) as caught:
            call()
        assert "Lima" not in str(caught.value)
    assert everything(store, ana) == before


# What is written by hand, and from elsewhere


def test_metadata_of_any_json_shape_comes_back_as_it_was(store: MemoryStore, ana: str) -> None:
    given = {
        "tags": [],
        "source": None,
        "extra": {"a": {"b": [1, {"c": None}]}},
        "score": 0,
        "flag": False,
        "note": "",
        "x": 0.5,
    }
    added = store.add(ana, "Likes jazz", metadata=given, tags=("music",))
    store.add(ana, "No metadata at all", metadata={})
    read = store.get(ana, added.memory_id)
    assert read.metadata == given and [type(v) for v in read.metadata.values()] == [type(v) for v in given.values()]
    assert read.tags == ("music",)
    assert store.memories(ana)[1].metadata == {}


@pytest.mark.parametrize("metadata", [{"a": object()}, {"a": {"b": threading.Lock()}}])
def test_metadata_that_cannot_be_kept_is_refused(store: MemoryStore, ana: str, metadata: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="JSON"):
        store.add(ana, "Likes jazz", metadata=metadata)
    assert store.memories(ana) == []


@pytest.mark.parametrize(
    "fields", [{"importance": 2}, {"nonsense": 1}, {"kind": "rumour"}, {"version": 3}, {"tags": 5}]
)
def test_fields_that_do_not_fit_are_refused(store: MemoryStore, ana: str, fields: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        store.add(ana, "Likes jazz", **fields)
    assert store.memories(ana) == []


def test_adding_an_id_that_exists_is_refused_and_changing_it_is_seen(store: MemoryStore, ana: str) -> None:
    store.add(ana, "Lives in Cork", id=f"{ana}:m1")
    with pytest.raises(InputError, match="there already"):
        store.add(ana, "Lives in Galway", id=f"{ana}:m1")
    store.edit(ana, f"{ana}:m1", "Lives in Galway")
    assert [hit.text for hit in store.recall(ana, "Lives in Galway", stores=("semantic",))] == ["Lives in Galway"]
    store.add(ana + "-bo", "Lives in Cork", id=f"{ana}:m1")
    assert store.get(ana, f"{ana}:m1").text == "Lives in Galway"


@pytest.mark.parametrize("text", ["", "  \n", "\u3000"])
def test_a_memory_without_text_is_refused(store: MemoryStore, ana: str, text: str) -> None:
    added = store.add(ana, "Lives in Oslo")
    with pytest.raises(InputError, match="not blank"):
        store.add(ana, text)
    with pytest.raises(InputError, match="not blank"):
        store.edit(ana, added.memory_id, text)
    assert [m.text for m in store.memories(ana)] == ["Lives in Oslo"]


@pytest.mark.parametrize(
    "text",
    [
        "half an emoji \ud83d",
        "nul \x00 inside",
        "بغداد 🧑🏽‍🚀 Zoë Zoe\u0308",
        "x" * 50_000,
        "'; DROP TABLE memories; --",
        '"',
    ],
)
def test_any_text_is_kept_whole_and_found(store: MemoryStore, ana: str, text: str) -> None:
    store.add(ana, text)
    turn = a_turn(ana, text)
    put(store, turn, a_decision(turn, "ADD", turn.user_text))
    expected = text.replace("\ud83d", "\ufffd")
    assert {m.text for m in store.memories(ana)} == {expected}
    assert {hit.text for hit in store.recall(ana, text, floor=-9)} == {expected}


def test_ids_and_reasons_that_are_no_unicode_are_refused_or_mended(store: MemoryStore, ana: str) -> None:
    added = store.add(ana, "Lives in Oslo")
    for call in (
        lambda: store.get(ana, "half \ud83d"),
        lambda: store.delete(ana, added.memory_id, reason="half \ud83d"),
        lambda: store.add(ana, "x", subject="half \ud83d"),
    ):
        with pytest.raises(InputError, match="surrogate"):
            call()
    turn = a_turn(ana, "I like jazz", thread="half \ud83d", message_id="half \ud83d")
    store.queue([turn])
    assert [(u.thread, u.message_id) for u in store.utterances(ana)] == [("half \ufffd", "half \ufffd")]


def test_memories_from_elsewhere_are_taken_over_once(store: MemoryStore, ana: str) -> None:
    bo = ana + "-bo"
    first = store.add(ana, "Lives in Oslo")
    store.edit(ana, first.memory_id, "Lives in Lisbon")
    versions = store.versions(ana, first.memory_id)
    assert store.put_memories(bo, versions, "import") == 2
    assert store.put_memories(bo, [*versions, *versions], "import") == 0
    assert [m.text for m in store.memories(bo)] == ["Lives in Lisbon"]
    assert store.get(bo, first.memory_id).owner == bo
    check_versions(store, bo)
    check_replay(store, bo)
    check_indexes(store, bo)
    check_indexes(store, ana)


def test_an_import_on_top_of_an_older_version_closes_that(store: MemoryStore, ana: str) -> None:
    bo = ana + "-bo"
    first = store.add(ana, "Lives in Oslo")
    store.put_memories(bo, store.versions(ana, first.memory_id), "import")
    store.edit(ana, first.memory_id, "Lives in Lisbon")
    store.put_memories(bo, store.versions(ana, first.memory_id)[1:], "import")
    check_versions(store, bo)
    assert [m.text for m in store.memories(bo, as_of=datetime.now(UTC))] == ["Lives in Lisbon"]


def waiting(store: MemoryStore) -> int:
    with store.ledger.read() as connection:
        return rebuild.waiting(connection)


def fill(store: MemoryStore, count: int) -> int:
    """Import memories at once; returns how many of them the index holds then, and recall finds the last of."""
    at = MARCH
    records = [Memory(owner="x", text=f"Fact {i:04}", recorded_at=at, valid_from=at) for i in range(count)]
    assert store.put_memories("ana", records, "import") == count
    assert waiting(store) == 0
    with store.ledger.read() as connection:
        generation = ledger.generation(connection)
        number = ledger.owner_number(connection, "ana") or 0
    ids = [semantic.vector_id(number, record.id, 1) for record in records]
    assert store.recall("ana", f"Fact {count - 1:04}", k=1)[0].text == f"Fact {count - 1:04}"
    return len(store.index.vectors("semantic", "ana", ids, generation))


def test_more_rows_than_one_batch_go_in_at_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sharpwave.memory.indexing.BATCH", 7)
    with a_store(home) as store:
        assert fill(store, 70) == 70


@pytest.mark.slow
def test_more_rows_than_chroma_takes_in_one_call_go_in_at_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sharpwave.memory.indexing.BATCH", 10_000)
    with MemoryStore.open(home, embeddings=HashEmbeddings(4), collections=1) as store:
        assert fill(store, 5600) == 5600


# User ids

IDS = (
    "x",
    "ana@example.com",
    "用户1",
    "127.0.0.1",
    "_tmp_",
    "a b",
    "a_b",
    "a-b",
    "A_B",
    "a.b",
    "..",
    "../../x",
    "/etc/x",
    "a" * 600,
    "a/b",
    " a b",
    "%",
    "*",
)


def test_user_ids_of_any_shape_work_and_stay_apart(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"
    with MemoryStore.open(home, embeddings=HashEmbeddings(16), collections=2) as store:
        for number, owner in enumerate(IDS):
            turn = a_turn(owner, f"My number is {number}", message_id="m1")
            put(store, turn, a_decision(turn, "ADD", f"Number is {number}"))
        assert store.owners() == sorted(IDS)
        for number, owner in enumerate(IDS):
            found = store.recall(owner, "number", floor=-9)
            assert {hit.text for hit in found} <= {f"Number is {number}", f"My number is {number}"} and found
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["home"]


@pytest.mark.parametrize("owner", ["", "  ", "\t\n", None, 0, 7, b"ana", "a\x00b", "half \ud83d"])
def test_user_ids_that_name_nobody_are_refused_everywhere(store: MemoryStore, owner: Any) -> None:
    before = store.owners()
    for call in (
        lambda: store.add(owner, "x"),
        lambda: store.recall(owner, "x"),
        lambda: store.recall(owner, ""),
        lambda: store.memories(owner),
        lambda: store.get(owner, "x"),
        lambda: store.events(owner),
        lambda: store.utterances(owner),
        lambda: store.neighbours(owner, []),
        lambda: store.put_memories(owner, [], "import"),
        lambda: store.undo(owner),
        lambda: store.recall(owner, "x", k=0),
    ):
        with pytest.raises(InputError, match="user id"):
            call()
    if isinstance(owner, str):
        with pytest.raises(InputError, match="user id"):
            store.queue([a_turn("ana"), a_turn(owner)])
    assert store.owners() == before


# When something breaks


class Broken(RuntimeError):
    pass


def test_vectors_that_could_not_be_written_wait_and_are_found_meanwhile(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise Broken("no vectors today")

    monkeypatch.setattr("sharpwave.memory.indexing.INDEXED_FROM", 1)
    with a_store(home) as store:
        kept = store.add("ana", "Lives in Oslo")
        monkeypatch.setattr(store.index, "upsert", broken)
        with pytest.raises(Broken):
            store.add("ana", "Likes jazz")
        with pytest.raises(Broken):
            store.edit("ana", kept.memory_id, "Lives in Lisbon")
        turn = a_turn("ana", "I have a dog")
        store.queue([turn])
        with pytest.raises(Broken):
            store.apply(turn, [a_decision(turn, "ADD", "Has a dog")], revision=revision(store, "ana"))
        assert store.is_written(turn)
        held = {"Likes jazz", "Lives in Lisbon", "Has a dog"}
        assert {hit.text for hit in store.recall("ana", "anything", floor=-9, stores=("semantic",))} == held
        with pytest.raises(Broken):
            store.close()
    monkeypatch.undo()
    with a_store(home) as store:
        assert waiting(store) == 0
        check_indexes(store, "ana")
        assert {m.text for m in store.memories("ana")} == held


def test_vectors_are_indexed_once_enough_of_them_wait_and_everything_is_found_meanwhile(
    store: MemoryStore, ana: str
) -> None:
    store.index_pending()
    for n in range(1, INDEXED_FROM + 1):
        kept = store.add(ana, f"Thing {n} is called {n * 7919:x}")
        assert waiting(store) == n % INDEXED_FROM
        assert store.recall(ana, kept.text, k=1)[0].id == kept.memory_id


def test_what_no_longer_holds_takes_nobodys_place_while_that_waits_to_be_indexed(
    store: MemoryStore, ana: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sharpwave.memory.recall.CANDIDATES", 3)
    added = [store.add(ana, f"zebra zebra zebra {n}") for n in range(3)] + [store.add(ana, "A horse of another kind")]
    store.index_pending()
    for memory in added[:3]:
        store.delete(ana, memory.memory_id)
    asked = store.recall(ana, "zebra", floor=-9, stores=("semantic",))
    assert [hit.text for hit in asked] == ["A horse of another kind"]


def test_closing_indexes_what_waits(home: Path) -> None:
    with a_store(home) as store:
        store.add("ana", "Lives in Oslo")
        assert waiting(store) == 1
    with MemoryStore.open(home, embeddings=HashEmbeddings(16), repair=True) as store:
        assert waiting(store) == 0


def test_what_changes_while_its_vector_is_written_is_written_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_store(home) as store:
        turn, real = a_turn("ana", "I live in Lisbon"), store.index.upsert
        store.queue([turn])
        store.add("ana", "Lives in Oslo")

        def slow(*arguments: Any) -> None:
            real(*arguments)
            monkeypatch.undo()
            target = store.memories("ana")[0].id
            decision = a_decision(turn, "UPDATE", "Lives in Lisbon", target)
            store.apply(turn, [decision], revision=revision(store, "ana"), index=False)

        monkeypatch.setattr(store.index, "upsert", slow)
        assert (store.index_pending(), store.index_pending()) == (2, 2)  # and what became of the memory meanwhile
        assert [m.text for m in store.memories("ana")] == ["Lives in Lisbon"]
        check_indexes(store, "ana")


def test_what_the_index_does_not_know_of_is_not_indexed_again(home: Path) -> None:
    with a_store(home) as store:
        memory_id = store.add("ana", "Lives in Oslo").memory_id
        turn = a_turn("ana", "I still live in Oslo")
        store.queue([turn])
        store.index_pending()
        store.pin("ana", memory_id or "")
        store.apply(turn, [a_decision(turn, "NOOP", target=memory_id)], revision=revision(store, "ana"))
        assert waiting(store) == 0
        assert store.get("ana", memory_id or "").pinned


def test_an_exception_inside_the_transaction_keeps_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_store(home) as store:
        store.add("ana", "Lives in Oslo")
        before = everything(store, "ana")

        def broken(*args: Any, **kwargs: Any) -> None:
            raise Broken("while logging")

        turn = a_turn("ana", "I have a dog")
        store.queue([turn])
        for module in (edits.ledger,):
            monkeypatch.setattr(module, "append_event", broken)
        for call in (
            lambda: store.add("ana", "Likes jazz"),
            lambda: store.apply(turn, [a_decision(turn, "ADD", "Has a dog")], revision=revision(store, "ana")),
            lambda: store.delete("ana", store.memories("ana")[0].id),
        ):
            with pytest.raises(Broken):
                call()
        monkeypatch.undo()
        assert everything(store, "ana") == before
        assert not store.is_written(turn)
        check_indexes(store, "ana")


def test_a_store_needs_a_collection(home: Path) -> None:
    with pytest.raises(InputError, match="at least one"):
        MemoryStore.open(home, embeddings=HashEmbeddings(16), collections=0)
    assert not home.exists()


def test_closing_twice_and_opening_again_is_no_trouble(home: Path) -> None:
    store = a_store(home)
    other = a_store(home)
    store.add("ana", "Lives in Oslo")
    store.close()
    store.close()
    assert [hit.text for hit in other.recall("ana", "Oslo")] == ["Lives in Oslo"]
    other.close()


def test_the_number_of_collections_is_fixed_when_the_store_is_made(home: Path) -> None:
    with a_store(home) as store:
        store.add("ana", "Lives in Oslo")
    with MemoryStore.open(home, embeddings=HashEmbeddings(16), collections=64) as store:
        check_indexes(store, "ana")


@pytest.mark.parametrize("other", [HashEmbeddings(24), HashEmbeddings(16, salt="another")])
def test_another_embedder_is_refused_and_changes_nothing(home: Path, other: HashEmbeddings) -> None:
    with a_store(home) as store:
        store.add("ana", "Lives in Oslo")
    with pytest.raises(StoreError, match=r"HashEmbeddings.*16 dimensions.*reindex --embed"):
        MemoryStore.open(home, embeddings=other)
    with a_store(home) as store:
        check_indexes(store, "ana")


def test_no_model_is_asked_while_a_lock_is_held(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sharpwave.memory.indexing.INDEXED_FROM", 1)

    class Watching(HashEmbeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            with FileLock(home / "lock", timeout=0, is_singleton=False):
                asked.extend(texts)
            return super().embed_documents(texts)

    asked: list[str] = []
    with MemoryStore.open(home, embeddings=Watching(16), collections=2) as store:
        added = store.add("ana", "  Lives in Oslo  ")
        store.edit("ana", added.memory_id, " Lives in Lisbon ")
        store.delete("ana", added.memory_id)
        store.restore("ana", added.memory_id, 1)
        store.undo("ana", last=4)
        turn = a_turn("ana")
        put(store, turn, a_decision(turn, "ADD", "Likes jazz"))
    assert asked[-4:] == ["Lives in Oslo", "Lives in Lisbon", "Hello", "Likes jazz"]


def test_the_home_and_all_in_it_are_private(home: Path) -> None:
    umask = os.umask(0o022)
    try:
        with a_store(home) as store:
            store.add("ana", "Lives in Oslo")
            store.index_pending()
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (home, *home.iterdir())}
    finally:
        os.umask(umask)
    assert modes["home"] == 0o700 and modes["chroma"] == 0o700
    assert {name: mode for name, mode in modes.items() if name.startswith("ledger") and mode != 0o600} == {}


def test_a_writer_that_never_ends_is_named_after_a_while(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_store(home) as store:
        blocker = FileLock(home / "lock", is_singleton=False)
        monkeypatch.setattr(lock, "TIMEOUT", 0.1)
        monkeypatch.setattr(store._indexing, "lock", lock.FolderLock(home / "lock"))
        store.queue([a_turn("ana")])
        for write in (lambda: store.add("ana", "Lives in Oslo"), store.index_pending):
            with blocker, pytest.raises(StoreError, match="Another process has been writing"):
                write()
        assert store.memories("ana") == [] and waiting(store) == 1


def test_utterances_and_their_keywords_agree(store: MemoryStore, ana: str) -> None:
    for start in (0, 3, 4):
        turns = [a_turn(ana, text, days=n) for n, text in enumerate(TEXTS[start : start + 3])]
        store.queue(turns)
    kept = store.utterances(ana)
    with store.ledger.read() as connection:
        number = ledger.owner_number(connection, ana) or 0
        rows = connection.exec_driver_sql(
            "SELECT row, text, said_at FROM utterances WHERE owner = ? ORDER BY position", (number,)
        ).all()
        for view, reach in ((episodic.VIEW, 0), (episodic.WINDOW, 1)):
            expected: dict[str, set[int]] = {}
            for i, row in enumerate(rows):
                near = rows[max(0, i - reach) : i + reach + 1]
                date = semantic.written_date(ledger.from_timestamp(row.said_at))
                for term in keywords.terms(" ".join([date, *(other.text for other in near)])):
                    expected.setdefault(term, set()).add(row.row)
            found = keywords.postings(connection, view, number, list(expected))
            assert {term: set(held.tolist()) for term, held in found.items()} == expected
            assert ledger.statistics(connection, number, view)[0] == len(kept)
