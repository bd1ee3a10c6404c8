"""Writing whole conversations to memory: once each, in order, and nothing is lost whatever stops it."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from fakes import HashEmbeddings
from talking import written

from sharpwave import cli
from sharpwave.benchmarks.talk import talk
from sharpwave.commands import ingest as command
from sharpwave.conversations import read
from sharpwave.graphs import build_write, write_pending
from sharpwave.ingesting import PATIENCE, Ingested, ingest
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.errors import ModelError
from sharpwave.memory.extract import Extractor
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.records import Candidate, Recall, Turn
from sharpwave.memory.store import MemoryStore

SAID = [
    "I live in Oslo and I'm allergic to shellfish.",
    "Thanks!",
    "I moved to Lisbon last week.",
    "What should I cook tonight?",
    "My sister Oona works as a nurse.",
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return messages(tmp_path / "talk.jsonl", SAID)


@pytest.fixture
def store(tmp_path: Path, embeddings: HashEmbeddings) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "store", embeddings=embeddings) as opened:
        yield opened


def messages(path: Path, said: Sequence[str], user: str = "ana") -> Path:
    lines = [{"id": f"m{n}", "user": user, "role": "user", "content": text} for n, text in enumerate(said)]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def turns(path: Path) -> list[Turn]:
    return list(read(path, "jsonl", owner=None))


def write(store: MemoryStore, path: Path, extractor: Extractor | None = None, **more: Any) -> Ingested:
    return ingest(store, turns(path), extractor or RulesExtractor(), RulesPolicy(), **more)


def state(store: MemoryStore, who: str = "ana") -> list[tuple[str, str, str | None, str | None]]:
    return [(m.text, m.status, m.attribute, m.value) for m in store.memories(who, statuses=())]


class Failing:
    """Extracts by rules, except from the messages that it fails at."""

    name = "failing/1"

    def __init__(self, *at: str) -> None:
        self.at, self.asked = at, 0

    def extract(self, turn: Turn, known: Sequence[Recall]) -> list[Candidate]:
        self.asked += 1
        if not self.at or turn.message_id in self.at:
            raise ModelError("The server is away.")
        return RulesExtractor().extract(turn, known)


def test_facts_and_words_are_written(store: MemoryStore, file: Path) -> None:
    done = write(store, file)
    assert (done.turns, done.written, done.skipped, done.failed) == (5, 5, 0, 0)
    assert [u.text for u in store.utterances("ana")] == SAID
    assert [m.value for m in store.memories("ana") if m.attribute == "home_city"] == ["Lisbon"]
    assert done.operations["ADD"] >= 3 and done.operations["UPDATE"] == 1
    assert store.pending() == []
    assert [
        hit.memory.value for hit in store.recall("ana", "Where do I live?", k=1, stores=("semantic",)) if hit.memory
    ] == ["Lisbon"]


def test_the_same_file_again_changes_nothing(store: MemoryStore, file: Path) -> None:
    write(store, file)
    before = state(store), written(store)
    again = write(store, file)
    assert (again.written, again.skipped, again.texts_embedded, again.operations) == (0, 5, 0, {})
    assert (state(store), written(store)) == before


def test_a_file_that_has_grown_adds_what_is_new(store: MemoryStore, file: Path) -> None:
    write(store, file)
    messages(file, [*SAID, "I have a dog called Bruno."])
    done = write(store, file)
    assert (done.written, done.skipped) == (1, 5)
    assert "I have a dog called Bruno." in [m.text for m in store.memories("ana")]


class Stop(Exception):
    pass


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_run_that_is_cut_off_is_finished_by_the_next(
    store: MemoryStore, file: Path, after: int, tmp_path: Path, embeddings: HashEmbeddings
) -> None:
    seen: list[str] = []

    def passed(turn: Turn, now: bool) -> None:
        seen.append(turn.message_id)
        if len(seen) == after:
            raise Stop

    with pytest.raises(Stop):
        write(store, file, passed=passed)
    assert [u.text for u in store.utterances("ana")] == SAID
    waiting = {turn.message_id for turn, _, _ in store.pending()}
    assert not waiting & set(seen)
    done = write(store, file)
    assert done.skipped >= after and done.written == len(waiting)
    with MemoryStore.open(tmp_path / "whole", embeddings=embeddings) as whole:
        write(whole, file)
        assert state(store) == state(whole)


def test_it_writes_what_the_graph_writes(store: MemoryStore, tmp_path: Path, embeddings: HashEmbeddings) -> None:
    said = [line["content"] for line in talk(1, 40, seed=3)]
    path = messages(tmp_path / "more.jsonl", said)
    write(store, path)
    with MemoryStore.open(tmp_path / "graph", embeddings=embeddings) as other:
        other.queue(turns(path))
        write_pending(other, build_write(memory=other).compile())
        assert state(store) == state(other)
        events = [[(e.op, e.message_id, e.reason) for e in s.events("ana")] for s in (store, other)]
        assert events[0] == events[1]


def test_every_owner_gets_their_own(store: MemoryStore, tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in talk(3, 30, seed=1)), encoding="utf-8")
    done = write(store, path)
    assert done.owners == ["user-0", "user-1", "user-2"]
    assert {who: len(store.utterances(who)) for who in done.owners} == dict.fromkeys(done.owners, 10)


def test_without_facts_only_the_words_are_kept(store: MemoryStore, file: Path) -> None:
    done = ingest(store, turns(file), None, RulesPolicy())
    assert (done.written, done.operations) == (5, {})
    assert len(store.utterances("ana")) == 5 and store.memories("ana") == [] and store.pending() == []


def test_what_is_written_is_found_in_the_index(store: MemoryStore, file: Path) -> None:
    write(store, file)
    assert store.index_pending() == 0


def test_one_failure_does_not_stop_the_rest(store: MemoryStore, file: Path) -> None:
    done = write(store, file, Failing("m2"))
    assert (done.written, done.failed) == (4, 1)
    assert [(turn.message_id, attempts, error) for turn, attempts, error in store.pending()] == [
        ("m2", 1, "The server is away.")
    ]
    again = write(store, file)
    assert (again.written, again.skipped, again.failed) == (1, 4, 0)
    assert [m.value for m in store.memories("ana") if m.attribute == "home_city"] == ["Lisbon"]


def test_a_model_that_is_gone_is_not_asked_again_and_again(store: MemoryStore, tmp_path: Path) -> None:
    path = messages(tmp_path / "talk.jsonl", [f"I like song number {n}." for n in range(12)])
    model = Failing()
    with pytest.raises(ModelError, match=r"12 turns|not lost.*The server is away"):
        write(store, path, model)
    assert model.asked == PATIENCE
    assert len(store.utterances("ana")) == len(store.pending()) == 12
    assert write(store, path).written == 12


def test_somebody_else_writing_meanwhile_makes_it_decide_again(store: MemoryStore, file: Path) -> None:
    class Meddling(RulesPolicy):
        meddled = False

        def decide(self, *given: Any) -> Any:
            if not self.meddled:
                self.meddled = True
                store.add("ana", "Plays the cello")
            return super().decide(*given)

    done = ingest(store, turns(file), RulesExtractor(), Meddling())
    assert done.written == 5
    assert sum(m.text == "Plays the cello" for m in store.memories("ana")) == 1
    assert len([m for m in store.memories("ana") if "shellfish" in m.text]) == 1


def test_a_very_long_message_is_kept_whole(store: MemoryStore, tmp_path: Path) -> None:
    text = "I live in Oslo. " + "Lorem ipsum dolor sit amet. " * 50_000
    done = write(store, messages(tmp_path / "long.jsonl", [text, "I like tea."]))
    assert done.written == 2
    assert [len(u.text) for u in store.utterances("ana")] == [len(text), 11]
    assert "I like tea." in [m.text for m in store.memories("ana")]


# The command


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run one command line as a process would, with an embedder that needs no files."""
    app = typer.Typer()
    app.callback()(cli.options)
    command.register(app)
    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setattr(cli, "_register", lambda: None)
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: HashEmbeddings())
    monkeypatch.setenv("COLUMNS", "200")

    def once(*words: str, home: Path = tmp_path / "home") -> Outcome:
        monkeypatch.setattr(sys, "argv", ["sharpwave", "--home", str(home), "ingest", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return Outcome(int(ended.value.code or 0), captured.out, captured.err)

    return once


def test_the_command_reports_what_it_did(run: Callable[..., Outcome], file: Path) -> None:
    did = run(str(file), "--json")
    assert (did.code, did.err) == (0, "")
    summary = json.loads(did.out)
    assert {key: summary[key] for key in ("file", "owners", "turns", "written", "skipped", "failed")} == {
        "file": str(file),
        "owners": ["ana"],
        "turns": 5,
        "written": 5,
        "skipped": 0,
        "failed": 0,
    }
    assert summary["texts_embedded"] > 5 and summary["operations"]["UPDATE"] == 1
    assert summary["texts_per_cpu_second"] > 0 and summary["encoder_texts_per_cpu_second"] > 0
    again = json.loads(run(str(file), "--json").out)
    assert (again["written"], again["skipped"], again["texts_per_cpu_second"]) == (0, 5, None)


def test_the_command_says_it_in_words_too(run: Callable[..., Outcome], file: Path) -> None:
    did = run(str(file), "--no-facts")
    assert did.code == 0 and did.out.startswith("5 turns written, 0 were there already. For: ana\nDecisions: none.")


def test_the_user_is_named_where_the_file_names_none(run: Callable[..., Outcome], tmp_path: Path) -> None:
    path = tmp_path / "openai.json"
    path.write_text(
        json.dumps([{"role": "user", "content": "I live in Oslo."}, {"role": "assistant", "content": "Nice."}])
    )
    refused = run(str(path))
    assert refused.code == 2 and refused.err.count("\n") == 1 and "--user" in refused.err
    did = run(str(path), "--user", "日本/ ..", "--thread", "t9", "--json")
    assert json.loads(did.out)["owners"] == ["日本/ .."]
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings()) as store:
        assert [(u.thread, u.role) for u in store.utterances("日本/ ..")] == [("t9", "user"), ("t9", "assistant")]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"role": "user"', "talk.jsonl"),
        ('{"a": 1}\n{"b": 2}\n', "line 1"),
        ('{"a": 1}', "no conversation"),
        ("", "talk.jsonl"),
    ],
)
def test_a_bad_file_is_one_line_and_writes_nothing(
    run: Callable[..., Outcome], tmp_path: Path, content: str, words: str
) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text(content)
    did = run(str(path), "--user", "ana")
    assert did.code == 2 and did.out == "" and did.err.count("\n") == 1 and words in did.err
    assert not (tmp_path / "home").exists()


