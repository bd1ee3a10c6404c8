"""Writing in the background: a turn is queued durably, the reply is out, and threads write it soon after.

What waits is in the ledger, so nothing is lost however the process ends: it is written at exit, within a limit, or when
the store is next used in this way.
"""

import atexit
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_after_attempt,
    stop_when_event_set,
    wait_exponential,
)

from sharpwave.graphs.keep import learn, said
from sharpwave.graphs.nodes import Node
from sharpwave.graphs.state import Context, State, context_of, milliseconds
from sharpwave.graphs.write import used
from sharpwave.memory.decide import Policy
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.errors import BudgetExceeded, ConfigError, ModelError, StoreError
from sharpwave.memory.extract import Extractor
from sharpwave.memory.extract.rules import rules_for
from sharpwave.memory.records import Turn, Usage, new_id
from sharpwave.memory.rerank import Lesson
from sharpwave.memory.secrets import kinds_in
from sharpwave.memory.sessions import Sessions
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.turn_queue import TurnQueue
from sharpwave.memory.usage import metering
from sharpwave.memory.writing import Applier, Budget, read, settle

log = logging.getLogger(__name__)

LOOK_AGAIN = 1.0
"""Seconds after which an owner for whom another process writes is looked at again."""
UNLIMITED = Budget()
LONGEST_WAIT = 60.0
"""Seconds between two attempts at most."""


