"""Decisions by what was read in a statement and the memories near it, and what the guard makes of it."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpwave.memory.decide.guard import guard
from sharpwave.memory.decide.learned import LearnedPolicy
from sharpwave.memory.decide.reading import APART, KNOWN, TOLD, decided_by_reading
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.records import Candidate, Decision, Memory, Message, Recall, Relation, Score, Turn

WHEN = datetime(2026, 3, 1, tzinfo=UTC)
SAID = "handed my season ticket back, I'm fully remote"
KEPT = "I take the early train on weekdays"


def memory(text: str = KEPT, **fields: object) -> Memory:
    return Memory.model_validate({"owner": "ana", "text": text, "recorded_at": WHEN, "valid_from": WHEN, **fields})


def candidate(text: str = SAID, **fields: object) -> Candidate:
    return Candidate.model_validate({"text": text, "quote": text, "message_id": "m1", **fields})


def hit(known: Memory, said: str = SAID, cosine: float = 0.3, **likely: float) -> Recall:
    rest = 1 - sum(likely.values())
    relation = Relation.model_validate(
        {"said": said, "apart": rest, "new": 0, "over": 0, "same": 0, "more": 0, **likely}
    )
    parts = Score(cosine=cosine)
    return Recall(
        id=known.id,
        store="semantic",
        text=known.text,
        said_at=WHEN,
        score=0.5,
        parts=parts,
        memory=known,
        relation=relation,
    )


def turn(said: str = SAID) -> Turn:
    return Turn(owner="ana", thread="t1", messages=(Message(id="m1", role="user", text=said),), said_at=WHEN)


def decided(near: list[Recall], said: Candidate | None = None) -> Decision:
    said = said or candidate()
    made = LearnedPolicy().decide([said], [near], turn(said.text))
    [result] = guard(made, [near], turn(said.text))
    return result


@pytest.mark.parametrize(("likely", "op"), [("new", "UPDATE"), ("over", "DELETE"), ("same", "NOOP")])
def test_what_is_read_decides_where_rules_find_nothing(likely: str, op: str) -> None:
    known, other = memory(), memory("I have two ferrets")
    made = decided([hit(other, new=0.1), hit(known, **{likely: 0.99})])
    assert (made.op, made.target) == (op, known.id)
    assert known.text in made.reason


def test_in_doubt_it_is_added() -> None:
    for likely in ({"new": TOLD - 0.05}, {"same": KNOWN - 0.05}, {"more": 0.99}, {"new": 0.45, "same": 0.45}):
        assert decided_by_reading(candidate(), [hit(memory(), **likely)], "test/1") is None


def test_a_memory_that_is_past_is_not_changed() -> None:
    assert decided_by_reading(candidate(), [hit(memory(valid_to=WHEN), over=0.99)], "test/1") is None
    assert decided_by_reading(candidate(), [hit(memory(status="retracted"), over=0.99)], "test/1") is None
    assert decided_by_reading(candidate(), [], "test/1") is None


def test_the_text_that_is_replaced_does_not_stay_beside_the_new_one() -> None:
    made = decided([hit(memory(), new=0.99)])
    assert made.text is None and made.guarded is None


def test_of_a_memory_of_several_statements_the_rest_stays() -> None:
    known = memory("I take the early train on weekdays, my brother drives a lorry")
    made = decided([hit(known, new=0.99)])
    assert "my brother drives a lorry" in (made.text or "")


def test_what_is_read_as_apart_is_left_alone_where_rules_would_change_it() -> None:
    known, said = (
        memory("I have a dog called Rex"),
        candidate("I no longer have a dog", polarity="retract", value="dog"),
    )
    assert decided([hit(known, said.text, over=0.5)], said).op == "DELETE"
    kept = decided([hit(known, said.text, over=1 - APART - 0.001)], said)
    assert (kept.op, kept.target) == ("ADD", None) and known.text in kept.reason


def test_what_was_read_in_another_statement_says_nothing() -> None:
    known = memory()
    given = Decision(op="DELETE", candidate=candidate(), target=known.id, reason="because", policy="test/1")
    [kept] = guard([given], [[hit(known, said="something else", cosine=0.0, over=0.99)]], turn())
    assert kept.op == "ADD"


def test_an_allergy_is_not_ended_by_what_does_not_speak_of_health() -> None:
    known = memory("I'm allergic to peanuts", attribute="allergy", value="peanuts")
    assert decided([hit(known, over=0.99)]).op == "ADD"


def test_what_tells_too_little_by_itself_is_kept_only_where_it_changes_something() -> None:
    said = candidate(tentative=True)
    assert decided([hit(memory(), over=0.99)], said).op == "DELETE"
    assert decided([hit(memory(), over=0.5)], said).op == "NOOP"  # and is not asked about otherwise
    assert [d.op for d in RulesPolicy().decide([said], [[]], turn())] == ["NOOP"]
    added = Decision(op="ADD", candidate=said, reason="because", policy="test/1")
    assert [d.op for d in guard([added], [[]], turn())] == ["NOOP"]
    pinned = memory(pinned=True)
    assert decided([hit(pinned, over=0.99)], said).op == "NOOP"


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ("I like dogs", "i like cats"),
        ("I live at 12 Elm Road", "my place is 14 Elm Road"),
        ("Our cat is old", "our dog is old"),
    ],
)
def test_another_value_is_no_repetition_however_alike(known: str, said: str) -> None:
    assert decided_by_reading(candidate(said), [hit(memory(known), said, same=0.99)], "test/1") is None


@given(st.lists(st.tuples(*[st.floats(0, 1)] * 5).filter(lambda parts: sum(parts) > 0.1), max_size=4))
def test_it_names_one_of_the_memories_or_none(rows: list[tuple[float, ...]]) -> None:
    near = []
    for row in rows:
        shares = [part / sum(row) for part in row]
        near.append(hit(memory(), apart=shares[0], new=shares[1], over=shares[2], same=shares[3], more=shares[4]))
    made = decided_by_reading(candidate(), near, "test/1")
    if made is not None:
        read = next(found.relation for found in near if found.id == made.target)
        assert read is not None
        assert (read.same if made.op == "NOOP" else read.changes) == pytest.approx(made.confidence)
        assert made.confidence >= min(TOLD, KNOWN)


def test_a_name_in_common_ends_nothing() -> None:
    known = memory("my cat Biscuit keeps knocking glasses over")
    said = "Biscuit is down to 4.9 kilos and the vet says no more diet food!"
    assert decided([hit(known, said, over=0.98)], candidate(said)).op == "ADD"


def test_a_reason_is_not_lost_with_what_it_explains() -> None:
    known = memory("I mostly listen on Audible cos I'm dyslexic, so narrators matter")
    said = "cancelled Audible, I get audiobooks free from the library now"
    made = decided([hit(known, said, new=0.98)], candidate(said))
    assert made.op == "UPDATE" and "dyslexic" in (made.text or "")


@pytest.mark.parametrize(
    ("known", "said", "likely", "op"),
    [
        ("Bedtime for the twins is 7", "The twins go to bed at 8 now", "new", "UPDATE"),
        ("We deploy on Heroku", "off Heroku as of today, everything's on Fly", "new", "UPDATE"),
        ("my roommate is called Kai", "Kai moved out", "over", "DELETE"),
        ("I do intermittent fasting", "fasting's out, it made me faint", "over", "DELETE"),
        ("our daughter Minna is two", "Minna turned three on Saturday", "new", "UPDATE"),
        ("I keep two orchids", "Both orchids died", "over", "DELETE"),
    ],
)
def test_words_that_tell_of_one_day_or_one_thing_elsewhere_do_not_stand_in_the_way_here(
    known: str, said: str, likely: str, op: str
) -> None:
    assert decided([hit(memory(known), said, 0.6, **{likely: 0.99})], candidate(said)).op == op


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ("My daughter Mia has a hamster", "Mia dumped her boyfriend"),
        ("My sister Ana studies law", "Ana moved in with her boyfriend"),
        ("My sister Ana studies law", "Ana moved out"),
        ("I go to bed at 11", "I have to go to bed early now"),
    ],
)
def test_news_of_somebody_else_or_of_one_day_leaves_what_is_known(known: str, said: str) -> None:
    assert decided([hit(memory(known), said, 0.6)], candidate(said)).op == "ADD"


def test_what_was_aimed_at_is_reached() -> None:
    known, said = memory("I'm trying to get pregnant"), "I'm pregnant!"
    assert decided([hit(known, said, 0.66, same=0.5)], candidate(said)).op != "NOOP"


def test_an_end_of_what_is_not_named_has_to_be_clearest() -> None:
    def ends(known: str, likely: float) -> bool:
        said = "I've hung up my boots"
        read = decided_by_reading(candidate(said), [hit(memory(known), said, over=likely)], "test/1")
        return read is not None and read.op == "DELETE"

    assert ends("I play five-a-side", 0.99) and not ends("I play five-a-side", 0.96)
    assert ends("I wear these boots for five-a-side", 0.96)
