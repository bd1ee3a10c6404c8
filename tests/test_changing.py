"""Statements that tell of a change or an end in so many words, and statements that only sound so."""

import pytest

from sharpwave.memory.decide.nearest import nearest_changed
from sharpwave.memory.extract.changing import tells_change, tells_end
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.gate import may_tell
from sharpwave.memory.records import Candidate, Memory, Message, Recall, Score, Turn
from sharpwave.memory.times import now

CHANGES = (
    "the roadmap has moved over to Linear",
    "she has gone over to oat milk",
    "we switched the whole team to Rust",
    "the guest list is down to 28",
    "rent is at 1300",
    "they bumped it up to 90",
    "we're in Leuven as of last month",
    "I cycle in these days",
    "Priya runs the club now",
    "Mr Ode has taken over the accounts",
    "from Monday I am on the late shift",
    "Zoe turned six",
)
ENDS = (
    "we broke up",
    "the bees did not survive the winter",
    "not renewing the Economist",
    "no more piano lessons",
    "I've packed the running in",
    "the knee is finally healed",
    "they called the wedding off",
    "quit the choir",
    "our tent got stolen",
    "handed the keys back",
)
NEITHER = (
    "I left my umbrella at Fennel Books",
    "right now I'm starving",
    "I live in Ghent",
    "the bus was late again",
    "my aunt died of laughter",
    "we walked from Monday's market to the quay",
    "I have three sisters",
)


@pytest.mark.parametrize("text", CHANGES)
def test_what_is_otherwise_now_is_seen_and_read(text: str) -> None:
    assert tells_change(text) and may_tell(text)


@pytest.mark.parametrize("text", ENDS)
def test_what_is_over_is_seen_and_read(text: str) -> None:
    assert tells_end(text) and may_tell(text)


@pytest.mark.parametrize("text", NEITHER)
def test_what_changes_nothing_is_not_taken_for_a_change(text: str) -> None:
    assert not tells_change(text) and not tells_end(text)


def hit(text: str, cosine: float) -> Recall:
    at = now()
    memory = Memory(owner="ana", text=text, recorded_at=at, valid_from=at)
    parts = Score(cosine=cosine)
    return Recall(id=memory.id, store="semantic", text=text, said_at=at, score=cosine, parts=parts, memory=memory)


def said(text: str) -> Candidate:
    return Candidate(text=text, quote=text, message_id="m1")


def test_only_one_memory_that_is_near_enough_is_changed() -> None:
    desk, badge = "My desk is on the fourth floor", "My badge is green"
    decided = nearest_changed(said("I now sit on the second"), [hit(badge, 0.1), hit(desk, 0.4)], "test/1")
    assert decided is not None and decided.op == "UPDATE" and desk in decided.reason
    assert nearest_changed(said("I now sit on the second"), [hit(badge, 0.1), hit(desk, 0.29)], "test/1") is None
    assert nearest_changed(said("I now sit on the second"), [hit(badge, 0.4), hit(desk, 0.42)], "test/1") is None
    assert nearest_changed(said("I now sit on the second"), [], "test/1") is None
    assert nearest_changed(said("I sit by the window"), [hit(desk, 0.6)], "test/1") is None


@pytest.mark.parametrize(
    ("known", "op"),
    [
        ("I sing in the chapel choir", "DELETE"),
        ("I sing in the chapel choir, my aunt Jo plays the organ", "UPDATE"),
    ],
)
def test_what_is_over_takes_nothing_else_along(known: str, op: str) -> None:
    decided = nearest_changed(said("I've had to leave the choir"), [hit(known, 0.5)], "test/1")
    assert decided is not None and decided.op == op


@pytest.mark.parametrize(
    ("text", "known", "kept"),
    [
        ("Both the kayaks got stolen, sniff", "two kayaks in the shed", True),
        ("Both the kayaks got stolen, sniff", "I like soup", False),
    ],
)
def test_a_change_in_no_set_form_is_kept_where_it_is_of_what_is_known(text: str, known: str, kept: bool) -> None:
    turn = Turn(owner="ana", thread="t", messages=(Message(id="m", role="user", text=text),), said_at=now())
    found = RulesExtractor().extract(turn, [hit(known, 0.5)])
    assert any(not candidate.tentative for candidate in found) is kept
