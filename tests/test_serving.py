"""The graphs of `langgraph.json`: factories without arguments, over one store."""

import asyncio
import importlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from project import ROOT

from sharpwave import serving
from sharpwave.graphs import Context, thread_config


@pytest.fixture(autouse=True)
def stores(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[Any, Any]]:
    """Start each test without an open store, and close what it opened."""
    opened: dict[Any, Any] = {}
    monkeypatch.setattr(serving, "_stores", opened)
    yield opened
    for store in opened.values():
        store.close()


def invoke(graph: Any, text: str, user: str = "ana") -> dict[str, Any]:
    given = {"messages": [{"role": "user", "content": text}]}
    result: dict[str, Any] = graph.compile().invoke(given, thread_config(user, "t"), context=Context(user_id=user))
    return result


def test_langgraph_json_names_factories_that_give_graphs() -> None:
    for path in json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))["graphs"].values():
        module, _, name = path.partition(":")
        graph = asyncio.run(getattr(importlib.import_module(module), name)())
        assert graph.compile().get_graph().nodes


def test_what_the_agent_is_told_the_answering_agent_knows_and_does_not_add_to(stores: dict[Any, Any]) -> None:
    assert invoke(asyncio.run(serving.agent()), "I live in Lisbon.")["operations"]
    answering = asyncio.run(serving.answer_agent())
    assert "Lisbon" in invoke(answering, "Where do I live?")["messages"][-1].text
    invoke(answering, "My cat is called Miso.")
    (store,) = stores.values()
    assert [memory.text for memory in store.memories("ana")] == ["I live in Lisbon."]
    assert not store.pending()


def test_the_memory_manager_writes_and_answers_nothing(stores: dict[Any, Any]) -> None:
    result = invoke(asyncio.run(serving.memory_manager()), "I live in Lisbon.")
    assert [item["op"] for item in result["operations"]] == ["ADD"]
    assert len(result["messages"]) == 1
    assert len(stores) == 1


def test_the_store_is_opened_once_however_many_ask_at_once(stores: dict[Any, Any]) -> None:
    async def ask() -> list[Any]:
        return await asyncio.gather(*(serving.agent() for _ in range(4)))

    assert len(asyncio.run(ask())) == 4
    assert len(stores) == 1
