"""Confidence, contradiction, and what nobody has confirmed for long."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings
from talking import done, reply, say, texts

from sharpwave.graphs import build_agent
from sharpwave.memory.decide.guard import guard
from sharpwave.memory.records import Candidate, Decision, Memory, Message, Turn
from sharpwave.memory.staleness import is_stale
from sharpwave.memory.store import MemoryStore

MARCH = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATER = MARCH + timedelta(days=31)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "store", embeddings=HashEmbeddings(), collections=2) as opened:
        yield opened


@pytest.fixture
def agent(store: MemoryStore) -> Any:
    return build_agent(memory=store).compile()


def a_memory(text: str = "Works at Acorn", **fields: Any) -> Memory:
    return Memory(**{"owner": "ana", "text": text, "recorded_at": MARCH, "valid_from": MARCH, **fields})


def doubt(store: MemoryStore, city: str, target: str, n: int) -> Decision:
    """Let a policy that is not sure update the home city, as the guard lets it."""
    text = f"Maybe lives in {city}"
    message = Message(id=f"m{n}", role="user", text=text)
    turn = Turn(owner="ana", thread="t1", messages=(message,), said_at=MARCH + timedelta(days=n))
    slot = {"attribute": "home_city", "value": city, "confidence": 0.3}
    candidate = Candidate(text=text, quote=text, message_id=message.id, **slot)
    near, revision = store.neighbours("ana", [candidate])
    made = [Decision(op="UPDATE", candidate=candidate, target=target, reason="because", policy="test/1")]
    [decision] = guard(made, near, turn)
    store.apply(turn, [decision], revision=revision)
    return decision


def test_a_contradiction_that_is_not_believed_lowers_confidence_until_the_memory_leaves_the_view(
    store: MemoryStore,
) -> None:
    home = store.add(
        "ana",
        "Lives in Oslo",
        attribute="home_city",
        value="Oslo",
        confidence=0.8,
        valid_from=MARCH,
        last_confirmed_at=MARCH,
    ).memory_id
    assert home is not None
    decision = doubt(store, "Rome", home, 1)
    assert (decision.op, decision.contradicts) == ("ADD", home)
    once = store.get("ana", home)
    assert (once.contradictions, once.confidence) == (1, pytest.approx(0.6))
    assert once.last_contradicted_at == MARCH + timedelta(days=1)
    assert texts(store) == ["Lives in Oslo"]
    doubt(store, "Pisa", home, 2)
    assert store.get("ana", home).confidence == pytest.approx(0.4)
    assert texts(store) == [] and store.recall("ana", "Lives in Oslo", stores=("semantic",), floor=-1) == []
    assert "Lives in Oslo" in {m.text for m in store.memories("ana", statuses=())}
    assert [event.op for event in store.history("ana", home)] == ["ADD", "CONTRADICT", "CONTRADICT"]
    store.undo("ana", last=2)
    again = store.get("ana", home)
    assert (again.confidence, again.contradictions, texts(store)) == (0.8, 0, ["Lives in Oslo"])


def test_saying_it_again_confirms_it(agent: Any, store: MemoryStore) -> None:
    say(agent, "I live in Oslo.", now=MARCH)
    before = store.memories("ana")[0].confidence
    for n in range(3):
        say(agent, "As I said, I live in Oslo.", now=MARCH + timedelta(days=n + 1))
    [memory] = store.memories("ana", kinds=("fact",))
    assert before < memory.confidence == 1.0
    assert memory.last_confirmed_at == MARCH + timedelta(days=3)


def test_a_corrected_mistake_is_gone_and_naming_it_does_not_confirm_it(agent: Any, store: MemoryStore) -> None:
    fields = {"attribute": "allergy", "value": "walnuts", "confidence": 0.7, "valid_from": MARCH}
    walnuts = store.add("ana", "Is allergic to walnuts", last_confirmed_at=MARCH, **fields).memory_id
    assert walnuts is not None
    said = "I'm not the one allergic to walnuts, that was my guest. You keep saying I'm allergic to walnuts."
    state = say(agent, said, now=MARCH + timedelta(days=1))
    assert [op for op, _ in done(state)] == ["DELETE"]
    memory = store.get("ana", walnuts)
    assert memory.status == "retracted" and memory.confidence <= 0.7 and memory.strength <= 0.5
    assert texts(store) == []
    answer = reply(say(agent, "What am I allergic to?", now=MARCH + timedelta(days=2), thread="t2"))
    assert "walnuts" not in answer


@pytest.mark.parametrize(
    ("fields", "stale"),
    [
        ({}, True),
        ({"last_confirmed_at": LATER - timedelta(days=29)}, False),
        ({"last_confirmed_at": None, "valid_from": LATER}, False),
        ({"attribute": "allergy", "value": "nuts"}, False),
        ({"attribute": "birthday", "value": "2 May"}, False),
        ({"attribute": "employer", "value": "Acorn"}, True),
        ({"attribute": "former:employer", "value": "Acorn"}, False),
        ({"valid_to": LATER}, False),
        ({"kind": "event"}, False),
        ({"kind": "summary"}, False),
        ({"kind": "preference"}, True),
        ({"pinned": True}, False),
    ],
)
def test_what_is_not_confirmed_for_thirty_days_is_stale_unless_it_stands(fields: dict[str, Any], stale: bool) -> None:
    memory = a_memory(**fields)
    assert is_stale(memory, LATER) is stale
    assert not is_stale(memory, MARCH + timedelta(days=29))


def test_the_stale_rank_lower_within_the_tie_break_and_only_the_strict_rule_hides_them(store: MemoryStore) -> None:
    store.put_memories(
        "ana", [a_memory(), a_memory("Is allergic to nuts", attribute="allergy", value="nuts")], "import"
    )
    asked = {"floor": -1, "stores": ("semantic",), "explain": True}
    ties = {
        day: {hit.text: hit.parts.tie_break for hit in store.recall("ana", "Acorn", now=day, **asked) if hit.parts}
        for day in (LATER - timedelta(days=2), LATER)
    }
    fresh, stale = ties.values()
    assert stale["Works at Acorn"] == pytest.approx(fresh["Works at Acorn"] / 2, rel=0.02)
    assert stale["Is allergic to nuts"] == pytest.approx(fresh["Is allergic to nuts"], rel=0.02)
    assert max(fresh.values()) <= 0.05
    assert [hit.text for hit in store.recall("ana", "Acorn", now=LATER, strict=True, **asked)] == [
        "Is allergic to nuts"
    ]