def test_a_broken_line_is_found_before_anything_is_written(run: Callable[..., Outcome], tmp_path: Path) -> None:
    path = messages(tmp_path / "talk.jsonl", SAID)
    path.write_text(path.read_text() + '{"role": "user", "conten')
    did = run(str(path))
    assert did.code == 2 and "line 6" in did.err and not (tmp_path / "home").exists()


def test_a_home_that_is_a_file_is_one_line(run: Callable[..., Outcome], file: Path, tmp_path: Path) -> None:
    home = tmp_path / "taken"
    home.write_text("")
    did = run(str(file), home=home)
    assert did.code == 1 and did.err.count("\n") == 1 and str(home) in did.err


def test_a_failing_model_ends_it_with_one_line(
    run: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = messages(tmp_path / "talk.jsonl", [f"I like song number {n}." for n in range(5)])
    monkeypatch.setattr("sharpwave.assembly.writers", lambda settings, embeddings: (Failing(), RulesPolicy()))
    did = run(str(path), "--json")
    assert did.code == 1 and did.out == "" and did.err.count("\n") == 1 and "The server is away." in did.err
    monkeypatch.setattr("sharpwave.assembly.writers", lambda settings, embeddings: (Failing("m1"), RulesPolicy()))
    did = run(str(path), "--json")
    assert did.code == 1 and json.loads(did.out)["failed"] == 1 and "Run the same command again" in did.err
    monkeypatch.setattr("sharpwave.assembly.writers", lambda settings, embeddings: (RulesExtractor(), RulesPolicy()))
    assert json.loads(run(str(path), "--json").out)["written"] == 1
