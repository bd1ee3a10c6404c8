"""Making anew what the ledger can make anew: the vector index, the keyword tables and, with another embedder, the vectors.

It may be ended at any instant. Up to the one transaction that swaps vectors and keywords nothing has changed; after it
the ledger says that the index has to be emptied, which whoever opens the store next does, and then that rows wait to be
indexed, which is what opening always looks for.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import Connection, bindparam, select

from sharpwave.memory import episodic, fingerprint, keywords, ledger, linking, semantic
from sharpwave.memory.embed import embedding_array
from sharpwave.memory.errors import StoreError
from sharpwave.memory.index import VectorIndex
from sharpwave.memory.kinds import KINDS
from sharpwave.memory.records import Memory, Utterance
from sharpwave.memory.schema import memories, owners, records, term_statistics, utterances

if TYPE_CHECKING:
    from sharpwave.memory.folder import Folder

Progress = Callable[[str, int, int], None]
"""Hears what is being done (`embedding`, `indexing`), how much of it is done, and of how much."""

BATCH = 256
"""Texts that are embedded between two reports of progress."""


def _unheard(stage: str, done: int, total: int) -> None:
    pass


def reindex(store: "Folder", *, embed: bool = False, progress: Progress = _unheard) -> int:
    """Make the vector index, the keyword tables and the entities anew from the ledger; returns how many rows that has.

    Other processes may go on reading and writing. Without `embed` no embedder is needed.

    Args:
        store: opened with `repair=True`, or in any other way.
        embed: first make all vectors anew with the store's embedder, which becomes the one that the store is made with.
        progress: hears how it goes.

    Raises:
        StoreError: the folder of the index cannot be replaced.
    """
    made: dict[str, bytes] | None = None
    taken = ""
    if embed:
        made, taken = {}, fingerprint.take(store.embeddings)
    while not _swap(store, made, taken, progress):
        pass
    with store.ledger.read() as connection:
        total = _count(connection, "1")
    store.index_pending(lambda done: progress("indexing", done, total))
    return total


def _swap(store: "Folder", made: dict[str, bytes] | None, taken: str, progress: Progress) -> bool:
    """Change the ledger and empty the index; False where texts turned up meanwhile that have to be embedded first."""
    if made is not None:
        _embed(store, made, progress)
    with store.locked():
        with store.ledger.write() as connection:
            if made is not None:
                if not _put_vectors(connection, made):
                    return False
                ledger.set_meta(connection, "embedder", taken)
            keyword_tables(connection)
            for number in connection.execute(select(owners.c.id)).scalars().all():
                linking.rebuild(connection, number)
            announce(connection)
        if made is not None:
            store.made_with = taken
        resume(store)
    return True


def announce(connection: Connection) -> None:
    """Say that the index has to be emptied and filled again."""
    ledger.set_meta(connection, "rebuilding", "1")
    ledger.set_meta(connection, "indexing", "1")
    ledger.raise_generation(connection)


def resume(store: "Folder") -> None:
    """Empty the index, if a rebuild has announced that and not yet done it; all rows then wait to be indexed."""
    if not interrupted(store):
        return
    with store.locked():
        if not interrupted(store):
            return
        _empty(store.index)
        with store.ledger.write() as connection:
            for table in (memories, utterances):
                connection.execute(table.update().values(indexed=False))
            ledger.set_meta(connection, "rebuilding", "0")
            ledger.raise_generation(connection)


def interrupted(store: "Folder") -> bool:
    """Return whether a rebuild has begun and not yet come to indexing."""
    with store.ledger.read() as connection:
        return ledger.get_meta(connection, "rebuilding") == "1"


def any_indexed(connection: Connection) -> bool:
    """Return whether the index ought to hold anything."""
    return any(
        connection.execute(select(table.c.row).where(table.c.indexed).limit(1)).first()
        for table in (memories, utterances)
    )


def waiting(connection: Connection) -> int:
    """Return how many rows wait to be indexed."""
    return _count(connection, "indexed = 0")


def _count(connection: Connection, condition: str) -> int:
    statement = "SELECT (SELECT COUNT(*) FROM memories WHERE {0}) + (SELECT COUNT(*) FROM utterances WHERE {0})"
    return int(connection.exec_driver_sql(statement.format(condition)).scalar_one())


def _texts(connection: Connection) -> Iterator[tuple[str, int, str]]:
    """Yield table, row and the text that is embedded, of all rows."""
    for row, record in connection.execute(select(memories.c.row, memories.c.record)):
        yield "memories", row, json.loads(record)["text"]
    for row, speaker, text in connection.execute(select(utterances.c.row, utterances.c.speaker, utterances.c.text)):
        yield "utterances", row, episodic.spoken(speaker, text)
    for row, kind, record in connection.execute(select(records.c.row, records.c.kind, records.c.record)):
        text = KINDS[kind].model_validate_json(record).searched
        if text:
            yield "records", row, text


def _embed(store: "Folder", made: dict[str, bytes], progress: Progress) -> None:
    """Add the float16 vectors of all texts that `made` lacks."""
    with store.ledger.read() as connection:
        missing = list(dict.fromkeys(text for _, _, text in _texts(connection) if text not in made))
    for at in range(0, len(missing), BATCH):
        part = missing[at : at + BATCH]
        vectors = embedding_array(store.embeddings, part).astype(np.float16)
        made.update((text, vector.tobytes()) for text, vector in zip(part, vectors, strict=True))
        progress("embedding", at + len(part), len(missing))


def _put_vectors(connection: Connection, made: dict[str, bytes]) -> bool:
    """Replace the vectors of all rows; False, and nothing replaced, where one of their texts is not in `made`."""
    rows = list(_texts(connection))
    if any(text not in made for _, _, text in rows):
        return False
    for table in (memories, utterances, records):
        batch = [{"number": row, "made": made[text]} for name, row, text in rows if name == table.name]
        if batch:
            statement = table.update().where(table.c.row == bindparam("number")).values(vector=bindparam("made"))
            connection.execute(statement, batch)
    return True


def keyword_tables(connection: Connection) -> None:
    """Make the keyword tables and their statistics anew from the rows."""
    for table in keywords.TABLES:
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {table}_postings")
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {table}")
    keywords.create_tables(connection)
    connection.execute(term_statistics.delete())
    connection.execute(utterances.update().values(window_term_count=0))
    for number, name in connection.execute(select(owners.c.id, owners.c.owner)).all():
        _memory_terms(connection, number)
        _utterance_terms(connection, number, name)


def owner_keywords(connection: Connection, number: int, name: str) -> None:
    """Make the keywords and statistics of one owner anew from the rows."""
    connection.execute(term_statistics.delete().where(term_statistics.c.owner == number))
    connection.execute(utterances.update().where(utterances.c.owner == number).values(window_term_count=0))
    _memory_terms(connection, number)
    _utterance_terms(connection, number, name)


def _memory_terms(connection: Connection, number: int) -> None:
    found = connection.execute(select(memories.c.row, memories.c.record).where(memories.c.owner == number)).all()
    terms = [(row, semantic.index_terms(Memory.model_validate_json(record))) for row, record in found]
    keywords.index(connection, semantic.VIEW, [(row, number, words) for row, words in terms])
    _count_terms(connection, number, semantic.VIEW, memories.name, terms)


def _utterance_terms(connection: Connection, number: int, name: str) -> None:
    found = connection.execute(select(utterances).where(utterances.c.owner == number)).mappings().all()
    said = [(row["row"], episodic.read_row(row, name, number)) for row in found]
    terms = [(row, _dated(utterance)) for row, utterance in said]
    keywords.index(connection, episodic.VIEW, [(row, number, words) for row, words in terms])
    _count_terms(connection, number, episodic.VIEW, utterances.name, terms)
    last: dict[str, int] = {}
    for _, utterance in said:
        last[utterance.thread] = max(utterance.position, last.get(utterance.thread, 0))
    for thread, position in last.items():
        episodic._index_windows(connection, number, thread, 0, position)


def _dated(utterance: Utterance) -> list[str]:
    date = keywords.terms(semantic.written_date(utterance.said_at))
    return [*date, *keywords.terms(episodic.spoken(utterance.speaker, utterance.text))]


def _count_terms(
    connection: Connection, number: int, view: str, table: str, terms: list[tuple[int, list[str]]]
) -> None:
    if terms:
        statement = f"UPDATE {table} SET term_count = ? WHERE row = ?"
        connection.exec_driver_sql(statement, [(len(words), row) for row, words in terms])
        ledger.add_statistics(connection, number, view, len(terms), sum(len(words) for _, words in terms))


def _empty(index: VectorIndex) -> None:
    """Put an empty folder in the place of the index, whatever state that is in; the caller holds the file lock."""
    import chromadb
    from chromadb.config import Settings

    fresh, old = (index.path.with_name(f"{index.path.name}.{part}") for part in ("new", "old"))
    try:
        _remove(fresh, old)
        fresh.mkdir(mode=0o700)
        client = chromadb.PersistentClient(str(fresh), Settings(anonymized_telemetry=False))
        client.close()  # type: ignore[attr-defined]  # the declared type leaves it out
        index.forget()
        if index.path.exists():
            index.path.rename(old)
        fresh.rename(index.path)
        index.forget()  # a reader may have opened it in between
        _remove(old)
    except OSError as error:
        raise StoreError(
            f"The vector index {index.path} cannot be replaced: {error.strerror}. Check the permissions of the folder and the "
            "space on the disk, then run `sharpwave reindex` again."
        ) from error


def _remove(*folders: Path) -> None:
    for folder in folders:
        if folder.exists():
            shutil.rmtree(folder)
