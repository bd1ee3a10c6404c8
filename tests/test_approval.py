"""Asking the user before memories are deleted or changed: what is asked, what an answer does, and what waits."""

import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypedDict

import pytest
from fakes import HashEmbeddings
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from talking import done, reply, say, texts, user

from sharpwave import cli
from sharpwave.graphs import Context, State, build_agent, build_write, thread_config, write_pending
from sharpwave.graphs.approve import WAITS
from sharpwave.graphs.keep import PATIENCE
from sharpwave.memory import MemoryStore
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.errors import ConfigError, OwnershipError
from sharpwave.memory.records import Candidate, Decision, Recall, Turn

ANA = Context(user_id="ana")
CAR, SOLD = "I have a car.", "I sold my car. I bought a bike."
FRUIT = ["kiwi", "mango", "figs", "plums", "pears", "dates"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings()) as opened:
        opened.add("ana", CAR, attribute="possession", value="car")
        yield opened


def asking(store: MemoryStore, saver: BaseCheckpointSaver[str] | None = None, **given: Any) -> Any:
    return build_agent(memory=store, **{"confirm": True, **given}).compile(checkpointer=saver or InMemorySaver())


def resume(agent: Any, answer: Any, thread: str = "t1", who: str = "ana") -> dict[str, Any]:
    result: dict[str, Any] = agent.invoke(
        Command(resume=answer), thread_config(who, thread), context=Context(user_id=who)
    )
    return result


def asked(state: dict[str, Any]) -> dict[str, Any]:
    """What the run stopped to ask."""
    (stopped,) = state["__interrupt__"]
    value: dict[str, Any] = stopped.value
    return value


def ops(store: MemoryStore, who: str = "ana") -> list[str]:
    """What was done since the car was added."""
    return [event.op for event in store.events(who)][1:]


class Unsure(RulesPolicy):
    """Decides by rules, and is never quite sure."""

    def decide(self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Recall]], turn: Turn) -> Any:
        made = super().decide(candidates, neighbours, turn)
        return [decision.model_copy(update={"confidence": 0.6}) for decision in made]


# What is asked


def test_a_deletion_is_asked_about_before_it_is_done(store: MemoryStore) -> None:
    agent = asking(store)
    state = say(agent, SOLD)
    (car,) = store.memories("ana")
    assert reply(state) and texts(store) == [CAR] and ops(store) == []
    question = asked(state)
    assert (question["said"], question["thread"]) == (SOLD, thread_config("ana", "t1")["configurable"]["thread_id"])
    (decision,) = question["decisions"]
    assert decision.items() >= {"n": 1, "op": "DELETE", "memory_id": car.id, "old": CAR, "new": None}.items()
    assert decision["quote"] == "I sold my car." and decision["reason"] and 0 < decision["confidence"] <= 1


def test_an_update_is_asked_about_where_it_is_not_sure(store: MemoryStore) -> None:
    store.add("ana", "I live in Lisbon.", attribute="home_city", value="Lisbon")
    agent = asking(store, decide=Unsure())
    (decision,) = asked(say(agent, "I moved to Porto."))["decisions"]
    assert (decision["op"], decision["old"], decision["new"]) == ("UPDATE", "I live in Lisbon.", "I moved to Porto.")
    assert decision["confidence"] == 0.6
    assert done(resume(agent, True)) == [("UPDATE", "I moved to Porto.")]


@pytest.mark.parametrize(("confirm", "stops"), [(0.0, False), (0.6, False), (0.61, True), (True, True)])
def test_how_sure_an_update_must_be(confirm: bool | float, stops: bool, store: MemoryStore) -> None:
    store.add("ana", "I live in Lisbon.", attribute="home_city", value="Lisbon")
    state = say(asking(store, decide=Unsure(), confirm=confirm), "I moved to Porto.")
    assert ("__interrupt__" in state) == stops


