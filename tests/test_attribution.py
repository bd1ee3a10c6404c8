"""Whose words a message says, read by the real local encoder."""

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from fakes import HashEmbeddings

from sharpwave.benchmarks.attribution import measured, messages, posed
from sharpwave.memory.embed import LocalEmbeddings, packaged_files
from sharpwave.memory.extract import attribution
from sharpwave.memory.extract.attribution import FOREIGN, attribution_for, tokens_in
from sharpwave.memory.extract.rules import RulesExtractor, rules_for
from sharpwave.memory.records import Message, Turn

SAID_AT = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def extractor() -> RulesExtractor:
    return rules_for(LocalEmbeddings())


def kept(extractor: RulesExtractor, text: str) -> list[str]:
    turn = Turn(owner="ana", thread="t", messages=(Message(id="m", role="user", text=text),), said_at=SAID_AT)
    return [candidate.text for candidate in extractor.extract(turn, [])]


@pytest.mark.parametrize(
    "text",
    [
        "Our neighbour left a note on the car, I've had enough of your dog",
        "the guy at the gym was on the phone the whole time, I live in Reading, I work in Slough",
        "Ex called at midnight crying, I miss the dog, I want to come home",
        "Got an email from a client, I have been with you for twelve years and I am very unhappy, how do I answer?",
        "my flatmate left a voice message, I lost my keys, I'm at the station",
    ],
)
def test_what_others_say_is_not_kept_as_the_users_own(extractor: RulesExtractor, text: str) -> None:
    assert kept(RulesExtractor(), text), "the forms of reported speech know it already"
    assert kept(extractor, text) == []


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("I told the waiter I hate coriander and he laughed", "I hate coriander"),
        ("My sister rang. I have two kids and no time, so it was short.", "I have two kids"),
        ("Good morning! I quit the agency in December and I run my own studio now.", "I quit the agency in December"),
        ("The comic has a thousand readers. I draw it on Sundays.", "I draw it on Sundays"),
        ("I'm Linda, I'm in Tulsa, and I quilt.", "I'm in Tulsa"),
    ],
)
def test_what_users_say_of_themselves_is_kept(extractor: RulesExtractor, text: str, own: str) -> None:
    assert any(own in one for one in kept(extractor, text))


def test_each_span_is_read_within_its_message() -> None:
    reader = attribution_for(LocalEmbeddings())
    assert reader is not None
    text = "I work nights. The man next door shouted through the wall, I have a gun, I want quiet"
    own, foreign = "I work nights", "I have a gun"
    spans = [(text.find(words), text.find(words) + len(words)) for words in (own, foreign)]
    likely = reader.foreign(text, spans)
    assert likely[0] < FOREIGN <= likely[1] <= 1
    assert reader.foreign(text, [(0, 0)]) == [0.0]
    assert tokens_in([(0, 0), (0, 1), (2, 6), (0, 0)], (2, 6)) == [2]


def test_tokens_stand_where_their_words_do_in_the_message() -> None:
    reader = attribution_for(LocalEmbeddings())
    assert reader is not None
    text = "Well… so… ½ a mile on, ﬁnally, I have a gun"
    row = reader.encoder.tokens(text)
    places = tokens_in(row.offsets, (text.find("I have"), len(text)))
    assert [text[slice(*row.offsets[at])] for at in places] == ["I", "have", "a", "gun"]


def test_only_the_packaged_encoder_has_one(tmp_path: Path) -> None:
    assert attribution_for(HashEmbeddings()) is None
    files = packaged_files()
    for file in (files.model, files.tokenizer):
        (tmp_path / file.name).symlink_to(file)
    assert attribution_for(LocalEmbeddings(tmp_path)) is None


def test_labelled_words_stand_in_their_messages() -> None:
    for split in ("tune", "held"):
        for message in messages(split):
            _, spans = posed(message.user, message.own, message.foreign)
            assert len(spans) == len(message.own) + len(message.foreign)


@pytest.mark.slow
def test_it_reads_writers_that_it_was_not_fitted_to() -> None:
    found = measured(list(messages("held")))
    sure = found["by_least_probability"][FOREIGN]
    assert sure["foreign_told"] >= 0.65 and sure["own_taken_for_foreign"] <= 0.21, json.dumps(found)
    plain, read = found["kept"].values()
    assert read["foreign"] <= 0.6 * plain["foreign"] and read["own"] >= 0.8 * plain["own"], json.dumps(found)


def test_fitting_lowers_the_loss_and_yields_what_is_read() -> None:
    pytest.importorskip("torch", reason="training needs the [train] extra")
    pytest.importorskip("onnx", reason="training needs the [train] extra")
    from sharpwave.benchmarks.attribution import encoded
    from sharpwave.memory.learning.low_rank import fit

    some = [posed(one.user, one.own, one.foreign) for one in messages("held")][:64]
    told: list[str] = []
    fitted = fit(encoded(some), 2, epochs=3, told=told.append)
    losses = [float(line.rsplit(" ", 1)[1]) for line in told]
    assert losses[-1] < losses[0]
    with np.load(attribution.WEIGHTS) as weights:
        assert {name: value.shape for name, value in fitted.items()} == {name: weights[name].shape for name in weights}
