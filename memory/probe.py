"""What `doctor` asks of Chroma, in a process of its own, since a damaged index can end the process that reads it.

    python -m sharpwave.memory.probe HOME SAMPLE

writes one JSON object: how many vectors were looked at, and examples of those that are wrong. It changes nothing;
whoever starts it holds the lock between processes.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, Table, select

from sharpwave.memory import ledger, semantic
from sharpwave.memory.errors import StoreError
from sharpwave.memory.index import StoreName, VectorIndex, condition
from sharpwave.memory.ledger import Ledger
from sharpwave.memory.schema import memories, owners, utterances

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

STORES: dict[StoreName, Table] = {"semantic": memories, "episodic": utterances}
ROUNDING = 5e-3
"""Difference of a component up to which two vectors count as the same: float16 and what keeps equal vectors apart."""
NEAR, FAR = 10, 200
"""How many neighbours are asked for, first and where those lack the vector: the search in the graph is approximate."""
BATCH, PAGE = 200, 5000
EXAMPLES = 5


class Expected(NamedTuple):
    """A vector that the index ought to hold."""

    vector_id: str
    owner: str
    live: bool
    vector: np.ndarray


def examine(home: Path, sample: int) -> dict[str, Any]:
    """Compare the index in `home` with its ledger.

    Returns:
        `known`, `held`: how many vectors the ledger says are indexed, and how many the index has. `missing`, `unknown`:
        ids that the one has and the other lacks. `looked_at`: how many vectors were looked up (at most about `sample`,
        spread over everybody). `different`: ids that hold another vector. `lost`: ids that a search for their own vector
        does not find. Of ids, how many and the first few.
    """
    import chromadb
    from chromadb.config import Settings

    book = Ledger(home / "ledger.sqlite3")
    client = chromadb.PersistentClient(str(home / "chroma"), Settings(anonymized_telemetry=False))
    try:
        with book.read() as connection:
            indexed, waiting = _ids(connection, indexed=True), _ids(connection, indexed=False)
            held = _held(client)
            look = _Look(client, int(ledger.get_meta(connection, "collections") or 1))
            step = max(1, -(-len(indexed) // sample))
            for store in STORES:
                look.at(store, _expected(connection, store, step))
    finally:
        client.close()  # type: ignore[attr-defined]  # the declared type leaves it out
        book.close()
    return {
        "known": len(indexed),
        "held": len(held),
        "missing": _shown(indexed - held),
        "unknown": _shown(held - indexed - waiting),
        "looked_at": look.count,
        "different": _shown(look.different),
        "lost": _shown(look.lost),
    }


def _shown(ids: Iterable[str]) -> dict[str, Any]:
    found = sorted(ids)
    return {"count": len(found), "ids": found[:EXAMPLES]}


def _ids(connection: Connection, *, indexed: bool) -> set[str]:
    columns = (memories.c.owner, memories.c.id, memories.c.version)
    found = {
        semantic.vector_id(*row) for row in connection.execute(select(*columns).where(memories.c.indexed.is_(indexed)))
    }
    return found | set(connection.execute(select(utterances.c.id).where(utterances.c.indexed.is_(indexed))).scalars())


def _held(client: "ClientAPI") -> set[str]:
    """Return the ids of all vectors in the index."""
    held: set[str] = set()
    for collection in client.list_collections():
        at = 0
        while ids := collection.get(include=[], limit=PAGE, offset=at)["ids"]:
            held.update(ids)
            at += PAGE
    return held


def _expected(connection: Connection, store: StoreName, step: int) -> list[Expected]:
    """Return every `step`-th vector that the index ought to hold of a store, by owner."""
    table = STORES[store]
    ordered = select(table.c.row).where(table.c.indexed).order_by(table.c.owner, table.c.row)
    rows = list(connection.execute(ordered).scalars())[::step]
    statement = select(table, owners.c.owner.label("name")).join(owners, owners.c.id == table.c.owner)
    found: list[Expected] = []
    for at in range(0, len(rows), BATCH):
        chosen = statement.where(table.c.row.in_(rows[at : at + BATCH])).order_by(table.c.owner, table.c.row)
        for row in connection.execute(chosen).mappings():
            vector_id = (
                row["id"] if store == "episodic" else semantic.vector_id(row["owner"], row["id"], row["version"])
            )
            live = store == "episodic" or bool(row["current"] and row["status"] == "active")
            vector = np.frombuffer(row["vector"], np.float16).astype(np.float32)
            found.append(Expected(vector_id, row["name"], live, vector))
    return found


class _Look:
    """Looks vectors up in the index: by their ids, and by themselves."""

    def __init__(self, client: "ClientAPI", collections: int) -> None:
        self.client, self.names = client, VectorIndex(Path(), collections)
        self.there = {collection.name: collection for collection in client.list_collections()}
        self.count = 0
        self.different: list[str] = []
        self.lost: list[str] = []

    def at(self, store: StoreName, items: Sequence[Expected]) -> None:
        """Look at vectors of one store, sorted by owner."""
        for (owner, live), group in groupby(
            sorted(items, key=lambda i: (i.owner, i.live)), lambda i: (i.owner, i.live)
        ):
            wanted = list(group)
            self.count += len(wanted)
            collection = self.there.get(self.names.collection_name(store, owner))
            if collection is None:
                self.lost += [item.vector_id for item in wanted]
                continue
            where = condition(owner, live=live)
            for start in range(0, len(wanted), BATCH):
                self._batch(collection, where, wanted[start : start + BATCH])

    def _batch(self, collection: "Collection", where: dict[str, Any], items: list[Expected]) -> None:
        found = collection.get(ids=[item.vector_id for item in items], include=["embeddings"])
        held = dict(zip(found["ids"], np.asarray(found["embeddings"], np.float32), strict=True))
        self.different += [item.vector_id for item in items if not _same(held.get(item.vector_id), item.vector)]
        items = [item for item in items if item.vector.any()]  # a vector of zeros is near to nothing
        for k in (NEAR, FAR):
            items = self._unfound(collection, where, items, k)
        self.lost += [item.vector_id for item in items]

    @staticmethod
    def _unfound(collection: "Collection", where: dict[str, Any], items: list[Expected], k: int) -> list[Expected]:
        if not items:
            return []
        asked = [item.vector for item in items]
        found = collection.query(query_embeddings=asked, n_results=k, where=where, include=["distances"])
        distances = found["distances"] or [[] for _ in items]
        # Where all k are at no distance, they are equal to it, and it may have had no place among them.
        return [
            item
            for item, ids, far in zip(items, found["ids"], distances, strict=True)
            if item.vector_id not in ids and not (len(far) == k and far[-1] < ROUNDING)
        ]


def _same(one: np.ndarray | None, other: np.ndarray) -> bool:
    return one is not None and one.shape == other.shape and float(np.abs(one - other).max()) < ROUNDING


def main() -> None:
    """Answer the command line above. That the index cannot be read is an answer, too."""
    from chromadb.errors import ChromaError

    home, sample = sys.argv[1:]
    try:
        answer = examine(Path(home), int(sample))
    except (StoreError, ChromaError) as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
