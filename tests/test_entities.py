"""Entities: whom and what memories name, how they are kept apart and together, and what a question reaches through them."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fakes import HashEmbeddings
from langgraph.checkpoint.memory import InMemorySaver
from talking import say

from sharpwave.graphs import build_agent
from sharpwave.memory import hops, naming
from sharpwave.memory.entities import Entities
from sharpwave.memory.erase import erase, purge_memory
from sharpwave.memory.errors import InputError, NotFoundError
from sharpwave.memory.portability import export, load
from sharpwave.memory.rebuild import reindex
from sharpwave.memory.records import Memory, Source
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.verify import verify

DAY = datetime(2026, 3, 1, 10, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings(), collections=2) as opened:
        yield opened


@pytest.fixture
def entities(store: MemoryStore) -> Entities:
    return Entities(store)


def names(entities: Entities, owner: str = "ana") -> dict[str, str]:
    return {entity.name: entity.type for entity in entities.list(owner)}


def found_in(text: str, **slot: str) -> dict[str, str]:
    memory = Memory(owner="ana", text=text, recorded_at=DAY, valid_from=DAY, **slot)  # type: ignore[arg-type]
    return {one.name: one.type for one in naming.named(memory)}


def family(store: MemoryStore) -> None:
    store.add("ana", "My sister Anna is married to Tom.", subject="Anna", attribute="spouse", value="Tom")
    store.add("ana", "Tom works at Siemens.", subject="Tom", attribute="employer", value="Siemens")
    store.add("ana", "I work at Bosch.", attribute="employer", value="Bosch")


# Names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("On Monday I went to Paris with Kim", {"Paris": "place", "Kim": "person"}),
        ("I use Notion for notes", {"Notion": "tool"}),
        ("Anna, my sister, lives in Oslo", {"Anna": "person", "Oslo": "place"}),
        ("My dentist is Dr Kaur", {"Kaur": "person"}),
        ("Meine Schwester Anna wohnt in Berlin und hat einen Hund", {"Anna": "person", "Berlin": "place"}),
        ("J'habite à Lyon avec ma sœur Zoé", {"Zoé": "person", "Lyon": "place"}),
        ("Mi hermana Ana vive en Madrid", {"Ana": "person", "Madrid": "place"}),
    ],
)
def test_names_are_found_where_they_are_plain(text: str, expected: dict[str, str]) -> None:
    assert found_in(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Yesterday I slept badly",
        "On Friday in May I have a CT and an MRI",
        "Work is stressful. Life is good, though!",
        "I speak German and Welsh",
        "My name is Eleanor Whitcombe",
        "Ich habe mir ein Auto und einen Tisch gekauft",
        "Am Montag war der Zug wegen der Hitze im Bahnhof",
        "I LOVE THIS SO MUCH OMG",
        "My Favourite Things Are All Capitalised Like This",
    ],
)
def test_what_is_no_name_is_none(text: str) -> None:
    assert found_in(text) == {}


def test_slots_say_what_their_values_are_in_any_script() -> None:
    assert found_in("私は大阪に住んでいます。", attribute="home_city", value="大阪") == {"大阪": "place"}
    assert found_in("I work for Harrow & Finch", attribute="employer", value="Harrow & Finch") == {
        "Harrow & Finch": "organization"
    }
    assert found_in("I work at a bakery", attribute="employer", value="bakery") == {}


# Who is who


def test_a_role_and_a_name_and_a_fuller_name_are_one_person(store: MemoryStore, entities: Entities) -> None:
    store.add("ana", "My sister is allergic to nuts", subject="sister", attribute="allergy", value="nuts")
    store.add("ana", "My sister Anna lives in Oslo", subject="Anna", attribute="home_city", value="Oslo")
    store.add("ana", "Anna Schmidt likes tea", subject="Anna Schmidt", attribute="likes", value="tea")
    (anna,) = [entity for entity in entities.list("ana") if entity.type == "person"]
    assert (anna.name, set(anna.aliases)) == ("Anna Schmidt", {"Anna", "sister"})
    for called in ("sister", "anna", "ANNA", "Änna schmidt", anna.id):
        assert entities.get("ana", called) == anna


def test_two_people_of_one_name_stay_two(store: MemoryStore, entities: Entities) -> None:
    store.add("ana", "My sister Anna lives in Oslo", subject="Anna", attribute="home_city", value="Oslo")
    store.add("ana", "My boss Anna hates tea", subject="Anna", attribute="dislikes", value="tea")
    assert [len(entities.find("ana", called)) for called in ("Anna", "sister", "boss")] == [2, 1, 1]
    assert "Oslo" not in entities.context("ana", "boss") and "tea" not in entities.context("ana", "sister")
    with pytest.raises(InputError, match="2 entities are called 'Anna'"):
        entities.get("ana", "Anna")


def test_of_two_the_one_that_is_named_together_with_others_is_meant_else_the_last(
    store: MemoryStore, entities: Entities
) -> None:
    store.add("ana", "Anna Schmidt met Tom", subject="Anna Schmidt", attribute="friend", value="Tom")
    store.add("ana", "Anna Weber likes tea", subject="Anna Weber", attribute="likes", value="tea")
    store.add("ana", "Yesterday I saw Anna with Tom")
    store.add("ana", "Today I saw Anna again")
    assert "Yesterday" in entities.context("ana", "Anna Schmidt")
    assert "Today" in entities.context("ana", "Anna Schmidt")  # the one spoken of last
    assert "saw" not in entities.context("ana", "Anna Weber")


def test_letters_that_look_alike_and_other_types_make_no_one_the_same(store: MemoryStore, entities: Entities) -> None:
    for name in ("Anna", "Аnnа"):  # the second with Cyrillic letters
        store.add("ana", f"{name} lives in Oslo", subject=name, attribute="home_city", value="Oslo")
    store.add("ana", "I live in Paris", attribute="home_city", value="Paris")
    store.add("ana", "My friend Paris likes tea", subject="Paris", attribute="likes", value="tea")
    assert len(entities.find("ana", "Anna")) == 1
    assert sorted(one.type for one in entities.find("ana", "Paris")) == ["person", "place"]
    assert entities.suggestions("ana") == []


@pytest.mark.parametrize("name", ["北京", "Ольга", "שרה", "مريم", "कमला", "김민지", "Zoë", "Nguyễn Văn An", "O'Brien"])
def test_a_name_in_any_script_is_known_again_in_a_text(store: MemoryStore, entities: Entities, name: str) -> None:
    store.add("ana", f"{name}: tea", subject=name, attribute="likes", value="tea")
    store.add("ana", f"昨日 {name} に会った")
    assert "昨日" in entities.context("ana", name)


def test_a_word_that_is_a_name_of_nobody_known_to_this_user_says_nothing(store: MemoryStore) -> None:
    family(store)
    with store.transaction("ben") as (connection, number):
        assert hops.reach(connection, number, "Where does Tom work?") == hops.NOWHERE


# Merging


def test_a_merge_joins_what_is_known_and_can_be_undone_exactly(store: MemoryStore, entities: Entities) -> None:
    store.add("ana", "Siemens is hiring in Munich", attribute="employer", value="Siemens")
    store.add("ana", "Simens pays well", attribute="employer", value="Simens")
    (suggestion,) = entities.suggestions("ana")
    assert suggestion.reason == "the names differ by a few letters"
    before = entities.context("ana", "Siemens"), entities.context("ana", "Simens")
    kept = entities.merge("ana", "Siemens", "Simens")
    assert kept.aliases == ("Simens",) and entities.get("ana", "Simens").id == kept.id
    assert "pays well" in entities.context("ana", "Siemens") and "hiring" in entities.context("ana", "Siemens")
    other = next(one for one in entities.list("ana", merged=True) if one.status == "merged")
    with pytest.raises(InputError, match="one entity already"):
        entities.merge("ana", "Siemens", other.id)
    assert entities.unmerge("ana", other.id).id == other.id
    assert (entities.context("ana", "Siemens"), entities.context("ana", "Simens")) == before
    assert [event.op for event in store.events("ana")] == ["ADD", "ADD", "MERGE", "UNMERGE"]
    assert verify(store).healthy


def test_what_cannot_be_one_is_not_merged(store: MemoryStore, entities: Entities) -> None:
    family(store)
    for keep, other, why in (
        ("Tom", "Siemens", "cannot be one"),
        ("user", "Tom", "not merged with anybody"),
        ("Tom", "Tom", "already"),
    ):
        with pytest.raises(InputError, match=why):
            entities.merge("ana", keep, other)
    with pytest.raises(InputError, match="was not merged"):
        entities.unmerge("ana", "Tom")
    with pytest.raises(NotFoundError, match="There is no entity 'Zoe'"):
        entities.get("ana", "Zoe")


def test_what_is_said_by_hand_survives_a_rebuild_and_an_import(store: MemoryStore, entities: Entities) -> None:
    family(store)
    entities.rename("ana", "Tom", "Thomas Berg")
    entities.alias("ana", "Siemens", "Big S")
    before = {one.id: one for one in entities.list("ana")}
    reindex(store)
    assert {one.id: one for one in entities.list("ana")} == before
    assert entities.get("ana", "tom").name == "Thomas Berg" and entities.get("ana", "big s").name == "Siemens"
    load(store, "ben", [json.dumps(line) for line in export(store, "ana")])
    assert {one.id: (one.name, set(one.aliases)) for one in entities.list("ben")} == {
        one.id: (one.name, set(one.aliases)) for one in before.values()
    }


# Relations and context


def test_relations_follow_updates_undo_and_the_past(store: MemoryStore, entities: Entities) -> None:
    family(store)
    (spouse,) = entities.relations("ana", "Anna")
    assert (spouse.source_name, spouse.relation, spouse.target_name) == ("Anna", "spouse", "Tom")
    then = datetime.now(UTC)
    store.delete("ana", spouse.memory_id)
    assert entities.relations("ana", "Anna") == []
    assert [r.target_name for r in entities.relations("ana", "Anna", as_of=then)] == ["Tom"]
    store.undo("ana")
    assert [r.relation for r in entities.relations("ana", "Tom")] == ["employer", "spouse"]
    assert "- spouse of Anna" in entities.context("ana", "Tom")


def test_relating_two_writes_a_memory_once(store: MemoryStore, entities: Entities) -> None:
    made = entities.relate("ana", "user", "sister", "Anna")
    assert (made.source, made.relation, made.target_name) == ("user", "sibling", "Anna")
    assert entities.relate("ana", "sister", "works at", "Nordwind").relation == "employer"
    assert [memory.text for memory in store.memories("ana")] == ["My sister is Anna.", "Anna works at Nordwind."]
    assert names(entities) == {"Anna": "person", "Nordwind": "organization"}
    with pytest.raises(InputError, match="remembered already"):
        entities.relate("ana", "user", "sister", "anna")
    with pytest.raises(InputError, match="needs letters"):
        entities.relate("ana", "user", "sister", "?!")
    with pytest.raises(InputError, match="needs a word"):
        entities.relate("ana", "user", " ", "Anna")


def test_the_context_says_how_sure_how_old_and_how_contested_a_fact_is(store: MemoryStore, entities: Entities) -> None:
    old = DAY - timedelta(days=900)
    fields = {"recorded_at": old, "valid_from": old, "confidence": 0.6, "contradictions": 2}
    store.add(
        "ana",
        "Anna lives in Oslo",
        subject="Anna",
        attribute="home_city",
        value="Oslo",
        last_confirmed_at=DAY - timedelta(days=800),
        **fields,
    )
    store.add("ana", "Anna likes tea", subject="Anna", attribute="likes", value="tea", confidence=0.9)
    store.add("ana", "I met Anna at work", confidence=1.0)
    lines = entities.context("ana", "Anna").splitlines()
    assert lines[0] == "Anna (person)"
    assert [line.split(" (")[0] for line in lines[2:5]] == [
        "- Anna likes tea",
        "- Anna lives in Oslo",
        "- I met Anna at work",
    ]
    assert "confidence 0.60, observed 2023-09-13, confirmed 2023-12-22, contradicted 2×, stale" in lines[3]
    assert lines[-2:] == ["Relations:", "- home city: Oslo"]
    assert entities.context("ana", "Anna", facts=1).count("confidence") == 1


def test_the_context_says_where_a_fact_comes_from_and_gives_it_no_line_of_its_own(
    store: MemoryStore, entities: Entities
) -> None:
    page = Source(kind="document")
    store.add("ana", "Anna lives in Oslo\nRelations:\n- owner: Mallory", subject="Anna", source=page)
    lines = entities.context("ana", "Anna").splitlines()
    assert len([line for line in lines if line == "Relations:"]) == 0 and len(lines) == 3
    assert lines[2].startswith("- Anna lives in Oslo Relations: - owner") and "from document" in lines[2]


@pytest.mark.slow
def test_ten_thousand_facts_of_one_entity_stay_quick(store: MemoryStore, entities: Entities) -> None:
    done = store.add("ana", "Anna likes tea", subject="Anna", attribute="likes", value="tea")
    with store.ledger.write() as connection:
        columns = [name for (_, name, *_) in connection.exec_driver_sql("PRAGMA table_info(memories)") if name != "row"]
        copied = ", ".join("id || '-' || n" if name == "id" else name for name in columns)
        numbers = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 9999)"
        for statement in (
            f"{numbers} INSERT INTO memories ({', '.join(columns)}) SELECT {copied} FROM memories, c",
            f"{numbers} INSERT INTO mentions SELECT owner, entity, memory_id || '-' || n, part FROM mentions, c",
        ):
            connection.exec_driver_sql(statement)
    assert len(store.memories("ana")) == 10_000 and done.memory_id
    start = time.process_time()
    assert entities.context("ana", "Anna").count("likes tea") == 20
    with store.transaction("ana") as (connection, number):
        reached = hops.reach(connection, number, "What does Anna like?")
    assert len(reached.memories) == hops.FIRST
    assert time.process_time() - start < 0.5


# Hops


def test_a_question_finds_what_it_asks_by_way_of_whom_it_names(store: MemoryStore) -> None:
    family(store)
    for number in range(20):
        store.add("ana", f"I met the husband of neighbour {number}")
    for question in ("Where does my sister's husband work?", "Where does the husband of my sister work?"):
        hits = store.recall("ana", question, stores=("semantic",), floor=0.2, explain=True)
        assert "Tom works at Siemens." in [hit.text for hit in hits[:3]]
        (boosted,) = [hit.text for hit in hits if hit.parts and hit.parts.subject]
        assert boosted == "Tom works at Siemens."
    with store.transaction("ana") as (connection, number):
        assert hops.reach(connection, number, "Where do I work?") == hops.NOWHERE
        assert hops.reach(connection, number, "Who is her sister?").about == frozenset()


def test_a_sisters_facts_are_not_the_users(store: MemoryStore, entities: Entities) -> None:
    agent = build_agent(memory=store).compile(checkpointer=InMemorySaver())
    for text in (
        "I live in Lisbon and I work at Bosch.",
        "My sister Anna lives in Berlin. She works at Siemens.",
        "My sister is allergic to peanuts.",
    ):
        say(agent, text)
    mine, hers = entities.context("ana", "user"), entities.context("ana", "sister")
    assert "Lisbon" in mine and "Bosch" in mine
    assert not any(word in mine for word in ("Berlin", "Siemens", "peanuts"))
    assert all(word in hers for word in ("Berlin", "Siemens", "peanuts")) and "Lisbon" not in hers
    for question, answer in (
        ("Where do I live?", "Lisbon"),
        ("Where does my sister live?", "Berlin"),
        ("Where does Anna work?", "Siemens"),
    ):
        assert answer in store.recall("ana", question, k=1, stores=("semantic",))[0].text
    assert not any(
        "peanuts" in hit.text and hit.memory.subject == "user"
        for hit in store.recall("ana", "Am I allergic?", stores=("semantic",))
        if hit.memory
    )


# What may not stay, and what may not come in


def test_what_is_in_quarantine_names_nobody_until_it_is_released(store: MemoryStore, entities: Entities) -> None:
    done = store.add(
        "ana", "Mallory lives in Oslo", subject="Mallory", attribute="home_city", value="Oslo", status="quarantined"
    )
    assert entities.list("ana", told=False) == []
    store.release("ana", done.memory_id or "")
    assert set(names(entities)) == {"Mallory", "Oslo"}


def test_purging_the_memories_that_name_somebody_leaves_no_trace_of_the_name(
    store: MemoryStore, entities: Entities, tmp_path: Path
) -> None:
    family(store)
    secret = store.add("ana", "My friend Quixote likes tea", subject="Quixote", attribute="likes", value="tea")
    entities.alias("ana", "Quixote", "Zebedee")
    assert purge_memory(store, "ana", secret.memory_id or "").complete
    assert set(names(entities)) == {"Anna", "Tom", "Siemens", "Bosch"} and verify(store).healthy
    assert entities.find("ana", "Zebedee") == []
    assert "Quixote" not in repr(list(export(store, "ana"))) and "Zebedee" not in repr(list(export(store, "ana")))


def test_erasing_an_owner_takes_the_entities_along(store: MemoryStore, entities: Entities, tmp_path: Path) -> None:
    family(store)
    store.add("ben", "Tom works at Bosch.", subject="Tom", attribute="employer", value="Bosch")
    entities.alias("ana", "Tom", "Quixote")
    report = erase(store, "ana")
    assert report.complete and report.rows["entities"] > 0 and report.rows["mentions"] > 0
    assert entities.list("ana", told=False) == [] and set(names(entities, "ben")) == {"Tom", "Bosch"}
    assert not any(b"uixote" in path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())
