"""The benchmark of long talks: what it counts, and the part that is held back."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from fakes import HashEmbeddings

from sharpwave.benchmarks.chats import Chat, Said, load, measure, tells
from sharpwave.memory.decide.learned import LearnedPolicy
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.embed import LocalEmbeddings

START = datetime(2026, 3, 1, tzinfo=UTC)


def chat(*said: dict[str, object]) -> Chat:
    turns = [Said.model_validate({"at": START + timedelta(days=at), **one}) for at, one in enumerate(said)]
    return Chat(id="a", turns=tuple(turns))


def test_a_change_is_right_where_a_turn_says_so_and_wrong_elsewhere() -> None:
    moved = {"user": "I live in Ghent now.", "ends": ["I live in Leeds"]}
    right = measure([chat({"user": "I live in Leeds."}, moved)], RulesPolicy(), HashEmbeddings())
    wrong = measure(
        [chat({"user": "I live in Leeds."}, {"user": "I live in Ghent now."})], RulesPolicy(), HashEmbeddings()
    )
    assert (right["changed_rightly"], right["changed_wrongly"], right["ended"], right["still_shown"]) == (1, 0, 1, 0)
    assert (wrong["changed_rightly"], wrong["changed_wrongly"]) == (0, 1)
    assert wrong["wrong"][0]["was"] == "I live in Leeds." and wrong["wrong_in_a_thousand_statements"] == 500


def test_what_is_told_with_more_is_no_change_and_what_stays_is_still_shown() -> None:
    more = {"user": "I have two cats called Tib and Moss."}
    found = measure([chat({"user": "I have two cats."}, more)], RulesPolicy(), HashEmbeddings())
    assert found["changed"] == 0
    silent = {"user": "How is the weather?", "ends": ["I have two cats"]}
    found = measure([chat({"user": "I have two cats."}, silent)], RulesPolicy(), HashEmbeddings())
    assert (found["ended"], found["still_shown"]) == (1, 1)


def test_a_memory_is_about_the_words_that_it_holds_most_of() -> None:
    assert tells("I live in Leeds. It rains a lot.", "I live in Leeds")
    assert tells("We rehearse in Eli's garage on Tuesdays", "we rehearse on Tuesdays in a garage")
    assert not tells("Eli has a garage", "we rehearse on Tuesdays in a garage")


@pytest.mark.parametrize("split", ["tune", "held"])
def test_what_ends_was_said_before(split: str) -> None:
    for one in load(split):  # type: ignore[arg-type]
        for at, turn in enumerate(one.turns):
            for words in (*turn.ends, *turn.done):
                assert any(words in before.user for before in one.turns[:at]), (one.id, words)


@pytest.mark.slow
def test_long_talks_leave_what_is_known_as_it_is() -> None:
    found = measure(load("held"), LearnedPolicy(), LocalEmbeddings())
    found["wrong"] = found["wrong"][:3]
    assert found["wrong_in_a_thousand_statements"] <= 22, json.dumps(found)
    assert found["changed_rightly"] >= 10, json.dumps(found)
