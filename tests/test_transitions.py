"""Events after which a state of a life is over, and events that leave it as it is."""

from datetime import UTC, datetime

import pytest

from sharpwave.memory.decide.guard import guard
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.decide.transitions import transition
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.records import Memory, Message, Recall, Source, Turn

BEFORE, NOW = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)
ENDED = [
    ("I'm between jobs", "I found a job at the harbour office", "UPDATE"),
    ("I rent a studio on Mill Road", "I bought a cottage in Ely", "UPDATE"),
    ("I'm learning to drive", "I passed my driving test", "UPDATE"),
    ("I'm saving up for a canoe", "I bought the canoe at last", "UPDATE"),
    ("I live in Ghent", "we're in Antwerp as of last week", "UPDATE"),
    ("I sprained my wrist", "my wrist has fully healed", "DELETE"),
    ("I'm a trainee nurse", "I qualified as a nurse", "UPDATE"),
]
NOT_ENDED = [
    ("I've been selling candles on Etsy", "I sold a candle to my neighbour"),
    ("I'm between jobs", "my sister found a job at the harbour office"),
    ("I'm saving up for a canoe", "I bought a kettle"),
    ("I live in Ghent", "we're in Antwerp for a concert"),
    ("I live in Ghent", "my brother is in Antwerp as of last week"),
    ("I rent a studio on Mill Road", "I bought a lamp for the studio"),
    ("I'm learning to drive", "I used to fear driving"),
    ("I live in Ghent", "I found a job at the harbour office"),
]


def kept(text: str) -> Recall:
    memory = Memory(
        owner="ana",
        text=text,
        recorded_at=BEFORE,
        valid_from=BEFORE,
        source=Source(kind="user", said_at=BEFORE),
    )
    return Recall(id=memory.id, store="semantic", text=text, said_at=BEFORE, score=0.5, memory=memory)


def decide(known: str, said: str) -> list[str]:
    turn = Turn(owner="ana", thread="t", messages=(Message(id="m", role="user", text=said),), said_at=NOW)
    candidates = RulesExtractor().extract(turn, [])
    near = [[kept(known)]] * len(candidates)
    return [one.op for one in guard(RulesPolicy().decide(candidates, near, turn), near, turn)]


@pytest.mark.parametrize(("known", "said", "op"), ENDED)
def test_an_event_ends_the_state_before_it(known: str, said: str, op: str) -> None:
    assert decide(known, said) == [op]


@pytest.mark.parametrize(("known", "said"), NOT_ENDED)
def test_what_is_of_somebody_or_something_else_ends_nothing(known: str, said: str) -> None:
    assert set(decide(known, said)) <= {"ADD"}


def test_a_state_that_is_past_already_is_left_alone() -> None:
    turn = Turn(owner="ana", thread="t", messages=(Message(id="m", role="user", text="I found a job"),), said_at=NOW)
    (candidate,) = RulesExtractor().extract(turn, [])
    memory = kept("I was unemployed").memory
    assert memory is not None
    assert transition(candidate, memory.model_copy(update={"valid_to": BEFORE})) is None
