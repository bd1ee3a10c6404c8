"""Moving an owner's memory from one store to another."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings

from sharpwave.memory.errors import InputError
from sharpwave.memory.portability import export, load
from sharpwave.memory.records import Message, Turn
from sharpwave.memory.store import MemoryStore

JAN = datetime(2026, 1, 1, tzinfo=UTC)
SAID = ["I live in 東京.", "Zoë is my sister.", "Favourite emoji: 🧑🏽‍🚀"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings()) as opened:
        yield opened


def say(store: MemoryStore, owner: str, *texts: str, first: int = 0) -> None:
    turns = [
        Turn(owner=owner, thread="t1", messages=(Message(id=f"m{n}", role="user", text=text),), said_at=JAN)
        for n, text in enumerate(texts, first)
    ]
    store.queue(turns)


def fill(store: MemoryStore, owner: str) -> str:
    """Say a few things, and keep a memory in three versions and a deleted one; returns the id of the former."""
    say(store, owner, *SAID)
    kept = store.add(owner, "Lives in 東京", attribute="home_city", value="東京", tags=("home",), valid_from=JAN)
    assert kept.memory_id
    store.edit(owner, kept.memory_id, "Lives in Ōsaka")
    store.edit(owner, kept.memory_id, "Lives in Kyōto")
    store.pin(owner, kept.memory_id)
    gone = store.add(owner, "Owns a boat", importance=0.9, metadata={"seen": [1, {"deep": None}]})
    store.delete(owner, gone.memory_id or "", "sold")
    return kept.memory_id


def lines(store: MemoryStore, owner: str) -> list[str]:
    return [json.dumps(record, ensure_ascii=False) for record in export(store, owner)]


def content(store: MemoryStore, owner: str) -> list[dict[str, Any]]:
    """Return what an export holds but for the header and the log, which are the store's own."""
    records = [json.loads(line) for line in lines(store, owner)][1:]
    return [
        {**record, "id": ""} if record["type"] == "utterance" else record
        for record in records
        if record["type"] != "event"
    ]


def test_an_export_is_readable_and_says_what_it_holds(store: MemoryStore) -> None:
    fill(store, "ana")
    text = lines(store, "ana")
    header = json.loads(text[0])
    assert (header["format"], header["version"], header["owner"]) == ("sharpwave-memory", 1, "ana")
    assert (header["memories"], header["utterances"], header["events"]) == (4, 3, 6)
    assert datetime.fromisoformat(header["exported_at"]).tzinfo is not None
    assert len(text) == 1 + 4 + 3 + 6
    assert all(said in "\n".join(text) for said in SAID)


def test_everything_arrives_at_the_other_store(store: MemoryStore, tmp_path: Path) -> None:
    memory_id = fill(store, "ana")
    with MemoryStore.open(tmp_path / "other", embeddings=HashEmbeddings()) as other:
        done = load(other, "ana", lines(store, "ana"))
        assert (done.memories, done.utterances, done.known) == (4, 3, 0)
        assert content(other, "ana") == content(store, "ana")
        assert other.get("ana", memory_id) == store.get("ana", memory_id)
        assert [said.text for said in other.utterances("ana")] == SAID
        assert [hit.text for hit in other.recall("ana", "lives in Kyōto", stores=("semantic",))] == ["Lives in Kyōto"]
        assert [e.op for e in other.history("ana", memory_id)] == ["IMPORT"] * 3


def test_importing_twice_changes_nothing(store: MemoryStore, tmp_path: Path) -> None:
    fill(store, "ana")
    text = lines(store, "ana")
    before = content(store, "ana")
    assert load(store, "ana", text).model_dump() == {
        "memories": 0,
        "utterances": 0,
        "records": 0,
        "tool_uses": 0,
        "known": 7,
        "masked": 0,
    }
    assert content(store, "ana") == before
    with MemoryStore.open(tmp_path / "other", embeddings=HashEmbeddings()) as other:
        load(other, "ana", text)
        events = len(other.events("ana"))
        assert load(other, "ana", text).model_dump() == {
            "memories": 0,
            "utterances": 0,
            "records": 0,
            "tool_uses": 0,
            "known": 7,
            "masked": 0,
        }
        assert len(other.events("ana")) == events
        assert content(other, "ana") == before


def test_two_owners_import_the_same_file_and_stay_apart(store: MemoryStore, tmp_path: Path) -> None:
    memory_id = fill(store, "ana")
    text = lines(store, "ana")
    with MemoryStore.open(tmp_path / "other", embeddings=HashEmbeddings(), collections=1) as other:
        for owner in ("bo", "cy"):
            assert load(other, owner, text).model_dump() == {
                "memories": 4,
                "utterances": 3,
                "records": 0,
                "tool_uses": 0,
                "known": 0,
                "masked": 0,
            }
        other.delete("bo", memory_id)
        assert other.get("bo", memory_id).status == "retracted"
        assert other.get("cy", memory_id).status == "active"
        assert other.get("cy", memory_id).owner == "cy"
        for owner, expected in (("bo", []), ("cy", ["Lives in Kyōto"])):
            assert [hit.text for hit in other.recall(owner, "lives in Kyōto", stores=("semantic",))] == expected
            assert {hit.utterance.owner for hit in other.recall(owner, SAID[0]) if hit.utterance} == {owner}
        ids = {said.id for owner in ("bo", "cy") for said in other.utterances(owner)}
        assert len(ids) == 6


