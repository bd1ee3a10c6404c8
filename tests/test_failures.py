"""What breaks half-way: a write, the embedder, a caller that tries again."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings
from langgraph.checkpoint.memory import InMemorySaver
from sqlalchemy import Engine, event
from talking import done, reply, say, texts, written

from sharpwave.graphs import Context, build_agent, build_write, write_pending
from sharpwave.memory import MemoryStore
from sharpwave.memory.errors import ModelError
from sharpwave.memory.records import Candidate, Decision, Message, Turn
from sharpwave.memory.verify import verify

FIVE = "I have a cat. I play the cello. I live in Turku. I drink oolong. My sister is called Mia."
FACTS = ["I drink oolong.", "I have a cat.", "I live in Turku.", "I play the cello.", "My sister is called Mia."]


class Failing(HashEmbeddings):
    """Times out after so many more calls; None never does."""

    left: int | None = None

    def embed_documents(self, given: list[str]) -> list[list[float]]:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise TimeoutError(f"timed out on {given[0]}")
        return super().embed_documents(given)


@pytest.fixture
def embedder() -> Failing:
    return Failing()


@pytest.fixture
def store(tmp_path: Path, embedder: Failing) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=embedder, collections=1) as opened:
        yield opened


# A write that breaks off


class Broken(Exception):
    """Raised in place of a write."""


class Breaking:
    """Raises in place of the n-th write to the ledger; counts them."""

    def __init__(self, at: int) -> None:
        self.at, self.seen = at, 0

    def __call__(self, connection: Any, cursor: Any, statement: str, *more: Any) -> None:
        if statement.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE", "REPLACE")):
            self.seen += 1
            if self.seen == self.at:
                raise Broken(statement)


def test_a_batch_that_breaks_off_at_any_write_is_kept_whole_or_not_at_all(store: MemoryStore) -> None:
    lisbon, car = (store.add("ana", text).memory_id for text in ("I live in Lisbon.", "I have a car."))
    said = "I moved to Porto, sold my car and bought a bike."
    turn = Turn(
        owner="ana", thread="t", messages=(Message(id="m", role="user", text=said),), said_at="2027-03-02T09:00Z"
    )  # type: ignore[arg-type]

    def decided(op: Any, text: str, target: str | None = None) -> Decision:
        candidate = Candidate(text=text, quote=said, message_id="m")
        return Decision(op=op, candidate=candidate, target=target, reason="said", policy="test/1")

    batch = [
        decided("UPDATE", "I live in Porto.", lisbon),
        decided("DELETE", "I sold my car.", car),
        decided("ADD", "I have a bike."),
    ]
    store.queue([turn])
    before = store.memories("ana", statuses=()), store.events("ana")
    for at in range(1, 100):
        breaking = Breaking(at)
        event.listen(Engine, "before_cursor_execute", breaking)
        with contextlib.suppress(Broken):
            store.apply(turn, batch, revision=None)
        event.remove(Engine, "before_cursor_execute", breaking)
        if store.is_written(turn):
            break
        assert (store.memories("ana", statuses=()), store.events("ana")) == before and len(store.pending("ana")) == 1
        found = {hit.text for hit in store.recall("ana", "what", floor=-9, stores=("semantic",))}
        assert found == {"I live in Lisbon.", "I have a car."}
    assert at > 10
    assert store.apply(turn, batch, revision=None) == []
    assert texts(store) == ["I have a bike.", "I live in Porto."] and len(store.events("ana")) == 5
    store.index_pending()
    assert {hit.text for hit in store.recall("ana", "what", floor=-9, stores=("semantic",))} == set(texts(store))
    assert verify(store).healthy


# An embedder that fails


@pytest.mark.parametrize("calls", [0, 1])
def test_an_embedder_that_times_out_leaves_the_reply_and_the_turn_waiting(
    calls: int, store: MemoryStore, embedder: Failing
) -> None:
    agent = build_agent(memory=store).compile(checkpointer=InMemorySaver())
    say(agent, "thanks")
    embedder.left = calls
    state = say(agent, FIVE)
    assert reply(state) and done(state) == []
    (error,) = state["errors"]
    assert "The embedder Failing failed: TimeoutError: timed out" in error["error"] and "cello" not in error["error"]
    ((waiting, attempts, why),) = store.pending("ana")
    assert (waiting.user_text, attempts, why) == (FIVE, 1, error["error"])

    embedder.left = None
    assert say(agent, "thanks again")["errors"] == []
    assert texts(store) == FACTS and store.pending() == []
    assert [u.text for u in store.utterances("ana") if u.role == "user"].count(FIVE) == 1


def test_trying_again_after_a_timeout_writes_each_fact_and_message_once(store: MemoryStore, embedder: Failing) -> None:
    turn = Turn(
        owner="ana", thread="t", messages=(Message(id="m", role="user", text=FIVE),), said_at="2026-03-02T09:00Z"
    )  # type: ignore[arg-type]
    graph = build_write(memory=store).compile()
    for left in (0, 1, 2, None, None):
        embedder.left = left
        store.forget_vectors()
        graph.invoke({"turn": turn.model_dump(mode="json")}, context=Context(user_id="ana"))
    assert texts(store) == FACTS and written(store) == (5, 1, 0)
    assert write_pending(store, graph) == 0


def test_a_failing_embedder_is_one_clear_error_where_something_is_added_by_hand(
    store: MemoryStore, embedder: Failing
) -> None:
    embedder.left = 0
    with pytest.raises(ModelError, match="The embedder Failing failed"):
        store.add("ana", "I have a cat.")
    assert store.memories("ana") == [] and store.events("ana") == []
