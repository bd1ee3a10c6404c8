"""Consolidation: nothing that differs is merged, nothing is concluded from one source, and a second time changes nothing."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import typer
from fakes import HashEmbeddings
from hypothesis import given, settings
from hypothesis import strategies as st
from talking import say as turn_of

from sharpwave import cli
from sharpwave.commands import memories, recall
from sharpwave.graphs import build_agent
from sharpwave.memory import merging, rows, times
from sharpwave.memory.alike import says_all
from sharpwave.memory.consolidate import Consolidator
from sharpwave.memory.conversations import Conversations
from sharpwave.memory.episodes import Episodes
from sharpwave.memory.erase import purge_memory
from sharpwave.memory.errors import InputError, ModelError, NotFoundError
from sharpwave.memory.forget import Forgetting, forget
from sharpwave.memory.kinds import Session
from sharpwave.memory.phrases import details
from sharpwave.memory.procedures import Procedures
from sharpwave.memory.records import Memory, Message, Source, Turn, Utterance
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.verify import verify

MARCH = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
TEMPLATED = (
    "Edited file alpha.py in project Kite",
    "Edited file beta.py in project Kite",
    "Paid invoice 1041",
    "Paid invoice 1042",
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings(), collections=2) as opened:
        yield opened


def add(store: MemoryStore, text: str, **fields: Any) -> str:
    return store.add("ana", text, **fields).memory_id or ""


def texts(store: MemoryStore, **which: Any) -> list[str]:
    return sorted(memory.text for memory in store.memories("ana", **which))


def consolidate(store: MemoryStore, model: Any = None) -> dict[str, int]:
    consolidator = Consolidator(store, model)
    total: dict[str, int] = {}
    for part in consolidator.plan("ana"):
        assert json.loads(json.dumps(part)) == part
        for name, count in consolidator.carry_out("ana", part, run="run 1").items():
            if name != "ids":
                total[name] = total.get(name, 0) + count
    return {name: count for name, count in total.items() if count}


def memory(text: str, **fields: Any) -> Memory:
    return Memory(**{"owner": "ana", "text": text, "recorded_at": MARCH, "valid_from": MARCH, **fields})


def say(store: MemoryStore, *said: str, thread: str = "t1", start: datetime = MARCH) -> list[Utterance]:
    """Keep messages verbatim, as an import without extraction does."""
    turns = [
        Turn(
            owner="ana",
            thread=thread,
            messages=(Message(id=f"m{n}", role="user", text=text),),
            said_at=start + timedelta(days=n),
        )
        for n, text in enumerate(said)
    ]
    store.pass_over(store.queue(turns))
    return store.utterances("ana", thread)


# Merging


@pytest.mark.parametrize("order", list(permutations(TEMPLATED))[::5])
def test_templated_notes_that_differ_stay_whatever_their_order(store: MemoryStore, order: tuple[str, ...]) -> None:
    for text in order:
        add(store, text)
    assert consolidate(store) == consolidate(store) == {}
    assert texts(store) == sorted(TEMPLATED)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I eat meat", "I do not eat meat"),
        ("I run before work", "I run after work"),
        ("I work at Acorn", "I worked at Acorn"),
        ("I stopped to smoke", "I stopped smoking"),
        ("The cat chased the dog", "The dog chased the cat"),
        ("Marta likes tea", "Anna likes tea"),
        ("Version 1.5 is out", "Version 15 is out"),
        ("The flight is from Rome", "The flight is to Rome"),
        ("I eat fish", "I only eat fish"),
        ("I live in Springfield, Ohio", "I live in Springfield, Iowa"),
        ("I write C++", "I write C#"),
        ("The rent is €900", "The rent is $900"),
    ],
)
def test_words_in_common_are_not_enough(one: str, other: str) -> None:
    assert merging.groups([memory(one), memory(other)]) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"attribute": "home_city", "value": "Springfield"}, {"attribute": "origin", "value": "Springfield"}),
        ({"subject": "user"}, {"subject": "sister"}),
        ({"valid_to": MARCH}, {}),
        ({"kind": "event"}, {"kind": "event", "valid_from": MARCH + timedelta(days=7)}),
        ({"kind": "summary"}, {"kind": "summary"}),
        ({"synthetic": True}, {}),
        ({"needs_review": True}, {}),
    ],
)
def test_the_same_words_about_something_else_stay(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert merging.groups([memory("Springfield it is", **first), memory("Springfield it is", **second)]) == []


@pytest.mark.parametrize(
    ("kept", "gone"),
    [
        (memory("I'm allergic to penicillin.", confidence=0.9), memory("I am allergic to penicillin")),
        (memory("User prefers the dark mode", confidence=0.9), memory("I prefer dark mode")),
        (memory("I live in Lisbon", confidence=0.9), memory("I live in lisbon")),
        (
            memory("I'm allergic to peanuts and carry a pen", attribute="allergy", value="peanuts"),
            memory("I have a peanut allergy", attribute="allergy", value="peanut"),
        ),
    ],
)
def test_what_says_the_same_is_merged_into_the_surer_then_the_more_specific(kept: Memory, gone: Memory) -> None:
    for pair in ([kept, gone], [gone, kept]):
        assert [(one.id, [other.id for other in others]) for one, others in merging.groups(pair)] == [
            (kept.id, [gone.id])
        ]


def test_a_surer_wording_that_says_less_takes_nothing_in() -> None:
    slot = {"attribute": "home_city", "value": "Lisbon"}
    more = memory("I live in Lisbon near the river", confidence=0.6, **slot)
    assert merging.groups([more, memory("I live in Lisbon", confidence=0.9, **slot)]) == []


def test_a_merge_keeps_the_evidence_and_counts_as_a_confirmation(store: MemoryStore) -> None:
    kept = add(store, "I am allergic to penicillin", confidence=0.8, tags=("health", "safety"))
    gone = add(
        store, "I'm allergic to penicillin.", confidence=0.7, derived_from=("u1",), tags=("safety",), importance=0.9
    )
    assert consolidate(store) == {"merged": 1}
    merged, now = store.get("ana", gone), store.get("ana", kept)
    assert (merged.status, merged.superseded_by) == ("merged", kept)
    assert (now.confidence, now.importance) == (0.9, 0.9)
    assert now.derived_from == (gone, "u1")
    assert consolidate(store) == {}
    assert verify(store).healthy
    assert [hit.id for hit in store.recall("ana", "penicillin", stores=("semantic",))] == [kept]


@pytest.mark.parametrize("way", ["undo", "restore"])
def test_what_was_merged_comes_back_and_is_not_merged_again(store: MemoryStore, way: str) -> None:
    kept = add(store, "I am allergic to penicillin", confidence=0.8)
    gone = add(store, "I'm allergic to penicillin.", confidence=0.7)
    consolidate(store)
    if way == "undo":
        assert [done.memory_id for done in store.undo("ana")] == [gone]
        assert (store.get("ana", kept).confidence, store.get("ana", kept).derived_from) == (0.8, ())
    else:
        store.restore("ana", gone)
    assert store.get("ana", gone).status == "active"
    assert store.get("ana", gone).superseded_by is None
    assert consolidate(store) == {}
    assert len(texts(store)) == 2
    assert verify(store).healthy


def test_undoing_one_of_several_merges_leaves_what_the_others_brought(store: MemoryStore) -> None:
    kept = add(store, "I like jazz", confidence=0.7)
    others = [add(store, "I like jazz.", confidence=0.6), add(store, "I really like jazz", confidence=0.5)]
    assert consolidate(store) == {"merged": 2}
    first = next(e.memory_id for e in store.events("ana") if e.op == "MERGE")
    store.undo("ana", last=2)
    assert store.get("ana", kept).derived_from == ()
    assert store.get("ana", kept).confidence == 0.7
    assert first in others and verify(store).healthy


def test_what_rests_on_a_merged_memory_is_reviewed_when_the_kept_one_changes(store: MemoryStore) -> None:
    kept = add(store, "I live in Oslo", confidence=0.9)
    gone = add(store, "I live in Oslo.")
    resting = add(store, "The tram takes me to work", depends_on=(gone,))
    consolidate(store)
    assert not store.get("ana", resting).needs_review
    store.delete("ana", kept)
    assert store.get("ana", resting).needs_review


def test_what_a_confirmation_makes_sure_enough_is_merged_in_the_same_run(store: MemoryStore) -> None:
    slot = {"attribute": "home_city", "value": "Lisbon"}
    more = [
        add(store, text, confidence=0.8, **slot)
        for text in ("I live in Lisbon by the river", "i live in Lisbon by a river")
    ]
    add(store, "I live in Lisbon", confidence=0.85, **slot)
    assert consolidate(store) == {"merged": 2}
    assert [m.id for m in store.memories("ana")] == more[:1]
    assert consolidate(store) == {}


def test_purging_a_kept_memory_leaves_nothing_of_what_was_merged_into_it(store: MemoryStore) -> None:
    kept = add(store, "I am allergic to penicillin", confidence=0.9)
    gone = add(store, "I'm allergic to penicillin.")
    consolidate(store)
    purge_memory(store, "ana", kept)
    with pytest.raises(NotFoundError):
        store.get("ana", gone)


def test_a_tag_is_not_lost(store: MemoryStore) -> None:
    add(store, "I like jazz", confidence=0.9)
    add(store, "I like jazz.", tags=("music",))
    assert consolidate(store) == {}


def test_a_pinned_memory_is_never_merged_away(store: MemoryStore) -> None:
    for confidence in (0.9, 0.5):
        store.pin("ana", add(store, "I like jazz", confidence=confidence))
    assert consolidate(store) == {}


def test_a_less_trusted_source_never_takes_the_place_of_the_user(store: MemoryStore) -> None:
    add(store, "I like jazz", confidence=1.0, source=Source(kind="document"))
    mine = add(store, "I like jazz.", confidence=0.6)
    assert consolidate(store) == {"merged": 1}
    assert [m.id for m in store.memories("ana")] == [mine]


_NAMES = st.sampled_from(["Oona", "Rex", "Kite", "Lisbon", "1041", "1042", "12:30", "two", "three", "alpha.py", "3.5"])
_TEXTS = st.builds(
    "{} {} {}".format,
    st.sampled_from(["I met", "I'm with", "I am with", "User likes", "I like", "i like", "Paid", "I don't like"]),
    st.lists(_NAMES, max_size=3).map(" ".join),
    st.sampled_from(["", ".", "in the park", "in a park", "really"]),
)


def test_a_crowded_slot_takes_no_longer() -> None:
    crowd = [memory(f"I play chess in club {n}", attribute="hobby", value="chess") for n in range(2000)]
    started = time.process_time()
    assert merging.groups(crowd) == []
    assert time.process_time() - started < 3


@settings(max_examples=25, deadline=None)
@given(found=st.lists(st.tuples(_TEXTS, st.sampled_from([0.5, 0.8, 0.9])), max_size=12))
def test_merging_never_loses_a_number_or_a_name_and_is_done_at_once(
    found: list[tuple[str, float]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    slot = [{}, {"attribute": "likes", "value": "park"}]
    kept_ones = [memory(text, confidence=sure, **slot[n % 2]) for n, (text, sure) in enumerate(found)]
    groups = merging.groups(kept_ones)
    for kept, others in groups:
        for other in others:
            assert says_all(kept, other)
            assert details(other.text) <= details(kept.text) | set(kept.text.casefold().rstrip(".").split())
    again = merging.groups(kept_ones[::-1])
    assert sorted((k.id, sorted(o.id for o in os)) for k, os in groups) == sorted(
        (k.id, sorted(o.id for o in os)) for k, os in again
    )
    with MemoryStore.open(tmp_path_factory.mktemp("home"), embeddings=HashEmbeddings(), collections=1) as store:
        store.put_memories("ana", kept_ones, "test")
        assert consolidate(store).get("merged", 0) == sum(len(others) for _, others in groups)
        assert consolidate(store) == {}


# What is used is kept


def weeks_of(store: MemoryStore, weeks: int) -> Forgetting:
    """Ask for the allergy in chat each week, and then forget."""
    agent = build_agent(memory=store).compile()
    start = times.now()
    for week in range(weeks):
        turn_of(agent, "Which medicine am I allergic to?", now=start + timedelta(weeks=week), thread=f"week {week}")
    return forget(store, "ana", now=start + timedelta(weeks=weeks), capacity=1)


def test_what_is_recalled_in_chat_stays_and_what_nobody_uses_may_go(store: MemoryStore) -> None:
    allergy = add(store, "I am allergic to the medicine penicillin", importance=0.95)
    add(store, "Had soup on Tuesday", importance=0.1)
    before = store.recall("ana", "allergic to medicine", stores=("semantic",))[0].id
    assert [one.text for one in weeks_of(store, 57).doomed] == ["Had soup on Tuesday"]
    assert store.get("ana", allergy).recalled == 57
    assert store.recall("ana", "allergic to medicine", stores=("semantic",))[0].id == before == allergy


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run one command line as a process would, with an embedder that needs no files; returns its JSON."""
    app = typer.Typer()
    app.callback()(cli.options)
    for module in (memories, recall):
        module.register(app)
    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setattr(cli, "_register", lambda: None)
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: HashEmbeddings())

    def once(*words: str) -> Any:
        monkeypatch.setattr(sys, "argv", ["sharpwave", "--home", str(tmp_path / "home"), *words, "--json"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert not ended.value.code
        return json.loads(capsys.readouterr().out)

    return once


def test_recall_on_the_command_line_is_a_use_and_listing_is_none(run: Callable[..., Any], tmp_path: Path) -> None:
    run("memories", "add", "I am allergic to penicillin", "--user", "ana")
    run("memories", "list", "--user", "ana")
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings()) as store:
        assert store.memories("ana")[0].recalled == 0
    assert len(run("recall", "allergic to penicillin", "--user", "ana")["results"]) == 1
    assert run("recall", "penicillin", "--user", "ben")["results"] == []
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings()) as store:
        (kept,) = store.memories("ana")
        assert kept.recalled == 1 and kept.last_recalled_at is not None
        assert store.owners() == ["ana"]


