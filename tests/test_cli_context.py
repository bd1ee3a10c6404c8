"""`sharpwave context` and `sharpwave forget`: see what a prompt would hold, and let go of what nobody needs."""

import json
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings

from sharpwave import cli
from sharpwave.graphs import sections_for
from sharpwave.memory import MemoryStore, times
from sharpwave.memory.episodes import Episodes
from sharpwave.memory.errors import InputError
from sharpwave.memory.procedures import Procedures

Run = Callable[..., tuple[int, str, str]]
ALLERGY = "I'm allergic to shellfish."


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings(), collections=2) as opened:
        yield opened


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: HashEmbeddings())

    def once(*words: str, user: str = "ana") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sharpwave", "--home", str(tmp_path / "home"), *words, "--user", user])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return once


def read(answer: tuple[int, str, str]) -> Any:
    assert answer[0] == 0, answer
    return json.loads(answer[1])


def fill(store: MemoryStore) -> None:
    store.add("ana", ALLERGY, attribute="allergy", value="shellfish", importance=0.95)
    for n in range(20):
        store.add("ana", f"Paid invoice number {1041 + n} of the carpenter by bank transfer", importance=0.3)
    Procedures(store).add("ana", "Pay", "pay an invoice", ["open(bank)", "pay(invoice)"], successes=9)
    Episodes(store).add("ana", "pay an invoice", [{"action": "pay(invoice)", "observation": "done"}], "success")


def test_the_sections_of_a_context_keep_within_the_budget(run: Run, store: MemoryStore) -> None:
    fill(store)
    asked = ("context", "Please pay invoice number 1041", "--json")
    whole = read(run(*asked))
    sections = {one["name"]: one for one in whole["sections"]}
    assert list(sections) == ["summary", "procedural", "profile", "facts", "experiences"] and whole["window"] == 8000
    assert "Worked 9 of 9" in sections["procedural"]["lines"][0] and ALLERGY in sections["profile"]["lines"][0]
    assert "1041" in sections["facts"]["lines"][0] and sections["experiences"]["share"] == 300
    taken = whole["instructions"] + whole["message"] + sum(one["tokens"] for one in whole["sections"])
    assert whole["tokens"] == taken <= 8000 - whole["reserve"]
    small = read(run(*asked, "--budget", "420", "--explain"))
    assert small["tokens"] <= 420 - small["reserve"] and small["recalled"][0]["parts"]["cosine"] > 0
    assert any(one["left_out"] for one in small["sections"])
    assert read(run(*asked, user="ben"))["tokens"] == whole["instructions"] + whole["message"]


def test_what_is_outweighed_is_named(run: Run, store: MemoryStore) -> None:
    store.add("ana", "I live in Oslo.", attribute="home_city", value="Oslo", subject="user", importance=0.9)
    store.add("ana", "I live in Lisbon.", attribute="home_city", value="Lisbon", subject="user")
    code, shown, _ = run("context", "Where do I live?", "--explain")
    assert code == 0 and "Not shown (semantic): I live in Oslo." in shown and "older" in shown
    assert "for: I live in Lisbon." in shown


def test_a_budget_below_the_instructions_says_how_large_it_must_be(run: Run, store: MemoryStore) -> None:
    code, printed, error = run("context", "Where do I live?", "--budget", "50", "--json")
    assert (code, printed) == (2, "") and "about" in error and "needed" in error
    assert run("context", "  ")[0] == 2
    assert run("context", "x", "--budget", "0")[0] == 2
    with pytest.raises(InputError, match="blank"):
        sections_for(store, "ana", " ")


def test_forgetting_is_listed_asked_for_and_undone(run: Run, store: MemoryStore) -> None:
    doubted = [store.add("ana", f"May like tea number {n}", confidence=0.2).memory_id for n in range(2)]
    kept = store.add("ana", "Likes coffee").memory_id
    planned = read(run("forget", "--dry-run", "--json"))
    assert planned["dry_run"] and {one["id"] for one in planned["doomed"]} == set(doubted)
    assert all(one["rule"] == "doubted" and "0.20" in one["reason"] for one in planned["doomed"])
    code, shown, error = run("forget")
    assert code == 2 and "May like tea" in shown and "doubted" in shown and "--yes" in error
    assert store.get("ana", doubted[0] or "").status == "active"
    assert run("forget", "--yes")[0] == 0
    status = {one: store.get("ana", one or "").status for one in (*doubted, kept)}
    assert status == {doubted[0]: "expired", doubted[1]: "expired", kept: "active"}
    assert read(run("undo", "--last", "2", "--json"))["undone"]
    assert {store.get("ana", one or "").status for one in doubted} == {"active"}
    assert "Nothing to forget" in run("forget", user="ben")[1]


def test_a_forgotten_episode_comes_back_and_stays(
    run: Run, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived = Episodes(store).add("ana", "deploy the site", ["deploy()"], "abandoned")
    later = times.now() + timedelta(days=10)
    monkeypatch.setattr(times, "now", lambda: later)
    done = read(run("forget", "--yes", "--json"))
    assert [(one["store"], one["id"], one["rule"]) for one in done["doomed"]] == [("episode", lived.id, "age")]
    assert Episodes(store).find("ana") == []
    assert read(run("episodes", "restore", lived.id[:-2], "--json"))["status"] == "active"
    assert [one.id for one in Episodes(store).find("ana")] == [lived.id]
    assert read(run("forget", "--yes", "--json"))["doomed"] == []
    code, _, error = run("episodes", "restore", lived.id)
    assert code == 2 and "was not forgotten" in error


def test_a_fifth_of_everything_never_goes_unasked(
    run: Run, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(30):
        store.add("ana", f"Fact number {n}", confidence=0.2 if n < 7 else 0.9)
    code, shown, error = run("forget", "--yes")
    assert code == 1 and "more than a fifth" in shown and "nothing went" in error
    monkeypatch.setattr("sharpwave.commands.forget._agreed", lambda planned: True)
    assert run("forget")[0] == 0
    assert sum(memory.status == "expired" for memory in store.memories("ana", statuses=())) == 7
