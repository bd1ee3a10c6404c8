"""The recall benchmark, on made-up questions and on LoCoMo."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from fakes import HashEmbeddings
from typer.testing import CliRunner

from sharpwave.benchmarks import cost
from sharpwave.benchmarks.questions import halumem, locomo
from sharpwave.benchmarks.recall import measure, score
from sharpwave.commands import bench
from sharpwave.ingesting import ingest
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.errors import InputError
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.store import MemoryStore

LINES = ["I adopted a corgi.", "Nice!", "We went camping at the lake.", "My new kayak is yellow.", "Good night."]


def sample(name: str, questions: list[tuple[str, list[str], int]]) -> dict[str, Any]:
    session = [{"speaker": "Ana", "dia_id": f"D1:{n}", "text": text} for n, text in enumerate(LINES, 1)]
    talk = {
        "speaker_a": "Ana",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": session,
    }
    asked = [
        {"question": text, "evidence": gold, "category": category, "answer": ""} for text, gold, category in questions
    ]
    return {"sample_id": name, "conversation": talk, "qa": asked}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    one = [
        ("Which dog did Ana adopt, a corgi?", ["D1:1"], 4),
        ("What colour is the kayak?", ["D1:04"], 1),
        ("Where was the camping?", ["D1:3; D1:4"], 2),
        ("Is it raining?", ["D"], 4),
        ("Is it snowing?", ["D7:1"], 4),
        ("Did Bo adopt a corgi?", ["D:1:1"], 5),
    ]
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([sample("c1", one), sample("c2", [("A yellow kayak?", ["D1:4"], 3)])]))
    return path


def test_evidence_is_read_from_labels_of_any_shape(file: Path) -> None:
    turns, questions = locomo(file)
    assert len(turns) == 2 * len(LINES)
    assert [(q.owner, set(q.gold), q.category) for q in questions] == [
        ("c1", {"D1:1"}, "single-hop"),
        ("c1", {"D1:4"}, "multi-hop"),
        ("c1", {"D1:3", "D1:4"}, "temporal"),
        ("c1", {"D1:1"}, "adversarial"),
        ("c2", {"D1:4"}, "open-domain"),
    ]


def test_scores_of_one_question() -> None:
    gold = frozenset({"a", "b"})
    assert score(gold, ["a", "b"]) == {"r@1": 0.5, "r@5": 1, "r@10": 1, "r@20": 1, "mrr": 1, "ndcg@10": 1}
    late = score(gold, ["x"] * 5 + ["b"])
    assert (late["r@5"], late["r@10"], late["mrr"]) == (0, 0.5, pytest.approx(1 / 6))
    assert late["ndcg@10"] == pytest.approx(0.2184, abs=1e-4)  # 1 / log2(7), over 1 + 1 / log2(3)
    assert score(gold, []) == {"r@1": 0, "r@5": 0, "r@10": 0, "r@20": 0, "mrr": 0, "ndcg@10": 0}


def test_questions_are_asked_of_a_store_of_its_own_making(file: Path, tmp_path: Path) -> None:
    found = measure("locomo", file, tmp_path / "home", HashEmbeddings())
    assert found["questions"] == 5 and found["overall"]["n"] == 4
    assert {name: one["n"] for name, one in found["categories"].items()} == {
        "adversarial": 1,
        "multi-hop": 1,
        "open-domain": 1,
        "single-hop": 1,
        "temporal": 1,
    }
    assert found["overall"]["r@5"] == found["overall"]["mrr"] == 1
    assert found["cpu_ms_per_query"] > 0 and found["chroma_query_cpu_ms"] > 0 and found["ratio_to_chroma"] > 0
    assert not (tmp_path / "home").exists()


def test_conversations_that_are_at_home_are_not_ingested_again(file: Path, tmp_path: Path) -> None:
    home, embeddings = tmp_path / "home", HashEmbeddings()
    with MemoryStore.open(home, embeddings=embeddings) as store:
        ingest(store, locomo(file)[0], RulesExtractor(), RulesPolicy())
    before = embeddings.texts
    found = measure("locomo", file, home, embeddings)
    assert found["overall"]["r@5"] == 1
    assert embeddings.texts - before <= 2 + found["questions"]  # the probe on opening, and the questions


def test_a_home_with_other_conversations_is_left_alone(file: Path, tmp_path: Path) -> None:
    home, embeddings = tmp_path / "home", HashEmbeddings()
    with MemoryStore.open(home, embeddings=embeddings) as store:
        store.add("ana", "Likes tea")
    assert measure("locomo", file, home, embeddings)["overall"]["r@5"] == 1
    with MemoryStore.open(home, embeddings=embeddings) as store:
        assert store.owners() == ["ana"]


def statement(text: str, source: str = "system") -> dict[str, Any]:
    return {"memory_content": text, "memory_source": source, "index": 1}


def test_statements_are_found_too(tmp_path: Path) -> None:
    points = [
        statement("Sarah lives in Miami"),
        statement("Sarah keeps bees"),
        statement("Sarah lives in Rome", "interference"),
    ]
    asked = {
        "question": "Does Sarah keep bees?",
        "question_type": "recall",
        "evidence": [statement("Sarah keeps bees")],
    }
    session = {"start_time": "Sep 04, 2025, 09:05:32", "memory_points": points, "questions": [asked]}
    (tmp_path / "one.jsonl").write_text(
        json.dumps({"uuid": "u1", "sessions": [session, {**session, "questions": None}]})
    )
    memories, questions = halumem(tmp_path)
    assert len(memories) == 4 and [len(question.gold) for question in questions] == [2]
    found = measure("halumem", tmp_path, tmp_path / "home", HashEmbeddings())
    assert found["overall"]["r@5"] == 1 and list(found["categories"]) == ["recall"]


def test_a_folder_without_the_data_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no \.jsonl file"):
        halumem(tmp_path)
    (tmp_path / "one.jsonl").write_text('{"sessions": 1}')
    with pytest.raises(InputError, match="does not look like HaluMem"):
        halumem(tmp_path)


def test_the_commands_print_a_table_or_json(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: HashEmbeddings())
    app = typer.Typer()
    bench.register(app)
    words = ["bench", "recall", "--dataset", "locomo", "--data", str(file)]
    shown = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    printed = CliRunner().invoke(app, [*words, "--json"])
    assert json.loads(printed.output)["dataset"] == "locomo"
    assert CliRunner().invoke(app, ["bench", "recall", "--dataset", "nothing", "--data", str(file)]).exit_code == 2


def test_the_cost_of_a_turn_is_apart_from_that_of_the_embedder() -> None:
    found = cost.measure(HashEmbeddings(), before=20, turns=12)
    assert found["turns"] == 12 and 0 < found["turns_that_wrote"] < 12
    for name in ("cpu_ms_per_turn", "cpu_ms_per_quiet_turn", "encoder_cpu_ms_per_turn", "chroma_add_and_query_cpu_ms"):
        assert found[name] > 0
    assert found["ratio_to_chroma"] == pytest.approx(
        found["cpu_ms_per_turn"] / found["chroma_add_and_query_cpu_ms"], rel=0.01
    )


@pytest.mark.data
def test_locomo_has_the_questions_that_others_count(data: Path) -> None:
    turns, questions = locomo(data / "locomo10.json")
    assert (len(turns), len(questions)) == (5882, 1982)
    assert sum(question.category != "adversarial" for question in questions) == 1536


@pytest.mark.data
def test_evidence_of_one_conversation_is_found(data: Path, tmp_path: Path) -> None:
    document = json.loads((data / "locomo10.json").read_bytes())
    path = tmp_path / "one.json"
    path.write_text(json.dumps(document[1:2]))
    found = measure("locomo", path, tmp_path / "home")
    assert found["overall"]["r@10"] >= 0.74
    assert found["ratio_to_chroma"] <= 3  # 2.2 on a quiet machine
