"""The benchmarks of what recall learns from citations, and of what summaries do to it, on made-up conversations."""

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from fakes import HashEmbeddings
from typer.testing import CliRunner

from sharpwave.benchmarks import citations, summaries
from sharpwave.benchmarks.citations import Found, compare, interval
from sharpwave.benchmarks.questions import Question
from sharpwave.commands import bench
from sharpwave.memory.features import FEATURES

WORDS = "kayak corgi violin quilt lantern saddle anchor teapot ladder cactus harp sled".split()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    samples = []
    for name in ("c1", "c2"):
        said = [{"speaker": "Ana", "dia_id": f"D1:{n}", "text": f"I bought a {w}."} for n, w in enumerate(WORDS, 1)]
        talk = {"speaker_a": "Ana", "speaker_b": "Bo", "session_1_date_time": "1:56 pm on 8 May, 2023"}
        asked = [
            {"question": f"Did Ana buy a {w}?", "evidence": [f"D1:{n}"], "category": 1 + n % 5, "answer": ""}
            for n, w in enumerate(WORDS, 1)
        ]
        samples.append({"sample_id": name, "conversation": {**talk, "session_1": said}, "qa": asked})
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps(samples))
    return path


def test_orders_are_compared_on_questions_that_taught_nothing(file: Path, tmp_path: Path) -> None:
    found = citations.measure(file, tmp_path / "home", HashEmbeddings())
    for split in found["splits"].values():
        assert split["n"] == 10  # half of twice ten; the adversarial ones are left out
        assert split["fixed"]["r@10"] == 1 and len(split["online"]["mrr gain"]) == 3
    assert found["all_questions"]["n"] == 20 and found["costs"]["reranked"]["ratio_to_chroma"] > 0


def question(number: int, rng: np.random.Generator) -> Found:
    """Twenty candidates of about the same score; the evidence is the longest of them."""
    features = np.zeros((20, len(FEATURES)))
    features[:, FEATURES.index("length")] = rng.random(20)
    scores = features[:, FEATURES.index("keyword")] = 0.5 + 0.2 * rng.random(20)
    gold = f"m{int(np.argmax(features[:, FEATURES.index('length')]))}"
    asked = Question(f"c{number % 3}", "?", frozenset({gold}), "single-hop")
    return Found(asked, [f"m{n}" for n in range(20)], features, scores)


def test_what_tells_the_evidence_is_learned_online_and_pooled() -> None:
    rng = np.random.default_rng(0)
    by_owner = {f"c{owner}": [question(owner, rng) for _ in range(120)] for owner in range(3)}
    for split in compare(by_owner)["splits"].values():
        for order in ("online", "pooled"):
            assert split[order]["mrr gain"][1] > 0.1 and split[order]["r@10 gain"][1] > 0.1


def test_an_interval_is_over_conversations() -> None:
    same = interval([np.array([0.1] * 5), np.array([0.1] * 7)])
    assert same == [0.1, 0.1, 0.1]
    mean, low, high = interval([np.array([1.0]), np.array([0.0]), np.array([0.0, 0.0])])
    assert (mean, low, high) == (0.25, 0.0, 1.0)


def test_summaries_are_written_and_counted(file: Path) -> None:
    found = summaries.measure(file, HashEmbeddings())
    assert found["n"] == 20 and found["without summaries"]["r@10"] > 0
    assert found["right session"] >= found["with summaries"]["summaries"] > 0  # there is one session for each user


def test_the_command_prints_a_table_or_json(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(citations, "LocalEmbeddings", HashEmbeddings)
    citations.main(["--data", str(file), "--json"])
    assert set(json.loads(capsys.readouterr().out)) == {"splits", "all_questions", "costs"}
    citations.main(["--data", str(file)])
    assert "ordered     online" in capsys.readouterr().out
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: HashEmbeddings())
    app = typer.Typer()
    bench.register(app)
    printed = CliRunner().invoke(app, ["bench", "citations", "--data", str(file), "--json"])
    assert printed.exit_code == 0 and json.loads(printed.output)["all_questions"]["n"] == 20
