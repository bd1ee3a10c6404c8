"""Time: when things happened, what held then, what was known then; and older statements that arrive late."""

import ast
import re
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings
from talking import reply, say, texts

from sharpwave.graphs import build_agent
from sharpwave.ingesting import ingest
from sharpwave.memory.decide.guard import guard
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.errors import InputError
from sharpwave.memory.extract import extracted
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.records import Candidate, Decision, EventTime, Memory, Message, Recall, Turn
from sharpwave.memory.store import MemoryStore

ROOT = Path(__file__).resolve().parents[1]
MAY = datetime(2023, 5, 24, 10, 0, tzinfo=UTC)
OLDER, NEWER = datetime(2024, 2, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
PRESENT = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "store", embeddings=HashEmbeddings(), collections=2) as opened:
        yield opened


@pytest.fixture
def agent(store: MemoryStore) -> Any:
    return build_agent(memory=store).compile()


def turn(text: str, at: datetime = MAY, zone: str = "UTC", thread: str = "t1") -> Turn:
    message = Message(id=f"{thread} {at:%Y%m%d%H%M%S} {text}", role="user", text=text)
    return Turn(owner="ana", thread=thread, messages=(message,), said_at=at, timezone=zone)


def found(text: str, at: datetime = MAY, zone: str = "UTC") -> Candidate:
    [candidate] = extracted(RulesExtractor(), turn(text, at, zone), [])
    return candidate


def remembered(store: MemoryStore, word: str) -> Memory:
    return next(m for m in store.memories("ana", statuses=()) if word in m.text)


def day(year: int, month: int, number: int) -> datetime:
    return datetime(year, month, number, tzinfo=UTC)


def test_relative_times_of_an_old_chat_are_read_from_its_own_day(store: MemoryStore) -> None:
    said = turn("I went to Lisbon last week and I start my new job tomorrow.")
    ingest(store, [said], RulesExtractor(), RulesPolicy())
    trip, job = remembered(store, "Lisbon"), remembered(store, "new job")
    assert trip.event_time == EventTime(
        start=day(2023, 5, 15), end=day(2023, 5, 22), precision="week", phrase="last week"
    )
    assert job.event_time == EventTime(start=day(2023, 5, 25), end=day(2023, 5, 26), precision="day", phrase="tomorrow")
    assert trip.valid_from == job.valid_from == MAY
    assert trip.recorded_at > day(2025, 1, 1)


def test_what_just_happened_happened_on_the_day_it_was_told(agent: Any, store: MemoryStore) -> None:
    late = datetime.fromisoformat("2026-08-31T23:50+03:00")
    say(agent, "I just handed in my thesis.", now=late, timezone="Europe/Athens")
    say(agent, "Please note what I did.", now=late + timedelta(minutes=20), timezone="Europe/Athens")
    thesis = remembered(store, "thesis")
    assert thesis.event_time is not None
    assert thesis.event_time.start == datetime.fromisoformat("2026-08-31T00:00+03:00")
    assert thesis.event_time.end == datetime.fromisoformat("2026-09-01T00:00+03:00")


