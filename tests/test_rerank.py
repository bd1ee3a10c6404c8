"""Recall that learns from citations: bounded, for each user, forgotten on request, and only from what a model cited."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import typer
from fakes import HashEmbeddings, ScriptedModel
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from langgraph.checkpoint.memory import InMemorySaver
from typer.testing import CliRunner

from sharpwave.commands import recall as command
from sharpwave.graphs import Context, build_agent, thread_config
from sharpwave.memory import rerank
from sharpwave.memory.erase import erase
from sharpwave.memory.features import FEATURES
from sharpwave.memory.records import Memory, Message, Recall, Turn
from sharpwave.memory.rerank import FAR, NEAR, Lesson, Reranker
from sharpwave.memory.sessions import Sessions
from sharpwave.memory.store import MemoryStore

MARCH = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
FACT, PREFERENCE = "The garden has a pond.", "The garden has a hedge."
OTHERS = ["The garden has a shed.", "The garden has a well.", "The garden gate is green."]


@pytest.fixture
def store(tmp_path: Path, embeddings: HashEmbeddings) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=embeddings, collections=2, learn_recall=True) as opened:
        yield opened


def remember(store: MemoryStore, owner: str) -> None:
    texts = [(FACT, "fact"), (PREFERENCE, "preference"), *((text, "fact") for text in OTHERS)]
    made = [
        Memory(owner=owner, text=text, kind=kind, subject="garden", recorded_at=MARCH, valid_from=MARCH)
        for text, kind in texts
    ]
    store.put_memories(owner, made, "given")


def ask(store: MemoryStore, owner: str, question: str = "What does the garden have?") -> list[Recall]:
    return store.recall(owner, question, floor=0.0, now=MARCH, explain=True)


def lessons(store: MemoryStore, owner: str) -> int:
    with store.transaction(owner) as (connection, number):
        return rerank.load(connection, number).lessons


def teach(store: MemoryStore, owner: str, text: str, times: int) -> None:
    for _ in range(times):
        hits = ask(store, owner)
        lesson = Lesson.of(hits, {hit.id for hit in hits if hit.text == text})
        assert lesson is not None
        store.learn_recall(owner, lesson)


def rows(count: int) -> st.SearchStrategy[np.ndarray]:
    return arrays(float, (count, len(FEATURES)), elements=st.floats(0, 1))


@st.composite
def taught(draw: st.DrawFn, most: int = 30) -> Reranker:
    reranker = Reranker()
    for _ in range(draw(st.integers(0, most))):
        scores = tuple(draw(st.lists(st.floats(0, 1), min_size=4, max_size=4)))
        features = tuple(map(tuple, draw(rows(4)).tolist()))
        cited = draw(st.sampled_from([(True, False, False, False), (False, True, False, True)]))
        reranker = reranker.taught(Lesson(features=features, scores=scores, cited=cited))
    return reranker


@settings(max_examples=40, deadline=None)
@given(reranker=taught(), features=rows(6), scores=arrays(float, 6, elements=st.floats(0, 1)))
def test_whatever_was_cited_only_records_within_twice_the_bound_change_places(
    reranker: Reranker, features: np.ndarray, scores: np.ndarray
) -> None:
    shifted = scores + reranker.shifts(features)
    assert np.abs(shifted - scores).max() <= reranker.bound + 1e-9
    for a in range(6):
        for b in range(6):
            if scores[a] > scores[b] + 2 * reranker.bound + 1e-9:
                assert shifted[a] > shifted[b]


@settings(max_examples=20, deadline=None)
@given(reranker=taught(most=1), features=rows(5))
def test_without_evidence_nothing_is_shifted_and_after_one_answer_only_near_ties_are(
    reranker: Reranker, features: np.ndarray
) -> None:
    assert reranker.bound <= NEAR + FAR / 15
    if not reranker.lessons:
        assert not reranker.shifts(features).any()


def test_the_bound_grows_with_evidence_up_to_its_most() -> None:
    bounds = [Reranker(lessons=n).bound for n in (0, 1, 20, 10_000)]
    assert bounds[0] == 0 and bounds == sorted(bounds) and bounds[2] == pytest.approx((NEAR + FAR) / 2)
    assert bounds[3] < FAR


def test_what_is_like_cited_records_gains_and_what_is_like_the_others_loses() -> None:
    features = np.zeros((3, len(FEATURES)))
    features[0, FEATURES.index("preference")] = 1
    lesson = Lesson(features=tuple(map(tuple, features.tolist())), scores=(0.5, 0.5, 0.5), cited=(True, False, False))
    up, down, same = Reranker().taught(lesson).shifts(features).tolist()
    assert up > 0 > down == same


def test_without_citations_the_order_is_that_of_a_store_that_does_not_learn(store: MemoryStore) -> None:
    remember(store, "ana")
    learning = ask(store, "ana")
    store.learns_recall = False
    fixed = ask(store, "ana")
    assert [(hit.id, hit.score) for hit in learning] == [(hit.id, hit.score) for hit in fixed]
    assert all(len(hit.features) == len(FEATURES) for hit in learning) and not any(hit.features for hit in fixed)


def test_citations_change_the_order_for_their_owner_alone_until_they_are_forgotten(store: MemoryStore) -> None:
    for owner in ("ana", "bo"):
        remember(store, owner)
    before = [hit.text for hit in ask(store, "ana")]
    assert before.index(FACT) < before.index(PREFERENCE)
    teach(store, "ana", PREFERENCE, 10)
    after = ask(store, "ana")
    places = [hit.text for hit in after]
    assert places.index(PREFERENCE) < places.index(FACT)
    for hit in after:
        assert hit.parts is not None and hit.score == pytest.approx(hit.parts.total)
        assert abs(hit.parts.learned) <= FAR
    assert [hit.text for hit in ask(store, "bo")] == before and lessons(store, "bo") == 0
    assert store.reset_recall("ana") == 10 and store.reset_recall("ana") == 0
    assert [hit.text for hit in ask(store, "ana")] == before


def test_what_was_learned_outlives_the_process_and_goes_with_its_owner(tmp_path: Path) -> None:
    embeddings = HashEmbeddings()
    with MemoryStore.open(tmp_path, embeddings=embeddings, learn_recall=True) as store:
        remember(store, "ana")
        teach(store, "ana", PREFERENCE, 2)
    with MemoryStore.open(tmp_path, embeddings=embeddings, learn_recall=True) as store:
        assert lessons(store, "ana") == 2
        erased = erase(store, "ana")
        assert erased.rows["rerankers"] == 1
        with store.ledger.read() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM rerankers").scalar_one() == 0


def test_messages_carry_what_their_neighbours_score(store: MemoryStore) -> None:
    texts = ("I keep bees in the old orchard.", "They make honey.", "My sister paints.")
    store.queue([turn(f"m{n}", text) for n, text in enumerate(texts)])
    hits = store.recall("ana", "Where are the bees?", stores=("episodic",), floor=-1.0)
    named = {hit.text: dict(zip(FEATURES, hit.features, strict=True)) for hit in hits}
    best = named["I keep bees in the old orchard."]
    assert best["utterance"] == 1 and best["question"] == 0 and best["before"] == 0
    assert best["session"] == pytest.approx((best["keyword"] + best["dense"]) / 2, abs=1e-3)
    assert max(one["before"] for one in named.values()) == pytest.approx(best["session"], abs=1e-3)


def turn(message_id: str, text: str) -> Turn:
    return Turn(owner="ana", thread="t1", messages=(Message(id=message_id, role="user", text=text),), said_at=MARCH)


def say(agent: object, text: str, thread: str = "t1", **context: object) -> dict[str, object]:
    message = {"role": "user", "content": text}
    return agent.invoke(  # type: ignore[attr-defined,no-any-return]
        {"messages": [message]},
        thread_config("ana", thread),
        context=Context(user_id="ana", now=MARCH, thread=thread, **context),
    )


QUESTION = "Is there a pond in the garden?"


def test_a_model_that_cites_teaches_and_incognito_it_does_not(
    store: MemoryStore, scripted: Callable[..., ScriptedModel]
) -> None:
    remember(store, "ana")
    agent = build_agent(model=scripted("Yes. [1]", "Yes. [1]", "No idea."), memory=store)
    compiled = agent.compile(checkpointer=InMemorySaver())
    state = say(compiled, QUESTION)
    assert state["citations"] and lessons(store, "ana") == 1
    say(compiled, QUESTION, "t2", remember=False)
    assert lessons(store, "ana") == 1
    say(compiled, QUESTION, "t3")  # nothing is cited
    assert lessons(store, "ana") == 1


def test_a_turn_teaches_once_however_often_it_is_written(store: MemoryStore) -> None:
    remember(store, "ana")
    hits = ask(store, "ana")
    lesson = Lesson.of(hits, {hits[0].id})
    store.apply(turn("m1", QUESTION), [], revision=None)
    assert store.apply(turn("m1", QUESTION), [], revision=None, lesson=lesson) == [] and lessons(store, "ana") == 0
    store.apply(turn("m2", QUESTION), [], revision=None, lesson=lesson)
    assert lessons(store, "ana") == 1


def test_in_the_background_a_model_that_cites_teaches_too(
    store: MemoryStore, scripted: Callable[..., ScriptedModel]
) -> None:
    remember(store, "ana")
    agent = build_agent(model=scripted("Yes. [1]"), memory=store, write="background")
    say(agent.compile(checkpointer=InMemorySaver()), QUESTION)
    for end in [*store.before_closing]:
        end()
    assert lessons(store, "ana") == 1


def test_the_template_teaches_nothing_as_it_cites_what_came_first_anyway(store: MemoryStore) -> None:
    remember(store, "ana")
    state = say(build_agent(memory=store).compile(checkpointer=InMemorySaver()), QUESTION)
    assert state["citations"] and lessons(store, "ana") == 0


def test_a_store_that_does_not_learn_keeps_its_order(
    store: MemoryStore, scripted: Callable[..., ScriptedModel]
) -> None:
    store.learns_recall = False
    remember(store, "ana")
    say(build_agent(model=scripted("Yes. [1]"), memory=store).compile(checkpointer=InMemorySaver()), QUESTION)
    assert lessons(store, "ana") == 0


def test_the_command_forgets_what_was_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embeddings: HashEmbeddings
) -> None:
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: embeddings)
    monkeypatch.setenv("SHARPWAVE_HOME", str(tmp_path))
    with MemoryStore.open(tmp_path, embeddings=embeddings, learn_recall=True) as store:
        remember(store, "ana")
        teach(store, "ana", PREFERENCE, 3)
    app = typer.Typer()
    command.register(app)
    done = CliRunner().invoke(app, ["reset-recall", "--user", "ana", "--json"])
    assert json.loads(done.output) == {"user": "ana", "lessons": 3}
    assert "Nothing had been learned" in CliRunner().invoke(app, ["reset-recall", "--user", "ana"]).output


def test_the_summary_that_a_session_leaves_is_recalled(store: MemoryStore) -> None:
    agent = build_agent(memory=store).compile(checkpointer=InMemorySaver())
    said = [
        "We plan a trip to Lisbon in June.",
        "The trip to Lisbon needs a hotel near the river.",
        "Flights are booked.",
    ]
    for text in said:
        say(agent, text)
    Sessions(store).end_session("ana", "t1")
    kinds = [hit.memory.kind for hit in ask(store, "ana", "What did we say about the trip to Lisbon?") if hit.memory]
    assert "summary" in kinds and kinds[0] != "summary"


def test_a_summary_comes_after_what_it_sums_up(store: MemoryStore) -> None:
    text = "Ana planned a dinner in Lisbon."
    for kind in ("summary", "fact"):
        made = Memory(owner="ana", text=text, kind=kind, recorded_at=MARCH, valid_from=MARCH)
        store.put_memories("ana", [made], "given")
    first, second = ask(store, "ana", "Which dinner did Ana plan in Lisbon?")
    assert first.memory and first.memory.kind == "fact" and second.score == pytest.approx(first.score - 0.2)
