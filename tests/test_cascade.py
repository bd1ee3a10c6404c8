"""Cascades: what rests on a memory is reviewed when that changes."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from fakes import HashEmbeddings
from talking import reply, say

from sharpwave import cli
from sharpwave.commands import memories
from sharpwave.graphs import Context, build_agent
from sharpwave.graphs.respond import rendered
from sharpwave.memory.cascade import grounds
from sharpwave.memory.errors import InputError
from sharpwave.memory.records import Memory
from sharpwave.memory.store import MemoryStore

MARCH = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(home: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(home, embeddings=HashEmbeddings(), collections=2) as opened:
        yield opened


@pytest.fixture
def agent(store: MemoryStore) -> Any:
    return build_agent(memory=store).compile()


@pytest.fixture
def commuter(agent: Any) -> Any:
    """An agent that knows where ana lives and works, and how long her way is."""
    for n, text in enumerate(("I live in Oslo.", "I work at Acorn.", "My commute takes 40 minutes.", "I like jazz.")):
        say(agent, text, now=MARCH + timedelta(days=n))
    return agent


def about(store: MemoryStore, word: str) -> Memory:
    return next(m for m in store.memories("ana", statuses=()) if word in m.text and m.subject != "conversation")


def to_review(store: MemoryStore) -> list[str]:
    """Return what is to be reviewed, but for what earlier conversations were about."""
    return sorted(m.text for m in store.memories("ana") if m.needs_review and m.subject != "conversation")


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        ("My commute takes 40 minutes.", ("home_city", "address", "employer")),
        ("I swim a lot because I live in Lisbon.", ("home_city", "address")),
        ("I have lunch near my office.", ("employer", "job")),
        ("I like jazz.", ()),
        ("I swim because I like it.", ()),
    ],
)
def test_the_ground_of_a_statement_is_in_its_words(text: str, attributes: tuple[str, ...]) -> None:
    found = grounds(Memory(owner="ana", text=text, recorded_at=MARCH, valid_from=MARCH))
    assert set(attributes) <= set(found) and bool(attributes) == bool(found)


def test_links_are_made_when_a_memory_is_written(commuter: Any, store: MemoryStore) -> None:
    assert set(about(store, "commute").depends_on) == {about(store, "Oslo").id, about(store, "Acorn").id}
    assert about(store, "jazz").depends_on == ()


def test_a_move_puts_what_rests_on_the_old_home_under_review(commuter: Any, store: MemoryStore) -> None:
    say(commuter, "I moved to Porto.", now=MARCH + timedelta(days=10))
    assert to_review(store) == ["My commute takes 40 minutes."]
    commute = about(store, "commute")
    review = store.history("ana", commute.id)[-1]
    assert review.op == "REVIEW" and "I live in Oslo." in review.reason
    update = next(event for event in store.events("ana") if event.op == "UPDATE")
    assert review.detail["because"] == update.seq
    answer = reply(say(commuter, "How long is my commute?", now=MARCH + timedelta(days=11), thread="t2"))
    assert "40 minutes" in answer and "may have changed" in answer
    hits = store.recall("ana", "commute", stores=("semantic",), now=MARCH + timedelta(days=11), explain=True)
    assert "may be out of date" in rendered(hits, Context(user_id="ana"))
    assert hits[0].parts is not None and hits[0].parts.tie_break <= 0.025


def test_the_value_said_again_is_no_change(commuter: Any, store: MemoryStore) -> None:
    say(commuter, "I live in Oslo, in the old town.", now=MARCH + timedelta(days=10))
    assert to_review(store) == []


def test_a_deleted_ground_asks_for_review_and_undo_clears_it(commuter: Any, store: MemoryStore) -> None:
    store.delete("ana", about(store, "Acorn").id)
    assert to_review(store) == ["My commute takes 40 minutes."]
    store.undo("ana")
    assert to_review(store) == []
    assert [e.op for e in store.history("ana", about(store, "commute").id)] == ["ADD", "REVIEW", "SETTLE"]


def test_undoing_a_move_clears_the_mark_and_undoing_the_home_itself_sets_it(commuter: Any, store: MemoryStore) -> None:
    say(commuter, "I moved to Porto.", now=MARCH + timedelta(days=10))
    store.undo("ana")
    assert to_review(store) == []
    ids = [e for e in store.events("ana") if e.op == "ADD" and e.memory_id == about(store, "Oslo").id]
    store.undo("ana", turn=(ids[0].thread or "", ids[0].message_id or ""))
    assert to_review(store) == ["My commute takes 40 minutes."]


def test_undoing_a_move_puts_what_was_said_since_under_review(agent: Any, store: MemoryStore) -> None:
    for n, text in enumerate(("I live in Oslo.", "I moved to Porto.", "My rent is 900 euros.")):
        say(agent, text, now=MARCH + timedelta(days=n))
    move = next(event for event in store.events("ana") if event.op == "UPDATE")
    store.undo("ana", turn=(move.thread or "", move.message_id or ""))
    assert to_review(store) == ["My rent is 900 euros."]


def test_saying_it_again_settles_the_review(commuter: Any, store: MemoryStore) -> None:
    say(commuter, "I moved to Porto.", now=MARCH + timedelta(days=10))
    say(commuter, "My commute takes 40 minutes.", now=MARCH + timedelta(days=12))
    assert to_review(store) == []


def test_what_is_said_with_the_move_needs_no_review(commuter: Any, store: MemoryStore) -> None:
    say(commuter, "My commute takes 40 minutes. I moved to Porto.", now=MARCH + timedelta(days=10))
    assert to_review(store) == []


def test_a_change_of_something_else_leaves_it_alone(commuter: Any, store: MemoryStore) -> None:
    store.edit("ana", about(store, "jazz").id, "I like funk.")
    assert to_review(store) == []


def test_a_summary_is_reviewed_when_what_it_was_made_from_changes(store: MemoryStore) -> None:
    fact = store.add("ana", "Has a dog").memory_id
    store.add("ana", "An animal lover", kind="summary", derived_from=(fact,))
    store.edit("ana", fact or "", "Has a cat")
    assert to_review(store) == ["An animal lover"]


def test_keeping_settles_a_review_and_can_be_undone(commuter: Any, store: MemoryStore) -> None:
    say(commuter, "I moved to Porto.", now=MARCH + timedelta(days=10))
    commute = about(store, "commute").id
    assert store.keep("ana", commute).op == "KEEP"
    assert to_review(store) == [] and store.get("ana", commute).last_confirmed_at > MARCH + timedelta(days=10)
    store.undo("ana")
    assert to_review(store) == ["My commute takes 40 minutes."]
    store.delete("ana", commute)
    with pytest.raises(InputError, match="retracted"):
        store.keep("ana", commute)


def test_reviews_are_listed_and_settled_on_the_command_line(
    commuter: Any, store: MemoryStore, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer()
    app.callback()(cli.options)
    memories.register(app)
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: HashEmbeddings())

    def run(*words: str) -> str:
        app(["--home", str(home), "memories", *words, "--user", "ana"], standalone_mode=False)
        return capsys.readouterr().out

    assert "Nothing to list." in run("review")
    say(commuter, "I moved to Porto.", now=MARCH + timedelta(days=10))
    [listed] = json.loads(run("review", "--json"))["memories"]
    assert listed["text"] == "My commute takes 40 minutes."
    assert "to review" in run("list") and "40 minutes" in run("review")
    with pytest.raises(InputError, match="--keep or --delete"):
        run("review", listed["id"])
    run("review", listed["id"], "--keep")
    assert to_review(store) == []
    store.edit("ana", about(store, "Porto").id, "I live in Faro.")
    run("review", listed["id"], "--delete")
    assert store.get("ana", listed["id"]).status == "retracted"
    assert "Nothing to list." in run("review")
    assert "40 minutes" in run("list", "--known-at", "2999-01-01") or "jazz" in run("list", "--known-at", "2999-01-01")
