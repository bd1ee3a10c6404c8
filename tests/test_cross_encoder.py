"""The cross-encoder: what is read in a statement and a memory, by the real local encoder."""

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from fakes import HashEmbeddings

from sharpwave.benchmarks.pairs import encoded, measured, people, posed
from sharpwave.memory import cross_encoder
from sharpwave.memory.adapted import changed as changed_by
from sharpwave.memory.cross_encoder import NEAR, RELATIONS, SHOWN, CrossEncoder, reader_for
from sharpwave.memory.embed import LocalEmbeddings, packaged_files
from sharpwave.memory.records import Memory, Recall, Relation, Score

WHEN = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def reader() -> CrossEncoder:
    found = reader_for(LocalEmbeddings())
    assert found is not None
    return found


def hit(text: str, cosine: float) -> Recall:
    memory = Memory.model_validate({"owner": "ana", "text": text, "recorded_at": WHEN, "valid_from": WHEN})
    parts = Score(cosine=cosine)
    return Recall(id=memory.id, store="semantic", text=text, said_at=WHEN, score=0.5, parts=parts, memory=memory)


@pytest.mark.parametrize(
    ("known", "said", "relation"),
    [
        ("I have two kids", "I dropped the kids at school", "apart"),
        ("I drive a Fiat", "got myself a Volvo, the Fiat went to my nephew", "new"),
        ("I can't stand olives", "turns out I quite like olives these days", "new"),
        ("I smoke", "haven't touched a cigarette since May", "over"),
        ("I'm vegan", "no animal products for me", "same"),
        ("I have a sister", "my sister's name is Ines", "more"),
    ],
)
def test_it_reads_what_a_statement_does_to_what_is_known(
    reader: CrossEncoder, known: str, said: str, relation: str
) -> None:
    [likely] = reader.read([(known, said)])
    assert RELATIONS[int(likely.argmax())] == relation
    assert likely.sum() == pytest.approx(1, abs=1e-5)


def test_pairs_are_read_alike_alone_and_together(reader: CrossEncoder) -> None:
    pairs = [
        ("I smoke", "gave up in May"),
        ("I live in Ghent", "the weather in Ghent is awful, all rain and wind today"),
    ]
    together = reader.read(pairs)
    assert np.allclose(together, np.concatenate([reader.read([pair]) for pair in pairs]), atol=1e-6)
    assert reader.read([]).shape == (0, len(RELATIONS))


def test_only_the_nearest_memories_are_read_with_an_english_statement(reader: CrossEncoder) -> None:
    near = [hit(f"I have {count} cats", 0.9 - count / 10) for count in range(5)] + [hit("I ski", NEAR - 0.01)]
    read = [found.relation is not None for found in reader.related("the cats are gone", near)]
    assert read == [True] * SHOWN + [False] * (6 - SHOWN)
    assert not any(found.relation for found in reader.related("Ich habe keine Katzen mehr und bin traurig", near))
    [alone] = reader.related("the cats are gone", [hit("I ski", NEAR - 0.01)])
    assert alone.relation is None


def test_logs_and_tickets_are_not_read(reader: CrossEncoder) -> None:
    """They say many things in one mould, where likeness is not sameness."""
    known = hit("Task outcome: readiness plan approved for the Fjord project.", 0.9)
    [log] = reader.related(
        "platform follow-up confirmed that the readiness plan was changed for the Fjord project", [known]
    )
    assert log.relation is None
    [told] = reader.related("the choir has folded", [hit("I sing in the choir", 0.6)])
    assert told.relation is not None
    [noted] = reader.related("Choir is over", [hit("User sings in a choir", 0.6)])
    assert noted.relation is not None


def test_there_is_one_for_the_packaged_encoder_alone(tmp_path: Path) -> None:
    assert reader_for(HashEmbeddings()) is None
    files = packaged_files()
    for file in (files.model, files.tokenizer):
        (tmp_path / file.name).symlink_to(file)
    assert reader_for(LocalEmbeddings(tmp_path)) is None


def test_its_relations_are_those_of_the_record() -> None:
    assert set(RELATIONS) == set(Relation.model_fields) - {"said"}


def test_without_a_change_the_packaged_file_stays_as_it_is() -> None:
    model = packaged_files().model.read_bytes()
    with np.load(cross_encoder.WEIGHTS) as weights:
        same = {
            name: np.zeros_like(value) if name[0] in "ab" and name != "bias" else value
            for name, value in weights.items()
        }
        changed = dict(weights)
    assert (
        sum(one != other for one, other in zip(changed_by(model, same), model, strict=True)) <= 64
    )  # scales' last digits
    assert changed_by(model, changed) != model


@pytest.mark.slow
def test_it_reads_writers_that_it_was_not_fitted_to() -> None:
    pairs = [pair for person in people("held") for pair in posed(person)]
    found = measured(pairs, pairs[:50])
    assert found["accuracy"] >= 0.68, json.dumps(found)
    sure = found["by_least_probability"][0.95]
    assert sure["changes_seen"] >= 0.38 and sure["taken_for_a_change"] <= 0.015, json.dumps(found)


def test_fitting_lowers_the_loss_and_yields_what_is_read() -> None:
    pytest.importorskip("torch", reason="training needs the [train] extra")
    pytest.importorskip("onnx", reason="training needs the [train] extra")
    from sharpwave.memory.learning.low_rank import fit

    pairs = [pair for person in people("held") for pair in posed(person)][:64]
    told: list[str] = []
    fitted = fit(encoded(pairs), len(RELATIONS), epochs=3, told=told.append)
    losses = [float(line.rsplit(" ", 1)[1]) for line in told]
    assert losses[-1] < losses[0]
    with np.load(cross_encoder.WEIGHTS) as weights:
        assert {name: value.shape for name, value in fitted.items()} == {name: weights[name].shape for name in weights}
        assert (fitted["places"] == weights["places"]).all()
