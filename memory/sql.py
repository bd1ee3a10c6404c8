"""Running queries where every tenth of a millisecond counts."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection


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
