"""Replay on a schedule: what calls for a run, what is caught up, and what ends it."""

import threading
import time
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings

from sharpwave import scheduler as scheduling
from sharpwave.graphs import build_replay
from sharpwave.memory import runs, times
from sharpwave.memory.episodes import Episodes
from sharpwave.memory.errors import InputError
from sharpwave.memory.records import Message, Turn
from sharpwave.memory.sessions import Sessions
from sharpwave.memory.store import MemoryStore
from sharpwave.scheduler import ReplayScheduler

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)  # a Wednesday


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings(), collections=2) as opened:
        yield opened


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(times, "now", made)
    return made


def make(store: MemoryStore, told: list[tuple[str, str]], graph: Any = None, **options: Any) -> ReplayScheduler:
    def hear(owner: str, why: str, report: dict[str, Any]) -> None:
        told.append((owner, why))

    return ReplayScheduler(store, graph or build_replay(memory=store), heard=hear, asked={"n": 3}, **options)


def test_a_tick_replays_those_with_something_new_and_catches_up_once(store: MemoryStore, clock: Clock) -> None:
    told: list[tuple[str, str]] = []
    first = make(store, told, every=timedelta(minutes=10))
    first.look()
    store.add("ana", "Lives in Oslo")
    store.add("ben", "Lives in Rome")
    first.look()
    assert told == []
    clock.now += timedelta(hours=5)  # thirty ticks later, in another process
    again = make(store, told, every=timedelta(minutes=10))
    again.look()
    again.look()
    assert told == [("ana", "periodic"), ("ben", "periodic")]
    clock.now += timedelta(minutes=10)
    again.look()
    assert len(told) == 2  # nothing new, and nothing due
    store.add("ben", "Plays the cello")
    clock.now += timedelta(minutes=10)
    again.look()
    assert told[2:] == [("ben", "periodic")]
    clock.now += timedelta(days=30)
    again.look()
    assert sorted(told[3:]) == [("ana", "periodic"), ("ben", "periodic")]  # due by their curves
    clock.now -= timedelta(days=60)
    store.add("ben", "Has a dog")
    again.look()
    clock.now += timedelta(minutes=10)
    again.look()
    assert ("ben", "periodic") in told[5:]


def test_what_else_calls_for_a_run(store: MemoryStore, clock: Clock) -> None:
    told: list[tuple[str, str]] = []
    made = make(store, told, threshold=3, idle=timedelta(minutes=5), owners=["ana"])
    for text in ("Lives in Oslo", "Plays the cello"):
        store.add("ana", text)
        store.add("ben", text)
    made.look()
    assert told == []
    store.add("ana", "Has a dog")
    made.look()
    assert told == [("ana", "threshold")]
    store.add("ana", "Likes tea")
    made.look()
    clock.now += timedelta(minutes=6)
    made.look()
    made.look()
    assert told[1:] == [("ana", "idle")]
    Episodes(store).add("ana", "deploy", ["run deploy.sh"], "failure")
    made.look()
    made.look()
    assert told[2:] == [("ana", "trouble")]


def test_the_end_of_a_session_calls_for_a_run(store: MemoryStore, clock: Clock) -> None:
    told: list[tuple[str, str]] = []
    made = make(store, told, threshold=50)
    messages = tuple(
        Message(id=str(n), role="user", text=text) for n, text in enumerate(("I like jam.", "I like tea."))
    )
    turn = Turn(owner="ana", thread="t", messages=messages, said_at=NOON)
    store.queue([turn])
    store.pass_over([turn])
    made.look()
    assert told == []
    clock.now += timedelta(minutes=31)
    made.look()
    made.look()
    assert told == [("ana", "session")]
    assert [session.status for session in Sessions(store).find("ana")] == ["ended"]


def test_something_new_about_a_cue_calls_for_a_run(store: MemoryStore, clock: Clock) -> None:
    told: list[tuple[str, str]] = []
    made = make(store, told, cues=["the cello concert"])
    store.add("ana", "Has a dog")
    made.look()
    assert told == []
    cello = store.add("ana", "Plays the cello at the concert").memory_id
    made.asked["n"] = 1
    made.look()
    made.look()
    assert told == [("ana", "cue")]
    assert [memory.id for memory in store.memories("ana") if memory.replayed] == [cello]


def test_runs_begin_in_the_hours_for_them(store: MemoryStore, clock: Clock) -> None:
    told: list[tuple[str, str]] = []
    made = make(store, told, every=timedelta(hours=1), off_peak=(22, 6), timezone="Europe/Oslo")
    made.look()
    store.add("ana", "Lives in Oslo")
    made._last_tick(clock.now)
    for hours, expected in ((2, 0), (6, 0), (1, 1)):  # 15:00, 21:00 and 22:00 in Oslo
        clock.now += timedelta(hours=hours)
        made.look()
        assert len(told) == expected