# Facts from several sources


def test_a_statement_made_twice_becomes_a_fact_with_its_sources(store: MemoryStore) -> None:
    said = say(store, "I play the cello every evening.", "Nice weather.", "I play the cello every evening!")
    assert consolidate(store) == {"derived": 1}
    (fact,) = store.memories("ana")
    assert "cello" in fact.text
    assert (fact.source.kind, fact.derived_from) == ("inferred", (said[0].id, said[2].id))
    assert fact.confidence == 0.67
    assert consolidate(store) == {}
    assert verify(store).healthy


def test_what_was_said_once_or_is_held_or_was_deleted_is_not_concluded(store: MemoryStore) -> None:
    say(
        store, "I play the cello.", "I have a cat called Rex.", "I have a cat called Rex.", "I like tea.", "I like tea."
    )
    add(store, "I have a cat called Rex")
    store.delete("ana", add(store, "I like tea"))
    assert consolidate(store) == {}


def test_questions_and_slots_that_are_filled_are_not_concluded(store: MemoryStore) -> None:
    say(store, "Can you help me?", "Can you help me?", "I live in Rome.", "I live in Rome.")
    add(store, "I live in Lisbon", attribute="home_city", value="Lisbon")
    assert consolidate(store) == {}


def running(store: MemoryStore) -> list[Utterance]:
    return say(store, "I went for a run before work today", "I went for a long run before work again")


