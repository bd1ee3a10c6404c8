"""Playing dialogues through with a policy, and what comes of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from sharpwave.memory.decide import Policy
from sharpwave.memory.learning.dialogues import SESSION_ENDS, TURNS
from sharpwave.memory.learning.environment import (
    DELETES,
    UPDATES,
    Actor,
    Environment,
    Ints,
    Seen,
    act,
    turn_of,
)
from sharpwave.memory.learning.features import CUES, Floats
from sharpwave.memory.learning.network import ADD, NOOP
from sharpwave.memory.learning.reward import (
    Bools,
    answer_quality,
    conversation_coherence,
    memory_efficiency,
)
from sharpwave.memory.records import Decision, Memory, Recall, Score


@dataclass(frozen=True, slots=True)
class Played:
    """What came of playing D dialogues."""

    rewards: Floats
    """(D,): mean reward over the ends of the sessions."""
    parts: Floats
    """(D, 3): the same of answer quality, memory efficiency and conversation coherence."""
    right: Bools
    """(D, T): whether the facts held after the decision are those after the right one."""
    changes: int
    """UPDATEs and DELETEs."""
    harms: int
    """Those of them after which a fact that holds is no longer held."""
    entries: float
    """Mean size of the stores at the end."""
    actions: Ints
    """(D, T)."""

    def summary(self) -> dict[str, float]:
        """Return the means, with the standard error of the reward over the dialogues."""
        return {
            "reward": round(float(self.rewards.mean()), 4),
            "error": round(float(self.rewards.std(ddof=1) / np.sqrt(len(self.rewards))), 4),
            "answer_quality": round(float(self.parts[:, 0].mean()), 4),
            "memory_efficiency": round(float(self.parts[:, 1].mean()), 4),
            "conversation_coherence": round(float(self.parts[:, 2].mean()), 4),
            "accuracy": round(float(self.right.mean()), 4),
            "wrong_delete": round(self.harms / self.changes, 4) if self.changes else 0.0,
            "entries": round(self.entries, 1),
        }


def play(environment: Environment, actor: Actor) -> Played:
    """Play every dialogue once from an empty store."""
    which = np.arange(len(environment.dialogues))
    every = which.tolist()
    kept = np.zeros((len(which), TURNS), bool)
    right, parts, actions = [], [], []
    changes = harms = 0
    for turn in range(TURNS):
        seen = environment.see(kept, which, turn)
        chosen = actor(environment, seen)
        before, ideal = kept.copy(), kept.copy()
        act(kept, seen, chosen)
        act(ideal, seen, environment.right(before, seen))
        right.append([_held(environment, d, kept[d]) == _held(environment, d, ideal[d]) for d in every])
        lost = [_lost(environment, d, turn, before[d], kept[d]) for d in every]
        changes += int((chosen >= UPDATES).sum())
        harms += int(np.sum(lost))
        actions.append(chosen)
        if turn in SESSION_ENDS:
            outcomes = [environment.outcome(kept[d], d, turn) for d in every]
            parts.append([[answer_quality(o), memory_efficiency(o), conversation_coherence(o)] for o in outcomes])
    mean = np.mean(parts, 0)
    return Played(
        rewards=mean @ np.array([0.5, 0.3, 0.2]),
        parts=mean,
        right=np.array(right).T,
        changes=changes,
        harms=harms,
        entries=float(kept.sum(1).mean()),
        actions=np.array(actions).T,
    )


def _held(environment: Environment, dialogue: int, kept: Bools) -> tuple[int, ...]:
    """Return how often each fact is held, entries that state nothing last."""
    states = environment.states[dialogue][kept]
    return (*states.sum(0).tolist(), int((~states.any(1)).sum()))


def _lost(environment: Environment, dialogue: int, turn: int, before: Bools, after: Bools) -> bool:
    true, states = environment.true[dialogue, turn], environment.states[dialogue]
    return bool((states[before & ~after].any(0) & true & ~states[after].any(0)).any())


# What can play


def oracle(environment: Environment, seen: Seen) -> Ints:
    """Choose what is right in a store that has been right so far."""
    kept = np.zeros((len(seen.which), TURNS), bool)
    stores, places = np.nonzero(seen.there)
    kept[stores, seen.near[stores, places]] = True
    return environment.right(kept, seen)


def always(action: int) -> Actor:
    """Return an actor that does one thing, ADD or NOOP."""
    return lambda environment, seen: np.full(len(seen.which), action)


def at_random(seed: int) -> Actor:
    """Return an actor that takes each of the four operations equally often, where there is something to change."""
    rng = np.random.default_rng(seed)

    def choose(environment: Environment, seen: Seen) -> Ints:
        operation, count = rng.integers(0, 4, len(seen.which)), seen.there.sum(1)
        place = (rng.random(len(count)) * np.maximum(count, 1)).astype(np.int64)
        aimed = np.where(operation == 2, UPDATES, DELETES) + place
        return np.where((operation < 2) | (count == 0), operation % 2, aimed)

    return choose


def nearest(threshold: float) -> Actor:
    """Return an actor that replaces the entry with the highest cosine from `threshold` on, and adds below it."""

    def choose(environment: Environment, seen: Seen) -> Ints:
        cosines = np.where(seen.there, seen.pairs[..., 0], -1.0)
        return np.where(cosines.max(1) >= threshold, UPDATES + cosines.argmax(1), ADD)

    return choose


def by(policy: Policy) -> Actor:
    """Return an actor that asks a policy, as the writing path would, but with no guard after it."""

    def choose(environment: Environment, seen: Seen) -> Ints:
        return np.array([_asked(policy, environment, seen, store) for store in range(len(seen.which))])

    return choose


def _asked(policy: Policy, environment: Environment, seen: Seen, store: int) -> int:
    dialogue = int(seen.which[store])
    records = environment.records[dialogue]
    candidate = records[seen.turn][0]
    places = [k for k in range(seen.near.shape[1]) if seen.there[store, k]]
    near = [_recall(records[seen.near[store, k]][1], float(seen.pairs[store, k, 0])) for k in places]
    turn = turn_of(dialogue, seen.turn, environment.dialogues[dialogue].turns[seen.turn].text)
    decided = policy.decide([candidate], [near], turn)[0]
    return action_of(decided, near)


def _recall(memory: Memory, cosine: float) -> Recall:
    return Recall(
        id=memory.id,
        store="semantic",
        text=memory.text,
        said_at=memory.valid_from,
        score=cosine,
        parts=Score(cosine=cosine),
        memory=memory,
    )


def action_of(decision: Decision, near: Sequence[Recall]) -> int:
    """Return the action that a decision about the memories `near` comes to."""
    if decision.op in ("ADD", "NOOP"):
        return ADD if decision.op == "ADD" else NOOP
    place = [recall.id for recall in near].index(decision.target or "")
    return (UPDATES if decision.op == "UPDATE" else DELETES) + place


def cues(same: float, again: float, gone: float) -> Actor:
    """Return an actor that goes by cosines and words of change, all about the nearest entry.

    Args:
        same: cosine from which a statement with a word of change replaces the entry.
        again: cosine from which it only says the entry again.
        gone: cosine from which a statement with a word of ending, and none of change, ends the entry.
    """

    def choose(environment: Environment, seen: Seen) -> Ints:
        cosines = np.where(seen.there, seen.pairs[..., 0], -1.0)
        best, top = cosines.argmax(1), cosines.max(1)
        has = {name: seen.candidate[:, n] > 0 for n, name in enumerate(CUES)}
        changed = has["change"] | has["now"] | has["wrong"]
        ended = (has["negation"] | has["ended"] | has["end"]) & ~changed
        chosen = np.where(top >= again, NOOP, np.where((top >= same) & changed, UPDATES + best, ADD))
        chosen = np.where(ended, np.where(top >= gone, DELETES + best, NOOP), chosen)
        return np.where(has["modal"], NOOP, chosen)

    return choose


UNTUNED = (0.6, 0.9, 0.5)
"""The thresholds of `cues` before any tuning: what training by reward starts from."""


def tuned(environment: Environment) -> tuple[float, float, float]:
    """Return the thresholds of `cues` that earn most on these dialogues, out of 80."""
    grid = product((0.5, 0.6, 0.7, 0.8), (0.75, 0.8, 0.85, 0.9, 0.95), (0.3, 0.4, 0.5, 0.6))
    return max(grid, key=lambda t: play(environment, cues(*t)).rewards.mean())
