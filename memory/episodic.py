"""The episodic store: every message kept verbatim, in the order of its thread.

Utterances are the evidence that memories point to. Each is indexed twice by keyword: with its date, and with its date and
its neighbours in the thread.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, select

from sharpwave.memory import keywords
from sharpwave.memory.errors import OwnershipError
from sharpwave.memory.ledger import add_statistics, from_timestamp, insert_row
from sharpwave.memory.records import Turn, Utterance
from sharpwave.memory.schema import utterances
from sharpwave.memory.semantic import written_date
from sharpwave.memory.sql import fetch, fetch_one

VIEW, WINDOW = "utterance_terms", "window_terms"


def spoken(speaker: str, text: str) -> str:
    """Return the text that is embedded and searched: with the speaker's name where there is one."""
    return text if speaker in ("user", "assistant", "tool", "system") else f"{speaker}: {text}"


def next_position(connection: Connection, owner: int, thread: str) -> int:
    """Return the place of the next message in a thread, from 0."""
    statement = "SELECT max(position) FROM utterances WHERE owner = ? AND thread = ?"
    last: int | None = fetch_one(connection, statement, (owner, thread))
    return 0 if last is None else last + 1


def known_messages(connection: Connection, owner: int, thread: str, ids: Sequence[str]) -> set[str]:
    """Return which of these message ids the thread holds already."""
    statement = """
        SELECT message_id FROM utterances
        WHERE owner = ? AND thread = ? AND message_id IN (SELECT value FROM json_each(?))
    """
    return {known for (known,) in fetch(connection, statement, (owner, thread, json.dumps(list(ids))))}


def keep(
    connection: Connection, owner: int, turns: Sequence[Turn], embed: Callable[[str], np.ndarray], at: datetime
) -> None:
    """Write the messages of one owner's turns that are not known yet, each after the last of its thread."""
    batch: list[tuple[Utterance, np.ndarray]] = []
    seen: set[tuple[str, str]] = set()
    positions: dict[str, int] = {}
    for turn in turns:
        known = known_messages(connection, owner, turn.thread, [message.id for message in turn.messages])
        for message in turn.messages:
            if message.id in known or (turn.thread, message.id) in seen or not message.text.strip():
                continue
            seen.add((turn.thread, message.id))
            if turn.thread not in positions:
                positions[turn.thread] = next_position(connection, owner, turn.thread)
            utterance = Utterance(
                owner=turn.owner,
                thread=turn.thread,
                message_id=message.id,
                position=positions[turn.thread],
                role=message.role,
                speaker=message.speaker or message.role,
                text=message.text,
                said_at=turn.said_at,
                recorded_at=at,
            )
            positions[turn.thread] += 1
            batch.append((utterance, embed(spoken(utterance.speaker, utterance.text))))
    put(connection, owner, batch)


def put(connection: Connection, owner: int, batch: Sequence[tuple[Utterance, np.ndarray]]) -> None:
    """Write new utterances of one owner with their vectors; the rows wait to be indexed."""
    if not batch:
        return
    values, found = [], []
    for utterance, vector in batch:
        words = _terms(utterance.speaker, utterance.text)
        dated = [*keywords.terms(written_date(utterance.said_at)), *words]
        found.append(dated)
        values.append(
            {
                "id": utterance.id,
                "owner": owner,
                "thread": utterance.thread,
                "message_id": utterance.message_id,
                "position": utterance.position,
                "role": utterance.role,
                "speaker": utterance.speaker,
                "text": utterance.text,
                "said_at": utterance.said_at.timestamp(),
                "recorded_at": utterance.recorded_at.timestamp(),
                "metadata": json.dumps(utterance.metadata, ensure_ascii=False),
                "term_count": len(dated),
                "window_term_count": 0,
                "vector": vector.astype(np.float16).tobytes(),
                "indexed": False,
            }
        )
    rows = [insert_row(connection, "utterances", value) for value in values]
    keywords.index(connection, VIEW, [(row, owner, terms) for row, terms in zip(rows, found, strict=True)])
    add_statistics(connection, owner, VIEW, len(values), sum(len(terms) for terms in found))
    for thread in dict.fromkeys(utterance.thread for utterance, _ in batch):
        positions = [utterance.position for utterance, _ in batch if utterance.thread == thread]
        _index_windows(connection, owner, thread, min(positions) - 1, max(positions) + 1)


def _terms(speaker: str, text: str) -> list[str]:
    return keywords.terms(spoken(speaker, text))


def _index_windows(connection: Connection, owner: int, thread: str, first: int, last: int) -> None:
    """Index positions `first` to `last` of a thread with their neighbours."""
    statement = """
        SELECT row, position, speaker, text, said_at, window_term_count FROM utterances
        WHERE owner = ? AND thread = ? AND position BETWEEN ? AND ? ORDER BY position
    """
    around = fetch(connection, statement, (owner, thread, first - 1, last + 1))
    words = {position: _terms(speaker, text) for _, position, speaker, text, _, _ in around}
    batch, lengths, added, grown = [], [], 0, 0
    for row, position, _, _, said_at, length in around:
        if not first <= position <= last:
            continue
        date = keywords.terms(written_date(from_timestamp(said_at)))
        window = [*date, *(w for p in (-1, 0, 1) for w in words.get(position + p, ()))]
        batch.append((row, owner, window))
        lengths.append((len(window), row))
        added += length == 0
        grown += len(window) - length
    keywords.index(connection, WINDOW, batch)
    connection.exec_driver_sql("UPDATE utterances SET window_term_count = ? WHERE row = ?", lengths)
    add_statistics(connection, owner, WINDOW, added, grown)