def answer(*quotes: tuple[int, str], fact: str = "I usually run before work.") -> str:
    return json.dumps({"facts": [{"fact": fact, "quotes": [{"message": n, "quote": q} for n, q in quotes]}]})


def test_a_model_s_fact_needs_quotes_of_two_messages(store: MemoryStore, scripted: Any) -> None:
    said = running(store)
    good = answer((1, "run before work today"), (2, "long run before work"))
    assert consolidate(store, scripted(good)) == {"derived": 1}
    (fact,) = store.memories("ana")
    assert (fact.text, fact.derived_from) == ("I usually run before work.", tuple(one.id for one in said))
    assert consolidate(store, scripted()) == {}  # asked once


@pytest.mark.parametrize(
    "given_",
    [
        answer((1, "run before work today")),
        answer((1, "run before work"), (2, "swim at noon")),
        answer((1, "run before work"), (2, "run before work"), fact="I run 10 km before work."),
        answer((1, "run before work"), (2, "run before work"), fact="I run before work with Rosa."),
        '{"facts": []}',
    ],
)
def test_what_a_model_does_not_support_is_not_written(store: MemoryStore, scripted: Any, given_: str) -> None:
    running(store)
    add(store, "I like jazz")
    assert consolidate(store, scripted(given_)) == {}
    assert texts(store) == ["I like jazz"]


