"""What an answer should heed: gathered from all kinds of memory, shown to the model, without what something weightier denies."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings
from langgraph.checkpoint.memory import InMemorySaver

from sharpwave.graphs import Context, build_agent, thread_config
from sharpwave.memory.episodes import Episodes
from sharpwave.memory.gathering import PROFILE, gather
from sharpwave.memory.procedures import Procedures
from sharpwave.memory.records import Message, Turn
from sharpwave.memory.store import MemoryStore

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
ALLERGY = "I'm allergic to shellfish."


@pytest.fixture
def store(tmp_path: Path):
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings(), collections=2) as opened:
        yield opened


def say(agent: Any, text: str, thread: str, user: str = "ana") -> dict[str, Any]:
    config = thread_config(user, thread)
    state: dict[str, Any] = agent.invoke(
        {"messages": [("user", text)]}, config, context=Context(user_id=user, thread=thread)
    )
    return state


def test_an_allergy_is_heeded_in_the_next_session_though_nobody_mentions_it(store: MemoryStore) -> None:
    agent = build_agent(memory=store).compile(checkpointer=InMemorySaver())
    say(agent, ALLERGY, "monday")
    state = say(agent, "Any ideas for dinner?", "friday")
    assert [hit["text"] for hit in state["profile"]] == [ALLERGY]
    assert ALLERGY in state["messages"][-1].text and state["citations"] == [state["profile"][0]["id"]]
    assert say(agent, "Any ideas for dinner?", "friday", "ben")["profile"] == []
    assert ALLERGY not in say(agent, "What is my sister called?", "friday")["messages"][-1].text


def test_a_model_is_shown_the_profile_and_its_citation_counts(store: MemoryStore, scripted: Any) -> None:
    store.add("ana", ALLERGY, attribute="allergy", value="shellfish", importance=0.95)
    model = scripted("Pasta, as shellfish is out [1].")
    agent = build_agent(memory=store, model=model, write="off").compile(checkpointer=InMemorySaver())
    state = say(agent, "Any ideas for dinner?", "friday")
    prompt = model.calls[0][0].text
    assert "whatever is asked" in prompt and ALLERGY in prompt
    shown = [*state["recalled"], *state["profile"]]
    assert state["citations"] == [shown[0]["id"]]


def test_what_is_said_now_outweighs_what_was_kept(store: MemoryStore) -> None:
    store.add("ana", "I live in Oslo.", attribute="home_city", value="Oslo", importance=0.9)
    message = Message(id="m1", role="user", text="I live in Lisbon now. What should I see?")
    turn = Turn(owner="ana", thread="t", messages=(message,), said_at=NOW)
    recalled = store.recall("ana", "Where do I live?")
    found = gather(store, "ana", message.text, recalled, said=turn, now=NOW)
    assert recalled and found.facts == () and found.profile == ()
    assert [(one.kind, one.text) for one in found.outweighed] == [("semantic", "I live in Oslo.")]
    assert gather(store, "ana", message.text, recalled, now=NOW).facts == tuple(recalled)


def test_like_facts_are_all_shown_beside_strategies_and_episodes(store: MemoryStore) -> None:
    for n in (1041, 1042):
        store.add("ana", f"Paid invoice {n}")
    Procedures(store).add("ana", "Pay", "pay an invoice", ["open(bank)", "pay(invoice)"], successes=9)
    Episodes(store).add("ana", "pay an invoice", [{"action": "pay(invoice)", "observation": "done"}], "success")
    Episodes(store).add("ben", "pay the invoice of Ben", [{"action": "pay(x)", "observation": "done"}], "success")
    recalled = store.recall("ana", "Paid invoice 1041 1042")
    found = gather(store, "ana", "pay an invoice", recalled, now=NOW)
    assert {hit.text for hit in found.facts} == {"Paid invoice 1041", "Paid invoice 1042"} and not found.outweighed
    assert "Worked 9 of 9 times" in found.procedural[0] and "pay an invoice" in found.experiences[0]
    assert "Ben" not in "".join(found.experiences)


def test_the_profile_repeats_nothing_that_was_recalled_and_is_bounded(store: MemoryStore) -> None:
    for n in range(PROFILE + 4):
        store.add("ana", f"Likes band number {n}", kind="preference", importance=n / 20)
    recalled = store.recall("ana", "Likes band number 11", k=2)
    found = gather(store, "ana", "What about tonight?", recalled, now=NOW + timedelta(days=1))
    assert len(found.profile) == PROFILE
    assert not {hit.id for hit in found.profile} & {hit.id for hit in recalled}
    empty = gather(store, "nobody", "Hello", [], now=NOW)
    assert not any((empty.profile, empty.facts, empty.procedural, empty.experiences, empty.outweighed))


@pytest.mark.parametrize("asked", ["Do I prefer short answers?", "What about dinner?"])
def test_a_preference_is_said_once_in_a_prompt(asked: str, store: MemoryStore, scripted: Any) -> None:
    store.add("ana", "I prefer short answers.", kind="preference", importance=0.9)
    model = scripted("Yes [1].")
    say(build_agent(memory=store, model=model, write="off").compile(checkpointer=InMemorySaver()), asked, "friday")
    assert model.calls[0][0].text.count("short answers") == 1
