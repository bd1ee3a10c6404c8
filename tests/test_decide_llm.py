import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from fakes import ScriptedModel
from openai_stub import OpenAIStub

from sharpwave.memory.decide import Policy
from sharpwave.memory.decide.llm import LLMPolicy
from sharpwave.memory.errors import ModelError
from sharpwave.memory.records import Candidate, Decision, Memory, Message, Recall, Turn

Make = Callable[..., ScriptedModel]
WHEN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
TURN = Turn(
    owner="ana", thread="t", messages=(Message(id="u1", role="user", text="…"),), said_at=WHEN, timezone="Europe/Lisbon"
)


def candidate(text: str, **fields: Any) -> Candidate:
    return Candidate(text=text, quote=text, message_id="u1", **fields)


def near(**texts: str) -> list[Recall]:
    memories = [Memory(id=id, owner="ana", text=text, recorded_at=WHEN, valid_from=WHEN) for id, text in texts.items()]
    return [Recall(id=m.id, store="semantic", text=m.text, said_at=WHEN, score=1.0, memory=m) for m in memories]


def decide(model: ScriptedModel, candidates: Sequence[Candidate], known: Sequence[Recall]) -> list[Decision]:
    return LLMPolicy(model).decide(candidates, [known] * len(candidates), TURN)


def brief(decisions: Sequence[Decision]) -> list[tuple[str, str, str | None]]:
    return [(d.op, d.candidate.text, d.target) for d in decisions]


def actions(*items: object) -> str:
    return json.dumps({"actions": items})


def test_it_is_a_policy(scripted: Make) -> None:
    assert isinstance(LLMPolicy(scripted()), Policy)


def test_with_nothing_near_everything_is_added_without_a_call(scripted: Make) -> None:
    found = decide(scripted(), [candidate("Plays cello"), candidate("Has two cats")], [])
    assert brief(found) == [("ADD", "Plays cello", None), ("ADD", "Has two cats", None)]
    assert {d.policy for d in found} == {"llm/1"}
    assert decide(scripted(), [], []) == []


def test_proposals_of_the_extraction_are_used_without_a_call(scripted: Make, caplog: pytest.LogCaptureFixture) -> None:
    known = near(m1="Lives in Cork", m2="Has a moped", m3="Is vegetarian")
    found = decide(
        scripted(),
        [
            candidate("Lives in Galway", proposed="UPDATE", proposed_target="m1", confidence=0.6),
            candidate("Has a moped", proposed="NOOP", proposed_target="m2"),
            candidate("Is vegetarian", proposed="DELETE", proposed_target="m3", polarity="retract"),
            candidate("Owns a kayak", proposed="ADD"),
            candidate("Plays cello", proposed="UPDATE", proposed_target="m9"),
            candidate("Has two cats", proposed="NOOP"),
        ],
        known,
    )
    assert brief(found) == [
        ("UPDATE", "Lives in Galway", "m1"),
        ("NOOP", "Has a moped", "m2"),
        ("DELETE", "Is vegetarian", "m3"),
        ("ADD", "Owns a kayak", None),
        ("ADD", "Plays cello", None),
        ("ADD", "Has two cats", None),
    ]
    assert found[0].confidence == 0.6
    assert "'m9'" in caplog.text and "without a usable target" in found[4].reason


def test_one_call_decides_all_candidates_in_their_order(scripted: Make) -> None:
    reply = {
        "decisions": [
            {"candidate": 1, "op": "noop", "target": 1, "confidence": "0.7", "reason": "already\nthere"},
            {"candidate": 0, "op": "UPDATE", "target": 0, "text": "Lives in Galway, has a moped", "confidence": 2},
        ]
    }
    model = scripted(json.dumps(reply))
    first = [candidate("Lives in Galway"), candidate("Has a moped")]
    found = LLMPolicy(model).decide(first, [near(m1="Lives in Cork"), near(m1="Lives in Cork", m2="Has a moped")], TURN)
    assert brief(found) == [("UPDATE", "Lives in Galway", "m1"), ("NOOP", "Has a moped", "m2")]
    assert found[0].text == "Lives in Galway, has a moped" and found[0].confidence == 1.0
    assert found[1].text is None and found[1].reason == "already there" and found[1].confidence == 0.7
    system, human = (str(message.content) for message in model.calls[0])
    assert "Monday 2026-03-02 (Europe/Lisbon)" in system
    assert human.count("Lives in Cork") == 1 and '[1] "Has a moped" (2026-03-02)' in human


def test_a_changed_preference_is_not_only_deleted(scripted: Make) -> None:
    found = decide(
        scripted(actions({"event": "DELETE", "id": "0"})), [candidate("Dislikes sushi")], near(m1="Loves sushi")
    )
    assert brief(found) == [("DELETE", "Dislikes sushi", "m1"), ("ADD", "Dislikes sushi", None)]


