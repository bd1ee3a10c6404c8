"""Changes of what is known, from what was said to what is kept: nothing wrongly gone, nothing doubled, nothing thinned."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes import ScriptedModel
from talking import reply, say, texts

from sharpwave.graphs import build_agent
from sharpwave.memory import MemoryStore
from sharpwave.memory.embed import LocalEmbeddings

Make = Callable[..., ScriptedModel]


@pytest.fixture(scope="module")
def encoder() -> LocalEmbeddings:
    return LocalEmbeddings()


@pytest.fixture
def store(tmp_path: Path, encoder: LocalEmbeddings) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=encoder, collections=1) as opened:
        yield opened


def past(store: MemoryStore) -> list[str]:
    """Texts that held once."""
    return sorted(memory.text for memory in store.memories("ana", statuses=("superseded", "retracted")))


# By rules


BISCUIT = "Has a golden retriever named Biscuit, born May 2021, allergic to chicken"
CASES: dict[str, tuple[list[str], list[str], list[str]]] = {
    "a taste that turned": (["Loves sushi"], ["I can't stand sushi any more."], ["I can't stand sushi any more."]),
    "a detail added": (
        [BISCUIT],
        ["Turns out Biscuit can't have beef either."],
        [BISCUIT, "Biscuit can't have beef either."],
    ),
    "one number apart": (
        ["The grant deadline is 15 October"],
        ["Correction: the grant deadline is 16 October. And my flat is 3D, not 3B."],
        ["my flat is 3D, not 3B.", "the grant deadline is 16 October."],
    ),
    "two negations": (
        ["The north trail was not open in March"],
        ["The south trail was not open in April."],
        ["The north trail was not open in March", "The south trail was not open in April."],
    ),
    "one of a list given up": (
        ["Enjoys climbing, swimming and chess"],
        ["I've given up climbing, but I still swim."],
        ["Enjoys swimming and chess"],
    ),
    "the same again and again": (
        [],
        ["i like cats", "i like cats", "I like cats!", "Cats are animals I like.", "I like dogs."],
        ["I like dogs.", "i like cats"],
    ),
    "the desk, in other words": (
        ["My desk is on the fourth floor"],
        ["I now sit on the second"],
        ["I now sit on the second"],
    ),
    "a tool, in other words": (
        ["We use Trello for the roadmap"],
        ["the roadmap has moved over to Linear"],
        ["the roadmap has moved over to Linear"],
    ),
    "an appointment that has had its day": (
        ["I'm seeing a physio every Tuesday for my knee", "My sister Ann lives in Hull"],
        ["the knee is finally healed"],
        ["My sister Ann lives in Hull"],
    ),
    "a match that is off, not the love of it": (
        ["I love cricket"],
        ["the cricket got rained off so it was cancelled"],
        ["I love cricket", "the cricket got rained off so it was cancelled"],
    ),
    "another thing of nearly the same name": (
        ["I have a garden"],
        ["the garden party is over"],
        ["I have a garden", "the garden party is over"],
    ),
    "what somebody else has lost": (
        ["I have a bike"],
        ["my brother's bike got stolen"],
        ["I have a bike", "my brother's bike got stolen"],
    ),
    "an allergy, by what does not name it": (
        ["I'm allergic to penicillin"],
        ["I've been put on doxycycline instead"],
        ["I'm allergic to penicillin", "I've been put on doxycycline instead"],
    ),
    "a thing left behind": (
        ["I work at Fennel Books"],
        ["I left my umbrella at Fennel Books"],
        ["I left my umbrella at Fennel Books", "I work at Fennel Books"],
    ),
    "a mistake corrected": (
        ["Is allergic to walnuts"],
        ["I'm not the one allergic to walnuts, that was my guest. You keep saying I'm allergic to walnuts."],
        [],
    ),
}


@pytest.mark.parametrize(("known", "said", "left"), CASES.values(), ids=CASES)
def test_what_is_said_changes_what_is_known(
    known: list[str], said: list[str], left: list[str], store: MemoryStore
) -> None:
    for text in known:
        store.add("ana", text)
    agent = build_agent(memory=store).compile()
    for text in said:
        say(agent, text)
    assert texts(store) == sorted(left)
    kept = {
        version.text for memory in store.memories("ana", statuses=()) for version in store.versions("ana", memory.id)
    }
    assert set(known) <= kept, "whatever is no longer so stays on record"


def test_what_was_corrected_is_not_answered_again(store: MemoryStore) -> None:
    store.add("ana", "Is allergic to walnuts", confidence=0.7)
    agent = build_agent(memory=store).compile()
    say(agent, "I'm not the one allergic to walnuts, that was my guest. You keep saying I'm allergic to walnuts.")
    assert "walnuts" not in reply(say(agent, "What am I allergic to?", thread="t2"))
    (gone,) = store.memories("ana", statuses=("retracted",))
    assert gone.confidence <= 0.7 and gone.strength <= 0.5


# By a model that does as it likes


def told(store: MemoryStore, scripted: Make, known: list[str], text: str, *facts: Any) -> dict[str, Any]:
    for one in known:
        store.add("ana", one)
    agent = build_agent(memory=store, model=scripted("I see.", json.dumps({"facts": facts}))).compile()
    return say(agent, text)


def test_a_deletion_in_place_of_a_change_does_not_empty_the_store(store: MemoryStore, scripted: Make) -> None:
    fact = {"text": "Dislikes sushi", "quote": "I can't stand sushi any more", "op": "DELETE", "target": 0}
    told(store, scripted, ["Loves sushi"], "I can't stand sushi any more.", fact)
    assert texts(store) == ["Dislikes sushi"] and past(store) == ["Loves sushi"]


def test_ids_that_nobody_was_shown_change_nothing_and_lose_nothing(store: MemoryStore, scripted: Make) -> None:
    moved = {"text": "Lives in Galway", "quote": "I moved to Galway", "op": "UPDATE", "target": 12}
    kayak = {"text": "Owns a kayak", "quote": "bought a kayak", "op": "DELETE", "target": "3f0c-not-real"}
    told(store, scripted, ["Lives in Cork", "Has a moped"], "I moved to Galway and bought a kayak.", moved, kayak)
    assert {"Lives in Galway", "Owns a kayak", "Has a moped"} <= set(texts(store))
    assert "DELETE" not in [event.op for event in store.events("ana")]


@pytest.mark.parametrize("op", [None, "MERGE", "update", 7, ""])
def test_an_operation_that_is_none_loses_no_fact_and_changes_no_other(
    op: Any, store: MemoryStore, scripted: Make
) -> None:
    runs = {"text": "Runs marathons", "quote": "I run marathons", "op": op}
    drinks = {"text": "Drinks oolong", "quote": "I drink oolong", "op": "none", "target": 0}
    told(store, scripted, ["Drinks oolong"], "I run marathons. I drink oolong.", runs, drinks)
    assert texts(store) == ["Drinks oolong", "Runs marathons"]
    (oolong,) = (memory for memory in store.memories("ana") if memory.text == "Drinks oolong")
    assert oolong.version == 1 and len(store.versions("ana", oolong.id)) == 1


def test_a_thinner_text_takes_no_detail_away(store: MemoryStore, scripted: Make) -> None:
    thin = {
        "text": "Biscuit is allergic to beef",
        "quote": "Biscuit can't have beef either",
        "op": "UPDATE",
        "target": 0,
    }
    told(store, scripted, [BISCUIT], "Turns out Biscuit can't have beef either.", thin)
    known = " ".join(texts(store))
    assert all(detail in known for detail in ("golden retriever", "Biscuit", "May 2021", "chicken", "beef"))


def test_ten_facts_of_which_two_are_the_same_make_nine_memories(store: MemoryStore, scripted: Make) -> None:
    things = ["boat", "kayak", "moped", "piano", "garden", "drone", "tent", "loom", "piano", "sewing machine"]
    facts = [{"text": f"Owns a {thing}", "quote": f"a {thing}", "op": "ADD"} for thing in things]
    state = told(store, scripted, [], f"I own a {', a '.join(things)}.", *facts)
    assert texts(store) == sorted({f"Owns a {thing}" for thing in things}) and not state["errors"]


def test_a_slot_does_not_keep_a_value_that_its_text_no_longer_says(store: MemoryStore) -> None:
    agent = build_agent(memory=store).compile()
    say(agent, "I live in Ghent")
    say(agent, "we're in Antwerp as of last week")
    (home,) = store.memories("ana")
    assert home.text == "we're in Antwerp as of last week" and home.value != "Ghent"
    say(agent, "I moved to Bonn")
    assert [memory.value for memory in store.memories("ana")] == ["Bonn"]