@pytest.mark.parametrize("machine", ["UTC", "America/Los_Angeles"])
def test_the_day_is_that_of_the_speakers_zone_wherever_the_machine_is(
    agent: Any, store: MemoryStore, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", machine)
    time.tzset()
    try:
        bought = datetime(2026, 7, 24, 22, 30, tzinfo=UTC)  # half past one on the 25th in Athens
        say(agent, "I bought a boat today.", now=bought, timezone="Europe/Athens")
        say(agent, "I bought a kite today.", now=bought - timedelta(days=3), timezone="Europe/Athens")
        asked = {"now": day(2026, 8, 1), "timezone": "Europe/Athens"}
        hits = store.recall("ana", "What did I do on 25 July?", floor=-1, stores=("semantic",), explain=True, **asked)
        told = reply(say(agent, "What did I do on 25 July?", thread="t2", **asked))
    finally:
        monkeypatch.undo()
        time.tzset()
    boat = remembered(store, "boat")
    assert boat.event_time is not None and boat.event_time.start == datetime(2026, 7, 24, 21, tzinfo=UTC)
    assert {hit.text: hit.parts.time for hit in hits if hit.parts} == {
        "I bought a boat today.": pytest.approx(0.1),
        "I bought a kite today.": 0,
    }
    assert hits[0].text == "I bought a boat today." and "25 July 2026" in told


def test_a_question_about_a_month_prefers_what_was_said_in_it_and_hides_nothing(store: MemoryStore) -> None:
    done = {1: "I cleaned the shed.", 3: "My cousin Lena painted the shed.", 5: "I sold the shed to my neighbour."}
    for month, text in done.items():
        ingest(store, [turn(text, day(2026, month, 10))], RulesExtractor(), RulesPolicy())
    asked = "What about the shed in March?"
    hits = store.recall("ana", asked, floor=-1, stores=("semantic",), now=day(2026, 6, 1), explain=True)
    assert len(hits) == 3 and hits[0].text == done[3]
    assert [hit.parts.time for hit in hits if hit.parts] == [pytest.approx(0.1), 0, 0]


def test_a_fact_with_a_past_beginning_holds_from_there(store: MemoryStore) -> None:
    ingest(store, [turn("I have lived in Lisbon since 2019.")], RulesExtractor(), RulesPolicy())
    [hit] = store.recall("ana", "Where do I live?", floor=-1, stores=("semantic",))
    assert hit.memory is not None and hit.memory.valid_from == day(2019, 1, 1)
    assert hit.said_at == MAY
    assert [m.text for m in store.memories("ana", as_of=day(2020, 1, 1))] == ["I have lived in Lisbon since 2019."]


def test_what_ended_does_not_begin_at_its_end() -> None:
    ended, closed = found("I worked at Acorn until 2019."), found("I lived in Rome from 2015 to 2019.")
    assert ended.history and closed.history
    assert not found("I'm on holiday until Friday.").history


def test_a_closed_past_holds_over_its_time_and_no_longer(store: MemoryStore) -> None:
    lines = ("I lived in Rome from 2015 to 2018.", "I worked at Acorn until 2019.")
    ingest(store, [turn(text) for text in lines], RulesExtractor(), RulesPolicy())
    rome, acorn = remembered(store, "Rome"), remembered(store, "Acorn")
    assert (rome.valid_from, rome.valid_to) == (day(2015, 1, 1), day(2019, 1, 1))
    assert acorn.valid_from == MAY and acorn.attribute == "former:employer"
    assert [m.text for m in store.memories("ana", as_of=day(2017, 6, 1))] == [rome.text]


def test_our_own_reading_of_a_time_goes_before_the_models() -> None:
    wrong = EventTime(start=day(2026, 11, 1), end=day(2026, 11, 2), precision="day")
    given = Candidate(text="Moved", quote="I moved yesterday", message_id="m", event_time=wrong)

    class Model:
        name = "model/1"

        def extract(self, turn: Turn, known: Sequence[Recall]) -> list[Candidate]:
            return [given, given.model_copy(update={"quote": "I moved"})]

    first, second = extracted(Model(), turn("I moved yesterday"), [])
    assert first.event_time is not None and first.event_time.start == day(2023, 5, 23)
    assert second.event_time == wrong


@pytest.mark.parametrize("first", [OLDER, NEWER])
@pytest.mark.parametrize("way", ["ingest", "chat"])
def test_an_older_chat_that_comes_later_does_not_overwrite_a_newer_fact(
    agent: Any, store: MemoryStore, first: datetime, way: str
) -> None:
    said = {NEWER: "I work at Initium.", OLDER: "I work at Acorn."}
    for at in (first, OLDER if first == NEWER else NEWER):
        if way == "ingest":
            ingest(store, [turn(said[at], at, thread=f"chat {at:%Y}")], RulesExtractor(), RulesPolicy())
        else:
            say(agent, said[at], thread=f"chat {at:%Y}", now=at)
    assert texts(store) == ["I work at Initium."]
    answer = reply(say(agent, "Where do I work?", thread="t9", now=PRESENT))
    assert "Initium" in answer and "Acorn" not in answer
    then = store.memories("ana", as_of=OLDER + timedelta(days=90))
    assert [(m.text, m.valid_from, m.valid_to) for m in then] == [("I work at Acorn.", OLDER, NEWER)]
    assert [m.text for m in store.memories("ana", as_of=PRESENT)] == ["I work at Initium."]


@pytest.mark.parametrize("op", ["UPDATE", "DELETE", "ADD"])
def test_no_policy_lets_an_older_statement_change_a_newer_one(store: MemoryStore, op: Any) -> None:
    ingest(store, [turn("I work at Initium.", NEWER)], RulesExtractor(), RulesPolicy())
    late = turn("I work at Acorn.", OLDER, thread="old")
    candidate = found("I work at Acorn.", OLDER).model_copy(update={"message_id": late.message_id})
    near, revision = store.neighbours("ana", [candidate])
    target = None if op == "ADD" else store.memories("ana")[0].id
    made = [Decision(op=op, candidate=candidate, target=target, reason="because", policy="careless/1")]
    guarded = guard(made, near, late)
    assert guard(guarded, near, late) == guarded
    store.apply(late, guarded, revision=revision)
    assert texts(store) == ["I work at Initium."]
    old = remembered(store, "Acorn")
    assert (old.status, old.valid_to, old.attribute) == ("superseded", NEWER, "employer")
    assert old.superseded_by == store.memories("ana")[0].id
    assert guarded[0].guarded is not None and "said before what is known" in guarded[0].guarded


def test_the_record_is_read_as_it_was_known_at_a_time(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [datetime(2026, 3, 1, 9, tzinfo=UTC)]
    monkeypatch.setattr("sharpwave.memory.times.now", lambda: clock[0])

    def at(hour: int) -> datetime:
        return datetime(2026, 3, 1, hour, 30, tzinfo=UTC)

    said = turn("I live in Oslo.", datetime(2020, 1, 1, tzinfo=UTC))
    ingest(store, [said], RulesExtractor(), RulesPolicy())
    home = store.memories("ana")[0].id
    for hour, step in (
        (10, lambda: store.edit("ana", home, "I live in Lisbon.")),
        (11, lambda: store.delete("ana", home)),
        (12, lambda: store.undo("ana")),
    ):
        clock[0] = datetime(2026, 3, 1, hour, tzinfo=UTC)
        step()

    def known(hour: int, **more: Any) -> list[str]:
        listed = [m.text for m in store.memories("ana", known_at=at(hour), **more)]
        recalled = store.recall("ana", "live", known_at=at(hour), floor=-1, stores=("semantic",), **more)
        assert [hit.text for hit in recalled] == listed
        return listed

    assert [known(hour) for hour in (8, 9, 10, 11, 12)] == [
        [],
        ["I live in Oslo."],
        ["I live in Lisbon."],
        [],
        ["I live in Lisbon."],
    ]
    then = datetime(2021, 1, 1, tzinfo=UTC)
    assert known(8, as_of=then) == [] and known(9, as_of=then) == known(10, as_of=then) == ["I live in Oslo."]
    [as_then] = store.memories("ana", known_at=at(9))
    assert (as_then.status, as_then.valid_to) == ("active", None)
    assert store.recall("ana", "Oslo", known_at=at(8), floor=-1) == []
    assert [hit.store for hit in store.recall("ana", "Oslo", known_at=at(11), floor=-1)] == ["episodic"]


def test_a_memory_that_was_taken_over_is_known_from_when_it_was_recorded(store: MemoryStore) -> None:
    first = Memory(owner="ana", text="Lives in Oslo", recorded_at=OLDER, valid_from=OLDER)
    closed = first.model_copy(update={"status": "superseded", "valid_to": NEWER})
    second = first.model_copy(update={"version": 2, "text": "Lives in Rome", "recorded_at": NEWER, "valid_from": NEWER})
    store.put_memories("ana", [closed, second], "import")
    assert [m.text for m in store.memories("ana", known_at=PRESENT)] == ["Lives in Rome"]
    assert [m.text for m in store.memories("ana", known_at=PRESENT, as_of=OLDER)] == ["Lives in Oslo"]
    assert store.memories("ana", known_at=OLDER - timedelta(days=1)) == []


def test_a_time_without_a_zone_is_refused_and_one_in_another_zone_is_the_same_instant() -> None:
    with pytest.raises(InputError, match="no zone"):
        Memory(owner="ana", text="A", recorded_at=datetime(2026, 1, 1, 10), valid_from=MAY)
    same = [datetime.fromisoformat(text) for text in ("2026-01-01T10:00:00+00:00", "2026-01-01T12:00:00+02:00")]
    one, other = (Memory(owner="ana", text="A", recorded_at=at, valid_from=at) for at in same)
    assert one.recorded_at == other.recorded_at and other.recorded_at.utcoffset() == timedelta(0)


def test_history_is_in_the_order_of_time_and_every_line_has_one(store: MemoryStore) -> None:
    added = store.add("ana", "Lives in Oslo").memory_id
    assert added is not None
    store.edit("ana", added, "Lives in Lisbon")
    store.delete("ana", added)
    events = store.history("ana", added)
    assert [event.op for event in events] == ["ADD", "UPDATE", "DELETE"]
    assert all(event.at.tzinfo is not None for event in events)
    assert [event.at for event in events] == sorted(event.at for event in events)


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("I moved to Porto in March.", " (March 2023) ["),
        ("I moved to Porto last week.", " (week of 15 May) ["),
        ("I moved to Porto yesterday.", " (23 May) ["),
        ("I have lived in Porto since 2019.", " (since 2019) ["),
        ("I live in Porto.", "” ["),
    ],
)
def test_an_answer_says_when_the_thing_happened(agent: Any, told: str, shown: str) -> None:
    say(agent, told, now=MAY)
    assert shown in reply(say(agent, "Where do I live?", now=PRESENT, thread="t2"))


_NAIVE = re.compile(r"\bdatetime\.(?:now|fromtimestamp)\(\)|utcnow|utcfromtimestamp|date\.today\(|datetime\.today\(")


def test_no_time_is_made_without_a_zone() -> None:
    for folder in ("memory", "graphs", "app", "benchmarks", "prompts"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            source = file.read_text(encoding="utf-8")
            assert not _NAIVE.search(source), file
            for node in ast.walk(ast.parse(source)):
                called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
                needed = {"datetime.now": 1, "datetime.fromtimestamp": 2}.get(called, 0)
                assert not isinstance(node, ast.Call) or len(node.args) >= needed, f"{file}:{node.lineno}"
