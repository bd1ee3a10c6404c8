"""The replay graph: what a run does, that it does it once however it ends, and that a dry run does nothing."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings
from langgraph.checkpoint.memory import InMemorySaver

from sharpwave.graphs import Context, build_replay
from sharpwave.memory import runs
from sharpwave.memory.erase import erase
from sharpwave.memory.errors import InputError, ModelError
from sharpwave.memory.planning import KINDS
from sharpwave.memory.records import Message, Turn
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.usage import check_budget, record_call
from sharpwave.memory.verify import verify

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TESTS = str(Path(__file__).parent)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings(), collections=2) as opened:
        for day, text in enumerate(("Lives in Oslo", "Plays the cello", "Has a dog", "Likes tea", "Works at night")):
            opened.add("ana", text, valid_from=NOW - timedelta(days=9 - day), strength=0.5)
        opened.add("ana", "Perhaps owns a boat", confidence=0.1)
        yield opened


def replay(store: MemoryStore, owner: str = "ana", graph: Any = None, **asked: Any) -> dict[str, Any]:
    compiled = (graph or build_replay(memory=store)).compile()
    report: dict[str, Any] = compiled.invoke(asked, context=Context(user_id=owner, now=NOW))["report"]
    return report


def dump(store: MemoryStore) -> dict[str, list[Any]]:
    with store.ledger.read() as connection:
        names = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").all()
        return {n: [tuple(r) for r in connection.exec_driver_sql(f'SELECT * FROM "{n}"').all()] for (n,) in names}


def events(store: MemoryStore, op: str, owner: str = "ana") -> list[Any]:
    return [event for event in store.events(owner) if event.op == op]


class Consolidating:
    """Three parts, each of which may be told to fail or to ask a model."""

    def __init__(self, fail: Callable[[int], BaseException | None] = lambda part: None, tokens: int = 0) -> None:
        self.fail, self.tokens, self.done = fail, tokens, list[int]()

    def plan(self, owner: str, *, kinds: Collection[str] = KINDS) -> list[dict[str, Any]]:
        whole = [{"kind": "merge", "ids": ["a", "b"], "cluster": number, "why": "A text"} for number in range(3)]
        return [*whole, {"kind": "settle", "ids": ["c"]}][slice(3, 4) if "settle" in kinds else slice(3)]

    def carry_out(self, owner: str, part: Mapping[str, Any], *, run: str | None = None) -> dict[str, Any]:
        if part["kind"] == "settle":
            return self.settle()
        if error := self.fail(part["cluster"]):
            raise error
        if self.tokens:
            from langchain_core.messages import AIMessage

            check_budget()
            record_call("consolidate", AIMessage("x" * 4 * self.tokens))
        self.done.append(part["cluster"])
        return {"merged": 1, "derived": 2}

    def settle(self) -> dict[str, Any]:
        return {"settled": 4}


def test_a_run_strengthens_forgets_and_is_told_of_by_one_event(store: MemoryStore) -> None:
    report = replay(store, n=3, strategy="recent", rate=0.2)
    assert (report["replayed"], report["strengthened"], report["forgotten"]) == (3, 3, 1)
    assert report["mean_increase"] == pytest.approx(0.2) and report["partial"] is None and not report["dry_run"]
    (told,) = events(store, "REPLAY")
    assert told.detail["result"] == report and told.detail["asked"]["strategy"] == "recent"
    assert [one["after"] - one["before"] for one in told.detail["steps"]["rehearse"]["replayed"]] == pytest.approx(
        [0.2] * 3
    )
    assert {store.get("ana", one).replayed for one in report["ids"]["replayed"]} == {1}
    assert [store.get("ana", one).status for one in report["ids"]["forgotten"]] == ["expired"]
    assert verify(store).healthy and "boat" not in str(told.detail["steps"])


def test_parts_of_consolidation_are_carried_out_side_by_side_and_counted(store: MemoryStore) -> None:
    work = Consolidating()
    report = replay(store, graph=build_replay(memory=store, consolidate=work))
    assert sorted(work.done) == [0, 1, 2]
    assert (report["merged"], report["derived"], report["settled"]) == (3, 6, 4)


def test_a_dry_run_changes_no_row_and_lists_what_it_would_do(store: MemoryStore) -> None:
    before = dump(store)
    report = replay(store, n=2, strategy="oldest", dry_run=True)
    assert dump(store) == before
    assert (report["replayed"], report["forgotten"], report["dry_run"]) == (2, 1, True)
    assert report["would"]["forget"]["forgotten"][0]["text"] == "Perhaps owns a boat"
    assert replay(store, "nobody", dry_run=True)["replayed"] == 0 and dump(store) == before
    wet = replay(store, n=2, strategy="oldest")
    assert wet["ids"]["replayed"] == report["ids"]["replayed"] and wet["ids"]["forgotten"] == report["ids"]["forgotten"]
    assert wet["mean_increase"] == report["mean_increase"]


def test_the_same_run_again_does_nothing_and_says_the_same(store: MemoryStore) -> None:
    first = replay(store, run="r1", n=3)
    before = dump(store)
    assert replay(store, run="r1", n=3) == first
    assert dump(store) == before


@pytest.mark.parametrize(
    "step", ["select", "rehearse", "synthesize", "plan", "consolidate", "resolve", "forget", "report"]
)
@pytest.mark.parametrize("late", [False, True])
def test_a_run_that_dies_in_any_step_is_finished_once_by_the_next(
    store: MemoryStore, step: str, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sharpwave.graphs.replay import _Replay

    whole = getattr(_Replay, step)

    def dies(self: Any, state: Any, context: Any) -> Any:
        if late:
            whole(self, state, context)
        raise KeyboardInterrupt

    asked = {"n": 4, "strategy": "random"}
    work = Consolidating()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(_Replay, step, dies)
        replay(store, graph=build_replay(memory=store, consolidate=work), **asked)
    ended = step == "report" and late  # then the next one is another run
    report = replay(store, graph=build_replay(memory=store, consolidate=work), **asked)
    assert report["resumed"] is not ended and report["forgotten"] == (not ended)
    assert (report["replayed"], report["strengthened"], report["merged"]) == (4, 4, 3)
    assert len(events(store, "REPLAY")) == 1 + ended and len(events(store, "EXPIRE")) == 1
    assert sum(memory.replayed for memory in store.memories("ana", statuses=())) == 4 * (1 + ended)
    with store.transaction("ana") as (connection, number):
        assert not runs.unfinished(connection) and not runs.steps(connection, number, report["run"])


def test_a_checkpointed_run_goes_on_where_it_failed(store: MemoryStore) -> None:
    broken = [True]
    work = Consolidating(lambda part: OSError("gone") if part == 1 and broken else None)
    graph = build_replay(memory=store, consolidate=work).compile(checkpointer=InMemorySaver())
    options: Any = {"config": {"configurable": {"thread_id": "t"}}, "context": Context(user_id="ana", now=NOW)}
    with pytest.raises(OSError, match="gone"):
        graph.invoke({"n": 2}, **options)
    broken.clear()
    report = graph.invoke(None, **options)["report"]
    assert report["merged"] == 3 and report["replayed"] == 2 and len(events(store, "REPLAY")) == 1
    again = graph.invoke({"n": 1}, **options)["report"]
    assert again["run"] != report["run"] and again["replayed"] == 1


def test_a_model_that_fails_in_the_middle_makes_a_partial_report(store: MemoryStore) -> None:
    work = Consolidating(lambda part: ModelError("The model failed: 429.") if part == 2 else None)
    report = replay(store, graph=build_replay(memory=store, consolidate=work))
    assert report["partial"] == "The model failed: 429." and report["merged"] == 2 and report["forgotten"] == 1


def test_budgets_end_a_run_with_a_partial_report(store: MemoryStore) -> None:
    graph = build_replay(memory=store, consolidate=Consolidating(tokens=100))
    report = replay(store, graph=graph, max_llm_calls=2)
    assert report["merged"] == 2 and "used up" in report["partial"] and report["usage"]["llm_calls"] == 2
    assert replay(store, graph=graph, max_tokens=150)["merged"] == 2
    assert store.tokens_today("ana") == 400
    report = replay(store, graph=graph, max_seconds=1e-9)
    assert report["replayed"] == 0 and "seconds allowed" in report["partial"] and report["forgotten"] == 0
    with store.transaction("ana") as (connection, _):
        assert not runs.unfinished(connection)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"n": -1}, "n=-1"),
        ({"n": True}, "n=True"),
        ({"strategy": "best"}, "no strategy 'best'"),
        ({"strategy": {"recent": 0}}, "above 0"),
        ({"strategy": {}}, "none given"),
        ({"rate": 0.0}, "rate=0.0"),
        ({"rate": 1.5}, "rate=1.5"),
        ({"rate": float("nan")}, "rate=nan"),
        ({"strategy": "contextual"}, "needs a cue"),
        ({"max_seconds": 0}, "max_seconds=0"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is(store: MemoryStore, asked: Any, message: str) -> None:
    before = dump(store)
    with pytest.raises(InputError, match=message):
        replay(store, **asked)
    assert dump(store) == before


def test_nothing_to_replay_is_a_completed_report(store: MemoryStore) -> None:
    before = dump(store)
    report = replay(store, n=0)
    assert (report["replayed"], report["forgotten"], report["mean_increase"], report["partial"]) == (0, 0, 0.0, None)
    assert dump(store) == before
    assert replay(store, "ben")["replayed"] == 0
    assert replay(store, n=1000)["replayed"] == 6
    assert replay(store, n=2, strategy="contextual", cue="the cello")["ids"]["replayed"][0] in {
        memory.id for memory in store.memories("ana") if "cello" in memory.text
    }
    assert len(replay(store, n=4, strategy={"recent": 1, "oldest": 1})["ids"]["replayed"]) == 4


def test_a_clock_that_was_set_back_breaks_nothing(store: MemoryStore) -> None:
    graph = build_replay(memory=store).compile()
    for days in (0, -400, 4000, -4000):
        context = Context(user_id="ana", now=NOW + timedelta(days=days))
        assert graph.invoke({"n": 9}, context=context)["report"]["replayed"] > 0
    assert all(0 <= memory.strength <= 1 for memory in store.memories("ana", statuses=()))
    assert verify(store).healthy


def test_another_request_gives_up_an_unfinished_run(store: MemoryStore) -> None:
    broken = Consolidating(lambda part: OSError("gone"))
    with pytest.raises(OSError, match="gone"):
        replay(store, graph=build_replay(memory=store, consolidate=broken), n=2, strategy="oldest")
    assert replay(store, n=1, strategy="recent")["replayed"] == 1
    assert ["given up" in str(e.detail["result"]["partial"]) for e in events(store, "REPLAY")] == [True, False]


def test_one_run_of_an_owner_at_a_time(store: MemoryStore) -> None:
    inside, go = threading.Event(), threading.Event()

    def hold(part: int) -> None:
        inside.set()
        assert go.wait(20)

    slow = build_replay(memory=store, consolidate=Consolidating(hold))
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(replay(store, graph=slow)))
    thread.start()
    assert inside.wait(20)
    try:
        with pytest.raises(runs.UnderWay, match="under way"):
            replay(store)
        store.add("ben", "Lives in Rome")
        assert replay(store, "ben")["replayed"] == 1
    finally:
        go.set()
        thread.join()
    assert found[0]["replayed"] == 6 and len(events(store, "REPLAY")) == 1


def test_a_new_turn_pauses_a_run_until_it_is_written(store: MemoryStore) -> None:
    turn = Turn(owner="ana", thread="t", messages=(Message(id="m", role="user", text="I like jam"),), said_at=NOW)
    waited: list[bool] = []

    def said(part: int) -> None:
        if part == 0:
            store.queue([turn])
            threading.Timer(0.3, lambda: store.pass_over([turn])).start()

    class Resolving(Consolidating):
        def settle(self) -> dict[str, Any]:
            waited.append(store.is_written(turn))
            return {}

    graph = build_replay(memory=store, consolidate=Resolving(said), patience=20)
    graph.compile().invoke({"n": 1}, context=Context(user_id="ana"))
    assert waited == [True]


def test_an_erased_owner_leaves_no_run(store: MemoryStore) -> None:
    replay(store, n=2, strategy="contextual", cue="a most peculiar cue")
    broken = Consolidating(lambda part: OSError("gone"))
    with pytest.raises(OSError, match="gone"):
        replay(
            store, graph=build_replay(memory=store, consolidate=broken), strategy="contextual", cue="another odd cue"
        )
    done = erase(store, "ana")
    assert done.complete and not any(dump(store)[table] for table in ("replays", "replay_steps", "uses"))
    assert b"peculiar cue" not in b"".join(path.read_bytes() for path in store.home.rglob("*") if path.is_file())


def test_progress_is_streamed(store: MemoryStore) -> None:
    graph = build_replay(memory=store).compile()
    told = list(graph.stream({"n": 2}, context=Context(user_id="ana", now=NOW), stream_mode="custom"))
    assert [one["step"] for one in told] == [
        "begin",
        "select",
        "rehearse",
        "synthesize",
        "plan",
        "resolve",
        "forget",
        "report",
    ]
    assert told[2]["replayed"] == 2 and len({one["replay"] for one in told}) == 1


KILLED = """
    import os, signal, sys
    sys.path.insert(0, {tests!r})
    from fakes import HashEmbeddings
    from sharpwave.graphs import Context, build_replay
    from sharpwave.memory.store import MemoryStore

    class Dying:
        def plan(self, owner, kinds):
            os.kill(os.getpid(), signal.SIGKILL)

    store = MemoryStore.open({home!r}, embeddings=HashEmbeddings(), collections=2)
    build_replay(memory=store, consolidate=Dying()).compile().invoke({{"n": 3}}, context=Context(user_id="ana"))