def test_an_empty_or_failed_answer_changes_nothing(store: MemoryStore, scripted: Any) -> None:
    running(store)
    add(store, "I like jazz")
    events = len(store.events("ana"))
    model = scripted("", "", TimeoutError("too slow"))
    consolidator = Consolidator(store, model)
    (part,) = consolidator.plan("ana")
    for _ in range(2):
        with pytest.raises(ModelError):
            consolidator.carry_out("ana", part)
    assert (texts(store), len(store.events("ana"))) == (["I like jazz"], events)
    assert consolidator.plan("ana") == [part]


# Summaries


def sit(store: MemoryStore, day: int, summary: str, topics: tuple[str, ...] = (), messages: int = 2) -> None:
    at = MARCH + timedelta(days=day)
    session = Session(
        id=f"s{day}",
        owner="ana",
        status="ended",
        thread=f"t{day}",
        started_at=at,
        last_at=at,
        messages=messages,
        summary=summary,
        topics=topics,
    )
    store.embed([session.searched or ""])
    with store.transaction("ana", writes=True) as (connection, number):
        rows.put(
            *(connection, number, session),
            op="SUMMARISE",
            at=times.now(),
            policy="test",
            reason="test",
            embed=store.vector,
        )


def test_conversations_are_rolled_up_by_week_and_topic_once(store: MemoryStore) -> None:
    sit(store, 0, "Ana planned the garden beds.", ("garden",))
    sit(store, 2, "Ana bought tomato seeds.", ("garden", "seeds"))
    sit(store, 9, "The tomatoes were planted.", ("garden",))
    assert consolidate(store) == {"rolled_up": 2}
    week, topic = sorted(store.memories("ana", kinds=("summary",)), key=lambda m: len(m.derived_from))
    assert (week.derived_from, topic.derived_from) == (("s0", "s2"), ("s0", "s2", "s9"))
    assert week.text.startswith("Week of 2 March 2026 (2 conversations, in words of their summaries)")
    assert "tomato seeds" in week.text
    assert (topic.metadata["policy"], topic.source.kind) == ("extractive/1", "inferred")
    assert consolidate(store) == {}
    sit(store, 10, "Slugs ate the lettuce.", ("garden",))
    assert consolidate(store) == {"rolled_up": 2}
    assert store.get("ana", topic.id).version == 2
    assert consolidate(store) == {}
    assert verify(store).healthy