def test_a_later_export_brings_only_what_is_new(store: MemoryStore, tmp_path: Path) -> None:
    say(store, "ana", *SAID)
    memory_id = store.add("ana", "Lives in Oslo", valid_from=JAN).memory_id or ""
    with MemoryStore.open(tmp_path / "other", embeddings=HashEmbeddings()) as other:
        load(other, "ana", lines(store, "ana"))
        store.edit("ana", memory_id, "Lives in Bergen")
        say(store, "ana", "And I moved.", first=len(SAID))
        done = load(other, "ana", lines(store, "ana"))
        assert done.model_dump() == {
            "memories": 1,
            "utterances": 1,
            "records": 0,
            "tool_uses": 0,
            "known": 4,
            "masked": 0,
        }
        assert other.get("ana", memory_id).text == "Lives in Bergen"
        assert [memory.text for memory in other.memories("ana", as_of=JAN)] == ["Lives in Oslo"]
        assert [memory.text for memory in other.memories("ana", as_of=datetime(2030, 1, 1, tzinfo=UTC))] == [
            "Lives in Bergen"
        ]
        assert [said.position for said in other.utterances("ana")] == [0, 1, 2, 3]


def test_imported_messages_follow_those_that_a_thread_has(store: MemoryStore, tmp_path: Path) -> None:
    say(store, "ana", *SAID)
    with MemoryStore.open(tmp_path / "other", embeddings=HashEmbeddings()) as other:
        say(other, "ana", "Something else was said here.", first=100)
        load(other, "ana", lines(store, "ana"))
        said = sorted(other.utterances("ana"), key=lambda utterance: utterance.position)
        assert [utterance.position for utterance in said] == [0, 1, 2, 3]
        assert [utterance.text for utterance in said[1:]] == SAID


def test_an_unknown_owner_exports_nothing_and_none_else(store: MemoryStore) -> None:
    fill(store, "ana")
    assert len(lines(store, "bo")) == 1
    with pytest.raises(InputError, match="blank"):
        lines(store, " ")


def broken(store: MemoryStore) -> list[tuple[list[str | bytes], str]]:
    header, memory, *rest = lines(store, "ana")
    fields = json.loads(memory)

    def with_memory(**changes: Any) -> list[str | bytes]:
        return [header, json.dumps({**fields, **changes}), *rest]

    return [
        ([], "nothing to import"),
        (['{"role": "user", "content": "hi"}'], "Line 1: this is no export"),
        (["[1, 2]"], "Line 1 is not a JSON object"),
        ([header.replace('"version": 1', '"version": 2'), memory, *rest], "reads version 1"),
        (['{"format": "sharpwave-memory", "version": 1}'], "Line 1: the header lacks"),
        ([header, memory[:-1], *rest], "Line 2 is not JSON"),
        ([header, b"\xff\xfe{", *rest], "Line 2 is not"),
        ([header, "[" * 100_000, *rest], "Line 2 is not JSON"),
        ([header, "", "", '{"type": "spell"}'], "Line 4: a line of type 'spell'"),
        (with_memory(importance=7), "Line 2: importance"),
        (with_memory(valid_from="2026-01-01T00:00:00"), "Line 2: .*no zone"),
        (with_memory(version=0), "version must be"),
        (with_memory(version=10**30), "Line 2"),
        (with_memory(text="  "), "must not be blank"),
        (with_memory(colour="red"), "Line 2: colour"),
        (with_memory(subject="\ud800"), "surrogate"),
        ([header, memory, *rest[:-1]], "cut short"),
        ([header, memory, *rest[:2]], "cut short"),
    ]


def test_a_broken_file_is_refused_with_its_line_and_leaves_nothing_behind(store: MemoryStore) -> None:
    fill(store, "ana")
    for text, says in broken(store):
        with pytest.raises(InputError, match=says):
            load(store, "bo", text)
        assert store.memories("bo", statuses=()) == []
        assert store.utterances("bo") == []


def test_many_records_arrive_complete(store: MemoryStore, tmp_path: Path) -> None:
    say(store, "ana", *(f"Message number {n}" for n in range(1300)))
    with MemoryStore.open(tmp_path / "other", embeddings=HashEmbeddings()) as other:
        assert load(other, "ana", lines(store, "ana")).utterances == 1300
        assert [said.position for said in other.utterances("ana")] == list(range(1300))
        assert other.index_pending() == 0
        assert other.recall("ana", "Message number 1234", k=1)[0].text == "Message number 1234"