"""


class Nothing:
    def plan(self, owner: str, *, kinds: Collection[str] = KINDS) -> list[dict[str, Any]]:
        return []

    def carry_out(self, owner: str, part: Mapping[str, Any], *, run: str | None = None) -> dict[str, Any]:
        return {}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_process_is_taken_over_at_once(store: MemoryStore) -> None:
    script = textwrap.dedent(KILLED).format(tests=TESTS, home=str(store.home))
    ended = subprocess.run([sys.executable, "-c", script], env=os.environ.copy(), timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    with store.transaction("ana") as (connection, _):
        assert len(runs.unfinished(connection)) == 1
    report = replay(store, graph=build_replay(memory=store, consolidate=Nothing()), n=3)
    assert report["resumed"] and report["replayed"] == 3
    assert sum(memory.replayed for memory in store.memories("ana", statuses=())) == 3


def test_what_is_lived_becomes_knowledge_and_reviews_are_settled(store: MemoryStore) -> None:
    store.add("ana", "I am allergic to penicillin", subject="user")
    store.add("ana", "I'm allergic to penicillin.", subject="user")
    ground = store.add("ana", "Has a cat").memory_id or ""
    rests = store.add("ana", "An animal lover", kind="insight", derived_from=(ground,)).memory_id or ""
    store.delete("ana", ground)
    assert store.get("ana", rests).needs_review
    before = dump(store)
    would = replay(store, n=1, dry_run=True)
    assert (would["merged"], would["settled"]) == (1, 1) and dump(store) == before
    assert "penicillin" in would["would"]["plan"]["parts"][0]["why"]
    report = replay(store, n=1)
    assert (report["merged"], report["settled"], report["partial"]) == (1, 1, None)
    assert store.get("ana", rests).status == "expired" and rests in report["ids"]["consolidated"]
    (told,) = events(store, "REPLAY")
    assert "penicillin" not in str(told.detail) and verify(store).healthy
    again = replay(store, n=1)
    assert (again["merged"], again["settled"]) == (0, 0)
