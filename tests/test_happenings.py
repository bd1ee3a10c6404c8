"""What happened stays so."""

from datetime import UTC, datetime

import pytest

from sharpwave.memory.decide.guard import guard
from sharpwave.memory.decide.happenings import happened
from sharpwave.memory.records import Candidate, Decision, Memory, Message, Recall, Score, Turn

WHEN = datetime(2026, 3, 1, tzinfo=UTC)
LATER = datetime(2026, 4, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "I went to a support group yesterday",
        "Last Friday I met the council about the adoption",
        "we took the kids to the park",
        "Mum came down for the weekend",
        "My friend Ana taught me to braid bread",
        "Took the train to Sintra with my cousin",
        "I've just watered the plants",
        "The girls lost by a goal in Athenry",
    ],
)
def test_what_was_done_once_happened(text: str) -> None:
    assert happened(text)


@pytest.mark.parametrize(
    "text",
    [
        "I live in Ghent",
        "I've joined a choir",
        "I got a puppy",
        "we moved to Leeds in May",
        "I started piano lessons",
        "We get the Guardian delivered",
        "i hav a dog caled bruno",
        "they bumped my sertraline up to 100mg",
        "I applied to a bookshop",
        "I need a new bike",
        "we feed them formula",
        "I read the Guardian every day",
        "supervised by Prof. Hallam",
        "I'm interested in birds",
        "I'm going to apply in June",
    ],
)
def test_a_state_and_what_begins_one_did_not(text: str) -> None:
    assert not happened(text)


def decided(op: str, known: str, said: str) -> Decision:
    memory = Memory.model_validate({"owner": "ana", "text": known, "recorded_at": WHEN, "valid_from": WHEN})
    hit = Recall(
        id=memory.id, store="semantic", text=known, said_at=WHEN, score=0.6, parts=Score(cosine=0.6), memory=memory
    )
    candidate = Candidate(text=said, quote=said, message_id="m")
    decision = Decision.model_validate(
        {"op": op, "candidate": candidate, "target": memory.id, "reason": "because", "policy": "p"}
    )
    turn = Turn(owner="ana", thread="t", messages=(Message(id="m", role="user", text=said),), said_at=LATER)
    [guarded] = guard([decision], [[hit]], turn)
    return guarded


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ("I went to the support group yesterday", "The support group gave me courage to be myself"),
        ("We took the kids to the park", "We took the kids camping too"),
        ("I met Ana at the market", "Ana runs a stall at the market now"),
    ],
)
def test_what_happened_is_not_changed_by_what_comes_next(known: str, said: str) -> None:
    for op in ("UPDATE", "DELETE"):
        guarded = decided(op, known, said)
        assert guarded.op == "ADD" and "stays so" in (guarded.guarded or "")


def test_what_happened_may_be_put_right_and_told_with_more() -> None:
    assert decided("UPDATE", "I met Ana at the market", "Correction: I met Ana at the fair").op == "UPDATE"
    assert decided("UPDATE", "I met Ana at the market", "I met Ana and her son at the market").op == "UPDATE"


def test_a_state_may_be_changed() -> None:
    assert decided("UPDATE", "I joined the choir in Ghent", "I left the choir in Ghent, now I dance").op == "UPDATE"


def test_what_happened_may_be_forgotten_on_request_and_logs_report_states() -> None:
    assert decided("DELETE", "I went to Rome with Ana", "Forget that I went to Rome with Ana").op == "DELETE"
    log, later = "The vendor approved the plan for Fjord", "The vendor withdrew the plan for Fjord"
    assert decided("UPDATE", log, later).op == "UPDATE"
