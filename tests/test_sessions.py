"""Sessions: they begin with a message, end by hand or by silence, and leave a summary behind."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fakes import HashEmbeddings, ScriptedModel
from langchain_core.messages import HumanMessage

from sharpwave import cli
from sharpwave.graphs import Context, build_agent
from sharpwave.memory import erase, portability, rebuild, rows
from sharpwave.memory.conversations import Conversations
from sharpwave.memory.errors import ModelError, NotFoundError
from sharpwave.memory.records import Message, Turn
from sharpwave.memory.sessions import Sessions
from sharpwave.memory.store import MemoryStore

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SAID = ("I am allergic to shellfish.", "I live in Lisbon near the river.", "Let us plan the dinner in Lisbon.")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings(), collections=2) as opened:
        yield opened


def tell(store: MemoryStore, text: str, minutes: float = 0, thread: str = "t1", **context: object) -> None:
    run = Context(user_id="ana", thread=thread, now=START + timedelta(minutes=minutes), **context)  # type: ignore[arg-type]
    build_agent(memory=store).compile().invoke({"messages": [HumanMessage(text)]}, context=run)


def dinner(store: MemoryStore) -> None:
    for minute, text in enumerate(SAID):
        tell(store, text, minute)


def summaries(store: MemoryStore) -> list[str]:
    return [memory.text for memory in store.memories("ana", kinds=("summary",))]


def sound(store: MemoryStore) -> bool:
    with store.ledger.read() as connection:
        return not list(rows.differences(connection))


def test_a_session_begins_with_a_message_and_leaves_a_summary_with_its_message_count(store: MemoryStore) -> None:
    dinner(store)
    sessions = Sessions(store)
    (open_,) = sessions.find("ana")
    assert (open_.status, open_.started_at, open_.messages) == ("open", START, 6)
    assert open_.last_at == START + timedelta(minutes=2)
    done = sessions.end_session("ana", "t1", now=START + timedelta(minutes=3))
    assert done.changed and done.problem is None
    assert (done.session.status, done.session.messages, done.session.ended_at) == (
        "ended",
        6,
        START + timedelta(minutes=3),
    )
    assert "Lisbon" in (done.session.summary or "") and done.session.topics
    assert {memory.text for memory in done.memories} == {SAID[0], SAID[1]}
    (kept,) = store.memories("ana", kinds=("summary",))
    assert (
        kept.text == f"Conversation of 2 March 2026, 6 messages: {done.session.summary}"
        and kept.importance == 0.5
        and kept.source.kind == "inferred"
    )
    assert set(kept.derived_from) == {memory.id for memory in done.memories}
    assert kept.metadata == {"session": open_.id, "messages": 6, "policy": "extractive/1"}
    found = Conversations(store).search("ana", "the dinner in Lisbon")
    assert [one.session.id for one in found] == [open_.id]
    assert sound(store)


def test_ending_twice_changes_nothing(store: MemoryStore) -> None:
    dinner(store)
    sessions = Sessions(store)
    first = sessions.end_session("ana", "t1")
    events = len(store.events("ana"))
    again = sessions.end_session("ana", "t1")
    assert not again.changed and again.session == first.session and again.memories == first.memories
    assert len(store.events("ana")) == events and len(summaries(store)) == 1


def test_a_message_after_the_silence_ends_the_session_and_starts_another(store: MemoryStore) -> None:
    dinner(store)
    tell(store, "I like jazz.", 32)
    assert len(Sessions(store).find("ana")) == 1  # thirty minutes to the second
    tell(store, "Good evening! I play the cello.", 63)
    old, new = Sessions(store).find("ana")
    assert (old.status, old.ended_at, old.messages) == ("ended", START + timedelta(minutes=32), 8)
    assert (new.status, new.started_at, new.messages) == ("open", START + timedelta(minutes=63), 2)
    assert len(summaries(store)) == 1 and "cello" not in summaries(store)[0]


def test_sessions_that_are_idle_can_be_ended_all_at_once(store: MemoryStore) -> None:
    dinner(store)
    tell(store, "Hello from another place.", 90, thread="t2")
    sessions, now = Sessions(store), START + timedelta(minutes=91)
    assert [one.session.thread for one in sessions.end_idle("ana", now=now)] == ["t1"]
    assert [(one.thread, one.status) for one in sessions.find("ana")] == [("t1", "ended"), ("t2", "open")]
    assert sessions.end_idle("ana", now=now) == [] and len(summaries(store)) == 1


def test_one_message_is_nothing_to_summarise(store: MemoryStore) -> None:
    turn = Turn(owner="ana", thread="t1", messages=(Message(id="m1", role="user", text=SAID[1]),), said_at=START)
    store.queue([turn])
    Sessions(store).heed(turn)
    done = Sessions(store).end_session("ana", "t1")
    assert done.session.summary is None and done.session.messages == 1 and summaries(store) == []
    assert [memory.text for memory in done.memories] == [SAID[1]], "a turn that waits is written first"


def test_starting_loads_the_profile_and_goes_on_where_it_is_open(store: MemoryStore) -> None:
    store.add("ana", "Allergic to shellfish", attribute="allergy", value="shellfish", importance=0.95)
    sessions = Sessions(store)
    first = sessions.start_session("ana", "t1", now=START)
    assert [memory.text for memory in first.profile] == ["Allergic to shellfish"]
    assert sessions.start_session("ana", "t1", now=START + timedelta(minutes=9)).session.id == first.session.id
    tell(store, SAID[1], 10)
    assert [one.id for one in sessions.find("ana")] == [first.session.id]
    assert sessions.start_session("ana", "t1", now=START + timedelta(minutes=90)).session.id != first.session.id


def test_a_late_retry_of_what_was_said_starts_no_session(store: MemoryStore) -> None:
    dinner(store)
    Sessions(store).end_session("ana", "t1", now=START + timedelta(minutes=3))
    tell(store, "Said in the middle and written late.", 1)
    assert len(Sessions(store).find("ana")) == 1


def test_a_model_writes_the_summary(store: MemoryStore, scripted: Callable[..., ScriptedModel]) -> None:
    dinner(store)
    model = scripted('{"summary": "Ana planned a dinner in Lisbon. She cannot eat shellfish.", "topics": ["dinner"]}')
    done = Sessions(store).end_session("ana", "t1", model=model)
    assert done.session.summary == "Ana planned a dinner in Lisbon. She cannot eat shellfish."
    assert summaries(store)[0].endswith("messages: Ana planned a dinner in Lisbon. She cannot eat shellfish.")
    assert store.memories("ana", kinds=("summary",))[0].metadata["policy"] == "llm/1"


@pytest.mark.parametrize("answers", [(ModelError("The server is down."),), ("", "")])
def test_a_model_that_fails_or_says_nothing_wipes_nothing(
    store: MemoryStore, scripted: Callable[..., ScriptedModel], answers: tuple[object, ...]
) -> None:
    dinner(store)
    done = Sessions(store).end_session("ana", "t1", model=scripted(*answers))
    assert "Lisbon" in (done.session.summary or "") and (done.session.summary or "") in summaries(store)[0]
    assert (done.problem or "").startswith("Summarised without the model: ")


def test_a_model_that_cannot_write_what_waits_leaves_it_in_the_queue(
    store: MemoryStore, scripted: Callable[..., ScriptedModel]
) -> None:
    dinner(store)
    turn = Turn(owner="ana", thread="t1", messages=(Message(id="m9", role="user", text="I like jazz."),), said_at=START)
    store.queue([turn])
    done = Sessions(store).end_session(
        "ana", "t1", model=scripted(ModelError("It is down."), ModelError("It is down."))
    )
    assert [waits.message_id for waits, _, _ in store.pending("ana")] == ["m9"]
    assert "Not all is written to memory yet: It is down." in (done.problem or "")


def test_an_incognito_turn_starts_no_session_and_nobody_elses_can_be_ended(store: MemoryStore) -> None:
    tell(store, SAID[0], remember=False)
    assert Sessions(store).find("ana") == []
    dinner(store)
    with pytest.raises(NotFoundError, match="no session in the conversation 't1'"):
        Sessions(store).end_session("ben", "t1")
    with pytest.raises(NotFoundError):
        Sessions(store).get("ben", Sessions(store).find("ana")[0].id)


def test_an_open_session_is_found_by_what_it_was_about_so_far(store: MemoryStore) -> None:
    Sessions(store).start_session("ana", "t1", now=START)
    dinner(store)
    talks = Conversations(store)
    (made,) = talks.index("ana")
    assert made.status == "open" and "Lisbon" in (made.summary or "") and talks.index("ana") == []
    tell(store, "The dinner is at eight.", 5)
    assert [one.messages for one in talks.index("ana")] == [8]
    assert Sessions(store).end_session("ana", "t1").session.messages == 8


def test_indexing_conversations_ends_no_session(store: MemoryStore) -> None:
    dinner(store)
    Conversations(store).index("ana")
    assert [(one.status, one.messages) for one in Sessions(store).find("ana")] == [("open", 6)]
    assert Sessions(store).end_session("ana", "t1").changed


def test_secrets_are_masked_and_all_of_it_is_exported_and_erased(store: MemoryStore) -> None:
    tell(store, "My password is hunter2secret and I live in Lisbon.")
    tell(store, "The dinner in Lisbon is at eight.", 1)
    Sessions(store).end_session("ana", "t1")
    assert "hunter2secret" not in repr(store.events("ana"))
    lines = [repr(line) for line in portability.export(store, "ana")]
    assert sum("'summary'" in line for line in lines) >= 2
    rebuild.reindex(store)
    assert sound(store) and erase.erase(store, "ana").complete
    assert Sessions(store).find("ana") == []


def test_heeding_a_turn_costs_little(store: MemoryStore) -> None:
    turns = [
        Turn(
            owner="ana",
            thread="t1",
            messages=(Message(id=f"m{n}", role="user", text=f"Note {n}"),),
            said_at=START + timedelta(minutes=n),
        )
        for n in range(300)
    ]
    store.queue(turns)
    sessions = Sessions(store)
    sessions.heed(turns[0])
    started = time.process_time()
    for turn in turns[1:]:
        sessions.heed(turn)
    assert (time.process_time() - started) / 299 < 0.002
    assert store.events("ana") == []
    assert [one.messages for one in sessions.find("ana")] == [300]


def test_a_summary_of_what_has_changed_since_is_not_recalled(store: MemoryStore) -> None:
    dinner(store)
    Sessions(store).end_session("ana", "t1", now=START + timedelta(minutes=3))
    kinds = {hit.memory.kind for hit in store.recall("ana", "Lisbon", stores=("semantic",)) if hit.memory}
    assert kinds == {"fact", "summary"}
    tell(store, "I moved to Porto.", 60 * 24)
    assert not any("Lisbon" in hit.text for hit in store.recall("ana", "Where do I live?", stores=("semantic",)))
    assert store.memories("ana", kinds=("summary",))[0].needs_review
    store.undo("ana")
    assert any("messages: " in hit.text for hit in store.recall("ana", "Lisbon", stores=("semantic",)))


def test_the_command_line_lists_shows_and_ends_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: HashEmbeddings())

    def run(*words: str, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["sharpwave", "--home", str(tmp_path / "home"), *words, "--user", "ana"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == code
        printed = capsys.readouterr()
        return printed.out + printed.err

    assert "No sessions." in run("sessions", "list")
    assert "no session in the conversation 'main'" in run("sessions", "end", code=2)
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings()) as store:
        dinner(store)
    (listed,) = json.loads(run("sessions", "list", "--json"))["sessions"]
    assert (listed["status"], listed["messages"], listed["thread"]) == ("open", 6, "t1")
    assert "No session is idle" not in run("sessions", "end", "--idle")
    assert "The session had ended (6 messages, 2 facts and preferences)" in run("sessions", "end", "--thread", "t1")
    shown = json.loads(run("sessions", "show", listed["id"][:8], "--json"))
    assert shown["status"] == "ended" and [memory["text"] for memory in shown["memories"]] == [*SAID[:2]]
    assert SAID[0] in run("sessions", "show", listed["id"]) and "ended" in run("sessions", "list", "--thread", "t1")
    assert "There is no session" in run("sessions", "show", "nonsense", code=2)


def test_chat_at_a_terminal_ends_its_session_with_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: HashEmbeddings())
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)

    def chat(*lines: str) -> str:
        left = iter(lines)
        monkeypatch.setattr("builtins.input", lambda prompt="": next(left))
        monkeypatch.setattr(sys, "argv", ["sharpwave", "--home", str(tmp_path / "home"), "chat", "--user", "ana"])
        with pytest.raises(SystemExit):
            cli.main()
        return capsys.readouterr().out.splitlines()[-1]

    assert chat(SAID[1], "/quit").startswith("Session ended (2 messages, 1 facts and preferences).")
    assert "ended" not in chat("/quit")
