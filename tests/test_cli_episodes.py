"""`sharpwave episodes`, through the command line's own entry."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from commanding import runner
from fakes import HashEmbeddings

from sharpwave.commands import episodes as commands
from sharpwave.memory.records import Message, Turn
from sharpwave.memory.store import MemoryStore

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    call = runner(tmp_path / "home", [commands], monkeypatch, capsys, "episodes")

    def once(*words: str, user: str = "ana") -> tuple[int, str, str]:
        done = call(*words, "--user", user)
        return done.code, done.out, done.err

    return once


def add(run: Run, task: str, outcome: str, *more: str) -> str:
    code, out, err = run("add", task, "--outcome", outcome, *more, "--json")
    assert code == 0, err
    return str(json.loads(out)["id"])


def found(answer: tuple[int, str, str]) -> list[str]:
    assert answer[0] == 0, answer
    return [one["task"] for one in json.loads(answer[1])["results"]]


def test_episodes_are_added_searched_and_listed(run: Run) -> None:
    old = add(run, "deploy failed", "failure", "--ended", "2020-01-01")
    new = add(run, "deploy failed again", "failure", "--step", "deploy() => Error: refused", "--tag", "Work")
    add(run, "deploy failed never", "success")
    answer = run("search", "deploy failed", "--outcome", "failure", "--since", "30d", "--json")
    assert found(answer) == ["deploy failed again"]
    assert json.loads(answer[1])["results"][0]["trajectory"][0]["observation"] == "Error: refused"
    assert found(run("similar", new, "--k", "1", "--max-age", "2w", "--json")) == ["deploy failed never"]
    assert old in [one["id"] for one in json.loads(run("list", "--json")[1])["episodes"]]
    assert "deploy failed again" in run("list", "--tag", "work")[1]
    assert run("list", "--thread", "nowhere")[1].strip() == "No such episode."
    assert run("list", user="ben")[1].strip() == "No such episode."


def test_an_episode_is_shown_and_reflected_on_by_the_beginning_of_its_id(run: Run) -> None:
    one = add(run, "deploy", "failure", "--step", "deploy() => Error: refused")
    two = add(run, "deploy", "failure", "--step", "deploy() => Error: refused")
    code, out, _ = run("reflect", one)
    assert code == 0 and "failed with “Error: refused”" in out and "no model was asked" in out
    assert json.loads(run("show", one, "--json")[1])["reflected_by"] == "extractive/1"
    assert "refused" in run("show", one)[1]
    code, out, _ = run("reflect", one, two, "--keep")
    assert code == 0 and "deploy failed 2 of 2 times" in out and "Kept as memory" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("add", "x", "--outcome", "won"), "Unknown outcome 'won'"),
        (("add", " ", "--outcome", "success"), "needs a task"),
        (("search", " "), "blank"),
        (("search", "x", "--outcome", "won"), "Unknown outcome"),
        (("search", "x", "--since", "soon"), "not an ISO 8601 time"),
        (("similar", "x", "--max-age", "soon"), "no length of time"),
        (("list", "--last", "-1"), "-1"),
        (("show", "123456789"), "no episode"),
        (("reflect", "123456789"), "no episode"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(words: tuple[str, ...], message: str, run: Run) -> None:
    code, out, err = run(*words)
    assert (code, out, err.count("\n")) == (2, "", 1) and message in err


def test_keeping_needs_several_episodes(run: Run) -> None:
    one = add(run, "deploy", "failure")
    assert run("reflect", one, "--keep")[0] == 2


def test_conversations_are_indexed_and_found_by_time(run: Run, tmp_path: Path) -> None:
    message = Message(id="m1", role="user", text="I am looking for a flat in Porto.")
    at = datetime(2026, 3, 3, tzinfo=UTC)
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings()) as store:
        store.queue([Turn(owner="ana", thread="flats", messages=(message,), said_at=at)])
    assert "--index" in run("conversations")[1]
    shown = json.loads(run("conversations", "What did we talk about in March 2026?", "--index", "--json")[1])
    assert shown["indexed"] == 1
    assert [one["summary"] for one in shown["conversations"]] == ["I am looking for a flat in Porto."]
    assert json.loads(run("conversations", "in April 2026", "--json")[1])["conversations"] == []
    assert "Porto" in run("conversations")[1]