def read_row(row: Mapping[Any, Any], owner: str, number: int) -> Utterance:
    """Return the record in `row`; a row of somebody else raises `OwnershipError`."""
    if row["owner"] != number:
        raise OwnershipError("An utterance of another owner was about to be returned; the call was stopped.")
    return Utterance(
        **{k: row[k] for k in ("id", "thread", "message_id", "position", "role", "speaker", "text")},
        owner=owner,
        said_at=from_timestamp(row["said_at"]),
        recorded_at=from_timestamp(row["recorded_at"]),
        metadata=json.loads(row["metadata"]),
    )


def find(
    connection: Connection, number: int, owner: str, thread: str | None = None, since: datetime | None = None
) -> list[Utterance]:
    """Return the utterances of an owner, or of one thread, in the order they were said; those of this moment and later."""
    statement = select(utterances).where(utterances.c.owner == number)
    if thread is not None:
        statement = statement.where(utterances.c.thread == thread)
    if since is not None:
        statement = statement.where(utterances.c.said_at >= since.timestamp())
    statement = statement.order_by(utterances.c.said_at, utterances.c.thread, utterances.c.position)
    return [read_row(row, owner, number) for row in connection.execute(statement).mappings()]


def by_vector_id(connection: Connection, owner: int, ids: Iterable[str]) -> dict[str, int]:
    """Return the row numbers of those vector ids that are the owner's."""
    statement = "SELECT id, row FROM utterances WHERE owner = ? AND id IN (SELECT value FROM json_each(?))"
    return dict(fetch(connection, statement, (owner, json.dumps(list(ids)))))


_LOAD = """
SELECT row, thread, position, speaker, said_at, term_count, instr(text, '?') > 0, vector FROM utterances WHERE row IN (
    SELECT u.row FROM utterances c JOIN utterances u
    ON u.owner = c.owner AND u.thread = c.thread AND u.position BETWEEN c.position - 1 AND c.position + 1
    WHERE c.owner = ? AND c.row IN (SELECT value FROM json_each(?))
) ORDER BY thread, position
"""


class Lines(NamedTuple):
    """What ranking needs of some utterances, by thread and position."""

    rows: np.ndarray
    """Row numbers (int64)."""
    follows: np.ndarray
    """Whether each but the first comes right after the one before it in the same thread (bool)."""
    threads: np.ndarray
    """Which thread of these it is of, counted from 0 and ascending (int64)."""
    speakers: Sequence[str]
    said_at: np.ndarray
    """Seconds since 1970."""
    lengths: np.ndarray
    """In terms."""
    asking: np.ndarray
    """Whether it holds a question mark (0 or 1)."""
    vectors: Sequence[bytes]
    """float16."""


def load(connection: Connection, owner: int, rows: Sequence[int]) -> Lines | None:
    """Return the lines with these row numbers and their neighbours; None when there are none."""
    found = fetch(connection, _LOAD, (owner, json.dumps(list(rows))))
    if not found:
        return None
    numbers, threads, positions, speakers, said_at, lengths, asking, vectors = zip(*found, strict=True)
    same = np.array([a == b for a, b in pairwise(threads)], bool)
    return Lines(
        rows=np.array(numbers),
        follows=same & (np.diff(positions) == 1),
        threads=np.cumsum(np.concatenate(([0], ~same))),
        speakers=speakers,
        said_at=np.array(said_at),
        lengths=np.array(lengths),
        asking=np.array(asking),
        vectors=vectors,
    )


_COLUMNS = "row id owner thread message_id position role speaker text said_at recorded_at metadata".split()
_READ = f"SELECT {', '.join(_COLUMNS)} FROM utterances WHERE row IN (SELECT value FROM json_each(?))"


def read(connection: Connection, number: int, owner: str, rows: Sequence[int]) -> dict[int, Utterance]:
    """Return the utterances in these rows, by row number."""
    found = fetch(connection, _READ, (json.dumps(list(rows)),))
    return {row[0]: read_row(dict(zip(_COLUMNS, row, strict=True)), owner, number) for row in found}


def pending(connection: Connection, limit: int | None = None) -> list[tuple[int, str, str, np.ndarray, dict[str, Any]]]:
    """Return the rows that wait to be indexed: (row, owner, vector id, vector, metadata)."""
    statement = """
        SELECT u.row, o.owner, u.id, u.vector, u.said_at FROM utterances u JOIN owners o ON o.id = u.owner
        WHERE u.indexed = 0 ORDER BY u.row LIMIT ?
    """
    return [
        (row, name, utterance_id, np.frombuffer(vector, np.float16), {"live": True, "at": said_at})
        for row, name, utterance_id, vector, said_at in fetch(connection, statement, (-1 if limit is None else limit,))
    ]
