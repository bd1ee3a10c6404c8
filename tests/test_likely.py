"""What is told in passing, in no form that a rule reads: kept word by word where it is likely to be a fact."""

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from sharpwave.benchmarks import likely as fitting
from sharpwave.benchmarks.labelled import load
from sharpwave.memory.extract import likely
from sharpwave.memory.extract.clauses import before_question
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.gate import worth_reading
from sharpwave.memory.records import Candidate, Message, Turn

WHEN = datetime(2026, 3, 1, 12, tzinfo=UTC)


def turn_of(text: str) -> Turn:
    return Turn(owner="ana", thread="t1", messages=(Message(id="m1", role="user", text=text),), said_at=WHEN)


def extract(text: str, least: float = likely.LEAST) -> list[Candidate]:
    return RulesExtractor(least).extract(turn_of(text), [])


TOLD = [
    ("dropped the evening course in March, any podcasts instead?", "dropped the evening course in March"),
    (
        "The boiler was replaced last week by Ferris & Sons, who do I call about the noise?",
        "The boiler was replaced last week",
    ),
    ("Half of the orchard is down to 40 trees now, what eats bark?", "Half of the orchard is down to 40 trees now"),
]


@pytest.mark.parametrize(("said", "fact"), TOLD)
def test_what_no_rule_reads_is_kept_word_by_word_and_without_a_slot(said: str, fact: str) -> None:
    assert extract(said, least=2.0) == []
    [found] = extract(said)
    assert found.text in said and fact in found.text and "?" not in found.text
    assert (found.attribute, found.value, found.confidence) == (None, None, 0.6)
    assert worth_reading(turn_of(said))


@pytest.mark.parametrize(
    "said",
    [
        "what psi for 28mm tyres",
        "can u explain tides like im 12",
        "whats a decent soup for tonight",
        "cheer me up a bit",
        "brilliant, that sorted the whole thing out",
        "The capital of Peru is Lima.",
        "My aunt announced I am a trained harpist and I want the hall in June.",
        "long shift and the weather is awful tonight",
    ],
)
def test_requests_moods_and_what_holds_of_the_world_are_not_kept(said: str) -> None:
    assert extract(said) == []


def test_a_question_at_the_end_is_cut_off() -> None:
    assert before_question("sold the caravan, new hobby?") == "sold the caravan"
    assert before_question("sold the caravan so what do I do with the awning?") == "sold the caravan"
    assert before_question("Is it late, or not?") == "Is it late"
    assert before_question("Is it late?") == ""
    assert before_question("我吃素，火锅底料怎么选？") == "我吃素"
    assert before_question("It is late.") == "It is late."


def test_known_names_make_a_clause_likelier() -> None:
    text = "olive is on thyroid tablets"
    assert likely.probability(text, {"olive"}) > likely.probability(text)


def test_the_weights_are_those_that_the_labelled_dialogues_give() -> None:
    found = list(fitting.examples(load("tune")))
    weights = fitting.fitted(
        np.array([one.traits for one in found], float), np.array([one.fact for one in found], float)
    )
    kept = json.loads(Path(likely.__file__).with_suffix(".json").read_text("utf-8"))
    assert list(kept) == [*likely.TRAITS, "bias"] and set(likely.TRAITS) >= likely.TIES
    assert np.allclose(list(kept.values()), weights, atol=2e-3)


def test_in_cross_validation_it_finds_half_of_what_rules_leave_and_is_right() -> None:
    found = fitting.cross_validated(list(fitting.examples(load("tune"))))
    taken = found["by_least_probability"][likely.LEAST]
    assert taken["found"] >= 0.45 * found["facts"]
    assert taken["false"] <= 0.05 * taken["found"]
