"""`sharpwave chat`: what it prints, what it writes, and what it keeps when something goes wrong."""

import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from commanding import Outcome, Run
from fakes import ScriptedModel
from openai_stub import OpenAIStub, Reply

from sharpwave import assembly, cli
from sharpwave.checkpoints import FILE, open_checkpointer
from sharpwave.dialogue import UNANSWERED, Dialogue
from sharpwave.graphs import thread_config
from sharpwave.memory import MemoryStore
from sharpwave.memory.embed import LocalEmbeddings
from sharpwave.memory.records import Message, Turn
from sharpwave.settings import Settings

Scripted = Callable[..., ScriptedModel]


@pytest.fixture(scope="module")
def encoder() -> LocalEmbeddings:
    return LocalEmbeddings()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def run(
    home: Path, encoder: LocalEmbeddings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Run `sharpwave --home HOME chat …` in this process."""
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: encoder)

    def call(*arguments: str, stdin: str = "") -> Outcome:
        monkeypatch.setattr(sys, "argv", ["sharpwave", "--home", str(home), "chat", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        return Outcome(int(ended.value.code or 0), printed.out, printed.err)

    return call


@pytest.fixture
def store(home: Path, encoder: LocalEmbeddings) -> Iterator[MemoryStore]:
    with MemoryStore.open(home, embeddings=encoder) as opened:
        yield opened


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[OpenAIStub], OpenAIStub]]:
    """Start a stub and point the settings at it."""
    running: list[OpenAIStub] = []

    def start(stub: OpenAIStub) -> OpenAIStub:
        running.append(stub.__enter__())
        monkeypatch.setenv("OPENAI_BASE_URL", stub.base_url)
        return stub

    yield start
    for stub in running:
        stub.__exit__(None, None, None)


def facts(*items: dict[str, Any]) -> str:
    return json.dumps({"facts": items})


LISBON = {
    "text": "Lives in Lisbon",
    "quote": "I live in Lisbon",
    "attribute": "home_city",
    "value": "Lisbon",
    "op": "ADD",
}


def texts(store: MemoryStore, user: str = "ana") -> list[str]:
    return [memory.text for memory in store.memories(user)]


def states(home: Path) -> int:
    with closing(sqlite3.connect(home / FILE)) as connection:
        return int(connection.execute("SELECT count(*) FROM checkpoints").fetchone()[0])


def one_line(text: str) -> str:
    assert text.count("\n") == 1, text
    return text


# Without a model


def test_facts_are_written_with_quotes_and_answered_in_another_thread(run: Run) -> None:
    said = "I moved from Oslo to Lisbon last month and I'm allergic to shellfish."
    told = run("--user", "ana", "--thread", "t1", "--once", said, "--json")
    assert (told.code, told.err) == (0, "")
    assert [item["op"] for item in told.json["operations"]] == ["ADD", "ADD"]
    assert all(item["quote"] in said for item in told.json["operations"])

    asked = run("--user", "ana", "--thread", "t2", "--once", "Where do I live?", "--json").json
    assert "Lisbon" in asked["reply"]
    assert asked["citations"] == [asked["recalled"][0]["id"]]
    assert "Lisbon" in asked["recalled"][0]["text"]

    stranger = run("--user", "bob", "--thread", "t1", "--once", "Where do I live?", "--json").json
    assert "don't know" in stranger["reply"]
    assert stranger["recalled"] == []


def test_json_has_the_documented_keys(run: Run) -> None:
    result = run("--user", "ana", "--once", "I live in Lisbon.", "--json").json
    assert {"reply", "recalled", "citations", "operations", "errors", "usage", "timings_ms"} <= result.keys()
    assert {"op", "memory_id", "version", "text", "quote", "reason", "policy"} <= result["operations"][0].keys()
    assert {"llm_calls", "prompt_tokens", "completion_tokens", "by_purpose"} <= result["usage"].keys()
    assert result["usage"]["llm_calls"] == 0
    assert {"retrieve", "respond", "keep", "extract", "decide", "apply", "total"} <= result["timings_ms"].keys()


def test_lines_of_standard_input_are_messages_and_commands(run: Run, store: MemoryStore) -> None:
    stdin = (
        "Hello!\n\nI live in Lisbon.\n/memories\nWhere do I live?\n/undo\n/nonsense\n/quit\nMy cat is called Miso.\n"
    )
    done = run("--user", "ana", stdin=stdin)
    assert done.code == 0
    assert "Rule-based mode" in done.out
    assert "ADD     I live in Lisbon." in done.out
    assert "[1] recalled  I live in Lisbon." in done.out
    assert "taken back: I live in Lisbon." in done.out
    assert "no command /nonsense" in done.out
    assert texts(store) == []


def test_a_line_with_json_is_always_a_message(run: Run) -> None:
    done = run("--user", "ana", "--json", stdin="/memories\nI live in Lisbon.\n")
    first, second = (json.loads(part + "}") for part in done.out.split("\n}\n")[:2])
    assert first["operations"] == []
    assert [item["op"] for item in second["operations"]] == ["ADD"]


def test_any_script_in_names_and_messages(run: Run, store: MemoryStore) -> None:
    user, said = "Ζωή / 佐藤 .x", "私は大阪に住んでいます。"
    assert run("--user", user, "--thread", "雑談", "--once", said).code == 0
    assert texts(store, user) == [said]
    assert run("--user", user, "--once", "大阪", "--json").json["recalled"][0]["text"] == said


@pytest.mark.parametrize("text", ["", "  \n\t "])
def test_an_empty_message_is_refused_before_anything_is_made(run: Run, home: Path, text: str) -> None:
    done = run("--user", "ana", "--once", text)
    assert (done.code, done.out) == (2, "")
    assert "The message is empty" in one_line(done.err)
    assert not home.exists()


def test_nobody_named_is_refused(run: Run) -> None:
    done = run("--once", "I live in Lisbon.")
    assert done.code == 2
    assert "--user" in one_line(done.err)


def test_bytes_that_are_no_text_are_refused(run: Run, store: MemoryStore) -> None:
    done = run("--user", "ana", "--once", "I live in \udcff.")
    assert done.code == 2
    assert "UTF-8" in one_line(done.err)
    assert store.utterances("ana") == []


@pytest.mark.slow
def test_a_message_of_five_megabytes_is_taken_whole(run: Run, store: MemoryStore) -> None:
    said = "I live in Lisbon. " + "The quick brown fox jumps over the lazy dog. " * 115_000
    started = time.process_time()
    done = run("--user", "ana", stdin=f"{said}\n")
    assert done.code == 0
    assert time.process_time() - started < 30
    assert store.utterances("ana", "main")[0].text == said.strip()
    assert "I live in Lisbon." in texts(store)
    assert len(done.out) < 5_000


def test_incognito_recalls_and_leaves_nothing(run: Run, home: Path, store: MemoryStore) -> None:
    run("--user", "ana", "--thread", "open", "--once", "I live in Lisbon.")
    kept = states(home)
    stdin = "My cat is called Miso.\nWhere do I live?\n"
    done = run("--user", "ana", "--incognito", "--json", stdin=stdin)
    assert "You told me" in done.out and "Lisbon" in done.out
    assert texts(store) == ["I live in Lisbon."]
    assert [message.thread for message in store.utterances("ana")] == ["open", "open"]
    assert not store.pending()
    assert states(home) == kept


def test_a_conversation_is_kept_to_its_latest_states(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARPWAVE_KEEP_CHECKPOINTS", "2")
    run("--user", "ana", "--thread", "t1", stdin="Hello one!\nHello two!\nHello three!\nHello four!\n")
    with open_checkpointer(home) as saver:
        kept = list(saver.list(thread_config("ana", "t1")))
    assert len(kept) == 2
    said = kept[0].checkpoint["channel_values"]["messages"]
    assert [message.text for message in said if message.type == "human"] == [
        f"Hello {number}!" for number in ("one", "two", "three", "four")
    ]


def test_what_an_earlier_run_left_is_written_at_the_start(run: Run, store: MemoryStore, march: datetime) -> None:
    message = Message(id="m1", role="user", text="I live in Lisbon.")
    store.queue([Turn(owner="ana", thread="t1", messages=(message,), said_at=march)])
    done = run("--user", "ana", "--thread", "t2", "--once", "Where do I live?")
    assert "Now written to memory: 1 waiting message." in one_line(done.err)
    assert "2 March 2026" in done.out
    assert not store.pending()


# With a model


def test_a_models_reply_is_streamed_and_counted(run: Run, serve: Callable[[OpenAIStub], OpenAIStub]) -> None:
    stub = serve(OpenAIStub(["Lisbon is lovely.", facts(LISBON), "You are welcome!"]))
    told = run("--user", "ana", "--once", "I live in Lisbon.")
    assert told.out.startswith("Lisbon is lovely.\n")
    assert "ADD     Lives in Lisbon" in told.out
    assert [bool(request.get("stream")) for request in stub.requests] == [True, False]

    thanked = run("--user", "ana", "--once", "Thanks!", "--json").json
    assert thanked["usage"]["by_purpose"].keys() == {"respond"}
    assert thanked["usage"]["extra"]["llm_calls"] == 0


def test_memory_costs_one_short_call_for_a_fact(
    run: Run, store: MemoryStore, serve: Callable[[OpenAIStub], OpenAIStub]
) -> None:
    for number in range(60):
        store.add("ana", f"I keep the travel guide of city number {number} on the shelf in the hall, next to the maps.")
    cats = {"text": "Keeps a map of Lisbon on the shelf", "quote": "I keep a map of Lisbon on the shelf", "op": "ADD"}
    serve(OpenAIStub(["Noted.", facts(cats)]))
    result = run(
        "--user", "ana", "--once", "I keep a map of Lisbon on the shelf, with the travel guides.", "--json"
    ).json
    assert [item["op"] for item in result["operations"]] == ["ADD"]
    assert len(result["recalled"]) > 5
    assert result["usage"]["by_purpose"].keys() == {"respond", "extract"}
    assert result["usage"]["extra"]["llm_calls"] == 1
    extracting = result["usage"]["by_purpose"]["extract"]["prompt_tokens"]
    assert extracting < result["usage"]["extra"]["prompt_tokens"] <= 900


def test_a_reply_whose_facts_cannot_be_read_is_printed_and_its_turn_kept(
    run: Run, store: MemoryStore, serve: Callable[[OpenAIStub], OpenAIStub]
) -> None:
    serve(OpenAIStub(["Lisbon is lovely.", "no JSON here", "none here either", facts(LISBON), "In Lisbon."]))
    told = run("--user", "ana", "--once", "I live in Lisbon.", "--json")
    assert told.code == 1
    assert told.json["reply"] == "Lisbon is lovely."
    assert [problem["stage"] for problem in told.json["errors"]] == ["extract"]
    assert "Not written to memory yet" in one_line(told.err)
    assert len(store.pending("ana")) == 1

    again = run("--user", "ana", "--once", "Where do I live?")
    assert (again.code, texts(store)) == (0, ["Lives in Lisbon"])
    assert not store.pending()


def test_a_message_without_an_answer_is_kept_and_written_later(
    run: Run, store: MemoryStore, serve: Callable[[OpenAIStub], OpenAIStub]
) -> None:
    stub = serve(OpenAIStub([Reply(status=400, message="out of order"), facts(LISBON), "Oh.", facts()]))
    failed = run("--user", "ana", "--once", "I live in Lisbon.")
    assert (failed.code, failed.out) == (1, "")
    assert "out of order" in failed.err
    assert "is kept" in one_line(failed.err)
    assert [turn.user_text for turn, _, _ in store.pending("ana")] == ["I live in Lisbon."]

    again = run("--user", "ana", "--once", "My neighbour Rui plays the cello.")
    assert again.code == 0
    assert not store.pending()
    assert texts(store) == ["Lives in Lisbon"]
    assert [m["content"] for m in stub.requests[2]["messages"][1:]] == [
        "I live in Lisbon.",
        UNANSWERED,
        "My neighbour Rui plays the cello.",
    ]
    assert "Lisbon" not in stub.requests[3]["messages"][-1]["content"].split("USER: ")[1]


def test_a_server_that_is_not_there_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    done = run("--user", "ana", "--once", "I live in Lisbon.")
    assert (done.code, done.out) == (1, "")
    assert "Cannot reach http://127.0.0.1:9/v1" in one_line(done.err)


# Interrupted


def test_ctrl_c_stops_a_slow_reply_at_once_and_keeps_what_was_said(home: Path, encoder: LocalEmbeddings) -> None:
    command = [
        sys.executable,
        "-m",
        "sharpwave",
        "--home",
        str(home),
        "chat",
        "--user",
        "ana",
        "--once",
        "I live in Lisbon.",
    ]
    with OpenAIStub([Reply("Too late.", delay=60)]) as stub:
        environment = {**os.environ, "OPENAI_BASE_URL": stub.base_url, "SHARPWAVE_MODEL": "stub"}
        chat = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not stub.requests and chat.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        chat.send_signal(signal.SIGINT)
        printed, complaint = chat.communicate(timeout=20)
    assert (chat.returncode, printed) == (130, "")
    assert "is kept" in one_line(complaint)
    with MemoryStore.open(home, embeddings=encoder) as store:
        assert [turn.user_text for turn, _, _ in store.pending("ana")] == ["I live in Lisbon."]


def test_after_ctrl_c_the_talk_goes_on_in_order(
    run: Run, store: MemoryStore, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    oslo = {"text": "Lives in Oslo", "quote": "I live in Oslo", "attribute": "home_city", "value": "Oslo", "op": "ADD"}
    moved = {**LISBON, "text": "Moved to Lisbon", "quote": "I moved to Lisbon", "op": "UPDATE", "target": 0}
    model = scripted(KeyboardInterrupt(), "Good luck!", facts(oslo), facts(moved))
    monkeypatch.setattr(assembly, "chat_model", lambda settings: model)
    done = run("--user", "ana", stdin="I live in Oslo.\nI moved to Lisbon.\n")
    assert "Interrupted. What you said is kept" in one_line(done.err)
    assert "Good luck!" in done.out
    (memory,) = store.memories("ana")
    assert [version.text for version in store.versions("ana", memory.id)] == ["Lives in Oslo", "Moved to Lisbon"]
    assert not store.pending()


def test_an_exchange_cut_off_by_a_kill_is_closed_before_the_next(
    home: Path, store: MemoryStore, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings.load(home=home, user="ana")
    model = scripted(SystemExit(9), "Good luck!", facts())
    monkeypatch.setattr(assembly, "chat_model", lambda settings: model)
    with open_checkpointer(home) as saver:
        with pytest.raises(SystemExit):
            Dialogue(settings, store, saver, user="ana", thread="t").say("I live in Oslo.")
        dialogue = Dialogue(settings, store, saver, user="ana", thread="t")
        dialogue.say("I moved to Lisbon.", now=datetime(2026, 3, 2, tzinfo=UTC))
        said = [message.text for message in dialogue.messages()]
    assert said[-2:] == ["I moved to Lisbon.", "Good luck!"]
    assert said[:-2] in ([], ["I live in Oslo.", UNANSWERED])
    assert [turn.user_text for turn, _, _ in store.pending("ana")] == ["I live in Oslo."]
