"""`sharpwave demo`: it shows what it says it shows, leaves nothing behind, and tells when something is missing."""

import json
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from sharpwave import cli
from sharpwave.memory import MemoryStore
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.records import Candidate


class Done(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `sharpwave demo …` in this process, with `tmp_path` for its folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def call(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["sharpwave", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        return Done(int(ended.value.code or 0), printed.out, printed.err)

    return call


def test_the_demo_shows_every_operation_and_leaves_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "never used")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    done = run("demo")
    assert (done.code, done.err) == (0, "")
    for line in (
        "ADD    I'm allergic to shellfish.  (importance 0.95)",
        "NOOP   I'm allergic to shellfish.",
        "UPDATE I moved to Lisbon last week.  (before: I live in Oslo.)",
        "DELETE I work as a nurse.",
        "as of  I live in Oslo.",
        "UNDO   I work as a nurse.",
        "no language model",
    ):
        assert line in done.out
    assert re.search(r"v1     I live in Oslo\.  \(2 March – \d+ March;", done.out)
    assert re.search(r"v2     I moved to Lisbon last week\.  \(\d+ March – now;", done.out)
    assert len(done.out.splitlines()) <= 90
    assert max(map(len, done.out.splitlines())) <= 100
    assert list(tmp_path.iterdir()) == []


def test_the_demo_as_json_holds_the_steps_the_checks_and_the_summary(run: Run, tmp_path: Path) -> None:
    done = run("demo", "--json", "--keep")
    result = json.loads(done.out)
    summary = result["summary"]
    assert {op: summary[op] for op in ("ADD", "UPDATE", "DELETE", "NOOP", "nothing_written")} == {
        "ADD": 6,
        "UPDATE": 1,
        "DELETE": 1,
        "NOOP": 1,
        "nothing_written": 2,
    }
    assert summary["memories"] == {"ana": 6, "bob": 0}
    assert summary["passed"] == summary["checks"] == len(result["checks"])
    assert all(check["ok"] for check in result["checks"])
    assert len({step["at"][:10] for step in result["steps"]}) == 4
    with MemoryStore.open(result["home"]) as kept:
        assert len(kept.memories("ana")) == 6
    assert Path(result["home"]).parent == tmp_path


def test_the_demo_says_what_did_not_happen(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = RulesExtractor.extract

    def forgetful(self: RulesExtractor, *arguments: object) -> list[Candidate]:
        return [found for found in real(self, *arguments) if "Lisbon" not in found.text]  # type: ignore[arg-type]

    monkeypatch.setattr(RulesExtractor, "extract", forgetful)
    done = run("demo")
    assert done.code == 1
    assert "'I moved to Lisbon last week.' gives UPDATE; it gave nothing" in done.err
    assert "the city has two versions; it has 1" in done.err
