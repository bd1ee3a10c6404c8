"""The keyword index: SQLite FTS5 as an inverted file, scored by BM25 with the owner's own statistics.

Every indexed token starts with the owner's number, so a query can only ever reach its owner's postings, and how often a
word occurs with one owner cannot change another owner's scores. FTS5's own `bm25()` takes word statistics from the whole
table; read as plain postings and scored here it finds more and costs less (LoCoMo, categories 1-4, both views alone:
recall@10 .705 against .678).
"""

import json
import re
import threading
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import snowballstemmer
from sqlalchemy import Connection

from sharpwave.memory.sql import fetch

K1, B = 0.9, 0.4
"""BM25 saturation and length weight; short records want less of both than the usual 1.2 and 0.75."""

TABLES = ("memory_terms", "utterance_terms", "window_terms")
"""Memories; utterances with their date; utterances with their date and their neighbours in the thread."""

STOP = frozenset(
    """a about am an and any are as at be been being but by can could d did do does doing dont for from had has have having
    he her hers him his how i id if ill im in into is isnt it its ive just ll m me my of on or our ours out s she should so
    some such t than that thats the their theirs them then there these they this those to too us was wasnt we were what
    whats when where which who whom whose why will with would you your youre yours""".split()
)
# Vowel signs of the scripts from Devanagari to Khmer are no letters to Python, yet part of their words.
_WORD = re.compile(
    r"[^\W_][\w\u0900-\u0963\u0966-\u109f\u1780-\u17d3]*(?:['’][^\W_]+)*|[\u2190-\u2bff\U0001f000-\U0001faff][\ufe0f\u200d\U0001f3fb-\U0001f3ff\U0001f000-\U0001faff\u2640\u2642]*"
)
# Scripts that are written without spaces: Thai to Myanmar, Khmer, kana, Han, Hangul.
_UNSPACED = re.compile(
    r"[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_SINGLE = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")  # Han, Hangul
# Accents; Hebrew points; Arabic vowel signs, hamza above and below, and the stretch between letters.
_MARKS = re.compile(r"[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u064b-\u0655\u0670\u0640]")
_stemmer = snowballstemmer.stemmer("english")
_stemming = threading.Lock()  # a stemmer holds the word it is at


def fold(value: str) -> str:
    """Return `value` in the form that matching uses: full-width forms and accents folded, lower case."""
    decomposed = unicodedata.normalize("NFKD", value.replace("_", " "))
    return unicodedata.normalize("NFC", _MARKS.sub("", decomposed)).casefold()


def terms(value: str) -> list[str]:
    """Return the index terms of `value`, in order: stems without stop words, emoji as they are, unspaced scripts as bigrams."""
    return [term for word in _WORD.findall(fold(value)) for term in _of_word(word)]


@lru_cache(maxsize=65536)
def _of_word(word: str) -> tuple[str, ...]:
    found: list[str] = []
    at = 0
    for run in _UNSPACED.finditer(word):
        found += _spaced(word[at : run.start()])
        found += _bigrams(run.group())
        at = run.end()
    return (*found, *_spaced(word[at:]))


def _spaced(word: str) -> list[str]:
    plain = word.replace("’", "'").removesuffix("'s").replace("'", "")
    if not plain or plain in STOP:
        return []
    if not plain.isascii():
        return [plain]
    with _stemming:
        return [_stemmer.stemWord(plain)]


def _bigrams(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]


def _token(owner: int, term: str) -> str:
    # Hex keeps FTS5's tokenizer from splitting what is one term here.
    return f"{owner}o{term}" if term.isascii() and term.isalnum() else f"{owner}u{term.encode().hex()}"


def create_tables(connection: Connection) -> None:
    """Create the index tables."""
    for table in TABLES:
        connection.exec_driver_sql(f"CREATE VIRTUAL TABLE {table} USING fts5(body, tokenize='ascii', detail=column)")


def index(connection: Connection, table: str, rows: Iterable[tuple[int, int, Sequence[str]]]) -> None:
    """Put rows of (row number, owner number, terms) into `table`, replacing what the row numbers held."""
    batch = [(row, " ".join(tokens(owner, found))) for row, owner, found in rows]
    if batch:
        remove(connection, table, [row for row, _ in batch])
        connection.exec_driver_sql(f"INSERT INTO {table}(rowid, body) VALUES (?, ?)", batch)


def tokens(owner: int, found: Sequence[str]) -> set[str]:
    """Return what a record of these terms is indexed by."""
    return {_token(owner, term) for term in with_singles(found)}


def with_singles(found: Sequence[str]) -> set[str]:
    """Return terms and the Han and Hangul characters in them, so that a word of one character is found inside a longer run."""
    return {*found, *(character for term in found if not term.isascii() for character in _SINGLE.findall(term))}


def remove(connection: Connection, table: str, rows: Sequence[int]) -> None:
    """Take rows out of `table`."""
    if rows:
        connection.exec_driver_sql(f"DELETE FROM {table} WHERE rowid = ?", [(row,) for row in rows])


def postings(connection: Connection, table: str, owner: int, query: Sequence[str]) -> dict[str, np.ndarray]:
    """Return, for each distinct term of `query` that the owner's records hold, their row numbers (int64, ascending)."""
    tokens = {_token(owner, term): term for term in query}
    # Concatenated by SQLite: fetching the numbers row by row took three times as long as finding them.
    statement = f"SELECT value, (SELECT group_concat(rowid) FROM {table} WHERE {table} MATCH value) FROM json_each(?)"
    rows = fetch(connection, statement, (json.dumps(list(tokens)),))
    return {tokens[token]: np.fromstring(found, np.int64, sep=",") for token, found in rows if found}


def idf(total: int, holding: int) -> float:
    """Return the weight of a term that `holding` of `total` records hold (Robertson and Zaragoza 2009, as Lucene has it; > 0)."""
    return float(np.log1p((total - holding + 0.5) / (holding + 0.5)))


def places(rows: np.ndarray, holding: np.ndarray) -> np.ndarray:
    """Return where in `rows` those of `holding` are that are there; both are ascending."""
    if not len(rows):
        return np.zeros(0, np.int64)
    at: np.ndarray = np.minimum(np.searchsorted(rows, holding), len(rows) - 1)
    found: np.ndarray = at[rows[at] == holding]
    return found


def bm25(
    found: dict[str, np.ndarray], rows: np.ndarray, lengths: np.ndarray, total: int, mean_length: float
) -> np.ndarray:
    """Score `rows` against the terms in `found`.

    A term counts once a record: records are short, and counting repeats changed nothing that could be measured.

    Args:
        found: postings by term.
        rows: row numbers to score (int64, ascending), shape (n,).
        lengths: their lengths in terms, shape (n,).
        total: how many records the owner has.
        mean_length: mean length of the owner's records, in terms.

    Returns:
        Scores, shape (n,), float32, 0 where no term is held; higher is better.
    """
    scores = np.zeros(len(rows), np.float32)
    saturation = (K1 + 1) / (1 + K1 * (1 - B + B * lengths / max(mean_length, 1e-9)))
    for holding in found.values():
        at = places(rows, holding)
        scores[at] += idf(total, len(holding)) * saturation[at]
    return scores
