"""`sharpwave read`: one answer from a document, in one run or in several."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from commanding import Run, runner
from fakes import HashEmbeddings
from openai_stub import OpenAIStub

from sharpwave.benchmarks.haystack import NEEDLES, chronicle
from sharpwave.commands import read
from sharpwave.memory import MemoryStore
from sharpwave.memory.reading import ExtractiveReader

QUESTION = "What is the combination of the safe in the town hall?"

ANSWER = json.dumps({"answer": "Ivo.", "known": True})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "chronicle.txt"
    path.write_text("\n\n".join(chronicle(20_000, NEEDLES, seed=5)), encoding="utf-8")
    return path


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setattr("sharpwave.assembly.embeddings", lambda settings: HashEmbeddings())
    return runner(home, [read], monkeypatch, capsys, "read")


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Have Ctrl-C come at the n-th piece that is read from now on, once."""
    real = ExtractiveReader.read

    def at(number: int) -> None:
        left = [number]

        def reading(self: ExtractiveReader, *given: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            return real(self, *given)

        monkeypatch.setattr(ExtractiveReader, "read", reading)

    return at


def kept(home: Path) -> int:
    with closing(sqlite3.connect(home / "checkpoints.sqlite3")) as connection:
        there = "SELECT name FROM sqlite_master WHERE name IN ('checkpoints', 'writes')"
        tables = [name for (name,) in connection.execute(there)]
        return sum(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)


def test_the_answer_is_printed_with_its_place_and_nothing_is_left_behind(run: Run, home: Path, file: Path) -> None:
    done = run(file, "--question", QUESTION, "--json")
    assert done.code == 0 and done.err == ""
    answer = done.json
    assert "4713" in answer["answer"] and answer["known"] and answer["by"] == "extractive/1"
    line = file.read_text(encoding="utf-8").splitlines()[answer["passages"][0]["line"] - 1]
    assert "4713" in line
    assert answer["pieces"] > 4 and answer["resumed"] == 0 and answer["size"] == file.stat().st_size
    assert kept(home) == 0


def test_for_people_it_says_that_it_only_extracts(run: Run, file: Path) -> None:
    done = run(file, "-q", QUESTION)
    assert "4713" in done.out and "extractive, no language model" in done.out


def test_after_ctrl_c_the_same_command_goes_on(
    run: Run, home: Path, file: Path, interrupted: Callable[[int], None]
) -> None:
    whole = run(file, "-q", QUESTION, "--json").json
    interrupted(4)
    stopped = run(file, "-q", QUESTION, "--json")
    assert stopped.code == 130 and stopped.out == "" and "the same command goes on" in stopped.err
    again = run(file, "-q", QUESTION, "--json").json
    assert again["resumed"] > 0
    assert [again[key] for key in ("answer", "passages", "pieces")] == [
        whole[key] for key in ("answer", "passages", "pieces")
    ]
    assert kept(home) == 0


def test_a_changed_file_is_refused_and_another_thread_reads_it_anew(
    run: Run, file: Path, interrupted: Callable[[int], None]
) -> None:
    interrupted(3)
    run(file, "-q", QUESTION)
    file.write_text(file.read_text(encoding="utf-8").replace("4713", "1234"), encoding="utf-8")
    refused = run(file, "-q", QUESTION)
    assert refused.code == 2 and "has changed" in refused.err and "--thread" in refused.err
    assert "1234" in run(file, "-q", QUESTION, "--thread", "anew").out


def test_a_thread_is_one_reading_at_a_time(run: Run, file: Path, interrupted: Callable[[int], None]) -> None:
    interrupted(3)
    run(file, "-q", QUESTION, "--thread", "mine")
    refused = run(file, "-q", "Who sold the mill?", "--thread", "mine")
    assert refused.code == 2 and QUESTION in refused.err
    assert run(file, "-q", "Who sold the mill?", "--thread", "mine", "--user", "ana").code == 0
    assert run(file, "-q", QUESTION, "--thread", "mine", "--json").json["resumed"] > 0


@pytest.mark.parametrize(
    ("words", "complaint"), [(("-q", " "), "blank"), (("-q", "Who?", "--thread", "x"), "No such file")]
)
def test_bad_input_is_one_line(run: Run, tmp_path: Path, words: tuple[str, ...], complaint: str) -> None:
    done = run(tmp_path / "missing.txt", *words)
    assert done.code == 2 and done.out == "" and complaint in done.err and done.err.count("\n") == 1


def test_a_model_that_fails_is_asked_again_by_the_same_command_and_its_cost_is_booked(
    run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "long.txt"
    file.write_text("The ferry was late. " * 2_500, encoding="utf-8")
    note = json.dumps({"notes": ["Ivo sold it"]})
    monkeypatch.setenv("SHARPWAVE_USER", "ana")
    monkeypatch.setenv("SHARPWAVE_MODEL", "stub")
    with OpenAIStub([note, "no JSON", "no JSON"]) as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", stub.base_url)
        failed = run(file, "-q", "Who sold it?")
    assert failed.code == 1 and "the same command goes on" in failed.err
    with OpenAIStub(lambda request: ANSWER if '"answer"' in request["messages"][0]["content"] else note) as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", stub.base_url)
        done = run(file, "-q", "Who sold it?", "--json").json
    assert done["by"] == "llm/1" and done["answer"] == "Ivo." and done["resumed"] > 0
    with MemoryStore.open(home, embeddings=HashEmbeddings()) as store:
        assert store.tokens_today("ana") > done["usage"]["prompt_tokens"]


@pytest.mark.slow
def test_after_a_kill_the_same_command_goes_on(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("\n\n".join(chronicle(300_000, NEEDLES, seed=5)), encoding="utf-8")
    command = [sys.executable, "-m", "sharpwave", "--home", str(home), "read", str(file), "-q", QUESTION, "--json"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not (home / "checkpoints.sqlite3").exists() or kept(home) < 20:
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert done["resumed"] > 0 and "4713" in done["answer"]