def test_what_adds_and_confirms_is_never_asked_about(store: MemoryStore) -> None:
    agent = asking(store, confirm=1.0)
    assert done(say(agent, "I have a cat.")) == [("ADD", "I have a cat.")]
    assert done(say(agent, "I have a car.")) == [("NOOP", CAR)]
    assert "__interrupt__" not in say(agent, "ok thanks")


def test_nothing_is_asked_without_confirm(store: MemoryStore) -> None:
    agent = build_agent(memory=store).compile(checkpointer=InMemorySaver())
    assert sorted(op for op, _ in done(say(agent, SOLD))) == ["ADD", "DELETE"]


# What an answer does


@pytest.mark.parametrize("answers", [[" Yes"], [[1]], [True, True, True], [True, False]])
def test_what_is_approved_is_done_once_however_often_it_is_resumed(answers: list[Any], store: MemoryStore) -> None:
    agent = asking(store)
    say(agent, SOLD)
    for answer in answers:
        state = resume(agent, answer)
    assert sorted(ops(store)) == ["ADD", "DELETE"] and texts(store) == ["I bought a bike."]
    assert sorted(op for op, _ in done(state)) == ["ADD", "DELETE"] and store.pending() == []
    (gone,) = (event for event in store.events("ana") if event.op == "DELETE")
    assert gone.reason.endswith("approved by the user")


@pytest.mark.parametrize("answers", [["no"], [[]], [False, True]])
def test_what_is_refused_changes_no_memory_and_is_on_record(answers: list[Any], store: MemoryStore) -> None:
    before = store.memories("ana")
    agent = asking(store)
    say(agent, SOLD)
    for answer in answers:
        resume(agent, answer)
    (car,) = (memory for memory in store.memories("ana") if memory.text == CAR)
    assert [car.model_copy(update={"recalled": 0, "last_recalled_at": None})] == before
    assert texts(store) == ["I bought a bike.", CAR] and sorted(ops(store)) == ["ADD", "NOOP"]
    (refused,) = (event for event in store.events("ana") if event.op == "NOOP")
    assert "the user refused" in refused.reason and CAR in refused.reason
    assert refused.detail["quote"] == "I sold my car." and store.pending() == []


def test_a_refused_change_leaves_the_memory_as_it_was(store: MemoryStore) -> None:
    store.add("ana", "I live in Lisbon.", attribute="home_city", value="Lisbon")
    agent = asking(store, decide=Unsure())
    say(agent, "I moved to Porto.")
    assert done(resume(agent, False)) == [("NOOP", "I moved to Porto.")]
    assert texts(store) == [CAR, "I live in Lisbon."]
    assert "I moved to Porto." in [utterance.text for utterance in store.utterances("ana")]


@pytest.mark.parametrize(("approved", "left"), [([1], "I have a moped."), ([2], CAR), ([1, 2], None)])
def test_some_may_be_approved_and_others_not(approved: list[int], left: str | None, store: MemoryStore) -> None:
    store.add("ana", "I have a moped.", attribute="possession", value="moped")
    agent = asking(store)
    question = asked(say(agent, "I sold my car. I sold my moped."))
    assert [(d["n"], d["old"]) for d in question["decisions"]] == [(1, CAR), (2, "I have a moped.")]
    resume(agent, approved)
    assert texts(store) == ([left] if left else [])


@pytest.mark.parametrize("answer", ["maybe", 1, [2], [True], {"approve": True}])
def test_what_is_no_answer_is_asked_again(answer: Any, store: MemoryStore) -> None:
    agent = asking(store)
    question = asked(say(agent, SOLD))
    again = asked(resume(agent, answer))
    assert repr(answer) in again.pop("problem") and again == question and texts(store) == [CAR]
    resume(agent, True)
    assert texts(store) == ["I bought a bike."] and sorted(ops(store)) == ["ADD", "DELETE"]


