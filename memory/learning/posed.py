"""Single decisions out of simulated dialogues: a store, a new statement, the right operation, and what any other would earn."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from langchain_core.messages import BaseMessage

from sharpwave.memory.decide.operations import SHOWN, parse, question
from sharpwave.memory.learning.dialogues import TURNS
from sharpwave.memory.learning.environment import DELETES, UPDATES, Environment, act
from sharpwave.memory.learning.network import ADD, NOOP
from sharpwave.memory.learning.reward import Outcome
from sharpwave.memory.records import Operation

SLIPS = 0.08
"""Share of the right operations that are left out, so that stores with outdated entries occur too."""
OPERATIONS: tuple[Operation, ...] = ("ADD", "UPDATE", "DELETE", "NOOP")


@dataclass(frozen=True, slots=True)
class Posed:
    """One decision to make."""

    dialogue: int
    turn: int
    kept: tuple[int, ...]
    """Turns whose entries are in the store."""
    near: tuple[int, ...]
    """Those that are shown, best first."""
    right: str
    """The right operation, as `UPDATE 2`."""

    @property
    def op(self) -> str:
        """The right operation without its target."""
        return self.right.split()[0]


def pose(environment: Environment, count: int, seed: int) -> list[Posed]:
    """Return `count` decisions, as many of each operation, in random order; fewer where the dialogues do not hold enough."""
    chance = random.Random(seed)
    found = _all(environment, chance)
    made: list[Posed] = []
    for at, op in enumerate(OPERATIONS):
        these = [one for one in found if one.op == op]
        made += chance.sample(these, min(len(these), (count + at) // len(OPERATIONS)))
    chance.shuffle(made)
    return made


def _all(environment: Environment, chance: random.Random) -> list[Posed]:
    """Play the dialogues rightly, but for the slips, and return every decision for which memories are shown."""
    which = np.arange(len(environment.dialogues))
    kept = np.zeros((len(which), TURNS), bool)
    found: list[Posed] = []
    for turn in range(TURNS):
        seen = environment.see(kept, which, turn)
        actions = environment.right(kept, seen)
        for d in which:
            near = tuple(int(u) for u, there in zip(seen.near[d], seen.there[d], strict=True) if there)[:SHOWN]
            right = _written(int(actions[d]), len(near))
            if near and right is not None:
                found.append(Posed(int(d), turn, tuple(kept[d].nonzero()[0].tolist()), near, right))
            if chance.random() < SLIPS:
                actions[d] = NOOP
        act(kept, seen, actions)
    return found


def _written(action: int, shown: int) -> str | None:
    """Return an action of the simulation as an operation; None where its target is not shown."""
    if action < UPDATES:
        return "ADD" if action == ADD else "NOOP"
    op, place = ("DELETE", action - DELETES) if action >= DELETES else ("UPDATE", action - UPDATES)
    return f"{op} {place + 1}" if place < shown else None


def asked(environment: Environment, posed: Posed) -> list[BaseMessage]:
    """Return the question of a decision, as a policy asks it."""
    records = environment.records[posed.dialogue]
    return question(records[posed.turn][0], [records[near][1].text for near in posed.near])


def carried_out(environment: Environment, posed: Posed, said: str) -> Outcome | None:
    """Return what the store holds after what a model said; None where that is no legal operation."""
    read = parse(said, len(posed.near))
    if read is None:
        return None
    op, place = read
    kept = np.zeros(TURNS, bool)
    kept[list(posed.kept)] = True
    if place is not None:
        kept[posed.near[place]] = False
    if op in ("ADD", "UPDATE"):
        kept[posed.turn] = True
    return environment.outcome(kept, posed.dialogue, posed.turn)


def loses(environment: Environment, posed: Posed, said: str) -> bool:
    """Whether an operation takes a fact that holds out of the store."""
    after = carried_out(environment, posed, said)
    before = carried_out(environment, posed, "NOOP")
    return bool(after and before and (before.held & before.true & ~after.held).any())


def balance(decisions: Sequence[Posed]) -> dict[str, int]:
    """Return how many decisions there are of each operation."""
    return {op: sum(one.op == op for one in decisions) for op in OPERATIONS}
