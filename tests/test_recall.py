"""Recall: the right things first, in any script, within the budget, and nothing where nothing is known."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from fakes import HashEmbeddings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings

from sharpwave.memory.candidates import scaled
from sharpwave.memory.choosing import within
from sharpwave.memory.embed import LocalEmbeddings
from sharpwave.memory.errors import InputError
from sharpwave.memory.question import question_in
from sharpwave.memory.records import Candidate, Decision, Memory, Message, Recall, Turn
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.tokens import estimate

MARCH = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
serial = itertools.count()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryStore]:
    """A store with the encoder that people have; each test takes owners of its own."""
    with MemoryStore.open(tmp_path_factory.mktemp("store"), embeddings=LocalEmbeddings(), collections=2) as opened:
        yield opened


@pytest.fixture
def ana() -> str:
    return f"ana-{next(serial)}"


def remember(store: MemoryStore, owner: str, *texts: str, **fields: object) -> list[str]:
    memories = [Memory(owner=owner, text=text, recorded_at=MARCH, valid_from=MARCH, **fields) for text in texts]
    store.put_memories(owner, memories, "given")
    return [memory.id for memory in memories]


def say(store: MemoryStore, owner: str, *texts: str, thread: str = "t1", days: int = 0) -> list[Turn]:
    turns = [
        Turn(
            owner=owner,
            thread=thread,
            messages=(Message(id=f"m{next(serial)}", role="user", text=text),),
            said_at=MARCH + timedelta(days=days),
        )
        for text in texts
    ]
    store.queue(turns)
    store.index_pending()
    return turns


def texts(hits: list[Recall]) -> list[str]:
    return [hit.text for hit in hits]


# Whose


def test_nobody_sees_what_others_said_on_any_way_of_reading(store: MemoryStore, ana: str) -> None:
    bo = ana + "-bo"
    for owner, city in ((ana, "Lima"), (bo, "Oslo")):
        turn = say(store, owner, f"I live in {city}")[0]
        candidate = Candidate(text=f"Lives in {city}", quote=turn.user_text, message_id=turn.message_id)
        decision = Decision(op="ADD", candidate=candidate, reason="new", policy="test/1")
        store.apply(turn, [decision], revision=store.neighbours(owner, [])[1])
    for query in ("where do I live?", "Oslo", "live", "x"):
        for stores in (("semantic",), ("episodic",), ("semantic", "episodic")):
            for past in (None, datetime.now(UTC)):
                for history in (False, True):
                    hits = store.recall(ana, query, k=10, floor=-9, stores=stores, as_of=past, include_history=history)
                    assert hits and all("Lima" in hit.text for hit in hits)
    candidate = Candidate(text="Lives in Oslo", quote="x", message_id="m")
    everything = [
        *texts(store.neighbours(ana, [candidate])[0][0]),
        *texts(store.known(say(store, ana, "Oslo in Lima, is it nice?", thread="t2")[0])),
        *(m.text for m in store.memories(ana, statuses=())),
        *(u.text for u in store.utterances(ana)),
        *(event.model_dump_json() for event in store.events(ana)),
    ]
    assert everything and all("Lima" in text for text in everything)
    assert store.recall(ana, "") == [] and store.recall(ana, " \n") == []


# How many


def test_any_number_of_results_can_be_asked_for(store: MemoryStore, ana: str) -> None:
    remember(store, ana, "Likes apples", "Likes pears")
    remember(store, ana + "-bo", *(f"Likes fruit number {i}" for i in range(80)))
    assert len(store.recall(ana, "likes fruit", k=50, floor=-9)) == 2
    assert len(store.recall(ana, "likes fruit", k=1, floor=-9)) == 1
    assert store.recall(ana, "likes fruit", k=0) == []
    assert store.recall(ana, "likes fruit", budget=0) == []
    assert store.recall(ana + "-new", "likes fruit", k=5) == []
    for wrong in ({"k": -1}, {"budget": -1}):
        with pytest.raises(InputError, match="cannot be negative"):
            store.recall(ana, "likes fruit", **wrong)
        with pytest.raises(InputError, match="cannot be negative"):
            store.recall(ana + "-new", "", **wrong)


@settings(max_examples=30, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.text(min_size=1, max_size=300), max_size=12),
    st.integers(0, 400),
    st.one_of(st.none(), st.integers(0, 9)),
)
def test_the_token_budget_is_never_exceeded(given_texts: list[str], budget: int, k: int | None) -> None:
    hits = [Recall(id=str(i), store="semantic", text=t, said_at=MARCH, score=1) for i, t in enumerate(given_texts)]
    kept = within(hits, k, budget)
    assert sum(estimate(hit.text) for hit in kept) <= budget
    assert k is None or len(kept) <= k
    assert [int(hit.id) for hit in kept] == sorted(int(hit.id) for hit in kept)
    assert within(hits, None, 10**9) == hits


def test_a_text_too_long_for_the_budget_does_not_hide_shorter_ones(store: MemoryStore, ana: str) -> None:
    remember(store, ana, "Lives in Lisbon " + "near the big old bridge " * 40, "Lives with a cat in Lisbon")
    found = store.recall(ana, "Where in Lisbon do I live?", budget=60)
    assert texts(found) == ["Lives with a cat in Lisbon"]


# In which order


class Plane(Embeddings):
    """Vectors that say where they point to: `1 0 0` is the vector (1, 0, 0)."""

    def embed_documents(self, given: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in given]

    def embed_query(self, text: str) -> list[float]:
        try:
            return [float(part) for part in text.split()]
        except ValueError:
            return [-1.0, 0.0, 0.0] if "far away" in text else [1.0, 0.0, 0.0]


def test_a_near_vector_counts_more_than_a_far_one(tmp_path: Path) -> None:
    with MemoryStore.open(tmp_path, embeddings=Plane(), collections=1) as store:
        for text in ("-1.0 0.0 0.00", "0.70 0.714 0.000", "0.999 0.01 0.000"):
            store.add("ana", text)
        hits = store.recall("ana", "1e0 0e0 0e0", k=3, floor=0.5, explain=True)
        assert texts(hits) == ["0.999 0.01 0.000", "0.70 0.714 0.000"]
        cosines = [hit.parts.cosine for hit in hits if hit.parts]
        assert cosines == pytest.approx([1.0, 0.7], abs=0.01)
        assert hits[0].score > hits[1].score
        assert texts(store.recall("ana", "1e0 0e0 0e0", floor=-9))[-1] == "-1.0 0.0 0.00"


def test_the_parts_of_a_score_add_up_and_come_only_when_asked_for(store: MemoryStore, ana: str) -> None:
    remember(store, ana, "Lives in Lisbon", "Plays chess", importance=0.9)
    say(store, ana, "I live in Lisbon", "The weather is nice")
    assert all(hit.parts is None for hit in store.recall(ana, "Where do I live?"))
    hits = store.recall(ana, "Where do I live?", floor=-9, explain=True)
    assert {hit.store for hit in hits} == {"semantic", "episodic"}
    for hit in hits:
        parts = hit.parts
        assert parts is not None
        assert parts.total == pytest.approx(parts.keyword + parts.dense + parts.subject + parts.tie_break)
        assert hit.score == parts.total
        assert -1.01 <= parts.cosine <= 1.01 and 0 <= parts.coverage <= 1.0001 and 0 <= parts.tie_break <= 0.05
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_whom_a_question_names_comes_first(store: MemoryStore, ana: str) -> None:
    remember(store, ana, "Lives in Lisbon")
    remember(store, ana, "Maria lives in Berlin", subject="sister Maria")
    assert texts(store.recall(ana, "Where do I live?"))[0] == "Lives in Lisbon"
    assert texts(store.recall(ana, "Where does my sister live?"))[0] == "Maria lives in Berlin"
    assert texts(store.recall(ana, "Where does Maria live?"))[0] == "Maria lives in Berlin"
    assert len(store.recall(ana, "Where does my sister live?", floor=-9)) == 2


def test_newer_and_more_important_things_only_break_ties(store: MemoryStore, ana: str) -> None:
    old = MARCH - timedelta(days=2000)
    chatter = Memory(
        owner=ana, text="Said hello to the postman", recorded_at=MARCH, valid_from=MARCH, importance=1, strength=1
    )
    fact = Memory(owner=ana, text="Allergic to penicillin", recorded_at=old, valid_from=old, importance=0, strength=0)
    store.put_memories(ana, [chatter, fact], "given")
    assert texts(store.recall(ana, "Which medicine am I allergic to?", floor=-9))[0] == "Allergic to penicillin"


COFFEE = (
    "Drinks two coffees each morning",
    "Has two coffees every morning",
    "Every morning drinks two cups of coffee",
    "Usually drinks two coffees in the morning",
    "Takes two coffees at breakfast each day",
    "Two coffees each morning is the routine",
    "Drinks a couple of coffees every morning",
    "Starts each morning with two coffees",
    "Has a pair of coffees each morning",
    "Each morning, two coffees",
    "Likes two coffees to start the morning",
    "Drinks coffee twice each morning",
)


def test_a_flood_of_rewordings_does_not_push_out_what_matters(store: MemoryStore, ana: str) -> None:
    remember(store, ana, *COFFEE, "Must avoid shellfish (hospital last year)")
    query = "I'm making breakfast and maybe a seafood omelette. Anything to keep in mind?"
    assert "Must avoid shellfish (hospital last year)" in texts(store.recall(ana, query, k=5, floor=-9))
    only = store.recall(ana, "How many coffees do I drink each morning?")
    assert len(only) >= 10 and texts(only)[0] in COFFEE


def test_a_flood_of_retracted_memories_does_not_push_out_the_live_one(tmp_path: Path) -> None:
    gone = [
        Memory(
            owner="x",
            text=f"Lives in Oslo, flat {i}",
            recorded_at=MARCH,
            valid_from=MARCH,
            valid_to=MARCH,
            status="retracted",
        )
        for i in range(120)
    ]
    noise = [Memory(owner="x", text=f"Noise number {i}", recorded_at=MARCH, valid_from=MARCH) for i in range(100)]
    live = Memory(
        owner="x",
        text="Lives, as of late, far away from here, in the big city of Oslo",
        recorded_at=MARCH,
        valid_from=MARCH,
    )
    with MemoryStore.open(tmp_path, embeddings=Plane(), collections=1) as store:
        store.put_memories("ana", [*gone, *noise, live], "given")
        assert live.text in texts(store.recall("ana", "Oslo", floor=-9))


# What is known


@pytest.fixture(scope="module")
def nina(store: MemoryStore) -> str:
    remember(
        store,
        "nina",
        "Lives in Lisbon",
        "Is allergic to shellfish",
        "Works as a nurse at the children's hospital",
        "Has a dog named Pixel, a border collie",
        "Plays the cello in an amateur orchestra",
        "My birthday is on 14 May",
        "Takes 50 mg of levothyroxine every morning",
        "Is afraid of flying",
        "Went to Kyoto on honeymoon in 2018",
    )
    remember(store, "nina", "My sister Maria lives in Berlin", subject="sister Maria")
    return "nina"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Where do I live?", "Lisbon"),
        ("What am I allergic to?", "shellfish"),
        ("Where do I work?", "nurse"),
        ("Where does my sister live?", "Berlin"),
        ("What breed is my dog?", "Pixel"),
        ("Which instrument do I play?", "cello"),
        ("When is my birthday?", "14 May"),
        ("Which medication do I take?", "levothyroxine"),
        ("Do I like planes?", "flying"),
        ("Where did we spend our honeymoon?", "Kyoto"),
    ],
)
def test_what_is_known_is_found_first(store: MemoryStore, nina: str, question: str, answer: str) -> None:
    assert answer in texts(store.recall(nina, question))[0]


@pytest.mark.parametrize(
    "question",
    [
        "What is my blood type?",
        "How tall am I?",
        "Which football team do I support?",
        "How much rent do I pay?",
        "What is the capital of Mongolia?",
        "Write a poem about the moon.",
        "How do I configure nginx as a reverse proxy?",
        "Who won the world cup in 1998?",
        "Explain quantum entanglement.",
        "¿Cuántos litros caben en el depósito?",
    ],
)
def test_what_is_not_known_finds_nothing(store: MemoryStore, nina: str, question: str) -> None:
    assert store.recall(nina, question) == []


# Long questions, and any script


@pytest.mark.parametrize(
    "pasted",
    [
        "2026-03-01T10:00:00Z INFO worker[17] GET /api/v1/items?id=83 200 12ms agent=curl\n" * 500,
        "Lorem ipsum dolor sit amet, consectetur adipiscing elit. " * 720,
        "この文章を読んでください。" * 3100,
        "Is this right? " * 2700,
    ],
)
def test_a_question_below_what_was_pasted_is_the_one_that_is_answered(
    store: MemoryStore, ana: str, pasted: str
) -> None:
    remember(store, ana, "Lives in Turku", "Likes rye bread", "Works in logistics")
    assert len(pasted) > 40_000
    assert texts(store.recall(ana, pasted + "so which city do I live in?", k=1)) == ["Lives in Turku"]


def test_the_embedder_never_gets_a_long_query_whole(tmp_path: Path) -> None:
    class Narrow(HashEmbeddings):
        def embed_query(self, text: str) -> list[float]:
            assert len(text) <= 8192
            return super().embed_query(text)

    with MemoryStore.open(tmp_path, embeddings=Narrow(16), collections=1) as store:
        store.add("ana", "Lives in Turku")
        for query in (
            "用" * 40_000 + "\nLives in Turku",
            "x" * 40_000,
            "a b " * 10_000,
            "?" * 40_000,
            "\n" * 40_000 + "x",
        ):
            assert len(store.recall("ana", query, floor=-9)) == 1


LINES = (
    "認証方式を変更した理由は監査のため",
    "Name is Zo\u00eb",
    "اسمي ليلى وأعيش في عَمَّان",
    "Favourite emoji is 🧑🏽‍🚀",
    "Cloudflare account is in use",
    "मेरा नाम आरव है और मैं पुणे में रहता हूँ",
    "ฉันอาศัยอยู่ในเชียงใหม่",
    "我住在北京，对花生过敏",
    "나는 부산에 살아요",
    "黒猫を飼っています",
    "Ich wohne in Köln am Rhein",
    "Живу в Казани",
    "גר בחיפה",
    "Handle is nordlys_82",
)


@pytest.fixture(scope="module")
def polyglot(store: MemoryStore) -> str:
    remember(store, "polyglot", *LINES)
    return "polyglot"


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("認証方式", 0),
        ("Zoe\u0308", 1),
        ("zoe", 1),
        ("أين أعيش؟", 2),
        ("عمّان", 2),
        ("عمان", 2),
        ("🧑🏽‍🚀", 3),
        ("Ｃｌｏｕｄｆｌａｒｅ", 4),
        ("आरव कहाँ रहता है?", 5),
        ("पुणे", 5),
        ("เชียงใหม่", 6),
        ("北京", 7),
        ("花生", 7),
        ("부산", 8),
        ("猫", 9),
        ("KOLN", 10),
        ("Казани", 11),
        ("חֵיפָה", 12),
        ("בחיפה", 12),
        ("nordlys", 13),
    ],
)
def test_every_script_is_found(store: MemoryStore, polyglot: str, query: str, line: int) -> None:
    assert LINES[line] in texts(store.recall(polyglot, query))[:3]


def test_texts_come_back_as_they_were_given(store: MemoryStore, polyglot: str) -> None:
    assert tuple(memory.text for memory in store.memories(polyglot)) == LINES


# The past


def test_the_past_can_be_asked(store: MemoryStore, ana: str) -> None:
    first = store.add(ana, "Lives in Oslo", valid_from=MARCH)
    store.put_memories(
        ana,
        [
            store.get(ana, first.memory_id or "").model_copy(
                update={"version": 2, "text": "Lives in Lisbon", "valid_from": MARCH + timedelta(days=30)}
            )
        ],
        "moved",
    )
    say(store, ana, "I live in Oslo", thread="t1")
    say(store, ana, "I live in Lisbon now", thread="t2", days=30)

    def asked(**options: object) -> list[str]:
        return sorted(texts(store.recall(ana, "Where do I live?", floor=-9, **options)))

    assert asked(stores=("semantic",)) == ["Lives in Lisbon"]
    assert asked(as_of=MARCH + timedelta(days=10)) == ["I live in Oslo", "Lives in Oslo"]
    assert asked(as_of=MARCH + timedelta(days=40), stores=("semantic",)) == ["Lives in Lisbon"]
    assert asked(as_of=MARCH - timedelta(days=10)) == []
    assert asked(include_history=True, stores=("semantic",)) == ["Lives in Lisbon", "Lives in Oslo"]
    with pytest.raises(InputError, match="no zone"):
        asked(as_of=datetime(2026, 3, 12))
    with pytest.raises(InputError, match="no zone"):
        asked(now=datetime(2026, 3, 12))


@pytest.mark.parametrize("status", ["superseded", "retracted", "merged", "expired", "quarantined"])
def test_only_active_memories_are_recalled(store: MemoryStore, ana: str, status: str) -> None:
    remember(store, ana, "Lives in Oslo", status=status)
    candidate = Candidate(text="Lives in Oslo", quote="x", message_id="m", attribute="home_city")
    assert store.recall(ana, "Where do I live?", floor=-9) == []
    assert store.neighbours(ana, [candidate])[0] == [[]]
    history = store.recall(ana, "Where do I live?", floor=-9, include_history=True)
    assert len(history) == (status != "quarantined")  # which is recalled by nobody


def test_what_has_expired_is_not_recalled(store: MemoryStore, ana: str) -> None:
    remember(store, ana, "Is on call in Oslo", expires_at=MARCH + timedelta(days=5))
    assert store.recall(ana, "Oslo", floor=-9, now=MARCH + timedelta(days=6)) == []
    assert len(store.recall(ana, "Oslo", floor=-9, now=MARCH + timedelta(days=4))) == 1
    assert len(store.recall(ana, "Oslo", floor=-9, as_of=MARCH + timedelta(days=4))) == 1
    assert len(store.recall(ana, "Oslo", floor=-9, include_history=True)) == 1


# Verbatim


def test_a_line_is_found_by_what_stands_next_to_it(store: MemoryStore, ana: str) -> None:
    say(store, ana, "We finally adopted a dog", "Her name is Pixel", "The bus was late today", "Nothing else happened")
    found = texts(store.recall(ana, "What is the dog called?", floor=-9, k=2))
    assert set(found) == {"We finally adopted a dog", "Her name is Pixel"}


def test_neighbours_come_from_the_same_thread_only(store: MemoryStore, ana: str) -> None:
    say(store, ana, "We finally adopted a dog", thread="t1")
    say(store, ana, "The bus was late today", thread="t2")
    parts = {hit.text: hit.parts for hit in store.recall(ana, "dog", floor=-9, explain=True)}
    bus = parts["The bus was late today"]
    assert bus is not None and bus.keyword == 0 and bus.coverage == 0


def test_what_a_memory_quotes_is_not_repeated(store: MemoryStore, ana: str) -> None:
    turn = say(store, ana, "I am allergic to shellfish")[0]
    candidate = Candidate(text="Is allergic to shellfish", quote=turn.user_text, message_id=turn.message_id)
    store.apply([turn][0], [Decision(op="ADD", candidate=candidate, reason="new", policy="test/1")], revision=0)
    assert texts(store.recall(ana, "Is allergic to shellfish", k=5)) == ["Is allergic to shellfish"]


# The steps


def test_scaling_keeps_the_order_and_knows_no_division_by_zero() -> None:
    assert scaled(np.array([3.0, 1.0, 2.0])).tolist() == [1.0, 0.0, 0.5]
    assert scaled(np.array([2.0, 2.0])).tolist() == [0.0, 0.0]
    assert scaled(np.array([])).tolist() == []
    assert scaled(np.array([1.0, 2.0]), low=0.0).tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Short. Is it? Yes", "Short. Is it? Yes"),
        ("x " * 600 + "\nWhere do I live?\nThanks!", "Where do I live?"),
        ("Line. " * 300 + "tell me my city", "tell me my city"),
        ("資料。" * 400 + "私はどこに住んでいますか？", "私はどこに住んでいますか？"),
    ],
)
def test_the_question_in_a_long_text(text: str, question: str) -> None:
    assert question_in(text) == question
