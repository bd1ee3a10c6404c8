"""The comparison of the kinds of memory: what each finds, and which of them answers."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from fakes import HashEmbeddings
from typer.testing import CliRunner

from sharpwave.benchmarks.kinds import measure
from sharpwave.commands import bench
from sharpwave.memory.errors import InputError


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return measure(embeddings=HashEmbeddings())


def test_ten_questions_are_asked_of_each_kind(found: dict[str, Any]) -> None:
    assert len(found["queries"]) == found["overall"]["n"] == 10
    for query in found["queries"]:
        assert list(query["found"]) == ["semantic", "episodic", "entity"]
        assert all(len(hits) <= 3 for hits in query["found"].values())
        for kind in query["wins"]:
            assert any(hit["answers"] for hit in query["found"][kind])


def test_each_kind_answers_what_it_is_for(found: dict[str, Any]) -> None:
    told, tried = found["questions"]["what was said"], found["questions"]["what was tried"]
    assert told["episodic"]["alone"] > 0 and tried["episodic"]["hit@3"] == 1 and tried["semantic"]["hit@3"] == 0
    assert found["questions"]["what holds now"]["semantic"]["hit@3"] > 0
    by_way = next(query for query in found["queries"] if "husband" in query["question"])
    assert any(hit["answers"] for hit in by_way["found"]["entity"])
    assert found["questions"]["what holds now"]["entity"]["hit@3"] == 0  # no name in the question
    assert "what was tried" in found["wins_at"]["episodic"]


def test_questions_of_locomo_go_by_the_messages_that_answer_them(tmp_path: Path) -> None:
    lines = ["I adopted a corgi called Bruno.", "My sister Ida keeps bees.", "Nice!"]
    session = [{"speaker": "Ana", "dia_id": f"D1:{n}", "text": text} for n, text in enumerate(lines, 1)]
    talk = {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": session}
    asked = [
        {"question": f"Does Ida keep bees, as she did {n} years ago?", "evidence": ["D1:2"], "category": 1 + n % 4}
        for n in range(16)
    ]
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([{"sample_id": "c1", "conversation": talk, "qa": asked}]))
    found = measure("locomo", path, HashEmbeddings())
    assert found["holds"]["messages"] == 3 and found["overall"]["n"] == 16
    assert len(found["queries"]) == 8  # two of each category
    assert {kind: found["overall"][kind]["hit@3"] for kind in ("semantic", "episodic", "entity")} == {
        "semantic": 1,
        "episodic": 1,
        "entity": 1,
    }
    with pytest.raises(InputError, match="--data"):
        measure("locomo", None, HashEmbeddings())


def test_the_command_prints_tables_within_a_hundred_columns_or_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: HashEmbeddings())
    monkeypatch.setenv("COLUMNS", "100")
    app = typer.Typer()
    bench.register(app)
    shown = CliRunner().invoke(app, ["bench", "kinds"])
    assert shown.exit_code == 0, shown.output
    rows = shown.output.splitlines()
    tables = [row for row in rows if "─" in row or row.startswith((" ✓", " ·", "│"))]
    assert tables and max(map(len, tables)) <= 100 and "✓" in shown.output and "episodic is best at" in shown.output
    printed = json.loads(CliRunner().invoke(app, ["bench", "kinds", "--json"]).output)
    assert printed["dataset"] == "demo" and set(printed["own_cpu_ms_per_query"]) == {"semantic", "episodic", "entity"}
    assert CliRunner().invoke(app, ["bench", "kinds", "--dataset", "halumem"]).exit_code == 2