def test_a_summary_that_was_deleted_stays_away(store: MemoryStore) -> None:
    sit(store, 0, "Ana planned the garden beds.")
    sit(store, 2, "Ana bought tomato seeds.")
    consolidate(store)
    store.delete("ana", store.memories("ana", kinds=("summary",))[0].id)
    assert consolidate(store) == {}


def test_indexed_conversations_can_be_rolled_up(store: MemoryStore) -> None:
    say(store, "We should plant tomatoes.", thread="a")
    say(store, "The tomatoes need water.", thread="b")
    Conversations(store).index("ana")
    assert consolidate(store)["rolled_up"] >= 1


# What was lived


def deploy(store: MemoryStore, n: int, outcome: str = "success") -> str:
    steps = [{"action": "build(target='prod')"}, {"action": "deploy(target='prod')", "failed": outcome == "failure"}]
    at = MARCH + timedelta(days=n)
    return Episodes(store).add("ana", "Deploy the shop to prod", steps, outcome, started_at=at, ended_at=at).id


def test_procedures_and_an_insight_come_of_similar_episodes_once(store: MemoryStore) -> None:
    ids = [deploy(store, n) for n in range(3)]
    assert consolidate(store) == {"learned": 3, "insights": 1}
    (procedure,) = Procedures(store).find("ana")
    assert (procedure.successes, procedure.status) == (3, "active")
    (insight,) = store.memories("ana", kinds=("insight",))
    assert (list(insight.derived_from), insight.confidence) == (ids, 0.75)
    assert consolidate(store) == {}
    ids += [deploy(store, 3, "failure")]
    assert consolidate(store) == {"learned": 1}
    assert Procedures(store).get("ana", procedure.id).failures == 1
    deploy(store, 4)
    assert consolidate(store) == {"learned": 1, "insights": 1}
    assert store.get("ana", insight.id).version == 2
    assert verify(store).healthy


