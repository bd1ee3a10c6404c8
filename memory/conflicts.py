"""Where the stores disagree: of two things that speak of one topic and say different things, one is shown.

What is being said now outweighs what works and what was lived lately, those outweigh facts, and facts outweigh what was
lived long ago; within one rank the newer one is kept.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

import numpy as np

from sharpwave.memory.phrases import details, negated
from sharpwave.memory.semantic import folded
from sharpwave.memory.slots import FORMER, slot

Kind = Literal["working", "procedural", "episodic", "semantic"]

RECENT = timedelta(days=7)
"""How long an episode counts as recent."""
SAME_TOPIC = 0.85
"""Cosine from which two statements without a slot speak of the same."""


class Statement(NamedTuple):
    """Something that a prompt could hold, and where it comes from."""

    id: str
    kind: Kind
    text: str
    at: datetime
    subject: str = "user"
    attribute: str | None = None
    value: str | None = None
    vector: np.ndarray | None = None
    """Unit length; without it the statement is compared by its slot alone."""

    def rank(self, now: datetime) -> int:
        """Return how much it weighs, 1 to 4."""
        if self.kind == "episodic":
            return 3 if now - self.at <= RECENT else 1
        return {"working": 4, "procedural": 3, "semantic": 2}[self.kind]


class Loser(NamedTuple):
    """A statement that is not shown, and the one that is in its place."""

    statement: Statement
    winner: Statement
    reason: str


def resolve(statements: Sequence[Statement], now: datetime) -> tuple[list[Statement], list[Loser]]:
    """Return the statements that may be shown, in their order, and those that lost to another one.

    Two statements conflict when they give one single-valued slot different values; or when they come from different kinds of
    memory, not both have a slot, their vectors say that they speak of the same (cosine 0.85), and they differ in a number, a
    name, or in whether they deny it. (Within one kind, what reads alike is as a rule a list: invoice 1041 and invoice 1042.)
    """
    strongest = sorted(statements, key=lambda one: (-one.rank(now), -one.at.timestamp()))
    kept: list[Statement] = []
    lost: list[Loser] = []
    for one in strongest:
        winner = next((other for other in kept if _conflict(one, other)), None)
        if winner is None:
            kept.append(one)
        else:
            lost.append(Loser(one, winner, _reason(one, winner, now)))
    names = {one.id for one in kept}
    return [one for one in statements if one.id in names], lost


def _conflict(one: Statement, other: Statement) -> bool:
    if one.attribute and other.attribute:
        return (
            (one.subject, one.attribute) == (other.subject, other.attribute)
            and not slot(one.attribute).many
            and not one.attribute.startswith(FORMER)
            and bool(one.value and other.value)
            and folded(one.value or "") != folded(other.value or "")
        )
    if one.kind == other.kind or one.vector is None or other.vector is None:
        return False
    if float(one.vector @ other.vector) < SAME_TOPIC:
        return False
    return details(one.text) != details(other.text) or negated(one.text) != negated(other.text)


def _reason(one: Statement, winner: Statement, now: datetime) -> str:
    if one.rank(now) == winner.rank(now):
        return f"older than what {winner.kind} memory says of the same"
    return f"{winner.kind} memory outweighs {one.kind} memory"
