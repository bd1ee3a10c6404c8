"""The agent as a graph: its turn without a model, the ways to run it, whose turn it is, and its exchangeable nodes."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from fakes import HashEmbeddings, ScriptedModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel, ValidationError
from talking import done, reply, say, texts, user, written

from sharpwave.graphs import Context, State, build_agent, build_write, thread_config
from sharpwave.graphs.state import add_new_messages
from sharpwave.memory import MemoryStore
from sharpwave.memory.errors import ConfigError, InputError, OwnershipError
from sharpwave.memory.records import Candidate, Decision, Recall, Turn

Make = Callable[..., ScriptedModel]
ANA = Context(user_id="ana")
JANUARY = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path_factory.mktemp("shared"), embeddings=HashEmbeddings()) as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings()) as opened:
        yield opened


@pytest.fixture
def agent(store: MemoryStore) -> Any:
    return build_agent(memory=store).compile(checkpointer=InMemorySaver())


# The turn without a model


def test_facts_are_written_with_their_quotes(agent: Any, store: MemoryStore) -> None:
    said = "I moved from Oslo to Lisbon last month and I'm allergic to shellfish."
    state = say(agent, said)
    assert [op for op, _ in done(state)] == ["ADD", "ADD"]
    assert all(item["quote"] and item["quote"] in said for item in state["operations"])
    city, allergy = store.memories("ana")
    assert (city.attribute, city.value) == ("home_city", "Lisbon")
    assert (allergy.attribute, allergy.value) == ("allergy", "shellfish")
    assert city.source.thread == thread_config("ana", "t1")["configurable"]["thread_id"]
    assert city.source.message_id == state["messages"][0].id


def test_a_confirmation_adds_nothing(agent: Any, store: MemoryStore) -> None:
    say(agent, "I live in Lisbon.")
    before = store.memories("ana")[0]
    assert done(say(agent, "I still live in Lisbon.", thread="t2")) == [("NOOP", "I live in Lisbon.")]
    (after,) = store.memories("ana")
    assert (after.text, after.version) == (before.text, before.version)
    assert after.confidence > before.confidence


def test_a_change_closes_the_old_version_and_opens_a_new_one(agent: Any, store: MemoryStore, march: datetime) -> None:
    say(agent, "I live in Lisbon.", now=march)
    later = march.replace(month=5)
    assert [op for op, _ in done(say(agent, "I moved to Porto.", now=later))] == ["UPDATE"]
    (home,) = store.memories("ana", kinds=("fact",))
    old, new = store.versions("ana", home.id)
    assert (old.value, old.status, new.value, new.status) == ("Lisbon", "superseded", "Porto", "active")
    assert old.valid_to == new.valid_from == later
    assert reply(say(agent, "Where do I live?", thread="t2")).startswith("Porto.")


def test_a_retraction_ends_a_memory(agent: Any, store: MemoryStore) -> None:
    say(agent, "I'm allergic to shellfish.")
    assert [op for op, _ in done(say(agent, "I'm no longer allergic to shellfish."))] == ["DELETE"]
    assert store.memories("ana") == []
    assert "don't know" in reply(say(agent, "What am I allergic to?", thread="t2"))


@pytest.mark.parametrize("text", ["Hi there!", "thanks, that helps", "👍", "What's the weather like?", "ok", "   "])
def test_small_talk_writes_nothing(text: str, agent: Any, store: MemoryStore) -> None:
    state = say(agent, text)
    assert reply(state)
    assert done(state) == [] and state["errors"] == [] and state["candidates"] == []
    assert store.memories("ana") == [] and store.events("ana") == [] and store.pending("ana") == []


def test_a_new_thread_recalls_and_cites_and_nobody_else_does(agent: Any, store: MemoryStore) -> None:
    say(agent, "I moved from Oslo to Lisbon last month.")
    state = say(agent, "Where do I live?", thread="t2")
    assert reply(state).startswith("Lisbon.") and reply(state).endswith("[1]")
    assert state["citations"] == [store.memories("ana")[0].id]
    assert store.memories("ana")[0].cited == 1
    bobs = say(agent, "Where do I live?", who="bob", thread="t2")
    assert bobs["recalled"] == [] and bobs["citations"] == [] and "don't know" in reply(bobs)


def test_what_was_retracted_by_hand_is_no_longer_answered(agent: Any, store: MemoryStore) -> None:
    say(agent, "I live in Lisbon.")
    store.undo("ana")
    assert "don't know" in reply(say(agent, "Where do I live?", thread="t2"))


# Ways to run it


async def _last(parts: AsyncIterator[Any]) -> Any:
    return [part async for part in parts][-1]


WAYS: dict[str, Callable[..., Any]] = {
    "invoke": lambda agent, given, config: agent.invoke(given, config, context=ANA),
    "stream": lambda agent, given, config: list(agent.stream(given, config, context=ANA, stream_mode="values"))[-1],
    "ainvoke": lambda agent, given, config: asyncio.run(agent.ainvoke(given, config, context=ANA)),
    "astream": lambda agent, given, config: asyncio.run(
        _last(agent.astream(given, config, context=ANA, stream_mode="values"))
    ),
}


@pytest.mark.parametrize("saver", [InMemorySaver, None], ids=["checkpointer", "none"])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_run_it(way: str, saver: Any, store: MemoryStore) -> None:
    agent = build_agent(memory=store).compile(checkpointer=saver and saver())
    first = WAYS[way](agent, user("I live in Lisbon."), thread_config("ana", "t1"))
    assert done(first) == [("ADD", "I live in Lisbon.")]
    second = WAYS[way](agent, user("Where do I live?"), thread_config("ana", "t1"))
    assert reply(second).startswith("Lisbon.")
    assert len(second["messages"]) == (4 if saver else 2)


@pytest.mark.parametrize("way", ["sync", "async"])
def test_several_stream_modes_at_once(way: str, store: MemoryStore) -> None:
    agent = build_agent(memory=store).compile()
    modes = ["values", "updates", "messages", "custom", "tasks", "debug"]

    async def gather() -> list[Any]:
        return [part async for part in agent.astream(user("I live in Lisbon."), context=ANA, stream_mode=modes)]

    if way == "sync":
        parts = list(agent.stream(user("I live in Lisbon."), context=ANA, stream_mode=modes))
    else:
        parts = asyncio.run(gather())
    assert {mode for mode, _ in parts} == {"values", "updates", "messages", "tasks", "debug"}
    updated = [next(iter(part)) for mode, part in parts if mode == "updates"]
    assert updated == ["begin", "retrieve", "assemble", "respond", "keep", "extract", "decide", "apply"]
    answers = [message.text for mode, (message, _) in ((m, p) for m, p in parts if m == "messages") if mode]
    assert "".join(answers) == "Thank you, I will keep that in mind."


def test_conversations_on_disk_go_on_after_a_restart(store: MemoryStore, tmp_path: Path) -> None:
    path = tmp_path / "conversations.sqlite3"
    for text, count in (("I live in Lisbon.", 2), ("Where do I live?", 4), ("I moved to Porto.", 6)):
        with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
            agent = build_agent(memory=store).compile(checkpointer=SqliteSaver(connection))
            state = say(agent, text)
            kept = agent.get_state(thread_config("ana", "t1")).values
        assert len(state["messages"]) == count
        assert kept == state
    assert [op for op, _ in done(state)] == ["UPDATE"]


def test_the_async_saver_on_disk(store: MemoryStore, tmp_path: Path) -> None:
    async def talk() -> dict[str, Any]:
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "conversations.sqlite3")) as saver:
            agent = build_agent(memory=store).compile(checkpointer=saver)
            await agent.ainvoke(user("I live in Lisbon."), thread_config("ana", "t1"), context=ANA)
            return await agent.ainvoke(user("Where do I live?"), thread_config("ana", "t1"), context=ANA)

    for count in (4, 8):
        state = asyncio.run(talk())
        assert len(state["messages"]) == count and reply(state).startswith("Lisbon.")


def test_the_wrong_saver_says_which_is_right(store: MemoryStore, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "c.sqlite3", check_same_thread=False)) as connection:
        agent = build_agent(memory=store).compile(checkpointer=SqliteSaver(connection))
        with pytest.raises(NotImplementedError, match="AsyncSqliteSaver"):
            asyncio.run(agent.ainvoke(user("Hi"), thread_config("ana", "t1"), context=ANA))


def test_it_runs_inside_a_running_loop(agent: Any) -> None:
    async def notebook() -> list[str]:
        first = say(agent, "I live in Lisbon.")
        second = await agent.ainvoke(user("Where do I live?"), thread_config("ana", "t2"), context=ANA)
        third = await agent.ainvoke(user("Where do I live?"), thread_config("ana", "t3"), context=ANA)
        return [reply(first), reply(second), reply(third), reply(say(agent, "Where do I live?", thread="t4"))]

    for _ in range(2):
        answers = asyncio.run(notebook())
        assert all(answer.startswith("Lisbon.") for answer in answers[1:])


def test_a_langgraph_store_does_no_harm(store: MemoryStore) -> None:
    agent = build_agent(memory=store).compile(store=InMemoryStore())
    assert done(agent.invoke(user("I live in Lisbon."), context=ANA)) == [("ADD", "I live in Lisbon.")]


class ParentState(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    note: str


class Tenant(BaseModel):
    user_id: str
    tenant: str = "acme"


@pytest.mark.parametrize("schema", [Context, Tenant])
@pytest.mark.parametrize("saver", [InMemorySaver, None], ids=["checkpointer", "none"])
def test_as_a_subgraph(schema: Any, saver: Any, store: MemoryStore) -> None:
    parent = StateGraph(ParentState, context_schema=schema)
    parent.add_node("agent", build_agent(memory=store).compile())
    parent.add_node("note", lambda state: {"note": f"{len(state['messages'])} messages"})
    parent.add_edge(START, "agent")
    parent.add_edge("agent", "note")
    parent.add_edge("note", END)
    graph = parent.compile(checkpointer=saver and saver())
    config = thread_config("ana", "t1")
    first = graph.invoke(user("I live in Lisbon."), config, context=schema(user_id="ana"))
    assert (len(first["messages"]), first["note"]) == (2, "2 messages")
    second = asyncio.run(graph.ainvoke(user("Where do I live?"), config, context=schema(user_id="ana")))
    assert reply(second).startswith("Lisbon.")
    assert second["note"] == ("4 messages" if saver else "2 messages")
    assert texts(store) == ["I live in Lisbon."]


def test_the_writing_graph_remembers_what_another_agent_talked_about(store: MemoryStore) -> None:
    graph = StateGraph(State, context_schema=Context)
    graph.add_node("talk", lambda state: {"messages": [AIMessage("Noted by somebody else.")]})
    graph.add_node("remember", build_write(memory=store).compile())
    graph.add_edge(START, "talk")
    graph.add_edge("talk", "remember")
    state = graph.compile().invoke(user("I live in Lisbon."), context=ANA)
    assert done(state) == [("ADD", "I live in Lisbon.")]
    assert [u.text for u in store.utterances("ana")] == ["I live in Lisbon.", "Noted by somebody else."]


def test_the_picture_is_drawn_offline_and_always_the_same(store: MemoryStore) -> None:
    drawn = {build_agent(memory=store).compile().get_graph().draw_mermaid() for _ in range(3)}
    assert len(drawn) == 1
    lines = drawn.pop().splitlines()
    places = [next(i for i, line in enumerate(lines) if line.strip().startswith(f"{name}(")) for name in NODES]
    assert places == sorted(places)


NODES = ["begin", "retrieve", "assemble", "respond", "keep", "extract", "decide", "apply"]


# Whose turn it is


@pytest.mark.parametrize("user_id", [None, "", " ", "\n", 0, 7, ["ana"], b"ana", "a\x00b"])
def test_a_run_without_a_proper_user_is_refused(user_id: Any, store: MemoryStore, scripted: Make) -> None:
    agent = build_agent(memory=store, model=scripted()).compile()
    with pytest.raises(ValidationError, match="user_id"):
        Context(user_id=user_id)
    with pytest.raises(ValidationError, match="user_id"):
        agent.invoke(user("I live in Lisbon."), context={"user_id": user_id})
    assert store.owners() == []


@pytest.mark.parametrize("way", WAYS)
def test_a_run_without_a_context_is_refused(way: str, store: MemoryStore, scripted: Make) -> None:
    agent = build_agent(memory=store, model=scripted()).compile()
    run = {
        "invoke": lambda: agent.invoke(user("Hi")),
        "stream": lambda: list(agent.stream(user("Hi"))),
        "ainvoke": lambda: asyncio.run(agent.ainvoke(user("Hi"))),
        "astream": lambda: asyncio.run(_last(agent.astream(user("Hi")))),
    }[way]
    with pytest.raises(ConfigError, match=r"context=Context\(user_id="):
        run()


def test_a_context_may_be_a_dict(store: MemoryStore) -> None:
    agent = build_agent(memory=store).compile()
    given = {"user_id": "ana", "now": "2026-03-02T09:00:00+01:00", "timezone": "Europe/Lisbon"}
    agent.invoke(user("I live in Lisbon."), context=given)
    assert store.memories("ana")[0].valid_from.isoformat() == "2026-03-02T08:00:00+00:00"
    with pytest.raises(ValidationError, match="remeber"):
        agent.invoke(user("I live in Lisbon."), context={"user_id": "ana", "remeber": False})


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc/passwd", "/etc/localtime"])
def test_an_unknown_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(ValidationError, match="timezone"):
        Context(user_id="ana", timezone=zone)


@pytest.mark.parametrize("given", [{"messages": []}, {}])
def test_without_a_message_there_is_nothing_to_answer(given: Any, agent: Any) -> None:
    with pytest.raises(InputError, match="no message"):
        agent.invoke(given, thread_config("ana", "t1"), context=ANA)


@pytest.mark.parametrize("who", ["ана", "a/b", "../../outside", "..", "a b", "CON", "ana%2f..", "🙂", "a" * 5000])
def test_user_ids_in_any_form_work_and_stay_apart(who: str, shared: MemoryStore, tmp_path: Path) -> None:
    agent = build_agent(memory=shared).compile(checkpointer=InMemorySaver())
    around = sorted(shared.home.parent.iterdir())
    say(agent, "I live in Lisbon.", who=who)
    assert reply(say(agent, "Where do I live?", who=who, thread="t2")).startswith("Lisbon.")
    assert texts(shared, who) == ["I live in Lisbon."] and shared.memories(f"{who}x") == []
    assert sorted(shared.home.parent.iterdir()) == around


def test_two_users_with_one_bare_thread_id_are_kept_apart(agent: Any, store: MemoryStore) -> None:
    bare: Any = {"configurable": {"thread_id": "t1"}}
    agent.invoke(user("I live in Lisbon."), bare, context=ANA)
    with pytest.raises(OwnershipError, match="thread_config"):
        agent.invoke(user("Where do I live?"), bare, context=Context(user_id="bob"))
    assert reply(agent.invoke(user("Where do I live?"), bare, context=ANA)).startswith("Lisbon.")
    assert "bob" not in store.owners()


def test_a_stranger_is_refused_before_nodes_of_the_callers_own(store: MemoryStore) -> None:
    asked: list[str] = []

    def retrieve(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
        asked.append(runtime.context.user_id)
        return {"recalled": []}

    agent = build_agent(memory=store, retrieve=retrieve).compile(checkpointer=InMemorySaver())
    bare: Any = {"configurable": {"thread_id": "t1"}}
    agent.invoke(user("Hi"), bare, context=ANA)
    with pytest.raises(OwnershipError):
        agent.invoke(user("Hi"), bare, context=Context(user_id="bob"))
    assert asked == ["ana"]


def test_conversation_ids_are_of_owner_and_thread_together() -> None:
    pairs = [
        ("a", "bc"),
        ("ab", "c"),
        ("abc", ""),
        ("", "abc"),
        ("1:a", "b"),
        ("1", ":ab"),
        ("ana", "t1"),
        ("ana", "t2"),
    ]
    assert len({thread_config(*pair)["configurable"]["thread_id"] for pair in pairs}) == len(pairs)
    assert thread_config("ana", "t1") == thread_config("ana", "t1")


@pytest.mark.parametrize("way", ["threads", "gather"])
def test_twenty_turns_at_once_do_not_cross(way: str, store: MemoryStore) -> None:
    agent = build_agent(memory=store).compile(checkpointer=InMemorySaver())
    homes = {"ana": "Lima", "bo": "Oslo"}
    turns = [(who, f"t{n}") for n in range(10) for who in homes]

    def run(text: Callable[[str], str], prefix: str) -> list[dict[str, Any]]:
        if way == "threads":
            with ThreadPoolExecutor(10) as pool:
                return list(pool.map(lambda turn: say(agent, text(turn[0]), turn[0], prefix + turn[1]), turns))

        async def all_of_them() -> list[dict[str, Any]]:
            return await asyncio.gather(
                *(
                    agent.ainvoke(user(text(who)), thread_config(who, prefix + thread), context=Context(user_id=who))
                    for who, thread in turns
                )
            )

        return asyncio.run(all_of_them())

    told = run(lambda who: f"I live in {homes[who]}.", "told")
    asked = run(lambda who: "Where do I live?", "asked")
    for (who, _), state in zip(turns, told, strict=True):
        assert {text for _, text in done(state)} <= {f"I live in {homes[who]}."}
    for (who, _), state in zip(turns, asked, strict=True):
        assert reply(state).startswith(f"{homes[who]}.")
        assert {hit["text"] for hit in state["recalled"]} == {f"I live in {homes[who]}."}
    for who, city in homes.items():
        assert texts(store, who) == [f"I live in {city}."]
        assert {u.text for u in store.utterances(who) if u.role == "user"} == {f"I live in {city}.", "Where do I live?"}
        assert store.pending(who) == []


# Incognito, and without writing


def test_an_incognito_turn_recalls_and_writes_nothing(agent: Any, store: MemoryStore) -> None:
    say(agent, "I live in Lisbon.")
    before = written(store), store.memories("ana")
    assert reply(say(agent, "Where do I live?", remember=False)).startswith("Lisbon.")
    state = say(agent, "I'm allergic to shellfish.", thread="t2", remember=False)
    assert done(state) == [] and reply(state)
    assert (written(store), store.memories("ana")) == before


def test_what_was_said_incognito_is_not_written_by_the_next_turn_either(store: MemoryStore, scripted: Make) -> None:
    model = scripted(RuntimeError("down"), "Good day.")
    agent = build_agent(memory=store, model=model).compile(checkpointer=InMemorySaver())
    with pytest.raises(Exception, match="RuntimeError"):
        say(agent, "I have a secret illness.", remember=False)
    say(agent, "Good morning!")
    assert [u.text for u in store.utterances("ana")] == ["Good morning!", "Good day."]


def test_resuming_an_incognito_turn_does_not_make_it_known(store: MemoryStore) -> None:
    agent = build_agent(memory=store).compile(checkpointer=InMemorySaver(), interrupt_before=["respond"])
    say(agent, "I have a secret illness.", remember=False)
    agent.invoke(None, thread_config("ana", "t1"), context=ANA)
    assert written(store) == (0, 0, 0)


def test_writing_can_be_left_out(store: MemoryStore) -> None:
    say(build_agent(memory=store).compile(), "I live in Lisbon.")
    before = written(store)
    reader = build_agent(memory=store, write="off").compile(checkpointer=InMemorySaver())
    assert reply(say(reader, "Where do I live?")).startswith("Lisbon.")
    say(reader, "I moved to Porto.")
    assert written(store) == before and texts(store) == ["I live in Lisbon."]
    with pytest.raises(ConfigError, match="'later'"):
        build_agent(memory=store, write="later")  # type: ignore[arg-type]


# The state


def test_channels_of_a_turn_do_not_grow(agent: Any, store: MemoryStore) -> None:
    facts = ["I have a cat.", "I play the cello.", "I work as a nurse.", "My sister is called Oona.", "I like olives."]
    for count, text in enumerate(facts, 1):
        state = say(agent, text)
        assert done(state) == [("ADD", text)]
        assert len(state["candidates"]) == len(state["decisions"]) == 1
        assert len(state["messages"]) == 2 * count
        assert set(state["timings_ms"]) == {"retrieve", "assemble", "respond", "keep", "extract", "decide", "apply"}
    state = say(agent, "Thanks!")
    assert all(state[channel] == [] for channel in ("candidates", "decisions", "operations", "errors", "citations"))
    assert len(store.events("ana")) == 5


def test_channels_do_not_grow_with_nodes_of_the_callers_own(store: MemoryStore) -> None:
    def spend(state: State) -> dict[str, Any]:
        return {
            "usage": {"llm_calls": state["usage"].get("llm_calls", 0) + 1},
            "errors": [*state["errors"], {"stage": "x"}],
        }

    agent = build_agent(memory=store, retrieve=spend, write="off").compile(checkpointer=InMemorySaver())
    for _ in range(3):
        state = say(agent, "Hello")
        assert state["usage"] == {"llm_calls": 1} and len(state["errors"]) == 1


def _types(value: Any) -> Iterator[type]:
    yield type(value)
    if isinstance(value, dict):
        for key, inner in value.items():
            yield type(key)
            yield from _types(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _types(inner)


def test_the_state_is_plain_data(agent: Any) -> None:
    say(agent, "I moved from Oslo to Lisbon last month and I'm allergic to shellfish.")
    for text in ("Where do I live?", "I moved to Porto."):
        state = say(agent, text)
        plain = {key: value for key, value in state.items() if key != "messages"}
        assert set(_types(plain)) <= {dict, list, str, int, float, bool, type(None)}
        assert plain["recalled"] or plain["outweighed"]  # what is said just now outweighs what was recalled


# History that is sent again


def _thread(*texts: str) -> list[BaseMessage]:
    """Messages in turn: what begins with `>` is an answer, `#` a system message."""
    kinds: dict[str, type[BaseMessage]] = {">": AIMessage, "#": SystemMessage}
    return [kinds[text[0]](text[1:]) if text[0] in kinds else HumanMessage(text) for text in texts]


def _held(*steps: Sequence[BaseMessage]) -> list[str]:
    held: Any = []
    for step in steps:
        held = add_new_messages(held, list(step))
    marks = {"human": "", "ai": ">", "system": "#"}
    return [f"{marks[message.type]}{message.text}" for message in held]


@pytest.mark.parametrize(
    ("thread", "sent", "new"),
    [
        ("a >b", "a >b c", "c"),  # the whole history
        ("a >b", "a >other c", "c"),  # the caller's words for the answer may differ
        ("#s a >b", "#s a >b c", "c"),  # with the system message again
        ("a >b c >d", "c >d e", "e"),  # only the end of it
        ("a >b c >d", ">b c >d e", "e"),
        ("a >b", "a >b c >d e", "c >d e"),  # and turns that were taken elsewhere
        ("a >b a >b", "a >b a >b a", "a"),
        ("a >b", "a", "a"),  # said once more
        ("a >b a >b", "a", "a"),
        ("a >b", "a c", "a c"),  # two messages at once are two new messages
        ("a >b c >d", "a c", "a c"),
        ("a >b c >d", "a >b c", "c"),  # to be answered anew
        ("a", "a", ""),  # not answered yet: sent again
        ("a >b c", "a >b c", ""),
        ("a", "a c", "c"),
        ("a >b", ">c", ">c"),
        ("a >b", "#s c", "#s c"),
        ("", "a", "a"),
        ("", "a >b a >b a", "a >b a >b a"),
    ],
)
def test_only_what_is_new_of_a_history_is_added(thread: str, sent: str, new: str) -> None:
    assert _held(_thread(*thread.split()), _thread(*sent.split())) == [*thread.split(), *new.split()]


def test_messages_with_ids_are_known_by_them() -> None:
    held: Any = add_new_messages([], [HumanMessage("a", id="1"), AIMessage("b", id="2")])
    held = add_new_messages(held, [HumanMessage("a", id="1"), AIMessage("b", id="2"), HumanMessage("a", id="3")])
    assert [m.id for m in held] == ["1", "2", "3"]
    held = add_new_messages(held, [RemoveMessage(id="1"), HumanMessage("c", id="4")])
    assert [m.id for m in held] == ["2", "3", "4"]
    assert [m.id for m in add_new_messages(held, RemoveMessage(id="2"))] == ["3", "4"]


def test_a_history_that_is_sent_again_is_read_once(agent: Any, store: MemoryStore) -> None:
    say(agent, "I moved to Ghent")
    again = [
        {"role": r, "content": c} for r, c in (("user", "I moved to Ghent"), ("assistant", "ok"), ("user", "again"))
    ]
    state = agent.invoke({"messages": again}, thread_config("ana", "t1"), context=ANA)
    assert [m.text for m in state["messages"] if m.type == "human"] == ["I moved to Ghent", "again"]
    assert [event.op for event in store.events("ana")] == ["ADD"]
    assert [u.text for u in store.utterances("ana") if u.role == "user"] == ["I moved to Ghent", "again"]


def test_without_a_checkpointer_only_the_last_exchange_is_read(store: MemoryStore) -> None:
    agent = build_agent(memory=store).compile()
    history = [("user", "I moved to Ghent"), ("assistant", "ok"), ("user", "I have a cat.")]
    state = agent.invoke({"messages": history}, context=ANA)
    assert done(state) == [("ADD", "I have a cat.")]


# Exchangeable nodes


class Parrot:
    name = "parrot/1"

    def recall(self, owner: str, query: str, **options: Any) -> list[Recall]:
        return [Recall(id="m1", store="semantic", text=f"{owner} says {query}", said_at=JANUARY, score=1.0)]

    def respond(self, messages: Sequence[BaseMessage], recalled: Sequence[Recall], context: Context) -> AIMessage:
        return AIMessage(f"{recalled[0].text} [1]")

    def extract(self, turn: Turn, known: Sequence[Recall]) -> list[Candidate]:
        return [Candidate(text=turn.user_text, quote=turn.user_text, message_id=turn.message_id)]

    def decide(self, candidates: Sequence[Candidate], neighbours: Any, turn: Turn) -> list[Decision]:
        return [Decision(op="ADD", candidate=c, reason="always", policy=self.name) for c in candidates]

    def apply(self, turn: Turn, decisions: Sequence[Decision], *, revision: int | None, **more: Any) -> list[Any]:
        self.applied = [decision.candidate.text for decision in decisions]
        return []


def test_every_node_may_be_an_object_of_its_protocol(store: MemoryStore) -> None:
    parrot = Parrot()
    agent = build_agent(memory=store, retrieve=parrot, respond=parrot, extract=parrot, decide=parrot, apply=parrot)
    state = say(agent.compile(), "I live in Lisbon.")
    assert reply(state) == "ana says I live in Lisbon. [1]" and state["citations"] == ["m1"]
    assert state["decisions"][0]["policy"] == "parrot/1"
    assert parrot.applied == ["I live in Lisbon."] and store.memories("ana") == []


def test_a_policy_of_ones_own_is_still_guarded(store: MemoryStore) -> None:
    class Wild(Parrot):
        def decide(self, candidates: Sequence[Candidate], neighbours: Any, turn: Turn) -> list[Decision]:
            made = super().decide(candidates, neighbours, turn)
            return [d.model_copy(update={"op": "DELETE", "target": "of-somebody-else"}) for d in made]

    agent = build_agent(memory=store, decide=Wild()).compile()
    assert done(say(agent, "I live in Lisbon.")) == [("ADD", "I live in Lisbon.")]
    assert "guard" in store.events("ana")[0].reason or store.events("ana")[0].detail["guarded"]


def _recalled(state: State) -> dict[str, Any]:
    return {"recalled": []}


def _answered(state: State) -> dict[str, Any]:
    return {"messages": [AIMessage("As you say.")]}


def _nothing(state: State) -> None:
    return None


def _one(state: State) -> dict[str, Any]:
    message = state["turn"]["messages"][0]
    return {
        "candidates": [Candidate(text="Plays chess", quote="chess", message_id=message["id"]).model_dump(mode="json")]
    }


def _all_added(state: State) -> dict[str, Any]:
    return {
        "decisions": [{"op": "ADD", "candidate": c, "reason": "r", "policy": "mine/1"} for c in state["candidates"]]
    }


NODES_OF_ONES_OWN: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    ({"retrieve": _recalled}, [("ADD", "I play chess.")]),
    ({"retrieve": _nothing}, [("ADD", "I play chess.")]),
    ({"respond": _answered}, [("ADD", "I play chess.")]),
    ({"respond": _nothing}, [("ADD", "I play chess.")]),
    ({"extract": _one}, [("ADD", "Plays chess")]),
    ({"extract": _nothing}, []),
    ({"decide": _all_added}, [("ADD", "I play chess.")]),
    ({"decide": _nothing}, []),
    ({"apply": _nothing}, []),
    ({"extract": _one, "decide": _all_added}, [("ADD", "Plays chess")]),
]


@pytest.mark.parametrize("form", ["function", "runnable", "async"])
@pytest.mark.parametrize(
    ("nodes", "expected"), NODES_OF_ONES_OWN, ids=lambda n: "+".join(n) if isinstance(n, dict) else ""
)
def test_every_node_may_be_a_node_of_ones_own(nodes: Any, expected: Any, form: str, shared: MemoryStore) -> None:
    def made(function: Callable[[State], Any]) -> Any:
        async def alone(state: State) -> Any:
            return function(state)

        return {"function": function, "runnable": RunnableLambda(function), "async": alone}[form]

    who = f"{form}-{'-'.join(f'{key}{value.__name__}' for key, value in nodes.items())}"
    graph = build_agent(memory=shared, **{name: made(function) for name, function in nodes.items()})
    agent = graph.compile(checkpointer=InMemorySaver())
    for text in ("I play chess.", "Thanks!"):
        config, context = thread_config(who, "t1"), Context(user_id=who)
        if form == "async":
            state = asyncio.run(agent.ainvoke(user(text), config, context=context))
        else:
            state = agent.invoke(user(text), config, context=context)
        if text != "Thanks!":
            assert done(state) == expected
        else:
            assert done(state) == [] and state["decisions"] == []


def test_an_async_node_says_that_it_needs_ainvoke(store: MemoryStore) -> None:
    async def respond(state: State) -> dict[str, Any]:
        return {"messages": [AIMessage("Hello.")]}

    agent = build_agent(memory=store, respond=respond).compile()
    assert reply(asyncio.run(agent.ainvoke(user("Hi"), context=ANA))) == "Hello."
    with pytest.raises(TypeError, match=r"(?s)respond.*ainvoke"):
        agent.invoke(user("Hi"), context=ANA)


@pytest.mark.parametrize("name", ["retrieve", "respond", "extract", "decide", "apply"])
@pytest.mark.parametrize("given", [Parrot, "rules", 7, object()], ids=["class", "text", "number", "object"])
def test_what_is_no_node_is_refused_by_name(name: str, given: Any, shared: MemoryStore) -> None:
    with pytest.raises(ConfigError, match=rf"^{name}= was given"):
        build_agent(memory=shared, **{name: given})


def test_what_is_missing_is_named() -> None:
    for build in (build_agent, build_write):
        with pytest.raises(ConfigError, match="memory=MemoryStore"):
            build()  # type: ignore[operator]
    with pytest.raises(ConfigError, match="chat model"):
        build_agent(tools=[print])
    assert build_agent(retrieve=_recalled, write="off").compile().invoke(user("Hi"), context=ANA)["recalled"] == []