def test_two_episodes_are_no_pattern(store: MemoryStore) -> None:
    deploy(store, 0), deploy(store, 1)
    assert consolidate(store) == {"learned": 2}


# Settling


@pytest.fixture
def rested(store: MemoryStore) -> tuple[str, str]:
    home = add(store, "I live in Oslo", attribute="home_city", value="Oslo")
    return home, add(store, "I take the tram to work", depends_on=(home,))


def test_a_ground_that_is_as_it_was_settles_the_review(store: MemoryStore, rested: tuple[str, str]) -> None:
    home, tram = rested
    store.edit("ana", home, "I live in Bergen")
    assert store.get("ana", tram).needs_review
    assert consolidate(store) == {}  # unclear: the user has to say
    store.restore("ana", home)
    assert consolidate(store) == {"settled": 1}
    assert not store.get("ana", tram).needs_review
    assert consolidate(store) == {}
    assert verify(store).healthy


def test_two_grounds_must_both_be_as_they_were(store: MemoryStore) -> None:
    grounds = [add(store, "I live in Oslo"), add(store, "I work at Acorn")]
    tram = add(store, "I take the tram to work", depends_on=tuple(grounds))
    store.edit("ana", grounds[0], "I live in Bergen")
    store.edit("ana", grounds[1], "I work at Birch")
    store.pin("ana", tram)
    store.restore("ana", grounds[0])
    assert consolidate(store) == {}
    store.restore("ana", grounds[1])
    assert consolidate(store) == {"settled": 1}


def test_what_derives_from_retracted_memories_alone_expires(store: MemoryStore, rested: tuple[str, str]) -> None:
    home, tram = rested
    alone = add(store, "Ana knows Norway", derived_from=(home,))
    backed = add(store, "Ana likes rain", derived_from=(home, "some message"))
    store.delete("ana", home)
    assert consolidate(store) == {"settled": 1, "expired": 1}
    assert [store.get("ana", one).status for one in (alone, backed, tram)] == ["expired", "active", "active"]
    assert "retracted" in store.history("ana", alone)[-1].reason
    store.undo("ana")
    assert store.get("ana", alone).status == "active"
    assert verify(store).healthy


# The plan


def test_a_plan_writes_nothing_and_a_part_done_twice_changes_nothing(store: MemoryStore) -> None:
    add(store, "I like jazz"), add(store, "I like jazz.")
    say(store, "I play the cello.", "I play the cello.")
    sit(store, 0, "Ana planned the garden beds."), sit(store, 2, "Ana bought tomato seeds.")
    for n in range(3):
        deploy(store, n)
    events = len(store.events("ana"))
    consolidator = Consolidator(store)
    plan = consolidator.plan("ana")
    assert [part["kind"] for part in consolidator.plan("ana", kinds=("merge", "settle"))] == [
        part["kind"] for part in plan if part["kind"] in ("merge", "settle")
    ]
    assert plan == consolidator.plan("ana")
    assert len(store.events("ana")) == events
    assert {part["kind"] for part in plan} == {"merge", "derive", "roll_up", "procedures", "insight"}
    for part in reversed(plan):  # each is independent of the others
        assert consolidator.carry_out("ana", part)["ids"]
        again = consolidator.carry_out("ana", part)
        assert again["ids"] == [] and not any(count for name, count in again.items() if name != "ids")
    assert consolidator.plan("ana") == []
    assert consolidator.plan("ben") == []
    assert verify(store).healthy


def test_a_part_of_an_unknown_kind_is_refused(store: MemoryStore) -> None:
    with pytest.raises(InputError, match="kinds"):
        Consolidator(store).carry_out("ana", {"kind": "dream", "ids": ["x"]})


def test_nobody_s_part_reaches_another_owner(store: MemoryStore) -> None:
    add(store, "I like jazz"), add(store, "I like jazz.")
    (part,) = Consolidator(store).plan("ana")
    assert Consolidator(store).carry_out("ben", part)["merged"] == 0
    assert len(texts(store)) == 2
