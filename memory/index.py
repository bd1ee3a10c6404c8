"""The vector index: Chroma through langchain-chroma, a cache that can always be rebuilt from the ledger.

Owners are spread by hash over a fixed number of collections a store and filtered by their exact name inside (100,000
memories of 1,000 owners: 4 ms a query; one big collection took 191 ms).

Several processes may open one folder, but an embedded Chroma client that stayed open while another process wrote would
destroy the other's vectors with its next write. So the ledger counts a *generation* that every writer raises, there is
one client a path and process, and a client whose generation is old is closed and opened anew: before each read, and
inside the file lock before each write.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sharpwave.memory.errors import StoreError

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.collection_configuration import CreateHNSWConfiguration
    from chromadb.api.models.Collection import Collection

StoreName = Literal["semantic", "episodic"]


HNSW: "CreateHNSWConfiguration" = {"space": "cosine", "max_neighbors": 32, "ef_construction": 200}
"""The graph of a collection. With Chroma's own 16 neighbours and a breadth of 100, one of 1,200 vectors is often linked so
badly that it does not find itself."""

CROWDED = 2000
"""Vectors of a collection from which on it is asked without a condition first: a condition takes Chroma 2.4 µs for each
vector that meets it, so 24 ms for somebody with 10,000 memories; without one, and with what is known of the first 90, 4 ms."""

HAIR = 0.004
"""How far from where it belongs a vector is kept in the index (its cosine to itself stays above 0.99999)."""


def apart(vector_id: str, vector: np.ndarray) -> np.ndarray:
    """Return `vector`, float32, moved by a hair that depends on its id alone.

    Equal vectors, as many people's "Thanks!" have them, are linked only with each other in the index's graph: of 1,000
    owners with one statement of their own and one in common, a search missed 775 of 2,000 vectors; moved by this much, none.
    Nothing is scored by what the index holds.
    """
    seed = int.from_bytes(hashlib.blake2b(vector_id.encode(), digest_size=8).digest(), "big")
    reach = HAIR * (3 / len(vector)) ** 0.5
    return (vector + np.random.default_rng(seed).uniform(-reach, reach, len(vector))).astype(np.float32)


class VectorIndex:
    """Vectors of one folder, shared by everything in this process that opened it."""

    def __init__(self, path: Path, collections: int) -> None:
        self.path = path
        self.collections = collections
        self._client: ClientAPI | None = None
        self._open: dict[str, Collection] = {}
        self._sizes: dict[str, int] = {}
        self._scattered: set[tuple[str, str]] = set()
        """Collections and conditions that too few of the nearest vectors meet."""
        self._generation = -1
        self._turnstile = threading.Condition()
        self._readers = 0

    def collection_name(self, store: StoreName, owner: str) -> str:
        """Return the name of the collection that holds the vectors of `owner`."""
        digest = hashlib.blake2b(owner.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return f"{store}-{int.from_bytes(digest, 'big') % self.collections:03d}"

    def upsert(
        self, store: StoreName, rows: Sequence[tuple[str, str, np.ndarray, dict[str, Any]]], generation: int
    ) -> None:
        """Write rows of (owner, vector id, vector, metadata); the caller holds the file lock.

        What an id stands for never changes: of a vector that is there already only the metadata is written.
        Metadata must have the same keys each time: Chroma merges what it gets into what it has.
        """
        by_collection: dict[str, list[tuple[str, str, np.ndarray, dict[str, Any]]]] = {}
        for row in rows:
            by_collection.setdefault(self.collection_name(store, row[0]), []).append(row)
        with self._exclusive():
            self._refresh(generation)
            limit = self._chroma().get_max_batch_size()
            for name, batch in by_collection.items():
                collection = self._collection(name, create=True)
                for at in range(0, len(batch), limit):
                    _write(collection, batch[at : at + limit])
                self._sizes.pop(name, None)
                self._scattered = {one for one in self._scattered if one[0] != name}

    def delete(self, store: StoreName, owner: str, ids: Sequence[str], generation: int) -> None:
        """Remove vectors by id; the caller holds the file lock."""
        with self._exclusive():
            self._refresh(generation)
            collection = self._collection(self.collection_name(store, owner), create=True)
            limit = self._chroma().get_max_batch_size()
            for at in range(0, len(ids), limit):
                collection.delete(ids=list(ids[at : at + limit]))

    def nearest(
        self,
        store: StoreName,
        owner: str,
        vector: np.ndarray,
        k: int,
        generation: int,
        *,
        live: bool,
        own: Callable[[StoreName, Sequence[str]], AbstractSet[str]] | None = None,
    ) -> list[str]:
        """Return up to `k` vector ids of `owner`, nearest first.

        Args:
            store: which of the two.
            owner: whose.
            vector: to which (unit length).
            k: so many at most.
            generation: of the index, as the ledger tells it.
            live: leave out what is no longer current.
            own: says by the ledger which of some vector ids are the owner's, and live if only those are wanted. In a large
                collection that takes a tenth of the time that Chroma takes to filter.
        """
        from chromadb.errors import ChromaError, NotFoundError

        if not self._exists():
            return []
        where = condition(owner, live=live)
        with self._shared(generation):
            try:
                collection = self._collection(self.collection_name(store, owner), create=False)
                asked = vector[None, :].astype(np.float32)
                if own is not None and self._crowded(collection):
                    found = self._among_all(collection, asked, k, where, lambda ids: own(store, ids))
                    if found is not None:
                        return found
                return collection.query(query_embeddings=asked, n_results=k, where=where, include=[])["ids"][0]
            except NotFoundError:
                return []
            except ChromaError as error:
                raise damaged(self.path, error) from error

    def _crowded(self, collection: "Collection") -> bool:
        if collection.name not in self._sizes:
            self._sizes[collection.name] = collection.count()  # which takes 1 ms
        return self._sizes[collection.name] >= CROWDED

    def _among_all(
        self,
        collection: "Collection",
        asked: np.ndarray,
        k: int,
        where: dict[str, Any],
        own: Callable[[Sequence[str]], AbstractSet[str]],
    ) -> list[str] | None:
        """Return the `k` nearest vectors that meet a condition, found without it; None where too few of the nearest do."""
        sought = (collection.name, str(where))
        if sought in self._scattered:
            return None
        ids = collection.query(query_embeddings=asked, n_results=k + k // 2, include=[])["ids"][0]
        meet = own(ids)
        if len(meet) < k:
            self._scattered.add(sought)
            return None
        return [one for one in ids if one in meet][:k]

    def vectors(self, store: StoreName, owner: str, ids: Sequence[str], generation: int) -> dict[str, np.ndarray]:
        """Return what the index holds for these ids, float32; ids it does not know are absent."""
        from chromadb.errors import ChromaError, NotFoundError

        if not ids or not self._exists():
            return {}
        with self._shared(generation):
            try:
                collection = self._collection(self.collection_name(store, owner), create=False)
                found = collection.get(ids=list(ids), include=["embeddings"])
            except NotFoundError:
                return {}
            except ChromaError as error:
                raise damaged(self.path, error) from error
        embeddings = found["embeddings"]
        return {} if embeddings is None else dict(zip(found["ids"], np.asarray(embeddings, np.float32), strict=True))

    def _exists(self) -> bool:
        """Whether somebody has written to the index; reading does not make it."""
        return self._client is not None or (self.path / "chroma.sqlite3").exists()

    def drop(self, names: Sequence[str], generation: int) -> None:
        """Delete collections, to be built anew; the caller holds the file lock."""
        from chromadb.errors import ChromaError

        if not self._exists():
            return
        with self._exclusive():
            self._refresh(generation)
            try:
                for collection in self._chroma().list_collections():
                    if collection.name in names:
                        self._chroma().delete_collection(collection.name)
            except ChromaError as error:
                raise damaged(self.path, error) from error
            self._put_down()

    def wrote(self, before: int, generation: int) -> None:
        """Say that this process is the one that raised the generation from `before`.

        A client that is older than that, as where nothing was to be written, stays an old one.
        """
        with self._exclusive():
            if self._generation >= before:
                self._generation = generation

    def forget(self) -> None:
        """Close the client, so that the next use opens a new one."""
        with self._exclusive():
            self._close()

    @contextmanager
    def _shared(self, generation: int) -> Iterator[None]:
        with self._turnstile:
            if self._client is None or self._generation < generation:
                self._turnstile.wait_for(lambda: self._readers == 0)
                self._refresh(generation)
            self._readers += 1
        try:
            yield
        finally:
            with self._turnstile:
                self._readers -= 1
                self._turnstile.notify_all()

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        with self._turnstile:
            self._turnstile.wait_for(lambda: self._readers == 0)
            yield

    def _refresh(self, generation: int) -> None:
        if self._generation < generation:
            self._close()
        self._chroma()
        self._generation = max(self._generation, generation)

    def _put_down(self) -> None:
        for held in (self._open, self._sizes, self._scattered):
            held.clear()

    def _close(self) -> None:
        self._put_down()
        if self._client is not None:
            self._client.close()  # type: ignore[attr-defined]  # the declared type leaves it out
            self._client = None

    def _chroma(self) -> "ClientAPI":
        if self._client is None:
            import chromadb
            from chromadb.config import Settings

            try:
                self.path.mkdir(mode=0o700, exist_ok=True)
                self._client = chromadb.PersistentClient(str(self.path), Settings(anonymized_telemetry=False))
            except (ValueError, OSError, chromadb.errors.ChromaError) as error:
                raise damaged(self.path, error) from error
        return self._client

    def _collection(self, name: str, *, create: bool) -> "Collection":
        if name not in self._open:
            # To read it needs no wrapper, which takes 14 ms to find out that nothing was indexed yet.
            read = self._chroma().get_collection
            self._open[name] = self._made(name) if create else read(name, embedding_function=None)
        return self._open[name]

    def _made(self, name: str) -> "Collection":
        from langchain_chroma import Chroma

        wrapper = Chroma(collection_name=name, client=self._chroma(), collection_configuration={"hnsw": HNSW})
        return wrapper._collection  # add_texts() ignores given vectors and encodes again


def _metadata(owner: str, live: bool, at: float) -> dict[str, Any]:
    # `live` repeats the owner: a query with one condition takes Chroma 3 ms, one with two of them 5 ms.
    return {"owner": owner, "live": owner if live else "", "at": at}


def condition(owner: str, *, live: bool) -> dict[str, Any]:
    """Return the condition that the vectors of `owner` meet, or only those that are live."""
    return {"live" if live else "owner": owner}


def _write(collection: "Collection", rows: Sequence[tuple[str, str, np.ndarray, dict[str, Any]]]) -> None:
    # A vector written again is linked anew, and one beside it is now and then left without a link when the client is
    # opened the next time (9 of 840 times; with its metadata alone written again, never).
    there = set(collection.get(ids=[row[1] for row in rows], include=[])["ids"])
    old, new = [row for row in rows if row[1] in there], [row for row in rows if row[1] not in there]
    if old:
        collection.update(ids=[row[1] for row in old], metadatas=[_metadata(row[0], **row[3]) for row in old])
    if new:
        collection.upsert(
            ids=[row[1] for row in new],
            embeddings=np.stack([apart(row[1], row[2]) for row in new]),
            metadatas=[_metadata(row[0], **row[3]) for row in new],
        )


def damaged(path: Path, error: Exception) -> StoreError:
    """Return the error that says the index at `path` cannot be used and how to rebuild it."""
    return StoreError(
        f"The vector index {path} cannot be used ({type(error).__name__}: {error}). "
        "Nothing is lost: `sharpwave reindex` rebuilds it from the ledger."
    )


_indexes: dict[Path, tuple[VectorIndex, int]] = {}
_indexes_lock = threading.Lock()


def share(path: Path, collections: int) -> tuple[VectorIndex, Callable[[], None]]:
    """Return this process's one index on `path`, and what to call when done with it."""
    path = path.resolve()
    with _indexes_lock:
        index, users = _indexes.get(path, (None, 0))
        index = index or VectorIndex(path, collections)
        _indexes[path] = (index, users + 1)

    held = [True]

    def release() -> None:
        with _indexes_lock:
            if not held:
                return
            held.clear()
            shared, left = _indexes[path]
            _indexes[path] = (shared, left - 1)
            if left == 1:
                del _indexes[path]
                shared.forget()

    return index, release
