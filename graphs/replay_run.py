"""One run of replay: what may be asked of it, what it may cost, and what is said of it at the end."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from sharpwave.memory.errors import InputError
from sharpwave.memory.probing import ASKED, compared
from sharpwave.memory.rehearsal import RATE
from sharpwave.memory.replay import checked
from sharpwave.memory.usage import Account, Meter, metering, total

COUNTED: Mapping[str, str] = {
    "merge": "merged",
    "derive": "derived",
    "roll_up": "rolled_up",
    "procedures": "learned",
    "insight": "insights",
    "settle": "settled",
}
"""What each kind of part of a consolidation counts as."""
COUNTS = tuple(COUNTED.values())
BATCH = 10
"""Records that a run replays where nobody says how many."""
POLL = 0.1
"""Seconds between two looks whether new turns are written."""

Result = dict[str, Any]


class Asked(BaseModel):
    """What is asked of a run."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    n: int = Field(default=BATCH, ge=0, strict=True)
    strategy: str | dict[str, float] = "prioritized"
    rate: float = Field(default=RATE, gt=0, le=1, strict=True)
    cue: str | None = None
    dry_run: bool = False
    probes: int = Field(default=ASKED, ge=0, strict=True)
    max_llm_calls: int | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=0)
    max_seconds: float | None = Field(default=None, gt=0)

    @field_validator("strategy")
    @classmethod
    def _known(cls, value: str | dict[str, float]) -> str | dict[str, float]:
        try:
            checked(value)
        except InputError as error:
            raise ValueError(str(error)) from error
        return value

    def kept(self) -> Result:
        """Return what makes two requests the same: all but the probes and the budgets."""
        return self.model_dump(include={"n", "strategy", "rate", "cue"})

    @property
    def name(self) -> str:
        """The strategy in words: `recent`, or `random 1, recent 2`."""
        shares = checked(self.strategy)
        return ", ".join(shares if len(shares) == 1 else (f"{name} {share:g}" for name, share in shares.items()))


def asked_of(state: Mapping[str, Any]) -> Asked:
    """Return what a state asks for; raises `InputError` where it cannot be done."""
    try:
        asked = Asked.model_validate(dict(state))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = str(problem["loc"][0])
        why = problem["msg"].removeprefix("Value error, ").rstrip(".")
        raise InputError(f"A replay cannot have {where}={problem['input']!r}: {why}.") from None
    if "contextual" in checked(asked.strategy) and not (asked.cue or "").strip():
        raise InputError("Contextual replay needs a cue: what to replay the memories of.")
    return asked


def merged(left: dict[str, Result], right: dict[str, Result]) -> dict[str, Result]:
    """Reduce steps: those of `right` are added; an empty one begins anew."""
    return {**left, **right} if right else {}


class Limits:
    """What a run may still cost: time, model calls and tokens, and the waiting for new turns.

    A run that is taken up by another process has them anew.
    """

    def __init__(self, asked: Asked, patience: float) -> None:
        self.asked, self.patience = asked, patience
        self._began = time.monotonic()
        self._spent: Result = total()
        self._turn = threading.Lock()

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._began

    @property
    def over(self) -> str | None:
        """Why the run has to end, if it has to."""
        most = self.asked.max_seconds
        return None if most is None or self.seconds < most else f"The {most:g} seconds allowed for this run are over."

    def wait_while(self, busy: Callable[[], bool]) -> None:
        """Wait while new turns are written, for as long as patience lasts."""
        while self.patience > 0 and not self.over and busy():
            time.sleep(POLL)
            self.patience -= POLL

    @contextmanager
    def metering(self, account: Account, owner: str) -> Iterator[Meter]:
        """Count the model calls of the block, book them, and refuse those past the budget.

        With a budget one block goes after the other: side by side each would see all of it.
        """
        calls, tokens = self.asked.max_llm_calls, self.asked.max_tokens
        with self._turn if calls is not None or tokens is not None else nullcontext():
            used = self._spent["prompt_tokens"] + self._spent["completion_tokens"]
            left = None if calls is None else calls - self._spent["llm_calls"]
            with metering(left, None if tokens is None else tokens - used) as meter:
                try:
                    yield meter
                finally:
                    self._spent = total(self._spent, meter.usage)
                    account.spend(owner, meter.usage)


def summary(run: str, asked: Asked, steps: Mapping[str, Result]) -> Result:
    """Return the report of a run: counts, ids, and why it is partial, if it is."""
    replayed = steps.get("rehearse", {}).get("replayed", [])
    forgotten = steps.get("forget", {}).get("forgotten", [])
    gains = [one["after"] - one["before"] for one in replayed]
    done = [step for name, step in steps.items() if name.startswith("part ") or name == "resolve"]
    counts = _planned(steps) if asked.dry_run else {name: sum(one.get(name, 0) for one in done) for name in COUNTS}
    why = [step[kind] for step in steps.values() for kind in ("over", "failed") if kind in step]
    usage = total(*(step.get("usage") for step in steps.values()))
    return {
        "run": run,
        "strategy": asked.name,
        "dry_run": asked.dry_run,
        "partial": " ".join(dict.fromkeys(why)) or None,
        "replayed": len(replayed),
        "strengthened": sum(gain > 0 for gain in gains),
        "mean_increase": sum(gains) / len(gains) if gains else 0.0,
        **counts,
        "forgotten": len(forgotten),
        "probes": compared(steps.get("synthesize", {})),
        "too_much_to_forget": bool(steps.get("forget", {}).get("stopped")),
        "ids": {
            "replayed": [one["id"] for one in replayed],
            "repaired": steps.get("synthesize", {}).get("repaired", []),
            "consolidated": [one for part in done for one in part.get("ids", [])],
            "forgotten": [one["id"] for one in forgotten],
        },
        "usage": {name: usage[name] for name in ("llm_calls", "prompt_tokens", "completion_tokens")},
        **({"would": {**steps, "select": {}}} if asked.dry_run else {}),
    }


def _planned(steps: Mapping[str, Result]) -> dict[str, int]:
    """Return what the parts of a plan come to, where that is known before they are done: a model may find more."""
    counts = dict.fromkeys(COUNTS, 0)
    for part in (part for name in ("plan", "resolve") for part in steps.get(name, {}).get("parts", [])):
        name = COUNTED[part["kind"]]
        counts[name] += {
            "merged": sum(len(group) - 1 for group in part.get("groups", [part["ids"]])),
            "derived": part.get("facts", 0),
            "learned": len(part["ids"]),
        }.get(name, 1)
    return counts
