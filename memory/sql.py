"""SQLite at the driver: queries where every tenth of a millisecond counts, and the switch to writing ahead."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection
from tenacity import retry, retry_if_exception, stop_after_delay, wait_random

BUSY_SECONDS = 30
"""How long a database waits for another process."""


def fetch(connection: Connection, statement: str, values: Sequence[Any] = ()) -> list[Any]:
    """Return all rows of a query, as tuples.

    It goes to the driver directly, inside the connection's transaction: SQLAlchemy's results cost more than most queries
    here, and a recall asks a dozen.
    """
    driver: Any = connection.connection.driver_connection
    rows: list[Any] = driver.execute(statement, values).fetchall()
    return rows


def fetch_one(connection: Connection, statement: str, values: Sequence[Any] = ()) -> Any:
    """Return the first column of the first row of a query, None when there is none; see `fetch`."""
    rows = fetch(connection, statement, values)
    return rows[0][0] if rows else None


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


@retry(
    retry=retry_if_exception(_is_busy),
    wait=wait_random(0, 0.05),
    stop=stop_after_delay(BUSY_SECONDS),
    reraise=True,
)
def write_ahead(connection: sqlite3.Connection) -> None:
    """Put a database into WAL mode, in which reading and writing do not wait for each other.

    A new file may be held by another process that does the same: SQLite says so at once, whatever the timeout of the
    connection, since two that wait for each other here would wait for ever.

    Raises:
        sqlite3.Error: the file is no database, or is held for more than `BUSY_SECONDS`.
    """
    connection.execute("PRAGMA journal_mode = WAL")
