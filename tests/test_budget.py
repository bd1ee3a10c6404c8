"""Budgets are contracts: so many calls a turn, so many tokens a day; past them memory is written by rules, or waits."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import HashEmbeddings
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from openai_stub import OpenAIStub
from talking import done, reply, say, texts

from sharpwave.graphs import build_agent
from sharpwave.memory import BudgetExceeded, MemoryStore, stats
from sharpwave.memory.records import Usage
from sharpwave.memory.usage import check_budget, metering, record_call


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings()) as opened:
        yield opened


FACT = json.dumps({"facts": [{"text": "Lives in Lisbon", "quote": "I live in Lisbon", "op": "ADD"}]})


def test_past_the_calls_of_a_turn_memory_is_written_by_rules_and_says_so(store: MemoryStore) -> None:
    with OpenAIStub(["Noted."]) as stub:
        agent = build_agent(memory=store, model=stub.chat()).compile()
        state = say(agent, "I live in Lisbon.", max_llm_calls_per_turn=1)
        assert len(stub.requests) == 1
    assert reply(state) == "Noted." and done(state) == [("ADD", "I live in Lisbon.")]
    assert "max_llm_calls_per_turn" in state["degraded"] and state["errors"] == []


def test_a_second_try_counts_as_a_call(store: MemoryStore) -> None:
    with OpenAIStub(["Noted.", "no JSON at all"]) as stub:
        state = say(
            build_agent(memory=store, model=stub.chat()).compile(), "I live in Lisbon.", max_llm_calls_per_turn=2
        )
        assert len(stub.requests) == 2
    assert done(state) == [("ADD", "I live in Lisbon.")] and state["degraded"]


def test_within_the_budget_the_model_writes(store: MemoryStore) -> None:
    with OpenAIStub(["Noted.", FACT]) as stub:
        state = say(
            build_agent(memory=store, model=stub.chat()).compile(), "I live in Lisbon.", max_llm_calls_per_turn=2
        )
    assert done(state) == [("ADD", "Lives in Lisbon")] and state["degraded"] is None


def test_past_the_tokens_of_a_day_memory_is_written_by_rules(store: MemoryStore) -> None:
    with OpenAIStub(["Noted.", FACT, "Noted again."]) as stub:
        agent = build_agent(memory=store, model=stub.chat()).compile(checkpointer=InMemorySaver())
        say(agent, "I live in Lisbon.", max_tokens_per_day=100_000)
        spent = store.tokens_today("ana")
        assert spent > 0 and store.tokens_today("bob") == 0
        state = say(agent, "I have two cats.", max_tokens_per_day=spent)
        assert len(stub.requests) == 3
    assert done(state) == [("ADD", "I have two cats.")] and "max_tokens_per_day" in state["degraded"]


def test_a_turn_can_wait_for_its_budget_instead(store: MemoryStore) -> None:
    with OpenAIStub(["Noted."]) as stub:
        agent = build_agent(memory=store, model=stub.chat()).compile()
        state = say(agent, "I live in Lisbon.", max_llm_calls_per_turn=1, over_budget="wait")
    assert reply(state) == "Noted." and done(state) == [] and texts(store) == []
    assert [problem["stage"] for problem in state["errors"]] == ["extract"]
    assert [turn.user_text for turn, _, _ in store.pending("ana")] == ["I live in Lisbon."]


def test_tools_stop_at_the_calls_of_a_turn(store: MemoryStore) -> None:
    @tool
    def look(thing: str) -> str:
        """Look something up."""
        return "nothing"

    def call(_: object) -> AIMessage:
        return AIMessage("", tool_calls=[{"name": "look", "args": {"thing": "x"}, "id": "c1"}])

    from fakes import ScriptedModel

    model = ScriptedModel(script=[call(None), "Found nothing."], calls=[], bound=[])
    state = say(
        build_agent(memory=store, model=model, tools=[look]).compile(), "Look it up, please?", max_llm_calls_per_turn=2
    )
    model.assert_done()
    assert reply(state) == "Found nothing." and state["usage"]["llm_calls"] == 2


def test_an_incognito_turn_is_booked_and_not_remembered(store: MemoryStore) -> None:
    with OpenAIStub(["Noted."]) as stub:
        say(build_agent(memory=store, model=stub.chat()).compile(), "I live in Lisbon.", remember=False)
    assert store.tokens_today("ana") > 0 and texts(store) == []


def test_usage_is_counted_by_purpose(store: MemoryStore) -> None:
    with OpenAIStub(["Noted.", FACT]) as stub:
        state = say(build_agent(memory=store, model=stub.chat()).compile(), "I live in Lisbon.")
    booked = stats.count(store, "ana").usage
    assert booked == state["usage"]["by_purpose"] and booked.keys() == {"respond", "extract"}
    assert stats.count(store).usage == booked and stats.count(store, "bob").usage == {}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 5), st.integers(0, 400), st.lists(st.integers(0, 120), max_size=8))
def test_no_call_is_made_past_a_limit(calls: int, tokens: int, answers: list[int]) -> None:
    made: list[int] = []
    with metering(calls, tokens) as meter:
        for cost in answers:
            try:
                check_budget()
            except BudgetExceeded:
                break
            counts = {"input_tokens": cost, "output_tokens": 0, "total_tokens": cost}
            record_call("extract", AIMessage("", usage_metadata=counts))
            made.append(cost)
    assert len(made) <= calls and sum(made[:-1]) < max(tokens, 1)
    assert meter.usage == Usage(llm_calls=len(made), prompt_tokens=sum(made), by_purpose=meter.usage.by_purpose)
