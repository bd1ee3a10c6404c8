"""Labelled dialogues: what a turn says that is worth keeping, and what should become of it.

One JSON object a line and case. In a turn, `facts` are the words to keep, verbatim. `op` says what to do with them: ADD;
UPDATE, DELETE or NOOP (a confirmation) of the earlier fact at `target` = [turn, fact]; without `op` they may be kept and
nothing is scored. `or` is a second right answer. A turn without facts must store nothing. `foreign` are words that are not
the user's own statement (pasted, quoted, played, supposed); `forbidden` and `current` are strings that the current
memories must not, and must, hold after the turn.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from sharpwave.memory.errors import InputError
from sharpwave.memory.records import Operation, Record
from sharpwave.memory.times import UtcTime

Split = Literal["tune", "held", "all"]
Key = tuple[int, int]
"""A fact of a case: index of its turn, index among the turn's facts."""
HERE = Path(__file__).with_name("labelled")
TRAPS = HERE / "traps"
"""Dialogues of which most turns only sound like a change of what is known, and the true changes are told sideways."""


class Fact(Record):
    """Words of a turn that hold a fact."""

    text: str
    op: Operation | None = None
    or_: Operation | None = Field(default=None, alias="or")
    target: Key | None = None
    also: tuple[Key, ...] = ()
    """Earlier facts that this one concerns as well."""

    @property
    def ops(self) -> set[Operation]:
        """The right operations."""
        return {op for op in (self.op, self.or_) if op is not None}

    @property
    def targets(self) -> tuple[Key, ...]:
        """The earlier facts that it concerns."""
        return self.also if self.target is None else (self.target, *self.also)


class LabelledTurn(Record):
    """One message of the user."""

    user: str
    at: UtcTime
    seed: bool = False
    """Its facts are what is known before, and are written whatever is measured."""
    facts: tuple[Fact, ...] = ()
    foreign: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    current: tuple[str, ...] = ()


class Case(Record):
    """A small dialogue of one user."""

    id: str
    style: str = "given"
    language: str = "en"
    split: Literal["tune", "held"] = "held"
    about: str = "user"
    """Subject of statements that are given as such."""
    turns: tuple[LabelledTurn, ...]


def load(split: Split = "all", folder: Path = HERE) -> list[Case]:
    """Return the labelled cases of one part, or of both.

    Raises:
        InputError: the folder lacks a file, or a line of it is no case.
    """
    names = ("tune", "held") if split == "all" else (split,)
    return [case for name in names for case in _cases(folder / f"{name}.jsonl")]


def _cases(path: Path) -> Iterator[Case]:
    for number, line in enumerate(lines(path), 1):
        try:
            yield Case.model_validate(json.loads(line))
        except (ValidationError, json.JSONDecodeError) as error:
            raise InputError(f"Line {number} of {path} is no labelled case: {str(error).splitlines()[0]}.") from error


def lines(path: Path) -> list[str]:
    """Return the lines of a UTF-8 file; raises `InputError` when it cannot be read."""
    try:
        return [line for line in path.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{path} cannot be read: {why}. Name the folder of the data set with --data.") from error


def given(texts: list[tuple[str, Fact]], at: datetime, *, seed: bool = False) -> LabelledTurn:
    """Return a turn that consists of statements, a line each, with what they mean."""
    return LabelledTurn(
        user="\n".join(text for text, _ in texts), at=at, seed=seed, facts=tuple(fact for _, fact in texts)
    )
