"""The keyword index: how texts become terms, and that an owner's postings and statistics are the owner's alone."""

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from sharpwave.memory import keywords
from sharpwave.memory.ledger import Ledger

TABLE = keywords.TABLES[0]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    opened = Ledger(tmp_path / "ledger.sqlite3")
    with opened.write() as inside:
        yield inside
    opened.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I'm living in the houses!", ["live", "hous"]),
        ("Ana’s cat, Ana's dog", ["ana", "cat", "ana", "dog"]),
        ("don't", []),
        ("What did you do to them?", []),
        ("snake_case and CamelCase", ["snake", "case", "camelcas"]),
        ("Zoë Zoe\u0308 ZOE", ["zoe", "zoe", "zoe"]),
        ("Straße STRASSE", ["strass", "strass"]),
        ("Ｃｌｏｕｄ ﬁne ２０２６", ["cloud", "fine", "2026"]),
        ("İstanbul", ["istanbul"]),
        ("北京", ["北京"]),
        ("我住在北京", ["我住", "住在", "在北", "北京"]),
        ("猫", ["猫"]),
        ("ＡＢ北京cd", ["ab", "北京", "cd"]),
        ("부산에", ["부산", "산에"]),
        (unicodedata.normalize("NFD", "부산 が"), ["부산", "が"]),
        ("عَمَّان", ["عمان"]),
        ("أعيش", ["اعيش"]),
        ("חֵיפָה", ["חיפה"]),
        ("हिन्दी पुणे", ["हिन्दी", "पुणे"]),
        ("🧑🏽‍🚀!🎷", ["🧑🏽‍🚀", "🎷"]),
        ("❤️ and 🇵🇹", ["❤️", "🇵🇹"]),
        ("nordlys82 14:30 3.5", ["nordlys82", "14", "30", "3", "5"]),
        ("", []),
        ("... !!! \n\t\x00", []),
    ],
)
def test_texts_become_terms(text: str, expected: list[str]) -> None:
    assert keywords.terms(text) == expected


@settings(deadline=None, database=None, derandomize=True)
@given(st.text(max_size=60))
def test_any_form_of_a_text_has_the_same_terms(text: str) -> None:
    expected = keywords.terms(text)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert keywords.terms(unicodedata.normalize(form, text)) == expected
    assert all(term and not term.isspace() for term in expected)


@settings(deadline=None, database=None, derandomize=True, max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=5))
def test_every_word_that_is_indexed_is_found(connection: Connection, texts: list[str]) -> None:
    rows = [(number, 1, keywords.terms(text)) for number, text in enumerate(texts, 1)]
    keywords.index(connection, TABLE, rows)
    for number, _, found in rows:
        held = keywords.postings(connection, TABLE, 1, found)
        assert set(held) == set(found)
        assert all(number in holding.tolist() for holding in held.values())
    keywords.remove(connection, TABLE, range(1, 6))


@pytest.mark.parametrize(
    "word",
    ["AND", "OR NOT", "NEAR", 'a"b', "a*", "-a", "a:b", "(x", "^x", "{body}", "body:", "' OR 1=1", "1o2", "o", "u"],
)
def test_words_that_mean_something_to_the_database_are_words(connection: Connection, word: str) -> None:
    found = keywords.terms(word)
    keywords.index(connection, TABLE, [(1, 1, found), (2, 2, found), (3, 1, ["else"])])
    assert {term: held.tolist() for term, held in keywords.postings(connection, TABLE, 1, found).items()} == {
        term: [1] for term in found
    }


def test_an_owner_reaches_no_other_owners_postings(connection: Connection) -> None:
    # Owner 1 with the word "2olisbon" must not be owner 12 with the word "olisbon", or the like.
    for owner in (1, 2, 11, 12, 121):
        for number, word in enumerate(("lisbon", "1olisbon", "2olisbon", "olisbon", "ulisbon", "é", "c3a9")):
            keywords.index(connection, TABLE, [(owner * 100 + number, owner, [word])])
    for owner in (1, 2, 11, 12, 121):
        for number, word in enumerate(("lisbon", "1olisbon", "2olisbon", "olisbon", "ulisbon", "é", "c3a9")):
            assert keywords.postings(connection, TABLE, owner, [word])[word].tolist() == [owner * 100 + number]
    assert keywords.postings(connection, TABLE, 3, ["lisbon"]) == {}


def test_a_row_is_replaced_and_removed(connection: Connection) -> None:
    keywords.index(connection, TABLE, [(7, 1, ["old", "same"])])
    keywords.index(connection, TABLE, [(7, 1, ["new", "same", "same"])])
    found = keywords.postings(connection, TABLE, 1, ["old", "new", "same"])
    assert {term: held.tolist() for term, held in found.items()} == {"new": [7], "same": [7]}
    keywords.remove(connection, TABLE, [7])
    assert keywords.postings(connection, TABLE, 1, ["new", "same"]) == {}
    keywords.index(connection, TABLE, [])
    assert keywords.postings(connection, TABLE, 1, []) == {}


def test_a_character_is_found_inside_a_run(connection: Connection) -> None:
    keywords.index(connection, TABLE, [(1, 1, keywords.terms("黒猫を飼う")), (2, 1, keywords.terms("개를 키워요"))])
    assert keywords.postings(connection, TABLE, 1, keywords.terms("猫"))["猫"].tolist() == [1]
    assert keywords.postings(connection, TABLE, 1, keywords.terms("개"))["개"].tolist() == [2]


def test_postings_are_ascending(connection: Connection) -> None:
    for row in (9, 3, 12, 1, 10, 2):
        keywords.index(connection, TABLE, [(row, 1, ["word"])])
    assert keywords.postings(connection, TABLE, 1, ["word"])["word"].tolist() == [1, 2, 3, 9, 10, 12]


def test_thousands_of_terms_can_be_asked_for(connection: Connection) -> None:
    words = [f"w{i}" for i in range(40_000)]
    keywords.index(connection, TABLE, [(1, 1, words)])
    assert len(keywords.postings(connection, TABLE, 1, words)) == 40_000


def test_rare_terms_and_short_records_weigh_more() -> None:
    assert keywords.idf(100, 1) > keywords.idf(100, 50) > keywords.idf(100, 100) > 0
    rows, lengths = np.array([1, 2, 3]), np.array([5, 5, 50])
    found = {"rare": np.array([1]), "common": np.array([1, 2, 3])}
    scores = keywords.bm25(found, rows, lengths, 10, 20.0)
    assert scores[0] > scores[1] > scores[2] > 0
    assert keywords.bm25({}, rows, lengths, 10, 20.0).tolist() == [0, 0, 0]