def test_going_on_without_an_answer_asks_again(store: MemoryStore) -> None:
    agent = asking(store)
    question = asked(say(agent, SOLD))
    assert asked(agent.invoke(None, thread_config("ana", "t1"), context=ANA)) == question and ops(store) == []


def test_nobody_answers_for_another_user(store: MemoryStore) -> None:
    agent = asking(store)
    say(agent, SOLD)
    with pytest.raises(OwnershipError, match="another user's"):
        agent.invoke(Command(resume=True), thread_config("ana", "t1"), context=Context(user_id="bo"))
    assert texts(store) == [CAR] and store.events("bo") == []
    resume(agent, False)
    assert CAR in texts(store)


# When things change while the question waits


def test_a_question_outlives_the_process(tmp_path: Path) -> None:
    def run(answer: Any = None) -> Any:
        with (
            MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings()) as store,
            SqliteSaver.from_conn_string(str(tmp_path / "states.sqlite3")) as saver,
        ):
            agent = asking(store, saver)
            if answer is None:
                store.add("ana", CAR, attribute="possession", value="car")
                say(agent, SOLD)
            else:
                resume(agent, answer)
            return texts(store), sorted(ops(store)), len(store.pending())

    assert run() == ([CAR], [], 1)
    assert run(True) == run(True) == (["I bought a bike."], ["ADD", "DELETE"], 0)


def test_what_was_changed_since_it_was_said_is_left_alone(store: MemoryStore) -> None:
    agent = asking(store)
    say(agent, SOLD)
    (car,) = store.memories("ana")
    store.edit("ana", car.id, "I have a red car.")
    assert "__interrupt__" not in resume(agent, True)
    assert "I have a red car." in texts(store) and "DELETE" not in ops(store)


@pytest.mark.parametrize("answer", [True, False])
def test_what_did_not_change_meanwhile_is_not_asked_about_twice(answer: bool, store: MemoryStore) -> None:
    agent = asking(store)
    say(agent, SOLD)
    store.add("ana", "I play the cello.")
    state = resume(agent, answer)
    assert "__interrupt__" not in state and texts(store) == sorted(
        ["I bought a bike.", "I play the cello.", *([] if answer else [CAR])]
    )


def test_what_is_gone_meanwhile_needs_no_answer(store: MemoryStore) -> None:
    agent = asking(store)
    say(agent, SOLD)
    (car,) = store.memories("ana")
    store.delete("ana", car.id)
    state = resume(agent, True)
    assert "__interrupt__" not in state and CAR not in texts(store) and "I bought a bike." in texts(store)


def test_what_is_to_be_deleted_and_changed_meanwhile_is_asked_about_anew(store: MemoryStore) -> None:
    def decide(state: State) -> dict[str, Any]:
        (car,) = (memory for memory in store.memories("ana") if memory.attribute == "possession")
        candidate = Candidate(text="Sold it", quote="I sold my car", message_id="m", polarity="retract")
        decision = Decision(op="DELETE", candidate=candidate, target=car.id, reason="sold", policy="own/1")
        return {"decisions": [decision.model_dump(mode="json")]}

    agent = asking(store, decide=decide)
    say(agent, "I sold my car.")
    (car,) = store.memories("ana")
    store.edit("ana", car.id, "I have two cars.")
    assert asked(resume(agent, True))["decisions"][0]["old"] == "I have two cars."
    resume(agent, False)
    assert texts(store) == ["I have two cars."]


# When no answer comes


def test_a_turn_without_an_answer_is_asked_about_before_the_next_one(store: MemoryStore) -> None:
    agent = asking(store)
    question = asked(say(agent, SOLD))
    ((waiting, _, why),) = store.pending("ana")
    assert (waiting.user_text, why) == (SOLD, WAITS)

    state = say(agent, "I have a cat.")
    again = asked(state)
    assert reply(state) and again == question and texts(store) == [CAR]
    assert done(resume(agent, True))[-1] == ("ADD", "I have a cat.")
    assert texts(store) == ["I bought a bike.", "I have a cat."] and store.pending() == []
    assert sorted(ops(store)) == ["ADD", "ADD", "DELETE"]


