"""A folder of memory while it is open: its ledger, its vectors, and how both are read and written.

Every write is one SQL transaction; the vectors follow into Chroma.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self, TypeVar

import numpy as np
from langchain_core.embeddings import Embeddings
from sqlalchemy import Connection

from sharpwave.memory import chroma_files, fingerprint, indexing, ledger, rebuild, secrets, times
from sharpwave.memory.candidates import Nearest
from sharpwave.memory.cross_encoder import reader_for
from sharpwave.memory.embed import LocalEmbeddings
from sharpwave.memory.errors import InputError, StoreError
from sharpwave.memory.indexing import Indexing
from sharpwave.memory.ledger import Ledger, check_owner
from sharpwave.memory.records import Turn
from sharpwave.memory.vectors import Vectors

T = TypeVar("T")


class Folder:
    """What `MemoryStore` stands on."""

    def __init__(self, home: Path, embeddings: Embeddings, collections: int) -> None:
        self.home = home
        self.embeddings = embeddings
        self.ledger = Ledger(home / "ledger.sqlite3")
        self.made_with: str | None = ""  # fingerprint of the embedder; of none while nothing may be recalled or written
        self._indexing = Indexing(self.ledger, home, collections)
        self.index = self._indexing.index
        self._vectors = Vectors(embeddings)
        self.reader = reader_for(embeddings)
        """Reads statements with the memories near them, where it goes with the embedder."""
        self._closed = False
        self.learns_recall = False
        """Whether recall goes by what earlier citations have taught, and learns from new ones (see `rerank`)."""
        self.before_closing: list[Callable[[], object]] = []
        """Called before this store closes, by what uses it in the background."""

    @classmethod
    def open(
        cls,
        home: Path | str,
        *,
        embeddings: Embeddings | None = None,
        collections: int = 64,
        learn_recall: bool = False,
        repair: bool = False,
    ) -> Self:
        """Open the store in `home`, making it where there is none, and index what an earlier process left unindexed.

        Args:
            home: a folder; it is made private to its user (0700).
            embeddings: any LangChain `Embeddings`; None is the local encoder.
            collections: over how many Chroma collections the owners of each store are spread; fixed when it is made.
            learn_recall: learn from what answers cite in which order to return what is found (see `rerank`).
            repair: open it for `doctor.examine` and `rebuild.reindex` alone: whatever state the index is in, and
                whichever embedder made the vectors. Nothing can be recalled or written.

        Raises:
            StoreError: the folder cannot be used, was written with another embedder, or its index is damaged.
            ConfigError: there is no embedder to be had.
            InputError: `collections` is less than 1.
        """
        if collections < 1:
            raise InputError(f"A store needs at least one collection; got {collections}.")
        try:
            home = Path(home).expanduser().resolve()
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.chmod(home, 0o700)
        except (OSError, RuntimeError, ValueError) as error:
            cause = error.strerror if isinstance(error, OSError) else error
            raise StoreError(f"The folder {home} cannot be used: {cause}. Choose another with --home.") from error
        store = cls(home, embeddings or LocalEmbeddings(), collections)
        store.learns_recall = learn_recall
        try:
            store._settle(collections, repair)
        except BaseException:
            store._let_go()
            raise
        return store

    def _settle(self, collections: int, repair: bool) -> None:
        self.made_with = None if repair else self._embedder()
        with self.ledger.write() as connection:
            kept = ledger.get_meta(connection, "collections")
            if kept is None:
                ledger.set_meta(connection, "collections", str(collections))
            if self.made_with and ledger.get_meta(connection, "embedder") is None:
                ledger.set_meta(connection, "embedder", self.made_with)
        self.index.collections = int(kept or collections)
        if not repair:
            rebuild.resume(self)
            self._check_files()
            self.index_pending()

    def _embedder(self) -> str:
        """Return the fingerprint of the embedder that the store is made with, once it is clear that it is this one."""
        with self.ledger.read() as connection:  # which holds nobody up while the embedder is asked
            kept = ledger.get_meta(connection, "embedder")
            if kept is not None:
                fingerprint.check(connection, self.embeddings, self.home)
        return kept or fingerprint.take(self.embeddings)

    def _check_files(self) -> None:
        if self._flaw() is None:
            return
        with self.locked():  # while another process writes, files may not fit each other
            flaw = self._flaw()
            if flaw is None:
                return
            with self.ledger.write() as connection:
                if ledger.get_meta(connection, "indexing") != "1":
                    raise StoreError(f"The vector index {self.index.path} is damaged: {flaw}. {chroma_files.REPAIR}")
                rebuild.announce(connection)  # a writer died in the middle
            rebuild.resume(self)

    def _flaw(self) -> str | None:
        with self.ledger.read() as connection:
            return chroma_files.flaw(self.index.path, filled=rebuild.any_indexed(connection))

    def close(self) -> None:
        """Index what waits, and close the ledger and this store's share of the index; again, it does nothing.

        What uses the store in the background is ended first.

        Raises:
            StoreError: what waits could not be indexed. It is closed and nothing is lost: the next to open it does that.
        """
        if self._closed:
            return
        for end in [*self.before_closing]:
            end()
        try:
            if self.made_with:
                self.index_pending()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        self._closed = True
        self.ledger.close()
        self._indexing.close()

    def __enter__(self) -> Self:
        """Return the store itself; leaving the block closes it."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the store."""
        self.close()

    # Transactions

    def _check_embedder(self, connection: Connection) -> None:
        if ledger.get_meta(connection, "embedder") != self.made_with:
            raise StoreError(
                f"The store {self.home} is open for repair, or was embedded anew with another embedder since it was opened. "
                "Open it again."
            )

    @contextmanager
    def transaction(self, owner: str, *, writes: bool = False) -> Iterator[tuple[Connection, int]]:
        """One transaction for one owner: yields the connection and the owner's number.

        One that writes gives somebody new a number; to one that reads, somebody unknown is number 0 and owns nothing.
        """
        check_owner(owner)
        with self.ledger.write() if writes else self.ledger.read() as connection:
            if writes:
                self._check_embedder(connection)
                yield connection, ledger.enlist_owner(connection, owner)
            else:
                yield connection, ledger.owner_number(connection, owner) or 0

    def _write(self, work: Callable[[Connection], T]) -> T:
        with self.ledger.write() as connection:
            self._check_embedder(connection)
            return work(connection)

    def _commit(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction, and bring the vectors after it once enough of them wait."""

        def counted(connection: Connection) -> tuple[T, int]:
            return work(connection), rebuild.waiting(connection)

        # Whoever erases holds this lock to the end, and could not wipe the ledger's log beside busy writers.
        with self._indexing.lock.exclusive():
            result, waiting = self._write(counted)
        if waiting >= indexing.INDEXED_FROM:
            self.index_pending()
        return result

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the lock between processes; yields the index generation. The client is fresh when the block starts."""
        with self._indexing.locked() as generation:
            yield generation

    def index_pending(self, progress: Callable[[int], None] | None = None) -> int:
        """Index what waits to be indexed, in batches, and return how many rows that were; `progress` hears of each batch."""
        return self._indexing.run(progress)

    # Vectors

    def embed(self, texts: Sequence[str]) -> int:
        """Make sure that the vectors of `texts` are at hand for `vector`; returns how many had to be made."""
        return self._vectors.make(texts)

    def vector(self, text: str) -> np.ndarray:
        """Return the vector of a text as a record is embedded (float32, unit length)."""
        return self._vectors.of(text)

    def embed_query(self, text: str) -> np.ndarray:
        """Return the vector of a question (float32, unit length)."""
        return self._vectors.of_query(text)

    def forget_vectors(self) -> None:
        """Let go of the vectors that are at hand."""
        self._vectors.forget()

    def _nearest(self, connection: Connection, owner: str, *, live: bool) -> Nearest:
        self._check_embedder(connection)
        return self._indexing.nearest(connection, owner, live=live)

    # What may be written

    def set_policy(self, owner: str, *, mask_secrets: bool) -> None:
        """Say whether secrets of this owner are masked before they are written. They are, unless this says no."""
        with self.ledger.write() as connection:
            number = ledger.enlist_owner(connection, check_owner(owner))
            ledger.set_policy(connection, number, mask_secrets, times.now())

    def masks_secrets(self, owner: str) -> bool:
        """Return the owner's policy about secrets; see `set_policy`."""
        with self.ledger.read() as connection:
            return ledger.masks_secrets(connection, check_owner(owner))

    def masked(self, owner: str, value: T) -> T:
        """Return a text, a record, or lists and dicts of them, as they may be written for `owner`: secrets masked by kind.

        Everything that is written goes through this, and masking twice changes nothing.
        """
        return secrets.mask(value)[0] if self.masks_secrets(owner) else value

    def _masked(self, turns: Sequence[Turn]) -> list[Turn]:
        with self.ledger.read() as connection:
            owners = {check_owner(turn.owner) for turn in turns}
            open_ = {owner for owner in owners if not ledger.masks_secrets(connection, owner)}
        return [turn if turn.owner in open_ else secrets.mask(turn)[0] for turn in turns]
