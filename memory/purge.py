"""Taking rows out of the ledger for good: those of one owner, or of one memory. What is left in the files is `erase`'s concern."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table

from sharpwave.memory import keywords, ledger, linking, rebuild, semantic, times
from sharpwave.memory.schema import memories, owners, utterances
from sharpwave.memory.traces import Marks, marks, words_in

PURGED = "PURGED"
"""The operation of an event about a purged memory: when something was done stays in the log, and what it was does not."""

_BLANK = '{"before": null, "after": null, "quote": null}'
_IN = "IN (SELECT value FROM json_each(?))"


class Target(NamedTuple):
    """What is to go."""

    rows: dict[str, int]
    """How many rows, by table."""
    threads: tuple[str, ...]
    marks: Marks


class About(NamedTuple):
    """A memory with what was derived from it, the messages that it was taken from or that repeat it, and what tells of these."""

    memories: list[str]
    utterances: list[tuple[int, str, str]]
    """Row, thread and message id."""
    records: list[str]
    """Ids of episodes, sessions and the like that come from those messages, hold the words of the memory, are derived from it, or
    were learned from such a record."""


def of_owner(connection: Connection, number: int, owner: str) -> Target:
    """Return what the ledger holds of an owner."""
    rows = {
        table: _count(connection, table, "owner = ?", _key(kind, number, owner)) for table, kind in _owned(connection)
    }
    spoken, ids, vectors = _held_by(connection, number, "1")
    texts = {*spoken, *_logged(connection, number, "1")}
    for message in _column(connection, "SELECT turn FROM turns WHERE owner = ? AND turn != ''", number):
        texts.update(words_in(json.loads(message)))
    texts.update(_beside(connection, number))
    names = "SELECT thread, message_id FROM turns WHERE owner = ?1 UNION SELECT thread, message_id FROM utterances WHERE owner = ?1"
    used = connection.exec_driver_sql(names, (number,)).all()
    named = {owner, *(part for pair in used for part in pair)}
    return Target(rows, tuple(sorted({thread for thread, _ in used})), marks(texts, {*ids, *named}, vectors))


def owner(connection: Connection, number: int, name: str) -> None:
    """Purge all rows of an owner, events included."""
    _allow(connection)
    for view, table in _VIEWS:
        keywords.remove(connection, view, _column(connection, f"SELECT row FROM {table.name} WHERE owner = ?", number))
    gone = int(ledger.get_meta(connection, "erased_events") or 0) + _count(connection, "events", "owner = ?", number)
    ledger.set_meta(connection, "erased_events", str(gone))
    for table_name, kind in _owned(connection):
        connection.exec_driver_sql(f'DELETE FROM "{table_name}" WHERE owner = ?', (_key(kind, number, name),))
    connection.execute(owners.delete().where(owners.c.id == number))
    _forbid(connection)


def about(connection: Connection, number: int, memory_id: str) -> About:
    """Return what goes with a memory; nothing for an unknown id."""
    found = _column(connection, "SELECT DISTINCT id FROM memories WHERE owner = ? AND id = ?", number, memory_id)
    ids = _with_derived(connection, number, found)
    utterances = _sources(connection, number, ids)
    records = _telling(connection, number, ids, {(thread, message) for _, thread, message in utterances})
    more = _with_derived(connection, number, [*ids, *records])
    return About([one for one in more if one not in records], utterances, records)


def _with_derived(connection: Connection, number: int, ids: Sequence[str]) -> list[str]:
    """Return ids, and those of the memories that are derived from them, or were merged into them."""
    derived = """
        SELECT DISTINCT m.id FROM memories m, json_each(m.record, '$.derived_from') d WHERE m.owner = ?1 AND d.value = ?2
        UNION SELECT id FROM memories
            WHERE owner = ?1 AND current AND status = 'merged' AND json_extract(record, '$.superseded_by') = ?2
    """
    found, waiting = list[str](), list(ids)
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += [child for child in _column(connection, derived, number, one) if child not in (*found, *waiting)]
    return found


def _telling(connection: Connection, number: int, ids: Sequence[str], said: set[tuple[str, str]]) -> list[str]:
    """Return the ids of records that come from these messages, hold the words of these memories, are derived from one, or were
    learned from such a record."""
    words = _words_of(connection, number, ids)
    kept = connection.exec_driver_sql(
        "SELECT id, record FROM records WHERE owner = ?" if words else "SELECT 1, 1 WHERE ? < 0", (number,)
    )
    records = [(record_id, json.loads(text)) for record_id, text in kept]
    found = []
    for record_id, record in records:
        holding = any(word in semantic.folded(part) for part in words_in(record) for word in words)
        holding = holding or not {*ids}.isdisjoint(record.get("derived_from", ()))
        if holding or (record.get("thread"), record.get("message_id")) in said:
            found.append(record_id)
    learned = [record_id for record_id, record in records if {*record.get("learned_from", ())} & {*found}]
    return [*found, *(record_id for record_id in learned if record_id not in found)]


def _words_of(connection: Connection, number: int, ids: Sequence[str]) -> set[str]:
    """Return the texts and quotes of memories, folded."""
    statement = f"SELECT record FROM memories WHERE owner = ? AND id {_IN}"
    records = [json.loads(record) for record in _column(connection, statement, number, json.dumps(list(ids)))]
    return {semantic.folded(text) for record in records for text in (record["text"], record["source"]["quote"]) if text}


def of_memory(connection: Connection, number: int, what: About) -> Target:
    """Return what the ledger holds of a memory, and of what goes with it. Its id stays in the log."""
    ids, rows = json.dumps(what.memories), json.dumps([row for row, _, _ in what.utterances])
    spoken, _, vectors = _held_by(connection, number, f"id {_IN}", ids, f"row {_IN}", rows)
    about = json.dumps([*what.memories, *what.records])
    texts = {*spoken, *_logged(connection, number, f"memory_id {_IN}", about)}
    for record in _column(connection, f"SELECT record FROM records WHERE owner = ? AND id {_IN}", number, about):
        texts.update(words_in(json.loads(record)))
    counts = {
        "memories": _count(connection, "memories", f"owner = ? AND id {_IN}", number, ids),
        "utterances": len(what.utterances),
        "records": len(what.records),
        "events": _count(connection, "events", f"owner = ? AND memory_id {_IN}", number, about),
    }
    return Target(counts, tuple(sorted({thread for _, thread, _ in what.utterances})), marks(texts, (), vectors))


def memory(connection: Connection, number: int, name: str, what: About) -> None:
    """Purge a memory and what goes with it; events about it lose their contents and keep their places."""
    _allow(connection)
    ids, rows = json.dumps(what.memories), [row for row, _, _ in what.utterances]
    gone = _column(connection, f"SELECT row FROM memories WHERE owner = ? AND id {_IN}", number, ids)
    for view, table in _VIEWS:
        keywords.remove(connection, view, gone if table is memories else rows)
    blank = f"UPDATE events SET op = '{PURGED}', reason = 'purged', detail = '{_BLANK}' WHERE owner = ?"
    connection.exec_driver_sql(f"{blank} AND memory_id {_IN}", (number, json.dumps([*what.memories, *what.records])))
    connection.exec_driver_sql(f"DELETE FROM records WHERE owner = ? AND id {_IN}", (number, json.dumps(what.records)))
    for row, thread, message in what.utterances:
        connection.exec_driver_sql(
            f"{blank} AND thread = ? AND message_id = ? AND memory_id IS NULL", (number, thread, message)
        )
        connection.exec_driver_sql("DELETE FROM utterances WHERE owner = ? AND row = ?", (number, row))
    connection.exec_driver_sql(f"DELETE FROM memories WHERE owner = ? AND id {_IN}", (number, ids))
    connection.exec_driver_sql(f"DELETE FROM uses WHERE owner = ? AND memory_id {_IN}", (number, ids))
    nameless = linking.forget(connection, number, what.memories)
    connection.exec_driver_sql(f"{blank} AND memory_id {_IN}", (number, json.dumps(nameless)))
    _forbid(connection)
    rebuild.owner_keywords(connection, number, name)  # neighbours in a thread are found by the words of what went
    detail: dict[str, Any] = {"memories": what.memories, "messages": len(rows)}
    ledger.append_event(
        connection, number, "PURGE", at=times.now(), policy="user", reason="purged by hand", detail=detail
    )
    ledger.raise_revision(connection, number)


_VIEWS: tuple[tuple[str, Table], ...] = tuple(zip(keywords.TABLES, (memories, utterances, utterances), strict=True))


def _allow(connection: Connection) -> None:
    ledger.set_meta(connection, "erasing", "1")


def _forbid(connection: Connection) -> None:
    connection.exec_driver_sql("DELETE FROM meta WHERE key = 'erasing'")


def _owned(connection: Connection) -> list[tuple[str, str]]:
    """Return the tables that have an owner in each row, with the type of that column: all of them, whoever made them."""
    statement = """
        SELECT t.name, c.type FROM sqlite_master t, pragma_table_info(t.name) c
        WHERE t.type = 'table' AND c.name = 'owner' AND t.name != 'owners' ORDER BY t.name
    """
    return [(name, kind) for name, kind in connection.exec_driver_sql(statement)]


def _key(kind: str, number: int, name: str) -> int | str:
    return number if kind == "INTEGER" else name


def _column(connection: Connection, statement: str, *values: Any) -> list[Any]:
    return [row[0] for row in connection.exec_driver_sql(statement, values)]


def _count(connection: Connection, table: str, condition: str, *values: Any) -> int:
    return int(connection.exec_driver_sql(f'SELECT count(*) FROM "{table}" WHERE {condition}', values).scalar_one())


def _held_by(
    connection: Connection, number: int, which: str, ids: str | None = None, said: str = "1", rows: str | None = None
) -> tuple[set[str], set[str], dict[str, bytes]]:
    """Return texts, ids and vectors (by their ids in the index) of memories and utterances of an owner."""
    texts, names, vectors = set[str](), set[str](), dict[str, bytes]()
    kept = f"SELECT id, version, record, vector FROM memories WHERE owner = ? AND {which}"
    for memory_id, version, record, vector in connection.exec_driver_sql(kept, _values(number, ids)):
        texts.update(words_in(json.loads(record)))
        names.add(memory_id)
        vectors[semantic.vector_id(number, memory_id, version)] = vector
    spoken = f"SELECT id, text, vector FROM utterances WHERE owner = ? AND {said}"
    for utterance_id, text, vector in connection.exec_driver_sql(spoken, _values(number, rows)):
        texts.add(text)
        names.add(utterance_id)
        vectors[utterance_id] = vector
    return texts, names, vectors


def _beside(connection: Connection, number: int) -> Iterable[str]:
    """Return the words in the records of the other kinds, and in what tools were given and said."""
    for record in _column(connection, "SELECT record FROM records WHERE owner = ?", number):
        yield from _sentences(json.loads(record))
    statement = "SELECT parameters, error FROM tool_uses WHERE owner = ?"
    for parameters, error in connection.exec_driver_sql(statement, (number,)):
        yield from _sentences(json.loads(parameters))
        yield error or ""


def _sentences(value: Any) -> Iterator[str]:
    """Yield all texts in JSON-like data that are more than a word, an id or a time."""
    if isinstance(value, str):
        if " " in value:
            yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _sentences(part)


def _values(number: int, listed: str | None) -> tuple[Any, ...]:
    return (number,) if listed is None else (number, listed)


def _logged(connection: Connection, number: int, which: str, ids: str | None = None) -> Iterable[str]:
    """Return the words in events."""
    statement = f"SELECT reason, detail FROM events WHERE owner = ? AND {which}"
    for reason, detail in connection.exec_driver_sql(statement, _values(number, ids)):
        yield reason
        yield from words_in(json.loads(detail))


def _sources(connection: Connection, number: int, ids: Sequence[str]) -> list[tuple[int, str, str]]:
    """Return the messages that memories were taken from, and those that repeat them letter by letter."""
    statement = f"SELECT record FROM memories WHERE owner = ? AND id {_IN}"
    records = [json.loads(record) for record in _column(connection, statement, number, json.dumps(list(ids)))]
    sources = {(record["source"]["thread"], record["source"]["message_id"]) for record in records}
    words = _words_of(connection, number, ids)
    said = (
        "SELECT row, thread, message_id, text FROM utterances WHERE owner = ?"
        if records
        else "SELECT 1, 1, 1, 1 WHERE ? < 0"
    )
    return [
        (row, thread, message)
        for row, thread, message, text in connection.exec_driver_sql(said, (number,))
        if (thread, message) in sources or any(part in semantic.folded(text) for part in words)
    ]
