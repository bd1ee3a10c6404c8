"""How a memory fares: what replay has made of it, how large it is, and how much of it was ever of use."""

from typing import Any

from sharpwave.memory import stats
from sharpwave.memory.sql import fetch
from sharpwave.memory.store import MemoryStore

_USED = """
SELECT count(*), coalesce(sum(EXISTS (
    SELECT 1 FROM uses u WHERE u.owner = m.owner AND u.memory_id = m.id AND (u.recalled > 0 OR u.cited > 0))), 0)
FROM memories m WHERE m.owner = ? AND m.current AND m.status = 'active'
"""


def take(store: MemoryStore, owner: str) -> dict[str, Any]:
    """Return how an owner's memory stands, as plain data.

    `memories` are those that are live; `used`, the share (0..1) of them that was ever recalled or cited, is None where there are
    none; `mean_strength` (0..1) is that of the replay buffer, None where that is empty; `bytes` is the size of all files in the
    folder, everybody's.
    """
    strength = "SELECT avg(strength) FROM uses WHERE owner = ? AND buffered"
    with store.transaction(owner) as (connection, number):
        ((live, used),) = fetch(connection, _USED, (number,))
        ((mean,),) = fetch(connection, strength, (number,))
    return {
        "memories": live,
        "used": used / live if live else None,
        "mean_strength": mean,
        "bytes": stats.size(store.home),
    }
