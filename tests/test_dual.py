"""Two agents on one memory: one writes it, one answers from it and never writes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings, ScriptedModel
from langchain_core.messages import AIMessage, HumanMessage

from sharpwave.graphs import Context, answer_agent, memory_manager
from sharpwave.memory.distil import distil
from sharpwave.memory.errors import ModelError
from sharpwave.memory.records import Recall
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.times import now

Scripted = Callable[..., ScriptedModel]
FACTS = ("I keep my cello in the hall.", "I have a cello lesson on Friday.", "I have a cat called Mia.")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings(), collections=2) as opened:
        yield opened


def ask(graph: Any, text: str, **context: Any) -> dict[str, Any]:
    run = Context(user_id="ana", thread="t9", **context)
    state: dict[str, Any] = graph.compile().invoke({"messages": [HumanMessage(text)]}, context=run)
    return state


def hits(*texts: str) -> list[Recall]:
    return [
        Recall(id=text, store="semantic", text=text, said_at=now(), score=1 - at / 10) for at, text in enumerate(texts)
    ]


def test_the_manager_writes_and_the_answerer_answers_each_with_its_model(
    store: MemoryStore, scripted: Scripted
) -> None:
    manager = scripted(
        '{"facts": [{"text": "Ana keeps her cello in the hall.", "quote": "I keep my cello in the hall.", '
        '"kind": "fact", "op": "ADD"}]}'
    )
    exchange = [HumanMessage(FACTS[0]), AIMessage("Good to know.")]
    memory_manager(store, manager).compile().invoke({"messages": exchange}, context=Context(user_id="ana", thread="t1"))
    for text in FACTS[1:]:
        store.add("ana", text)
    before = len(store.events("ana"))
    assert len(store.memories("ana")) == 3
    chooser = scripted(lambda messages: f'{{"labels": [{label(messages, "cello in the hall")}]}}')
    answerer = scripted("In the hall [1].")
    state = ask(answer_agent(store, answerer, distiller=chooser), "Where is my cello?")
    assert "cello in the hall" in state["recalled"][0]["text"] and len(state["recalled"]) == 1
    assert state["citations"] == [state["recalled"][0]["id"]]
    assert "lesson" in chooser.calls[0][-1].text and "lesson" not in str(answerer.calls[0])
    assert state["usage"]["by_purpose"].keys() == {"distil", "respond"} and state["degraded"] is None
    assert len(store.events("ana")) == before and store.utterances("ana", "t9") == []


def label(messages: list[Any], text: str) -> str:
    line = next(line for line in messages[-1].text.splitlines() if text in line)
    return line[1 : line.index("]")]


def test_without_a_model_the_best_by_score_are_left_within_the_budget(store: MemoryStore) -> None:
    for text in FACTS:
        store.add("ana", text)
    state = ask(answer_agent(store, most=1), "Where do I keep my cello?")
    assert [hit["text"] for hit in state["recalled"]] == [FACTS[0]] and FACTS[0] in state["messages"][-1].text
    assert ask(answer_agent(store), "Where do I keep my cello?", recall_budget=0)["recalled"] == []


@pytest.mark.parametrize(
    "answers",
    [(ModelError("The server is down."),), ("nonsense", "nonsense"), ('{"labels": []}',), ('{"labels": [9, 0, -1]}',)],
)
def test_a_model_that_fails_or_names_none_takes_nothing_away(scripted: Scripted, answers: tuple[Any, ...]) -> None:
    found = hits("one", "two", "three")
    kept, why = distil("What?", found, scripted(*answers), most=2)
    assert kept == found[:2] and why


def test_what_the_model_names_comes_in_its_order_once_and_within_the_budget(scripted: Scripted) -> None:
    found = hits("one", "two", "three")
    kept, why = distil("What?", found, scripted('{"labels": [3, 1, 3, 42]}'))
    assert ([hit.text for hit in kept], why) == (["three", "one"], None)
    kept, _ = distil("What?", found, scripted('{"labels": [3, 1]}'), budget=1)
    assert [hit.text for hit in kept] in ([], ["three"], ["one"])


def test_at_most_sixty_are_distilled_and_one_call_is_left_for_the_answer(
    store: MemoryStore, scripted: Scripted
) -> None:
    chooser = scripted('{"labels": [61, 60]}')
    kept, _ = distil("What?", hits(*(f"note {n}" for n in range(70))), chooser)
    assert (
        [hit.text for hit in kept] == ["note 59"] and "[60]" in str(chooser.calls) and "[61]" not in str(chooser.calls)
    )
    for text in FACTS:
        store.add("ana", text)
    state = ask(
        answer_agent(store, scripted("In the hall."), distiller=scripted()), "My cello?", max_llm_calls_per_turn=1
    )
    assert state["recalled"] and "max_llm_calls_per_turn" in state["degraded"]
