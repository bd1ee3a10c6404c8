"""The writing path: failures, order, repetition, interrupts, and several writers at once."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings, ScriptedModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from talking import done, reply, say, texts, user, written

from sharpwave.graphs import Context, State, build_agent, build_write, thread_config, write_pending
from sharpwave.graphs.keep import CATCH_UP, PATIENCE
from sharpwave.memory import MemoryStore
from sharpwave.memory.decide.llm import LLMPolicy
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.errors import ModelError, OwnershipError
from sharpwave.memory.extract.llm import LLMExtractor
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.records import Candidate, Decision, Message, Recall, Turn

Make = Callable[..., ScriptedModel]
ANA = Context(user_id="ana")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings()) as opened:
        yield opened


class Flaky:
    """Extracts by rules; fails while it is `down`, and always on what says `poison`."""

    name = "flaky/1"
    down = False

    def __init__(self) -> None:
        self.read: list[str] = []

    def extract(self, turn: Turn, known: Sequence[Recall]) -> list[Candidate]:
        self.read.append(turn.user_text)
        if self.down or "poison" in turn.user_text:
            raise ModelError("The chat model failed on 'extract': it is down.")
        return RulesExtractor().extract(turn, known)


def facts(*items: Any) -> str:
    return json.dumps({"facts": items})


def turn(text: str, id: str = "m1", owner: str = "ana") -> Turn:
    message = Message(id=id, role="user", text=text)
    return Turn(owner=owner, thread="t1", messages=(message,), said_at="2026-03-02T09:00:00Z")  # type: ignore[arg-type]


# A model that fails


@pytest.mark.parametrize(
    "steps",
    [
        ["{broken", "{broken"],
        ["", ""],
        ["Sorry, I cannot help with that.", "I am unable to."],
        [RuntimeError("500 Internal Server Error")],
        [TimeoutError("timed out")],
        [ConnectionError("connection refused")],
    ],
    ids=["garbage", "empty", "refusal", "500", "timeout", "refused"],
)
def test_a_failed_extraction_is_seen_and_made_good_later(steps: Any, store: MemoryStore, scripted: Make) -> None:
    agent = build_agent(memory=store, model=scripted("I see.", *steps)).compile(checkpointer=InMemorySaver())
    state = say(agent, "I'm allergic to penicillin.")
    assert reply(state) == "I see."
    (error,) = state["errors"]
    assert error["stage"] == "extract" and "The chat model" in error["error"] and "penicillin" not in error["error"]
    assert done(state) == [] and store.memories("ana") == [] and store.events("ana") == []
    ((waiting, attempts, why),) = store.pending("ana")
    assert (waiting.user_text, attempts, why) == ("I'm allergic to penicillin.", 1, error["error"])

    healthy = build_write(
        memory=store, model=scripted(facts({"text": "Allergic to penicillin", "op": "ADD"}))
    ).compile()
    assert write_pending(store, healthy) == 1
    assert texts(store) == ["Allergic to penicillin"] and store.pending() == []
    assert write_pending(store, healthy) == 0 and len(store.events("ana")) == 1


def test_a_failed_decision_is_seen_and_made_good_later(store: MemoryStore, scripted: Make) -> None:
    store.add("ana", "I live in Lisbon.", attribute="home_city", value="Lisbon")
    extracted = facts(
        {"text": "Lives in Porto", "quote": "I live in Porto now", "attribute": "home_city", "value": "Porto"}
    )
    model = scripted("I see.", extracted, "?", "?")
    agent = build_agent(memory=store, model=model, decide=LLMPolicy(model)).compile()
    state = say(agent, "I live in Porto now.")
    assert reply(state) == "I see."
    assert [error["stage"] for error in state["errors"]] == ["decide"]
    assert state["decisions"] == [] and done(state) == [] and texts(store) == ["I live in Lisbon."]
    assert len(store.pending("ana")) == 1
    assert write_pending(store, build_write(memory=store).compile()) == 1
    assert [memory.value for memory in store.memories("ana")] == ["Porto"]


def test_a_failed_answer_is_one_clear_error_and_the_conversation_goes_on(store: MemoryStore, scripted: Make) -> None:
    model = scripted(
        RuntimeError("401 no such key sk-abcdefghijk"), "Both noted.", facts("Has a cat", "Plays the cello")
    )
    agent = build_agent(memory=store, model=model).compile(checkpointer=InMemorySaver())
    with pytest.raises(ModelError, match="failed on 'respond'") as failure:
        say(agent, "I have a cat.")
    assert "\n" not in str(failure.value).split("During task")[0] and "sk-abc" not in str(failure.value)
    assert written(store) == (0, 0, 0)
    state = say(agent, "And I play the cello.")
    assert [m.type for m in state["messages"]] == ["human", "human", "ai"]
    assert texts(store) == ["Has a cat", "Plays the cello"] and state["errors"] == []


def test_asking_again_after_a_failure_says_it_once(store: MemoryStore, scripted: Make) -> None:
    model = scripted(RuntimeError("down"), "Noted.", facts("Has a cat"))
    agent = build_agent(memory=store, model=model).compile(checkpointer=InMemorySaver())
    with pytest.raises(ModelError):
        say(agent, "I have a cat.")
    state = say(agent, "I have a cat.")
    assert [m.text for m in state["messages"]] == ["I have a cat.", "Noted."]
    assert len(store.utterances("ana")) == 2 and texts(store) == ["Has a cat"]


def test_a_failure_can_be_resumed(store: MemoryStore, scripted: Make) -> None:
    model = scripted(RuntimeError("down"), "Noted.", facts("Has a cat"))
    agent = build_agent(memory=store, model=model).compile(checkpointer=InMemorySaver())
    with pytest.raises(ModelError):
        say(agent, "I have a cat.")
    assert reply(agent.invoke(None, thread_config("ana", "t1"), context=ANA)) == "Noted."
    assert texts(store) == ["Has a cat"]


def test_what_was_said_before_a_failure_among_tool_calls_is_not_lost(store: MemoryStore, scripted: Make) -> None:
    @tool
    def look_up(what: str) -> str:
        """Look something up."""
        return "found"

    calls = AIMessage("", tool_calls=[{"name": "look_up", "args": {"what": "cats"}, "id": "c1"}])
    model = scripted(calls, RuntimeError("down"), "Both noted.", facts("Has a cat", "Plays the cello"))
    agent = build_agent(memory=store, model=model, tools=[look_up]).compile(checkpointer=InMemorySaver())
    with pytest.raises(ModelError):
        say(agent, "I have a cat.")
    say(agent, "And I play the cello.")
    assert texts(store) == ["Has a cat", "Plays the cello"]


# Order after a failure


def test_a_turn_that_failed_is_written_before_the_next_one(store: MemoryStore) -> None:
    flaky = Flaky()
    agent = build_agent(memory=store, extract=flaky).compile(checkpointer=InMemorySaver())
    flaky.down = True
    say(agent, "I live in Lisbon.")
    flaky.down = False
    state = say(agent, "I moved to Porto.", thread="t2")
    assert [op for op, _ in done(state)] == ["ADD", "UPDATE"] and state["errors"] == []
    (city,) = store.memories("ana")
    assert [version.value for version in store.versions("ana", city.id)] == ["Lisbon", "Porto"]
    assert store.pending() == []


def test_while_an_earlier_turn_fails_the_later_ones_wait(store: MemoryStore) -> None:
    flaky = Flaky()
    agent = build_agent(memory=store, extract=flaky).compile(checkpointer=InMemorySaver())
    flaky.down = True
    for text in ("I live in Lisbon.", "I moved to Porto.", "I moved to Ghent."):
        state = say(agent, text)
        assert [error["stage"] for error in state["errors"]] == ["extract"] and done(state) == []
    assert flaky.read == ["I live in Lisbon."] * 3
    assert [t.user_text for t, _, _ in store.pending()] == [
        "I live in Lisbon.",
        "I moved to Porto.",
        "I moved to Ghent.",
    ]
    flaky.down = False
    assert [op for op, _ in done(say(agent, "Good morning!"))] == ["ADD", "UPDATE", "UPDATE"]
    (city,) = store.memories("ana")
    assert [version.value for version in store.versions("ana", city.id)] == ["Lisbon", "Porto", "Ghent"]


def test_other_users_do_not_wait(store: MemoryStore) -> None:
    flaky = Flaky()
    agent = build_agent(memory=store, extract=flaky).compile(checkpointer=InMemorySaver())
    flaky.down = True
    say(agent, "I live in Lisbon.")
    flaky.down = False
    assert done(say(agent, "I live in Oslo.", who="bo")) == [("ADD", "I live in Oslo.")]
    assert len(store.pending()) == 1


def test_one_turn_makes_good_for_only_so_many(store: MemoryStore) -> None:
    flaky = Flaky()
    agent = build_agent(memory=store, extract=flaky).compile(checkpointer=InMemorySaver())
    things = ["cat", "dog", "boat", "piano", "garden", "bicycle"][: CATCH_UP + 2]
    store.queue([turn(f"I have a {thing}.", id=f"m{at}") for at, thing in enumerate(things)])
    for waiting, _, _ in store.pending():
        store.fail(waiting, "down")
    state = say(agent, "I have a kite.")
    assert [text for _, text in done(state)] == [f"I have a {thing}." for thing in things[:CATCH_UP]]
    assert [error["stage"] for error in state["errors"]] == ["keep"]
    state = say(agent, "Thanks!")
    assert [text for _, text in done(state)] == [f"I have a {thing}." for thing in [*things[CATCH_UP:], "kite"]]
    assert state["errors"] == [] and len(store.memories("ana")) == len(things) + 1


def test_a_turn_that_never_works_does_not_hold_up_the_others_for_ever(store: MemoryStore) -> None:
    agent = build_agent(memory=store, extract=Flaky()).compile(checkpointer=InMemorySaver())
    things = ["cat", "dog", "boat", "piano", "garden", "bicycle"]
    for text in ["I drink poison.", *(f"I have a {thing}." for thing in things)]:
        say(agent, text)
    assert texts(store) == sorted(f"I have a {thing}." for thing in things)
    ((waiting, attempts, _),) = store.pending()
    assert (waiting.user_text, attempts) == ("I drink poison.", PATIENCE)


def test_a_turn_at_work_elsewhere_is_left_alone(store: MemoryStore) -> None:
    store.queue([turn("I have a cat.")])
    agent = build_agent(memory=store).compile()
    assert done(say(agent, "I have a dog.")) == [("ADD", "I have a dog.")]
    assert [t.user_text for t, _, _ in store.pending()] == ["I have a cat."]


def test_an_incognito_turn_leaves_the_queue_alone(store: MemoryStore) -> None:
    store.queue([turn("I have a cat.")])
    store.fail(turn("I have a cat."), "down")
    say(build_agent(memory=store).compile(), "I have a dog.", remember=False)
    assert written(store) == (0, 1, 1)


def test_recall_is_counted_for_the_turn_that_recalled(store: MemoryStore) -> None:
    store.add("ana", "I live in Lisbon.", attribute="home_city", value="Lisbon")
    store.queue([turn("I have a cat.")])
    store.fail(turn("I have a cat."), "down")
    state = say(build_agent(memory=store).compile(), "Where do I live?")
    assert [text for _, text in done(state)] == ["I have a cat."]
    assert [(m.recalled, m.cited) for m in store.memories("ana") if m.value == "Lisbon"] == [(1, 1)]


def test_the_queue_is_written_in_order_owner_by_owner(store: MemoryStore) -> None:
    flaky = Flaky()
    store.queue([turn("I drink poison."), turn("I have a cat.", "m2"), turn("I have a dog.", "m1", owner="bo")])
    graph = build_write(memory=store, extract=flaky).compile()
    assert write_pending(store, graph) == 1
    assert flaky.read == ["I drink poison.", "I have a dog."] and texts(store, "bo") == ["I have a dog."]
    assert write_pending(store, graph, owner="bo") == 0
    for _ in range(PATIENCE):
        write_pending(store, graph, owner="ana")
    assert texts(store) == ["I have a cat."] and len(store.pending()) == 1


# The same turn again


def test_a_turn_that_is_given_again_is_written_once(store: MemoryStore) -> None:
    graph = build_write(memory=store).compile()
    given = {"turn": turn("I have a cat.").model_dump(mode="json")}
    assert done(graph.invoke(given, context=ANA)) == [("ADD", "I have a cat.")]
    kept = written(store)
    assert done(graph.invoke(given, context=ANA)) == []
    assert asyncio.run(graph.ainvoke(given, context=ANA))["operations"] == []
    assert written(store) == kept


def test_a_turn_of_somebody_else_is_refused(store: MemoryStore) -> None:
    with pytest.raises(OwnershipError):
        build_write(memory=store).compile().invoke(
            {"turn": turn("Hi", owner="bo").model_dump(mode="json")}, context=ANA
        )


def test_a_message_with_an_id_is_written_once(store: MemoryStore) -> None:
    agent = build_agent(memory=store).compile()
    for _ in range(3):
        agent.invoke(
            {"messages": [HumanMessage("I have a cat.", id="m1")]}, context=Context(user_id="ana", thread="t1")
        )
    assert [event.op for event in store.events("ana")] == ["ADD"]
    assert [u.message_id for u in store.utterances("ana") if u.role == "user"] == ["m1"]


def test_a_statement_made_twice_in_one_message_is_kept_once(store: MemoryStore) -> None:
    say(build_agent(memory=store).compile(), "I have a cat. I have a cat. I have a cat!")
    assert len(store.memories("ana")) == 1


@pytest.mark.parametrize("node", ["keep", "extract", "decide", "apply"])
def test_resuming_any_number_of_times_writes_once(node: str, store: MemoryStore) -> None:
    agent = build_agent(memory=store).compile(checkpointer=InMemorySaver(), interrupt_before=[node])
    state = say(agent, "I have a cat.")
    assert reply(state) and store.memories("ana") == []
    for _ in range(3):
        state = agent.invoke(None, thread_config("ana", "t1"), context=ANA)
    assert done(state) == [("ADD", "I have a cat.")]
    assert [event.op for event in store.events("ana")] == ["ADD"] and store.pending() == []


def _confirming(store: MemoryStore) -> Callable[[State], dict[str, Any]]:
    def apply(state: State) -> dict[str, Any]:
        decisions = [Decision.model_validate(decision) for decision in state["decisions"]]
        if any(d.op == "DELETE" for d in decisions) and interrupt("Delete it?") != "approve":
            return {"operations": []}
        applied = store.apply(Turn.model_validate(state["turn"]), decisions, revision=state["revision"])
        return {"operations": [item.model_dump(mode="json") for item in applied]}

    return apply


@pytest.mark.parametrize("answers", [["approve"], ["approve"] * 3, ["reject"], ["reject", "approve"]])
def test_a_confirmation_before_deleting(answers: list[str], store: MemoryStore) -> None:
    store.add("ana", "I have a car.", attribute="possession", value="car")
    before = len(store.events("ana"))
    agent = build_agent(memory=store, apply=_confirming(store)).compile(checkpointer=InMemorySaver())
    state = say(agent, "I sold my car. I bought a bike.")
    assert state["__interrupt__"][0].value == "Delete it?" and texts(store) == ["I have a car."]
    for answer in answers:
        agent.invoke(Command(resume=answer), thread_config("ana", "t1"), context=ANA)
    ops = sorted(event.op for event in store.events("ana")[before:])
    if answers[0] == "approve":
        assert ops == ["ADD", "DELETE"] and texts(store) == ["I bought a bike."]
    else:
        assert ops == [] and texts(store) == ["I have a car."]


def test_going_back_in_time_writes_nothing_twice(store: MemoryStore) -> None:
    agent = build_agent(memory=store).compile(checkpointer=InMemorySaver())
    for text in ("I live in Lisbon.", "I moved to Porto.", "I have a cat."):
        say(agent, text)
    events, kept = store.events("ana"), store.memories("ana")
    for snapshot in list(agent.get_state_history(thread_config("ana", "t1"))):
        if snapshot.next and snapshot.next != ("__start__",):  # from there on it would be said once more
            agent.invoke(None, snapshot.config, context=ANA)
    assert store.events("ana") == events
    assert [m.model_dump(exclude={"recalled", "cited"}) for m in store.memories("ana")] == [
        m.model_dump(exclude={"recalled", "cited"}) for m in kept
    ]
    assert [u.text for u in store.utterances("ana") if u.role == "user"] == [
        "I live in Lisbon.",
        "I moved to Porto.",
        "I have a cat.",
    ]


# Several writers


@pytest.mark.parametrize("way", ["threads", "tasks"])
def test_many_at_once_write_a_statement_once(way: str, store: MemoryStore) -> None:
    agents = [build_agent(memory=store).compile() for _ in range(2)]
    turns = [(who, f"t{n}") for n in range(8) for who in ("ana", "bo")]
    text = "I really like coffee"

    async def together() -> None:
        await asyncio.gather(
            *(
                agents[at % 2].ainvoke(user(text), thread_config(who, thread), context=Context(user_id=who))
                for at, (who, thread) in enumerate(turns)
            )
        )

    if way == "threads":
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda item: say(agents[item[0] % 2], text, item[1][0], item[1][1]), enumerate(turns)))
    else:
        asyncio.run(together())
    for who in ("ana", "bo"):
        assert texts(store, who) == ["I really like coffee"]
        assert sorted(event.op for event in store.events(who)) == ["ADD"] + ["NOOP"] * 7
    assert store.pending() == []


@pytest.mark.parametrize(("said", "op"), [(4, "UPDATE"), (6, "ADD")], ids=["earlier", "later"])
def test_what_was_written_in_between_is_decided_about_again(
    said: int, op: str, store: MemoryStore, march: datetime
) -> None:
    agent = build_agent(memory=store).compile()
    say(agent, "I live in Lisbon.", now=march)

    class Interrupted(RulesPolicy):
        seen: list[str]

        def decide(self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Recall]], turn: Turn) -> Any:
            self.seen.append(neighbours[0][0].text)
            if len(self.seen) == 1:
                say(agent, "I moved to Oslo.", thread="t2", now=march.replace(month=said))
            return super().decide(candidates, neighbours, turn)

    policy = Interrupted()
    policy.seen = []
    state = say(build_agent(memory=store, decide=policy).compile(), "I moved to Porto.", now=march.replace(month=5))
    assert policy.seen == ["I live in Lisbon.", "I moved to Oslo."]
    assert done(state) == [(op, "I moved to Porto.")]
    home = next(memory for memory in store.memories("ana") if memory.attribute == "home_city")
    assert home.value == ("Porto" if op == "UPDATE" else "Oslo")
    assert "I moved to Oslo." in [version.text for version in store.versions("ana", home.id)]


# What makes no memories, end to end


BLOCKS: list[Any] = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "I love night hikes"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ],
    },
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "name": "lookup", "args": {}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    {"role": "user", "content": ""},
]


def test_content_blocks_calls_without_text_and_empty_messages(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    messages = [{**message, "content": message["content"] or ""} for message in BLOCKS]
    state = build_write(memory=store).compile().invoke({"messages": messages}, context=ANA)
    assert done(state) == [("ADD", "I love night hikes")]
    assert [(u.role, u.text) for u in store.utterances("ana")] == [("user", "I love night hikes"), ("tool", "ok")]
    assert "AAAA" not in json.dumps(state["turn"]) and "AAAA" not in caplog.text
    with store.ledger.read() as connection:
        assert "AAAA" not in "\n".join(connection.connection.driver_connection.iterdump())  # type: ignore[union-attr]


def test_what_was_recalled_is_not_learnt_again(store: MemoryStore, scripted: Make) -> None:
    for text in ("Is vegetarian", "Has a cast-iron pan"):
        store.add("ana", text)
    before = [m.model_dump(exclude={"recalled", "last_recalled_at"}) for m in store.memories("ana")]
    answer = "As you're vegetarian, try a pan-fried halloumi."
    model = scripted(*[answer, facts("Is vegetarian", "Has a cast-iron pan")] * 10)
    agent = build_agent(memory=store, model=model).compile(checkpointer=InMemorySaver())
    for n in range(10):
        messages = [SystemMessage("Known about the user: Is vegetarian; Has a cast-iron pan")]
        given = {"messages": [*messages, HumanMessage("What should I cook tonight? I have guests coming.")]}
        state = agent.invoke(given, thread_config("ana", f"t{n}"), context=ANA)
        assert state["errors"] == [] and done(state) == []
    assert [m.model_dump(exclude={"recalled", "last_recalled_at"}) for m in store.memories("ana")] == before


@pytest.mark.parametrize(
    ("said", "invented"),
    [
        ("Hi!", ["Name is Juno", "Works for Tarn Bikes", "Prefers British English"]),
        ("hey, quick question about sorting lists", ["Name is Martin Vale", "Is 31 years old", "Lives in Leeds"]),
        ("Can you show the sales numbers for Kristof?", ["User's name is Kristof"]),
        ("How do I reverse a linked list in groups of k?", ["Wrote a recursive solution", "User prefers recursion"]),
        (
            "Can you make this politer?\n> Hi team, I'm leaving Fjord Ltd on Friday and my new number is 555-0142.\n> -- Dina",
            ["Leaves Fjord Ltd on Friday", "Name is Dina", "Number is 555-0142"],
        ),
    ],
)
@pytest.mark.parametrize("extractor", ["rules", "llm"])
def test_what_the_user_never_said_is_not_remembered(
    said: str, invented: list[str], extractor: str, store: MemoryStore
) -> None:
    model = ScriptedModel(script=[facts(*invented)] * 20, calls=[], bound=[])
    extract = LLMExtractor(model) if extractor == "llm" else RulesExtractor()
    graph = build_write(memory=store, extract=extract).compile()
    system = "You are Juno, a support agent for Tarn Bikes. Always answer in British English. I live in York."
    answer = "I'd use recursion; I prefer it because it is elegant. I live for clean code."
    for _ in range(5):
        messages = [SystemMessage(system), HumanMessage(said), AIMessage(answer)]
        assert done(graph.invoke({"messages": messages}, context=ANA)) == []
    assert store.memories("ana") == [] and store.events("ana") == []
    assert {u.role for u in store.utterances("ana")} == {"user", "assistant"}


def test_a_relatives_trait_is_not_the_users(store: MemoryStore) -> None:
    agent = build_agent(memory=store).compile()
    say(agent, "My sister Oona is allergic to walnuts. I'm not allergic to anything. My flatmate just moved to Turku.")
    mine = [m for m in store.memories("ana") if m.subject == "user"]
    assert not [m for m in mine if m.attribute == "allergy" and m.value and "walnut" in m.value]
    assert not [m for m in mine if m.attribute == "home_city"]


def test_trivial_turns_cost_no_call(store: MemoryStore, scripted: Make) -> None:
    trivial = ["ok", "thanks", "👍", "heartbeat 12:00", "great, thank you!", "lol", "yes", "no problem"] * 3
    three = ["I'm allergic to kiwi.", "I live in Turku.", "I play the cello."]
    model = scripted(*(facts({"text": text, "op": "ADD"}) for text in three))
    graph = build_write(memory=store, model=model).compile()
    for text in [*trivial[:8], three[0], *trivial[8:16], three[1], three[2], *trivial[16:]]:
        state = graph.invoke(user(text), context=ANA)
        assert state["usage"].get("llm_calls", 0) == (text in three)
    assert texts(store) == sorted(three)
    sizes = [sum(len(message.text) for message in call) for call in model.calls]
    assert max(sizes) - min(sizes) < 200


def test_one_memory_named_twice_by_a_turn_does_not_break_it(store: MemoryStore, scripted: Make) -> None:
    store.add("ana", "I live in Oslo.", attribute="home_city", value="Oslo")
    gone = {
        "text": "No longer lives in Oslo",
        "quote": "I no longer live in Oslo",
        "attribute": "home_city",
        "value": "Oslo",
    }
    past = {
        "text": "Lived in Oslo for years",
        "quote": "I lived in Oslo for years",
        "past": True,
        "op": "NOOP",
        "target": 0,
    }
    model = scripted(facts(gone | {"retracts": True, "op": "DELETE", "target": 0}, past))
    state = (
        build_write(memory=store, model=model)
        .compile()
        .invoke(user("I no longer live in Oslo. I lived in Oslo for years."), context=ANA)
    )
    assert [op for op, _ in done(state)] == ["DELETE", "NOOP"] and store.memories("ana") == []
    assert store.pending() == []
