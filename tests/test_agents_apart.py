"""Agents of one user are apart: what one did with tools, and learned from it, is its own, however it was written."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings, ScriptedModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from sharpwave.graphs import BackgroundWriter, Context, build_agent, thread_config
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.episodes import Episodes
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.gathering import gather
from sharpwave.memory.procedures import Procedures
from sharpwave.memory.records import Turn
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.tool_use import ToolUses
from sharpwave.memory.turn_queue import TurnQueue

ASKED = "Please deploy the billing service."


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings(), collections=2) as opened:
        yield opened


def deploy(service: str) -> str:
    """Deploy a service."""
    return f"{service} is live"


@pytest.mark.parametrize("write", ["inline", "background"])
def test_what_an_agent_did_is_its_own(write: str, store: MemoryStore, scripted: Callable[..., ScriptedModel]) -> None:
    call = AIMessage(
        "", tool_calls=[{"name": "deploy", "args": {"service": "billing"}, "id": "c1", "type": "tool_call"}]
    )
    model = scripted(call, "It is live.")
    options: dict[str, Any] = {"write": write}
    if write == "background":
        options["writer"] = writer = BackgroundWriter(store, RulesExtractor(), RulesPolicy(), quiet=0.0)
    agent = build_agent(memory=store, model=model, tools=[deploy], **options).compile(checkpointer=InMemorySaver())
    context = Context(user_id="ana", thread="t1", agent="coder")
    agent.invoke({"messages": [("user", ASKED)]}, thread_config("ana", "t1"), context=context)
    if write == "background":
        assert writer.flush(30)
    assert [one.agent for one in ToolUses(store).find("ana")] == ["coder"]
    assert [one.agent for one in Episodes(store).find("ana")] == ["coder"]
    assert [one.agent for one in Procedures(store).find("ana")] == ["coder"]
    assert gather(store, "ana", ASKED, [], agent="coder").experiences
    assert gather(store, "ana", ASKED, []).experiences == ()


def test_a_turn_that_was_queued_before_agents_had_names_is_read(store: MemoryStore) -> None:
    said = {"id": "m1", "role": "user", "text": "Hi"}
    old = json.dumps({"owner": "ana", "thread": "t", "messages": [said], "said_at": "2026-03-01T10:00:00Z"})
    TurnQueue(store.ledger).put(Turn.model_validate_json(old))
    assert [turn.agent for turn, _, _ in store.pending("ana")] == ["agent"]
