"""`verify`: are the rows what the log of decisions makes them, and both indexes what the rows make them?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import computed_field
from sqlalchemy import Connection, select

from sharpwave.memory import doctor, episodic, keywords, retrace, rows, semantic
from sharpwave.memory.records import Memory, Record, Utterance
from sharpwave.memory.retrace import Difference
from sharpwave.memory.schema import memories, owners, utterances

if TYPE_CHECKING:
    from sharpwave.memory.store import MemoryStore

EVERY = 10**9
"""How many vectors are asked for themselves: all of them."""


class Verification(Record):
    """What was recomputed, and what differs from it."""

    events: int
    rows: int
    differences: tuple[Difference, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def healthy(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def verify(store: "MemoryStore") -> Verification:
    """Recompute the rows of everybody from the events, and keywords and vectors from the rows; report what differs.

    Other processes that want to write vectors wait meanwhile. Nothing is changed.
    """
    with store.locked():
        with store.ledger.read() as connection:
            found = [*retrace.differences(connection), *rows.differences(connection), *_keywords(connection)]
            tables = " + ".join(f"(SELECT count(*) FROM {table})" for table in ("memories", "utterances", "records"))
            events, kept = connection.exec_driver_sql(f"SELECT (SELECT count(*) FROM events), {tables}").one()
        checks = doctor.examine(store, sample=EVERY).checks
    found += [Difference(where=c.name, what=c.found) for c in checks if not c.ok and c.name != "events"]
    return Verification(events=events, rows=kept, differences=tuple(found))


def _keywords(connection: Connection) -> Iterator[Difference]:
    """Compare the terms that each row ought to be found by with those that the keyword tables hold."""
    for number, name in connection.execute(select(owners.c.id, owners.c.owner)).all():
        yield from _differing(connection, number, name, semantic.VIEW, _memory_terms(connection, number))
        said = _utterances(connection, number, name)
        yield from _differing(connection, number, name, episodic.VIEW, {row: _dated(u, [u]) for row, u in said.items()})
        yield from _differing(connection, number, name, episodic.WINDOW, _window_terms(said))


def _differing(
    connection: Connection, number: int, name: str, view: str, expected: dict[int, list[str]]
) -> Iterator[Difference]:
    table = memories if view == semantic.VIEW else utterances
    statement = f"SELECT t.rowid, t.body FROM {view} t JOIN {table.name} r ON r.row = t.rowid WHERE r.owner = ?"
    held: dict[int, str] = {row: body for row, body in connection.exec_driver_sql(statement, (number,))}
    for row, terms in expected.items():
        if set(held.get(row, "").split()) != keywords.tokens(number, terms):
            yield Difference(where=f"{view}, row {row} of {name!r}", what="not the words of the record")


def _memory_terms(connection: Connection, number: int) -> dict[int, list[str]]:
    found = connection.execute(select(memories.c.row, memories.c.record).where(memories.c.owner == number))
    return {row: semantic.index_terms(Memory.model_validate_json(record)) for row, record in found}


def _utterances(connection: Connection, number: int, name: str) -> dict[int, Utterance]:
    found = connection.execute(select(utterances).where(utterances.c.owner == number)).mappings()
    return {row["row"]: episodic.read_row(row, name, number) for row in found}


def _window_terms(said: dict[int, Utterance]) -> dict[int, list[str]]:
    places = {(u.thread, u.position): u for u in said.values()}
    around = {
        row: [places[u.thread, u.position + step] for step in (-1, 0, 1) if (u.thread, u.position + step) in places]
        for row, u in said.items()
    }
    return {row: _dated(said[row], window) for row, window in around.items()}


def _dated(utterance: Utterance, window: list[Utterance]) -> list[str]:
    """Return the date of an utterance and the words of those around it."""
    date = keywords.terms(semantic.written_date(utterance.said_at))
    return [*date, *(term for one in window for term in keywords.terms(episodic.spoken(one.speaker, one.text)))]