def test_a_retraction_is_only_deleted(scripted: Make) -> None:
    gone = candidate("Loves sushi", polarity="retract")
    model = scripted(actions({"event": "DELETE", "id": "0"}))
    assert brief(decide(model, [gone], near(m1="Loves sushi"))) == [("DELETE", "Loves sushi", "m1")]
    assert "NO LONGER SO" in str(model.calls[0][1].content)


def test_ids_that_were_never_shown_reach_nothing(scripted: Make, caplog: pytest.LogCaptureFixture) -> None:
    reply = actions(
        {"event": "UPDATE", "id": "12", "text": "Lives in Galway"},
        {"event": "DELETE", "id": "3f0c-not-real"},
        {"event": "DELETE", "id": 1},
        {"event": "ADD", "text": "Owns a kayak"},
    )
    found = decide(
        scripted(reply),
        [candidate("Lives in Galway"), candidate("Owns a kayak")],
        near(m1="Lives in Cork", m2="Has a moped"),
    )
    assert brief(found) == [("ADD", "Lives in Galway", None), ("ADD", "Owns a kayak", None)]
    assert "no usable decision" in found[0].reason
    assert "'UPDATE', target '12'" in caplog.text and "'DELETE', target '3f0c-not-real'" in caplog.text
    assert len(caplog.records) == 3


def test_odd_events_do_not_break_the_batch(scripted: Make, caplog: pytest.LogCaptureFixture) -> None:
    reply = actions(
        {"id": "0", "text": "Drinks oolong"},
        {"event": None, "text": "x"},
        {"event": "MERGE", "id": "0", "text": "y"},
        {"event": "UPDATE", "id": "0"},
        {"event": "none", "id": "0"},
        {"event": "add", "text": "Runs marathons"},
    )
    found = decide(scripted(reply), [candidate("Runs marathons"), candidate("Drinks oolong")], near(m1="Drinks oolong"))
    assert brief(found) == [("ADD", "Runs marathons", None), ("NOOP", "Drinks oolong", "m1")]
    assert len(caplog.records) == 4


@pytest.mark.parametrize(
    "verdict",
    [
        {"candidate": 0, "op": "UPDATE", "target": None},
        {"candidate": 0, "op": "UPDATE", "target": -1},
        {"candidate": 0, "op": "UPDATE", "target": 1.5},
        {"candidate": 0, "op": "UPDATE", "target": True},
        {"candidate": 0, "op": "DELETE", "target": [0]},
        {"candidate": 0, "op": "DELETE", "target": {"id": 0}},
        {"candidate": 0, "op": "NOOP", "target": "9" * 5000},
        {"candidate": 5, "op": "DELETE", "target": 0},
        {"candidate": "zero", "op": "DELETE", "target": 0},
        {"candidate": 0, "op": 7, "target": 0},
        {"candidate": 0, "op": ["ADD"], "target": 0},
        {},
    ],
)
def test_a_verdict_that_does_not_fit_becomes_an_addition(verdict: dict[str, Any], scripted: Make) -> None:
    found = decide(scripted(json.dumps([verdict])), [candidate("Lives in Galway")], near(m1="Lives in Cork"))
    assert brief(found) == [("ADD", "Lives in Galway", None)]


def test_a_second_verdict_on_a_candidate_only_pairs_an_end_with_an_addition(
    scripted: Make, caplog: pytest.LogCaptureFixture
) -> None:
    reply = [
        {"candidate": 0, "op": "DELETE", "target": 0},
        {"candidate": 0, "op": "ADD"},
        {"candidate": 0, "op": "UPDATE", "target": 0},
        {"candidate": 0, "op": "DELETE", "target": 1},
    ]
    found = decide(
        scripted(json.dumps(reply)), [candidate("Lives in Galway")], near(m1="Lives in Cork", m2="Has a moped")
    )
    assert brief(found) == [("DELETE", "Lives in Galway", "m1"), ("ADD", "Lives in Galway", None)]
    assert len(caplog.records) == 2


@pytest.mark.parametrize("reply", ["", "I would add it.", "[]", '{"decisions": []}', '{"decisions": ["ADD"]}', "[1]"])
def test_an_answer_without_decisions_is_an_error(reply: str, scripted: Make) -> None:
    with pytest.raises(ModelError, match="'decide'"):
        decide(scripted(reply, reply), [candidate("Lives in Galway")], near(m1="Lives in Cork"))


def test_over_http() -> None:
    reply = json.dumps(
        {
            "decisions": [
                {"candidate": 0, "op": "UPDATE", "target": 0, "text": None, "confidence": 0.9, "reason": "moved"}
            ]
        }
    )
    with OpenAIStub(f"<think>hm</think>```json\n{reply}\n```", supports=()) as stub:
        (found,) = LLMPolicy(stub.chat()).decide([candidate("Lives in Galway")], [near(m1="Lives in Cork")], TURN)
    assert (found.op, found.target, found.text, found.reason) == ("UPDATE", "m1", None, "moved")