class BackgroundWriter:
    """Writes the queued turns of one store, those of each owner in order and one at a time.

    Safe to share between threads; writers of other processes on the same folder leave each other's owners alone. Threads
    start with the first turn. It is closed with its store, and at the end of the process: of a script, by `sys.exit` or
    Ctrl-C, and by SIGTERM where no other handler is set and the writer is made in the main thread.

    Args:
        memory: the store.
        extract: finds what a turn says that is worth keeping.
        decide: decides about that.
        apply: carries it out; by default the store.
        quiet: seconds without a new turn after which an owner's turns are written.
        attempts: after so many failures of the model or the store a turn is given up, so that later ones can go on; see
            `TurnQueue.revive`.
        backoff: seconds before the second attempt; each further wait is twice as long, up to a minute.
        drain: seconds that closing waits for what is still to be written.
        lease: seconds after which what a dead process was writing is taken over.
        threads: owners that are written for at the same time.
    """

    def __init__(
        self,
        memory: MemoryStore,
        extract: Extractor,
        decide: Policy,
        apply: Applier | None = None,
        *,
        quiet: float = 0.5,
        attempts: int = 5,
        backoff: float = 1.0,
        drain: float = 10.0,
        lease: float = 15.0,
        threads: int = 4,
    ) -> None:
        self.memory, self.extract, self.decide, self.apply = memory, extract, decide, apply
        self.quiet, self.attempts, self.backoff = quiet, attempts, backoff
        self.drain, self.lease, self.threads = drain, lease, threads
        self._queue = TurnQueue(memory.ledger, f"{socket.gethostname()}:{os.getpid()}:{new_id()}")
        self._changed = threading.Condition()
        self._due: dict[str, float] = {}  # owners whose turns wait, and from when on they are written
        self._busy: set[str] = set()
        self._runs: dict[tuple[str, str, str], tuple[dict[str, Any], Budget]] = {}
        self._started = False
        self._closing, self._closed = threading.Event(), threading.Event()
        memory.before_closing.append(self.close)
        _end_by_sigterm()

    def add(
        self,
        turn: Turn,
        recalled: Sequence[str] = (),
        cited: Sequence[str] = (),
        budget: Budget = UNLIMITED,
        lesson: Lesson | None = None,
    ) -> None:
        """Queue a turn durably, and have it written soon; does nothing where it was written before.

        Args:
            turn: what was said. A turn that waits already is completed by what has answered it since.
            recalled: ids of the memories that the turn recalled, which are counted when it is written.
            cited: ids of the memories that its answer cited.
            budget: what writing it may cost; what a later process writes is not held to it.
            lesson: what these citations teach recall.
        """
        if self._queue.put(turn) == "done":
            self.memory.queue([turn])  # whatever was answered since is kept verbatim
            learn(self.memory, turn)
            return
        uses = {"recalled": recalled, "cited": cited, **({"lesson": lesson} if lesson else {})}
        self._runs[_key(turn)] = uses, budget
        self._schedule([turn.owner], self.quiet)

    def resume(self) -> None:
        """Have the turns written that wait in the queue, of everybody."""
        self._schedule(self._queue.owners(), 0.0)

    def flush(self, timeout: float | None = None) -> bool:
        """Write at once what waits, and return whether that was done within `timeout` seconds (None: however long it takes).

        Turns that are given up meanwhile count as done.
        """
        with self._changed:
            self._due.update(dict.fromkeys(self._due, time.monotonic()))
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not self._due and not self._busy, timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Write what waits, for at most `timeout` seconds (by default `drain`), and end; returns whether all was written.

        A turn that fails now is not tried again. What is left stays in the queue for the next start.
        """
        if self._closed.is_set():
            return True
        self._closing.set()
        try:
            done = self.flush(self.drain if timeout is None else timeout)
        finally:
            self._end()
        left = self._queue.owners() if self._started else []
        if left:
            log.warning("Turns of %d users are not yet written to memory; they are at the next start.", len(left))
        return done and not left

    def _end(self) -> None:
        self._closed.set()
        with self._changed:
            self._due.clear()
            self._changed.notify_all()
        if self._started:
            self._queue.release()
        with _guard:
            _running.discard(self)
            if _writers.get(id(self.memory)) is self:
                del _writers[id(self.memory)]
        if self.close in self.memory.before_closing:
            self.memory.before_closing.remove(self.close)

    def _schedule(self, owners: Iterable[str], wait: float) -> None:
        with self._changed:
            self._due.update({} if self._closed.is_set() else dict.fromkeys(owners, time.monotonic() + wait))
            if self._due and not self._started:
                self._start()
            self._changed.notify_all()

    def _start(self) -> None:
        self._started = True
        _close_at_exit(self)
        for work in (self._hold_on, *[self._work] * self.threads):
            threading.Thread(target=work, name="sharpwave-writer", daemon=True).start()

    def _hold_on(self) -> None:
        """Renew the leases while there is work."""
        while not self._closed.wait(self.lease / 3):
            try:
                if self._busy:
                    self._queue.renew(self.lease)
            except StoreError as error:
                log.warning("What is being written could not be held: %s", error)

    def _work(self) -> None:
        while (owner := self._next()) is not None:
            again: float | None = LOOK_AGAIN
            try:
                again = self._write_all(owner)
            except Exception:  # whatever a caller's own steps raise, the thread must go on
                log.exception("Writing to the memory of a user failed; it is tried again.")
            with self._changed:
                self._busy.discard(owner)
                if again is not None and not self._closing.is_set():
                    self._due.setdefault(owner, time.monotonic() + again)
                self._changed.notify_all()

    def _next(self) -> str | None:
        """Wait for an owner whose turns are due and take it; None when it is time to end."""
        with self._changed:
            while not self._closed.is_set():
                free = [(due, owner) for owner, due in self._due.items() if owner not in self._busy]
                due, owner = min(free, default=(None, ""))
                wait = None if due is None else due - time.monotonic()
                if wait is not None and wait <= 0:
                    del self._due[owner]
                    self._busy.add(owner)
                    return owner
                self._changed.wait(wait)
        return None

    def _write_all(self, owner: str) -> float | None:
        """Write what waits of one owner; returns after how many seconds to look again, None when nothing waits."""
        while not self._closed.is_set():
            claimed = self._queue.claim(owner, self.lease)
            if claimed is None:
                return LOOK_AGAIN if owner in self._queue.claimed() else None
            if not self._write(*claimed):
                break
        return None

    def _write(self, turn: Turn, failures: int) -> bool:
        """Write one turn, in several attempts if need be; returns whether the next one may follow."""
        left = max(1, self.attempts - failures)
        try:
            for attempt in self._retrying(turn, left):
                with attempt:
                    self._attempt(turn)
        except (ModelError, StoreError) as error:
            if attempt.retry_state.attempt_number < left:
                return False  # it is time to end
            self._give_up(turn, str(error))
        except BudgetExceeded as error:
            log.warning("Not yet written to memory: %s", error)
            self._queue.put_off(turn, str(error))
            return False
        except Exception as error:
            log.exception("A turn (thread %s, message %s) cannot be written.", turn.thread, turn.message_id)
            self._queue.give_up(turn, f"{type(error).__name__}: {error}")
        self._runs.pop(_key(turn), None)
        return True

    def _retrying(self, turn: Turn, attempts: int) -> Retrying:
        def failed(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            log.warning("Not yet written to memory (attempt %d): %s", state.attempt_number, error)
            self.memory.fail(turn, str(error))

        return Retrying(
            retry=retry_if_exception_type((ModelError, StoreError)),
            stop=stop_after_attempt(attempts) | stop_when_event_set(self._closing),
            wait=wait_exponential(multiplier=self.backoff, max=LONGEST_WAIT),
            sleep=sleep_using_event(self._closing),
            after=failed,
            reraise=True,
        )

    def _give_up(self, turn: Turn, error: str) -> None:
        log.error("Given up writing a turn to memory (thread %s, message %s).", turn.thread, turn.message_id)
        self._queue.give_up(turn, error)

    def _attempt(self, turn: Turn) -> None:
        waits = self.memory.queue([turn])
        learn(self.memory, turn)
        Sessions(self.memory).heed(turn)
        if not waits:
            return
        uses, budget = self._runs.get(_key(turn), ({}, UNLIMITED))
        tokens = None if budget.tokens is None else budget.tokens - self.memory.tokens_today(turn.owner)
        with metering(budget.calls, tokens) as meter:
            try:
                self._carry_out(turn, self.extract, self.decide, uses)
            except BudgetExceeded as error:
                if budget.wait:
                    raise
                log.warning("Written to memory by rules: %s", error)
                self._carry_out(turn, rules_for(self.memory.embeddings), RulesPolicy(), uses)
            finally:
                self.memory.spend(turn.owner, meter.usage)

    def _carry_out(self, turn: Turn, extract: Extractor, decide: Policy, uses: dict[str, Sequence[str]]) -> None:
        candidates = read(self.memory, turn, extract)
        if not self._closed.is_set() and self._queue.holds(turn):
            settle(self.memory, turn, candidates, decide, self.apply, **uses)


def _key(turn: Turn) -> tuple[str, str, str]:
    return turn.owner, turn.thread, turn.message_id


_running: set[BackgroundWriter] = set()
_writers: dict[int, BackgroundWriter] = {}
_guard = threading.Lock()


def _close_at_exit(writer: BackgroundWriter) -> None:
    _close_all_at_exit()
    with _guard:
        _running.add(writer)


@cache
def _close_all_at_exit() -> None:
    # What atexit calls comes after executors have been closed, and some of what writing takes, such as importing Chroma
    # for the first time, needs one. Python has no public place before that.
    getattr(threading, "_register_atexit", atexit.register)(_close_all)


def _close_all() -> None:
    for writer in [*_running]:
        try:
            writer.close()
        except (KeyboardInterrupt, SystemExit):  # told once more to end: what is left waits in the queue
            return


def _end_by_sigterm() -> None:
    """Have SIGTERM end the process as `sys.exit` does, so that what is done at exit is done; unless it is handled already."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def background_writer(
    memory: MemoryStore, extract: Extractor | Node, decide: Policy | Node, apply: Applier | Node | None = None
) -> BackgroundWriter:
    """Return the one writer of a store, made and resumed if there is none, with these steps from now on.

    Raises:
        ConfigError: a step is a LangGraph node; there is no graph in the background.
    """
    steps = (("extract", extract, Extractor), ("decide", decide, Policy), ("apply", apply or memory, Applier))
    for name, given, shape in steps:
        if not isinstance(given, shape) or isinstance(given, type):
            raise ConfigError(
                f"With write='background' {name}= must be an object like {shape.__module__}.{shape.__name__}, not a "
                f"LangGraph node; got a {type(given).__name__}."
            )
    chosen: Any = (extract, decide, apply)
    with _guard:
        writer = _writers.get(id(memory))
        if writer is not None:
            writer.extract, writer.decide, writer.apply = chosen
            return writer
        writer = _writers[id(memory)] = BackgroundWriter(memory, *chosen)
    writer.resume()
    return writer


def hand_over(writer: BackgroundWriter) -> Callable[..., dict[str, Any]]:
    """Return the node that queues a turn for a writer."""

    def keep(state: State, runtime: Runtime[Context], config: RunnableConfig) -> dict[str, Any]:
        """Queue the turn durably; it is written in the background."""
        started = time.perf_counter()
        context = context_of(runtime)
        usage = Usage.model_validate(state.get("usage", {}))
        writer.memory.spend(context.user_id, usage)  # what answering has cost
        turn = said(state, context, config)
        if turn is None or not context.remember:
            return {"turn": {}}
        turn = writer.memory.masked(turn.owner, turn)
        calls = context.max_llm_calls_per_turn
        budget = Budget(
            calls=None if calls is None else calls - usage.llm_calls,
            tokens=context.max_tokens_per_day,
            wait=context.over_budget == "wait",
        )
        writer.add(turn, budget=budget, **used(state))
        timings = {**state.get("timings_ms", {}), "keep": milliseconds(started)}
        return {"turn": turn.model_dump(mode="json"), "masked": kinds_in(turn.user_text), "timings_ms": timings}

    return keep