def test_a_question_may_be_answered_in_another_conversation(store: MemoryStore) -> None:
    agent = asking(store)
    say(agent, SOLD)
    assert asked(say(agent, "I have a cat.", thread="t2"))["said"] == SOLD
    resume(agent, False, thread="t2")
    resume(agent, True)  # late: it is written, and stays as it was answered first
    assert texts(store) == ["I bought a bike.", CAR, "I have a cat."] and store.pending() == []


def test_a_question_that_is_never_answered_does_not_hold_up_the_others_for_ever(store: MemoryStore) -> None:
    agent = asking(store)
    say(agent, SOLD)
    for n in range(PATIENCE + 1):
        state = say(agent, f"I like {FRUIT[n]}.", thread=f"t{n}")
    assert "__interrupt__" not in state and f"I like {FRUIT[n]}." in texts(store) and CAR in texts(store)
    assert SOLD in [turn.user_text for turn, _, _ in store.pending("ana")]
    asker = build_write(memory=store, confirm=True).compile(checkpointer=InMemorySaver())
    write_pending(store, asker, ask=lambda question: True)
    assert store.pending() == [] and CAR not in texts(store)
    assert {f"I like {fruit}." for fruit in FRUIT} < set(texts(store))


@pytest.mark.parametrize(("ask", "count"), [(None, 0), (lambda q: None, 0), (lambda q: [], 1)])
def test_the_queue_is_asked_about_as_well(ask: Callable[[Any], Any] | None, count: int, store: MemoryStore) -> None:
    say(asking(store), SOLD)
    asker = build_write(memory=store, confirm=True).compile(checkpointer=InMemorySaver())
    assert write_pending(store, asker, ask=ask) == count
    assert len(store.pending()) == 1 - count and len(ops(store)) == 2 * count


# Where it works, and where it cannot


@pytest.mark.parametrize("build", [build_agent, build_write])
def test_without_a_checkpointer_it_says_what_is_missing(build: Any, store: MemoryStore) -> None:
    graph = build(memory=store, confirm=True).compile()
    with pytest.raises(ConfigError, match=r"takes a checkpointer.*compile\(checkpointer="):
        graph.invoke(user(SOLD), thread_config("ana", "t1"), context=ANA)
    assert store.pending() == [] and texts(store) == [CAR]


@pytest.mark.parametrize("write", ["background", "off"])
def test_where_nobody_can_be_asked_it_is_refused(write: Any, store: MemoryStore) -> None:
    with pytest.raises(ConfigError, match=f"write='{write}'"):
        build_agent(memory=store, write=write, confirm=True)


@pytest.mark.parametrize("confirm", [-0.1, 1.1, float("nan")])
def test_what_is_no_confidence_is_refused(confirm: float, store: MemoryStore) -> None:
    with pytest.raises(ConfigError, match="is no confidence"):
        build_agent(memory=store, confirm=confirm)


def test_in_another_graph_it_asks_through_that_ones_checkpointer(store: MemoryStore) -> None:
    class Outer(TypedDict):
        messages: list[Any]

    outer = StateGraph(Outer, context_schema=Context)
    outer.add_node("agent", build_agent(memory=store, confirm=True).compile())
    outer.add_edge(START, "agent")
    agent = outer.compile(checkpointer=InMemorySaver())
    assert asked(say(agent, SOLD))["said"] == SOLD
    resume(agent, True)
    assert texts(store) == ["I bought a bike."] and sorted(ops(store)) == ["ADD", "DELETE"]
    with pytest.raises(ConfigError, match="takes a checkpointer"):
        say(outer.compile(), SOLD)


def test_incognito_asks_nothing(store: MemoryStore) -> None:
    assert "__interrupt__" not in say(asking(store), SOLD, remember=False) and ops(store) == []


