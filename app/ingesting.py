"""Writing whole conversations to memory, turn by turn in their order.

Each batch of turns is first kept verbatim; then its turns are read, decided and applied one after the other, exactly as in
a conversation; and its vectors go to the index together. A turn that was written before is passed over, one that was
only kept is taken up where a killed run left it.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sharpwave.memory.applying import Applied
from sharpwave.memory.decide import Policy
from sharpwave.memory.errors import ModelError
from sharpwave.memory.extract import Extractor
from sharpwave.memory.extract.attribution import attribution_for
from sharpwave.memory.records import Candidate, Turn
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.writing import read, settle

BATCH = 128
PATIENCE = 3
"""After so many turns in a row that the model failed at, the rest waits for a later run."""


@dataclass
class Ingested:
    """What a run did. Times are seconds."""

    owners: list[str] = field(default_factory=list)
    turns: int = 0
    written: int = 0
    skipped: int = 0
    """Turns that an earlier run had written."""
    failed: int = 0
    """Turns that the model failed at. They wait in the queue; the next run takes them up."""
    texts_embedded: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    encoder_cpu_seconds: float = 0.0
    encoder_seconds: float = 0.0
    texts_read: int = 0
    """What the adapted encoders read: statements with a memory near to them (`memory.cross_encoder`), and messages in which somebody
    else may speak (`memory.extract.attribution`)."""
    reading_cpu_seconds: float = 0.0

    def report(self) -> dict[str, Any]:
        """Return the fields as plain data, with the rates that follow from them."""
        plain = {**vars(self), "operations": dict(self.operations)}
        encoded, encoding = self.texts_embedded + self.texts_read, self.encoder_cpu_seconds + self.reading_cpu_seconds
        rates = {
            "texts_per_cpu_second": _rate(encoded, self.cpu_seconds),
            "encoder_texts_per_cpu_second": _rate(encoded, encoding),
        }
        return {
            key: round(value, 3) if isinstance(value, float) else value for key, value in {**plain, **rates}.items()
        }


def _rate(count: int, seconds: float) -> float | None:
    return count / seconds if count and seconds > 0 else None


def ingest(
    store: MemoryStore,
    turns: Iterable[Turn],
    extractor: Extractor | None,
    policy: Policy,
    *,
    passed: Callable[[Turn, bool], None] = lambda turn, written: None,
) -> Ingested:
    """Write turns to memory; idempotent by (owner, thread, message id), and resumable after any interruption.

    Args:
        store: where to.
        turns: in the order they were said.
        extractor: finds what is worth keeping; None keeps the turns verbatim and nothing else.
        policy: decides about each candidate.
        passed: called after each turn, and whether it is written now; it stays so whatever happens from then on.

    Raises:
        ModelError: the model failed at `PATIENCE` turns in a row. What is kept is not lost: the next run goes on.
    """
    return _Run(store, extractor, policy, passed).over(turns)


class _Run:
    """One run over some turns, with its count."""

    def __init__(
        self,
        store: MemoryStore,
        extractor: Extractor | None,
        policy: Policy,
        passed: Callable[[Turn, bool], None],
    ) -> None:
        self.store, self.extractor, self.policy, self.passed = store, extractor, policy, passed
        self.count = Ingested()
        self.failures = 0

    def over(self, turns: Iterable[Turn]) -> Ingested:
        """Write turns, batch by batch."""
        started, cpu = time.perf_counter(), time.process_time()
        before = self._read()
        for batch in _batches(turns):
            waiting = self.store.unwritten(batch)
            self._count(batch, waiting)
            self._embed(self.store.spoken(waiting))
            self.store.queue(waiting)
            try:
                self._write_all(waiting)
            finally:
                self.store.index_pending()
        self.count.seconds, self.count.cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
        texts, spent = self._read()
        self.count.texts_read, self.count.reading_cpu_seconds = texts - before[0], spent - before[1]
        return self.count

    def _read(self) -> tuple[int, float]:
        """Return how many texts the adapted encoders have read in this process, and the CPU time that it took."""
        readers = (self.store.reader, attribution_for(self.store.embeddings))
        encoders = [reader.encoder for reader in readers if reader is not None]
        return sum(one.texts_read for one in encoders), sum(one.cpu_seconds for one in encoders)

    def _count(self, batch: Sequence[Turn], waiting: Sequence[Turn]) -> None:
        self.count.turns += len(batch)
        self.count.skipped += len(batch) - len(waiting)
        self.count.owners = list(dict.fromkeys([*self.count.owners, *(turn.owner for turn in batch)]))
        waits = {(turn.owner, turn.thread, turn.message_id) for turn in waiting}
        for turn in batch:
            if (turn.owner, turn.thread, turn.message_id) not in waits:
                self.passed(turn, True)

    def _embed(self, texts: Sequence[str]) -> None:
        started, cpu = time.perf_counter(), time.process_time()
        self.count.texts_embedded += self.store.embed(texts)
        self.count.encoder_seconds += time.perf_counter() - started
        self.count.encoder_cpu_seconds += time.process_time() - cpu

    def _write_all(self, turns: Sequence[Turn]) -> None:
        quiet = []
        for turn in turns:
            try:
                if candidates := self._candidates(turn):
                    self._written(turn, self._decided(turn, candidates))
                else:
                    quiet.append(turn)
            except ModelError as error:
                self._failed(turn, error)
            else:
                self.failures = 0
        self.store.pass_over(quiet)
        for turn in quiet:
            self._written(turn, [])

    def _written(self, turn: Turn, done: Sequence[Applied]) -> None:
        self.count.written += 1
        self.count.operations.update(item.op for item in done)
        self.passed(turn, True)

    def _candidates(self, turn: Turn) -> list[Candidate]:
        return [] if self.extractor is None else read(self.store, turn, self.extractor)

    def _decided(self, turn: Turn, candidates: Sequence[Candidate]) -> list[Applied]:
        self._embed([candidate.text for candidate in candidates])
        return settle(self.store, turn, candidates, self.policy, index=False)

    def _failed(self, turn: Turn, error: ModelError) -> None:
        self.store.fail(turn, str(error))
        self.count.failed += 1
        self.failures += 1
        self.passed(turn, False)
        if self.failures >= PATIENCE:
            raise ModelError(
                f"The model failed at {PATIENCE} turns in a row; {self.count.written} turns are written, and the others are "
                f"not lost: run the same command again. The last failure: {error}"
            ) from error


def _batches(turns: Iterable[Turn]) -> Iterator[list[Turn]]:
    remaining = iter(turns)
    while batch := list(islice(remaining, BATCH)):
        yield batch
