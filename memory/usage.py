"""Counting model calls and tokens by purpose, wherever in the call tree they happen."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from langchain_core.messages import AIMessage

from sharpwave.memory.errors import BudgetExceeded
from sharpwave.memory.records import Usage


class Meter:
    """Sums usage by purpose, and holds it to a limit if there is one."""

    def __init__(self, calls: int | None = None, tokens: int | None = None) -> None:
        self._by: dict[str, dict[str, int]] = {}
        self._calls, self._tokens = calls, tokens

    def check(self) -> None:
        """Raise `BudgetExceeded` when no further call is allowed."""
        usage = self.usage
        if self._calls is not None and usage.llm_calls >= self._calls:
            raise BudgetExceeded("The model calls allowed for this turn are used up (max_llm_calls_per_turn).")
        if self._tokens is not None and usage.prompt_tokens + usage.completion_tokens >= self._tokens:
            raise BudgetExceeded("The tokens allowed for this user today are used up (max_tokens_per_day).")

    def add(self, purpose: str, calls: int, prompt_tokens: int, completion_tokens: int) -> None:
        """Add `calls` model calls with these token counts under `purpose`."""
        row = self._by.setdefault(purpose, {"llm_calls": 0, "prompt_tokens": 0, "completion_tokens": 0})
        row["llm_calls"] += calls
        row["prompt_tokens"] += prompt_tokens
        row["completion_tokens"] += completion_tokens

    @property
    def usage(self) -> Usage:
        """Everything counted so far."""
        total = {
            key: sum(row[key] for row in self._by.values())
            for key in ("llm_calls", "prompt_tokens", "completion_tokens")
        }
        return Usage(**total, by_purpose={purpose: dict(row) for purpose, row in self._by.items()})


def total(*parts: Usage | dict[str, Any] | None) -> dict[str, Any]:
    """Return the sum of usages, as plain data."""
    meter = Meter()
    for part in parts:
        usage = Usage.model_validate(part) if isinstance(part, dict) else part
        for purpose, row in (usage.by_purpose if usage else {}).items():
            meter.add(purpose, row["llm_calls"], row["prompt_tokens"], row["completion_tokens"])
    return meter.usage.model_dump()


_meter: ContextVar[Meter | None] = ContextVar("sharpwave_meter", default=None)


@contextmanager
def metering(calls: int | None = None, tokens: int | None = None) -> Iterator[Meter]:
    """Collect what `record_call` reports inside the block, and let `check_budget` refuse more than so many calls or tokens."""
    meter = Meter(calls, tokens)
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


class Account(Protocol):
    """Where costs are booked; `MemoryStore` is one."""

    def spend(self, owner: str, usage: Usage) -> None:
        """Add what model calls for `owner` have cost."""
        ...


@contextmanager
def booked(account: Account, owner: str) -> Iterator[None]:
    """Book what the model calls of the block cost, unless somebody further up counts them already."""
    if _meter.get() is not None:
        yield
        return
    with metering() as meter:
        try:
            yield
        finally:
            account.spend(owner, meter.usage)


def check_budget() -> None:
    """Raise `BudgetExceeded` when the meter in force allows no further model call; asked before each one."""
    meter = _meter.get()
    if meter is not None:
        meter.check()


def record_call(purpose: str, answer: AIMessage, prompt_chars: int = 0) -> None:
    """Report one model call to the meter in force, if there is one.

    Token counts come from the answer's `usage_metadata`; a server that sends none is estimated at four characters a token.
    """
    meter = _meter.get()
    if meter is None:
        return
    counts = answer.usage_metadata
    if counts:
        meter.add(purpose, 1, counts["input_tokens"], counts["output_tokens"])
    else:
        meter.add(purpose, 1, prompt_chars // 4, len(str(answer.content)) // 4)
