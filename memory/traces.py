"""What erased records may have left in files, as bytes, and the search for it.

A long text or vector may lie over several pages of a file, so pieces are searched for: its beginning, middle and end.
"""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from ahocorasick_rs import BytesAhoCorasick
from sqlalchemy import Connection

from sharpwave.memory import file_search, keywords
from sharpwave.memory.errors import StoreError
from sharpwave.memory.index import apart
from sharpwave.memory.records import Record

SHORTEST = 12
"""Bytes of a text or name that is searched for; shorter ones are common words as likely as not."""

PIECE, VECTOR_PIECE = 48, 32

Marks = dict[str, set[bytes]]
"""Bytes that must not be found, by kind: `text`, `id`, `vector`."""

_SPOKEN = ("text", "quote", "value", "phrase")
"""Fields of records that hold somebody's words."""


class Finding(Record):
    """Something erased that is still in a file."""

    file: str
    """Relative to the folder that was searched."""
    what: str
    """`text`, `id` or `vector`."""


class Search(Record):
    """What a search of all files found."""

    files: tuple[str, ...]
    size: int
    """Bytes that were read."""
    found: dict[str, tuple[bytes, ...]]
    """Marks by the file that holds them."""


def marks(texts: Iterable[str], ids: Iterable[str], vectors: Mapping[str, bytes]) -> Marks:
    """Return the bytes to search for; `vectors` are those of the ledger (float16) by their ids in the index."""
    names = {name.encode("utf-8", "surrogatepass") for name in ids}
    return {
        "text": {piece for text in set(texts) for piece in _pieces_of_text(text)},
        "id": {name for name in names if len(name) >= SHORTEST},
        "vector": {piece for vector_id, vector in vectors.items() for piece in _pieces_of_vector(vector_id, vector)},
    }


def words_in(value: Any) -> Iterator[str]:
    """Yield what is said in JSON-like data: texts, quotes, values."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key in _SPOKEN and isinstance(part, str):
                yield part
            else:
                yield from words_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from words_in(part)


def _pieces_of_text(text: str) -> Iterator[bytes]:
    """Yield pieces of a text as it may stand in a file: as it is, and inside JSON."""
    for form in {text, json.dumps(text, ensure_ascii=False)[1:-1]}:
        data = form.encode("utf-8", "surrogatepass")
        if len(data) >= SHORTEST:
            middle = max(0, (len(data) - PIECE) // 2)
            yield from (data[:PIECE], data[middle : middle + PIECE], data[-PIECE:])


def _pieces_of_vector(vector_id: str, vector: bytes) -> Iterator[bytes]:
    """Yield pieces of a vector as it stands in the ledger, in Chroma's queue, and in Chroma's graph (of unit length)."""
    kept = np.frombuffer(vector, np.float16)
    if not kept.any():
        return  # zeros are everywhere
    queued = apart(vector_id, kept)
    # hnswlib sums in single precision, in order, and multiplies; another compiler may differ in the last bit.
    scale = np.float32(1) / np.sqrt(np.cumsum(queued * queued, dtype=np.float32)[-1])
    around = (np.nextafter(scale, np.float32(0)), scale, np.nextafter(scale, np.float32(2)))
    for data in (vector, queued.tobytes(), *((queued * factor).tobytes() for factor in around)):
        middle = len(data) // 8 * 4
        yield from (data[:VECTOR_PIECE], data[middle : middle + VECTOR_PIECE])


def search(folder: Path, wanted: Marks, leave_out: Path) -> Search:
    """Search every file under `folder` but `leave_out`.

    A process of its own reads them: closing a file drops all of a process's POSIX locks on it, also those that SQLite
    holds for other threads (https://www.sqlite.org/howtocorrupt.html, section 2.2).

    Raises:
        StoreError: the search failed.
    """
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sharpwave.memory.file_search"],
        input=pickle.dumps((folder, wanted, leave_out)),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no reason given"]
        raise StoreError(f"The files in {folder} could not be searched: {why[0]}. Ask for the erasure again.")
    files, size, found = pickle.loads(done.stdout)
    return Search(files=files, size=size, found=found)


def holder(pieces: set[bytes]) -> Callable[[bytes], bool]:
    """Return what tells whether some data holds any of these pieces."""
    finder = BytesAhoCorasick(sorted(pieces)) if pieces else None
    return lambda data: bool(file_search.hits(finder, data))


def held(connection: Connection, suspects: set[bytes]) -> set[bytes]:
    """Return which of these bytes records in the ledger hold: what others said too, or said since, is no trace."""
    if not suspects:
        return set()
    patterns = sorted(suspects)
    finder = BytesAhoCorasick(patterns)
    known: set[int] = set()
    for table in _tables(connection):
        for row in connection.exec_driver_sql(f'SELECT * FROM "{table}"'):
            cells = (cell.encode() if isinstance(cell, str) else cell for cell in row)
            known |= file_search.hits(finder, b"\0".join(cell for cell in cells if isinstance(cell, bytes)))
    return {patterns[hit] for hit in known}


def _tables(connection: Connection) -> list[str]:
    """Return the tables that hold records: not those inside the keyword index."""
    names = [name for (name,) in connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return [name for name in names if not name.startswith(("sqlite_", *keywords.TABLES))]
