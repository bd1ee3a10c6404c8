"""The gate before reading: what costs a model call and what does not."""

from datetime import UTC, datetime

import pytest

from sharpwave.memory.gate import worth_reading
from sharpwave.memory.records import Message, Turn

FACTS = [
    "I'm allergic to kiwi.",
    "My daughter starts school in Ghent on Monday.",
    "we moved to Galway last spring",
    "Please remember that the spare key is with the neighbour.",
    "Correction: the grant deadline is 16 October.",
    "Forget that I live in Rome.",
    "I no longer play tennis.",
    "allergic to nuts btw",
    "Biscuit can't have beef either.",
    "I'm vegan, what can I cook tonight?",
    "Can you find a present for my wife Ines, who loves gardening?",
    "Ich wohne seit Mai in Graz.",
    "Tengo dos gatos.",
    "我住在北京。",
    "私は猫が好きです。",
    "나는 부산에 살아요.",
    "Mam na imię Zofia i mieszkam w Krakowie.",
]
NOTHING = [
    "",
    "ok",
    "ok thanks",
    "thanks a lot!",
    "👍",
    "🙂🙂🙂",
    "lol",
    "Good morning!",
    "Hi there, how are you?",
    "heartbeat 2026-03-01T10:00:00Z",
    "ping",
    "???",
    "What's the capital of France?",
    "Where do I live?",
    "How do I reverse a linked list in groups of k?",
    "Can you summarise this article?",
    "Tell me a joke.",
    "sounds good",
    "I see.",
    "I'm tired.",
    "That's funny.",
    "never mind",
    "go on",
    "Explain photosynthesis in two sentences.",
    "¿Qué tiempo hace hoy?",
    "谢谢",
    "Danke schön!",
    "Wie spät ist es?",
]


def turn_of(*texts: str, role: str = "user") -> Turn:
    messages = tuple(
        Message.model_validate({"id": str(at), "role": role, "text": text}) for at, text in enumerate(texts)
    )
    return Turn(owner="ana", thread="t1", messages=messages, said_at=datetime(2026, 3, 1, tzinfo=UTC))


@pytest.mark.parametrize("text", FACTS)
def test_a_fact_passes(text: str) -> None:
    assert worth_reading(turn_of(text))


@pytest.mark.parametrize("text", NOTHING)
def test_small_talk_questions_and_requests_do_not(text: str) -> None:
    assert not worth_reading(turn_of(text))


def test_only_what_the_user_said_counts() -> None:
    assert not worth_reading(turn_of("I live in Cork and I am allergic to kiwi.", role="assistant"))


def test_a_pasted_text_is_not_the_users() -> None:
    assert not worth_reading(turn_of("Can you make this politer?\n> I'm leaving Fjord Ltd on Friday."))


def test_two_hundred_messages_with_three_facts_cost_few_calls() -> None:
    trivial = [text for text in NOTHING if text][:20]
    messages = [trivial[at % len(trivial)] for at in range(197)] + FACTS[:3]
    passed = [text for text in messages if worth_reading(turn_of(text))]
    assert set(FACTS[:3]) <= set(passed)
    assert len(passed) <= 10