def test_what_is_asked_holds_no_secret(store: MemoryStore) -> None:
    question = asked(say(asking(store), "I sold my car. My password is correct-horse-9."))
    assert "correct-horse-9" not in repr(question) and "[secret: password]" in question["said"]


# In the chat


@pytest.fixture
def chat(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run a command of `sharpwave` at a terminal where `typed` is answered, or without one; returns code, out and err."""
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: HashEmbeddings())

    def run(*arguments: str, typed: Sequence[str] | None = None) -> tuple[int, str, str]:
        lines = iter(typed or ())

        def read(prompt: str = "") -> str:
            line = next(lines, None)
            if line is None:
                raise EOFError
            if line == "^C":
                raise KeyboardInterrupt
            return line

        monkeypatch.setattr(sys, "argv", ["sharpwave", "--home", str(tmp_path / "home"), *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        monkeypatch.setattr(sys.stdin, "isatty", lambda: typed is not None)
        monkeypatch.setattr("builtins.input", read)
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return run


@pytest.mark.parametrize(("typed", "left"), [(["what?", "y"], []), (["n"], [CAR])])
def test_the_chat_asks_and_goes_by_the_answer(typed: list[str], left: list[str], chat: Any, store: MemoryStore) -> None:
    code, out, err = chat("chat", "--user", "ana", "--confirm", "--once", SOLD, typed=typed)
    assert code == 0 and "delete “I have a car.”" in err and "because of “I sold my car.”" in err
    assert ("DELETE" if typed[-1] == "y" else "NOOP") in out
    assert texts(store) == ["I bought a bike.", *left] and store.pending() == []


def test_some_of_what_the_chat_asks_may_be_approved(chat: Any, store: MemoryStore) -> None:
    store.add("ana", "I have a moped.", attribute="possession", value="moped")
    chat("chat", "--user", "ana", "--confirm", "--once", "I sold my car. I sold my moped.", typed=["3", "1, 3", " 2 "])
    assert texts(store) == [CAR]


@pytest.mark.parametrize("key", [[], ["^C"]], ids=["Ctrl-D", "Ctrl-C"])
def test_a_question_left_open_is_put_again_at_the_next_start(key: list[str], chat: Any, store: MemoryStore) -> None:
    code, _, err = chat("chat", "--user", "ana", "--confirm", "--once", SOLD, typed=key)
    assert code == 1 and "you are asked again" in err and texts(store) == [CAR] and len(store.pending()) == 1
    code, _, err = chat("chat", "--user", "ana", "--confirm", typed=["y", "/quit"])
    assert code == 0 and "delete “I have a car.”" in err and "Now written to memory: 1 waiting message." in err
    assert texts(store) == ["I bought a bike."] and sorted(ops(store)) == ["ADD", "DELETE"]


def test_without_a_terminal_the_chat_says_what_waits_and_how_to_approve_it(
    chat: Any, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = chat("chat", "--user", "ana", "--confirm", "--once", SOLD, "--json")
    result = json.loads(out)
    assert code == 1 and result["reply"] and result["operations"] == result["errors"] == []
    assert [d["old"] for d in result["approval"]["decisions"]] == [CAR]
    assert "delete “I have a car.”" in err and "it waits for your approval" in err and "retry --user ana --yes" in err
    monkeypatch.setenv("SHARPWAVE_CONFIRM", "true")
    assert chat("retry", "--user", "ana")[0] == 1 and texts(store) == [CAR]
    assert chat("retry", "--user", "ana", "--yes")[0] == 0 and texts(store) == ["I bought a bike."]


def test_in_the_background_the_chat_cannot_ask(chat: Any, store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARPWAVE_WRITE", "background")
    code, _, err = chat("chat", "--user", "ana", "--confirm", "--once", SOLD)
    assert code == 2 and "SHARPWAVE_WRITE=inline" in err and store.pending() == []