def test_an_unfinished_run_is_finished_first(store: MemoryStore, clock: Clock) -> None:
    store.add("ana", "Lives in Oslo")
    with store.transaction("ana", writes=True) as (connection, number):
        asked = {"n": 1, "strategy": "oldest", "rate": 0.5, "cue": None}
        begun = runs.begin(connection, number, asked, f"{scheduling.__name__}:1:x", NOON)
    told: list[tuple[str, str]] = []
    clock.now += timedelta(seconds=runs.LEASE + 1)
    made = make(store, told, threshold=50)
    made.look()
    assert told == []  # on a machine that cannot be asked: its claim has to run out
    with store.transaction("ana", writes=True) as (connection, number):
        runs.release(connection, number, begun.run.run, f"{scheduling.__name__}:1:x")
    made._not_before.clear()
    made.look()
    assert told == [("ana", "unfinished")]
    with store.transaction("ana") as (connection, number):
        ended = runs.find(connection, number, begun.run.run)
    assert ended and ended.result and ended.result["strategy"] == "oldest"
    assert ended.result["mean_increase"] == pytest.approx(0.5)


def test_it_runs_by_itself_and_stops_in_the_middle(store: MemoryStore) -> None:
    reached, go = threading.Event(), threading.Event()

    class Slow:
        def plan(self, owner: str, *, kinds: Collection[str] = ()) -> list[dict[str, Any]]:
            reached.set()
            assert go.wait(20)
            return []

        def carry_out(self, owner: str, part: Mapping[str, Any], *, run: str | None = None) -> dict[str, Any]:
            return {}

    told: list[tuple[str, str]] = []
    store.add("ana", "Lives in Oslo")
    made = make(store, told, build_replay(memory=store, consolidate=Slow()), threshold=1, look=0.05)
    made.start()
    assert reached.wait(20)
    stopping = threading.Thread(target=made.stop)
    stopping.start()
    while not made._stopping.is_set():
        time.sleep(0.01)
    go.set()
    stopping.join(20)
    assert told == []
    with store.transaction("ana") as (connection, _):
        assert len(runs.unfinished(connection)) == 1
    made.start()
    deadline = time.monotonic() + 20
    while not told and time.monotonic() < deadline:
        time.sleep(0.02)
    made.stop()
    assert told == [("ana", "unfinished")]
    assert sum(event.op == "REPLAY" for event in store.events("ana")) == 1
    assert store.memories("ana")[0].replayed == 1


def test_a_run_that_fails_holds_up_nobody_else(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def plan(self, owner: str, *, kinds: Collection[str] = ()) -> list[dict[str, Any]]:
            if owner == "ana":
                raise OSError("gone")
            return []

        def carry_out(self, owner: str, part: Mapping[str, Any], *, run: str | None = None) -> dict[str, Any]:
            return {}

    told: list[tuple[str, str]] = []
    for owner in ("ana", "ben"):
        store.add(owner, "Lives in Oslo")
    made = make(store, told, build_replay(memory=store, consolidate=Broken()), threshold=1)
    made.look()
    made.look()
    assert told == [("ben", "threshold")] and caplog.text.count("tried again in 60 s") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cron": "0 0 30 2 *"}, "never comes"),
        ({"cron": "every day"}, "five fields"),
        ({"cron": "61 * * * *"}, "cannot be read"),
        ({"cron": "0 3 * * *", "every": timedelta(hours=1)}, "not both"),
        ({"every": timedelta(0)}, "at least 1 s"),
        ({"threshold": 0}, "at least 1"),
        ({"idle": timedelta(minutes=-1)}, "0 or more"),
        ({"threshold": 1, "timezone": "Mars"}, "Unknown time zone"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(store: MemoryStore, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ReplayScheduler(store, build_replay(memory=store), **options)


@pytest.mark.parametrize(
    ("days", "first"), [("1", 2), ("0", 1), ("7", 1), ("5-7", 6), ("1-5", 5), ("*/1", 5), ("mon", 2), ("0-6/3", 7)]
)
def test_weekdays_are_counted_as_cron_does(store: MemoryStore, clock: Clock, days: str, first: int) -> None:
    trigger = scheduling._trigger(None, f"0 3 * * {days}", "UTC")
    assert trigger is not None
    fires = trigger.get_next_fire_time(NOON, NOON)
    expected = {1: 8, 2: 9, 5: 5, 6: 6, 7: 7}[first]  # of March 2026: Sunday 8, Monday 9, Thursday 5, …
    assert (fires.day, fires.hour) == (expected, 3)
