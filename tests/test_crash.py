"""Killed at random instants, and the parts of the script that does it at length."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sharpwave.benchmarks import crash
from sharpwave.benchmarks.talk import talk


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_or_doubled_by_kills(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sharpwave.benchmarks.crash", "--kills", "3", "--turns", "90", "--json"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["kills"] == 3 and found["stores"] >= 1 and found["problems"] == []
    assert list(tmp_path.iterdir()) == []


def test_a_difference_is_a_problem(tmp_path: Path) -> None:
    run = crash._Run(tmp_path / "talk.jsonl", {}, lambda: 0.0)
    run._expect(False, "The memories differ.")
    run._expect(True, "All is well.")
    assert run.problems == ["store 0: The memories differ."]


def test_the_talk_is_the_same_each_time() -> None:
    lines = list(talk(2, 60, seed=5))
    assert lines == list(talk(2, 60, seed=5)) and lines != list(talk(2, 60, seed=6))
    assert len({line["id"] for line in lines}) == 60
    assert {line["user"] for line in lines} == {"user-0", "user-1"}


def test_equal_texts_are_embedded_alike() -> None:
    one, other = crash.Hashed().embed_documents(["I live in Oslo", "I live in Lisbon"])
    assert one == crash.Hashed().embed_query("I live in Oslo") != other
    assert one == pytest.approx(one) and any(one)
