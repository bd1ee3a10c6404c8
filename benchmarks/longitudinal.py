"""Does replay keep what will be asked for? Ninety simulated days at a quarter of the room that everything would take.

    python -m sharpwave.benchmarks.longitudinal --data PATH/locomo10.json --json

Each day brings its share of records, every third day some questions, each night replay and, over the capacity, eviction.
Questions that give feedback (recalled, cited, missed) are others than those that are scored. Answers are found as the
product finds them, keyword and dense scores each min-max scaled, half and half, among what is kept.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sharpwave.benchmarks.days import DAYS, Asked, World, worlds
from sharpwave.memory import keywords
from sharpwave.memory.embed import LocalEmbeddings
from sharpwave.memory.priority import DAY, Buffer
from sharpwave.memory.recall import MISFITS, scaled
from sharpwave.memory.rehearsal import recallable, rehearsed, strengthened
from sharpwave.memory.replay import Chance, select
from sharpwave.memory.worth import Standing, need, worth

CAPACITY = 0.25
"""Share of all records that there is room for."""
SEEDS = 5
BATCH = 20
"""Records replayed a night."""
ASKING = 3
"""Days from one asking to the next."""
ASKED = 6
"""Questions asked each time, for feedback."""
SCORED_ON = (30, 45, 60, 75, 90)
"""Days on which the other questions are asked, those whose evidence was told by then."""
BUDGET = 500
"""Tokens."""
STRENGTH = 0.5


@dataclass
class Life:
    """One order of events in a world: what comes when, which questions are asked when, and which are scored."""

    world: World
    seed: int
    at: np.ndarray
    surprise: np.ndarray
    superseded: np.ndarray
    """Day on which a newer value for the same thing came; infinite for never."""
    scored: list[int]
    changed: list[int]
    asked: dict[int, list[Asked]]
    """Questions for feedback, by day."""
    apart: list[int]
    """Those of the scored questions whose evidence no question for feedback shares."""

    @classmethod
    def of(cls, world: World, seed: int) -> "Life":
        """Draw the life of a world."""
        rng = np.random.default_rng([seed, len(world.at)])
        at = world.at.copy()
        for kind, (low, high) in enumerate([(0.0, DAYS), (1.0, 30.0), (35.0, 80.0)]):
            some = np.isnan(at) & (world.change == kind)
            at[some] = rng.uniform(low, high, int(some.sum()))
        questions, changed = rng.permutation(len(world.questions)), rng.permutation(len(world.changed))
        half, few = len(questions) // 2, len(changed) // 2
        feedback = [world.questions[n] for n in questions[:half]] + [world.changed[n] for n in changed[:few]]
        told = [float(at[one.gold].max()) for one in feedback]
        asked = {}
        for day in range(ASKING, DAYS + 1, ASKING):
            ready = [one for one, when in zip(feedback, told, strict=True) if when < day]
            asked[day] = [ready[n] for n in rng.permutation(len(ready))[:ASKED]]
        touched = {int(place) for one in feedback for place in one.gold}
        scored = sorted(int(n) for n in questions[half:])
        apart = [n for n in scored if not touched & set(world.questions[n].gold.tolist())]
        return cls(
            world, seed, at, _surprise(world.vectors, at), _superseded(world, at), scored,
            sorted(int(n) for n in changed[few:]), asked, apart,
        )  # fmt: skip


def _surprise(vectors: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return 1 - the largest cosine to what was told before, 0..1."""
    order = np.argsort(at, kind="stable")
    cosines = np.tril(vectors[order] @ vectors[order].T, -1)
    found = np.empty(len(at))
    found[order] = np.clip(1 - cosines.max(axis=1), 0.0, 1.0)
    return found


def _superseded(world: World, at: np.ndarray) -> np.ndarray:
    found = np.full(len(at), np.inf)
    latest: dict[str, tuple[int, str]] = {}
    for place in np.argsort(at, kind="stable").tolist():
        for name, value in world.slots[place]:
            if name in latest and latest[name][1] != value:
                found[latest[name][0]] = at[place]
            latest[name] = (place, value)
    return found


@dataclass
class Memory:
    """What is kept, and what is known of it; arrays have one entry for each record of the world."""

    life: Life
    rng: np.random.Generator
    day: int = 0
    runs: int = 0
    kept: np.ndarray = field(init=False)
    strength: np.ndarray = field(init=False)
    recalled: np.ndarray = field(init=False)
    cited: np.ndarray = field(init=False)
    missed: np.ndarray = field(init=False)
    asked: np.ndarray = field(init=False)
    used: np.ndarray = field(init=False)
    """Day of the last recall, or on which it was told."""
    replayed: np.ndarray = field(init=False)
    last: np.ndarray = field(init=False)
    stability: np.ndarray = field(init=False)
    difficulty: np.ndarray = field(init=False)
    due: np.ndarray = field(init=False)
    questions: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        n = len(self.life.at)
        self.kept = np.zeros(n, bool)
        self.strength = np.full(n, STRENGTH)
        for name in ("recalled", "cited", "missed", "asked", "replayed"):
            setattr(self, name, np.zeros(n))
        for name in ("last", "stability", "difficulty", "due"):
            setattr(self, name, np.full(n, np.nan))
        self.used = self.life.at.copy()

    def places(self) -> np.ndarray:
        """Return the records that are kept, in the order in which they were told."""
        there = np.flatnonzero(self.kept)
        order: np.ndarray = there[np.argsort(self.life.at[there], kind="stable")]
        return order

    def retained(self, places: np.ndarray) -> np.ndarray:
        """Return strength times the chance of recall since the last replay, or since it was told."""
        since = np.where(np.isnan(self.last[places]), self.life.at[places], self.last[places])
        found: np.ndarray = self.strength[places] * recallable(self.stability[places], self.day - since)
        return found

    def hear(self, question: Asked) -> None:
        """Answer a question, and learn from how that went."""
        found = answer(self.life.world, self.kept, question)[:10]
        self.recalled[found] += 1
        self.used[found] = self.day
        gold = question.gold[
            self.kept[question.gold]
        ]  # of what is gone, nobody learns that it would have been the answer
        hit = np.isin(gold, found)
        self.asked[gold] += 1
        self.cited[gold[hit]] += 1
        self.missed[gold[~hit]] += 1
        self.questions.append(question.vector)

    def buffer(self, places: np.ndarray) -> Buffer:
        """Return what replay chooses from."""
        life = self.life
        return Buffer(
            ids=places, at=life.at[places] * DAY, importance=life.world.importance[places],
            success=np.full(len(places), 0.5), surprise=life.surprise[places],
            usefulness=1 - np.exp(-(self.recalled[places] + 2 * self.cited[places]) / 3),
            failures=self.missed[places] / np.maximum(self.asked[places], 1), strength=self.strength[places],
            replayed=self.replayed[places], last=self.last[places] * DAY, due=self.due[places] * DAY,
        )  # fmt: skip

    def replay(self, strategies: str | Mapping[str, float]) -> None:
        """Replay one batch."""
        places = self.places()
        chosen = select(self.buffer(places), BATCH, strategies, Chance(self.day * DAY, self.rng, self.runs))
        self.runs += 1
        for place, weight in zip(places[chosen.places], chosen.weights, strict=True):
            last = None if np.isnan(self.last[place]) else _moment(float(self.last[place]))
            stability = None if last is None else float(self.stability[place])
            difficulty = None if last is None else float(self.difficulty[place])
            curve = rehearsed(stability, difficulty, last, _moment(self.day))
            self.strength[place] = strengthened(float(self.strength[place]), float(weight))
            self.stability[place], self.difficulty[place] = curve.stability, curve.difficulty
            self.due[place] = curve.due_at.timestamp() / DAY
            self.last[place] = self.day
            self.replayed[place] += 1


def _moment(day: float) -> datetime:
    return datetime.fromtimestamp(day * DAY, UTC)


def answer(world: World, kept: np.ndarray, question: Asked) -> np.ndarray:
    """Return the records that are kept, those that answer best first."""
    rows = np.flatnonzero(kept)
    if not len(rows):
        return rows
    held = {term: world.postings[term] for term in question.terms if term in world.postings}
    held = {term: some[kept[some]] for term, some in held.items()}
    lengths = world.lengths[rows]
    found = {term: some for term, some in held.items() if len(some)}
    words = keywords.bm25(found, rows, lengths, len(rows), float(lengths.mean()))
    total = scaled(words, low=0.0) + scaled(world.vectors[rows] @ question.vector)
    return rows[np.argsort(-total, kind="stable")]


Value = Callable[[Memory, np.ndarray], np.ndarray]
"""What the records at these places are worth; those of least worth go."""


def learned(memory: Memory, places: np.ndarray) -> np.ndarray:
    """Return what the product's forgetting goes by."""
    seen = np.flatnonzero(memory.life.at < memory.day)
    answered = memory.cited + memory.missed > 0
    world = memory.life.world
    return worth(
        Standing(
            need=need(world.affinities[np.ix_(places, seen)], answered[seen].astype(np.float32)),
            answered=answered[places],
            recalled=memory.recalled[places],
            length=world.lengths[places],
            importance=world.importance[places],
            retained=memory.retained(places),
            current=world.slotted[places],
            superseded=memory.life.superseded[places] < memory.day,
        )
    )


def unlearned(memory: Memory, places: np.ndarray) -> np.ndarray:
    """Return the same without anything that questions have taught."""
    nothing = np.zeros(len(places))
    world, late = memory.life.world, memory.life.superseded[places] < memory.day
    return worth(
        Standing(
            need=nothing + 1, answered=nothing, recalled=nothing, length=world.lengths[places], importance=world.importance[places],
            retained=memory.retained(places), current=world.slotted[places], superseded=late,
        )
    )  # fmt: skip


def by_importance(memory: Memory, places: np.ndarray) -> np.ndarray:
    """Return importance, the newer first where it is the same."""
    found: np.ndarray = memory.life.world.importance[places] + 1e-6 * memory.life.at[places]
    return found


def by_decay(memory: Memory, places: np.ndarray) -> np.ndarray:
    """Return importance times the chance of recall since the record was told or last recalled."""
    never = np.full(len(places), np.nan)
    found: np.ndarray = memory.life.world.importance[places] * recallable(never, memory.day - memory.used[places])
    return found


class Policy(NamedTuple):
    """How one memory keeps within its room."""

    value: Value | None
    """None keeps everything."""
    replay: str | Mapping[str, float] | None = None
    gate: bool = False
    settles: bool = False
    """Whether what a newer value took the place of goes at once."""


MIX = {"prioritized": 0.5, "spaced": 0.25, "random": 0.25}
POLICIES: Mapping[str, Policy] = {
    "keep everything": Policy(None),
    "FIFO": Policy(lambda memory, places: memory.life.at[places]),
    "random removal": Policy(lambda memory, places: memory.rng.random(len(places))),
    "LRU": Policy(lambda memory, places: memory.used[places]),
    "gate and importance, no replay": Policy(by_importance, gate=True),
    "decay only": Policy(by_decay),
    "uniform replay": Policy(Memory.retained, "random"),
    "prioritized replay": Policy(Memory.retained, "prioritized"),
    "spaced replay": Policy(Memory.retained, "spaced"),
    "default": Policy(learned, MIX, settles=True),
    "default without replay": Policy(learned, settles=True),
    "default with uniform replay": Policy(learned, "random", settles=True),
    "default without feedback": Policy(unlearned, MIX, settles=True),
}
"""What is compared; the last three show which part of the default does what."""


def live(life: Life, policy: Policy, capacity: int) -> Iterator[Memory]:
    """Live through all days; yield the memory as it is on each day of scoring."""
    memory = Memory(life, np.random.default_rng(life.seed))
    arrival = np.floor(life.at).astype(int)
    for day in range(1, DAYS + 1):
        memory.day = day
        memory.kept |= (arrival == day - 1) & (life.world.gated | (not policy.gate))
        for question in life.asked.get(day, ()):
            memory.hear(question)
        if policy.replay:
            memory.replay(policy.replay)
        if policy.settles:
            memory.kept &= life.superseded >= day
        places = memory.places()
        if policy.value and len(places) > capacity:
            worths = policy.value(memory, places)
            memory.kept[places[np.argsort(worths, kind="stable")[: len(places) - capacity]]] = False
        if day in SCORED_ON:
            yield memory


def _within(world: World, found: np.ndarray) -> np.ndarray:
    """Return those that fit into the budget, as recall fills it."""
    shown: list[int] = []
    used = misfits = 0
    for place in found.tolist():
        if misfits >= MISFITS:
            break
        if used + world.cost[place] <= BUDGET:
            shown.append(place)
            used += int(world.cost[place])
        else:
            misfits += 1
    return np.array(shown, int)


def score(memory: Memory, life: Life) -> dict[str, float]:
    """Return how well the scored questions whose evidence was told are answered; NaN where there are none."""
    world, apart = life.world, set(life.apart)
    rows: dict[str, list[float]] = {name: [] for name in SCORES}
    for number in life.scored:
        question = world.questions[number]
        if life.at[question.gold].max() >= memory.day:
            continue
        found = answer(world, memory.kept, question)
        share = float(np.isin(question.gold, found[:10]).mean())
        rows["r@10"].append(share)
        if number in apart:
            rows["r@10 apart"].append(share)
        rows["r@500 tokens"].append(float(np.isin(question.gold, _within(world, found)).mean()))
    for number in life.changed:
        question = world.changed[number]
        if life.at[question.gold].max() >= memory.day:
            continue
        first = [
            place for place in answer(world, memory.kept, question)[:10] if place in (question.old, question.gold[0])
        ]
        rows["stale"].append(bool(first) and first[0] == question.old)
        rows["changed r@10"].append(int(question.gold[0]) in first)
    return {name: float(np.mean(some)) if some else float("nan") for name, some in rows.items()}


SCORES = ("r@10", "r@10 apart", "r@500 tokens", "stale", "changed r@10")
"""Evidence recall; of the questions whose evidence no feedback touched; within the budget; share of the questions about
changed facts that the old value answers first; share that find the new one."""


def measure(
    every: Sequence[World], *, seeds: int = SEEDS, share: float = CAPACITY, policies: Mapping[str, Policy] = POLICIES
) -> dict[str, Any]:
    """Live each world `seeds` times under each policy.

    Returns:
        By policy the mean of each score over worlds and seeds with its 95 % interval, [mean, low, high], the store's size,
        CPU seconds, and for each score how much less it is than the default's; the same for the worlds of the second half.
    """
    lives = [Life.of(world, seed) for world in every for seed in range(seeds)]
    cells: dict[str, dict[str, np.ndarray]] = {}
    costs: dict[str, dict[str, float]] = {}
    for name, policy in policies.items():
        started = time.process_time()
        rows, sizes = [], []
        for life in lives:
            capacity = round(share * len(life.at))
            some = [(score(memory, life), int(memory.kept.sum())) for memory in live(life, policy, capacity)]
            sizes.append(some[-1][1] / len(life.at))
            rows.append([_mean([one[key] for one, _ in some]) for key in SCORES])
        table = np.array(rows).reshape(len(every), seeds, len(SCORES))
        cells[name] = {key: table[:, :, n] for n, key in enumerate(SCORES)}
        costs[name] = {"kept": round(_mean(sizes), 3), "cpu_seconds": round(time.process_time() - started, 1)}
    half = len(every) // 2
    return {
        "worlds": [world.name for world in every],
        "seeds": seeds,
        "records": sum(len(world.at) for world in every),
        "questions": _questions(lives),
        "llm_calls": 0,
        "policies": {name: {**_intervals(found), **costs[name]} for name, found in cells.items()},
        "held_out": {
            name: _intervals({key: some[half:] for key, some in found.items()}) for name, found in cells.items()
        },
        "default_minus": _differences(cells),
    }


def _questions(lives: Sequence[Life]) -> dict[str, float]:
    return {
        "scored": _mean([len(life.scored) for life in lives]),
        "scored that share evidence with feedback": _mean([len(life.scored) - len(life.apart) for life in lives]),
        "asked for feedback": _mean([sum(map(len, life.asked.values())) for life in lives]),
        "scored about changes": _mean([len(life.changed) for life in lives]),
    }


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


def _intervals(found: Mapping[str, np.ndarray]) -> dict[str, list[float]]:
    return {key: interval(table) for key, table in found.items()}


def _differences(cells: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, dict[str, list[float]]]:
    if "default" not in cells:
        return {}
    own = cells["default"]
    return {
        name: {key: interval(own[key] - found[key]) for key in SCORES}
        for name, found in cells.items()
        if name != "default"
    }


def interval(table: np.ndarray, times: int = 2000) -> list[float]:
    """Return [mean, low, high] of a (worlds, seeds) table: worlds are drawn with replacement, then seeds within each."""
    rng = np.random.default_rng(0)
    worlds_drawn = rng.integers(table.shape[0], size=(times, table.shape[0], 1))
    seeds_drawn = rng.integers(table.shape[1], size=(times, table.shape[0], table.shape[1]))
    means = np.nanmean(table[worlds_drawn, seeds_drawn], axis=(1, 2))
    return [round(float(one), 4) for one in (np.nanmean(table), *np.nanpercentile(means, [2.5, 97.5]))]


def _table(found: Mapping[str, Any]) -> str:
    lines = [f"{'':32}" + "".join(f"{name:>26}" for name in SCORES) + f"{'kept':>8}{'CPU s':>8}"]
    for name, row in found["policies"].items():
        parts = ["{:.3f} [{:.3f}, {:.3f}]".format(*row[key]) for key in SCORES]
        lines.append(f"{name:32}" + "".join(f"{part:>26}" for part in parts) + f"{row['kept']:8}{row['cpu_seconds']:8}")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="LoCoMo's file")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="lives of each conversation")
    parser.add_argument("--foreign", action="store_true", help="distract with lines of the other conversations")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(argv)
    every = list(worlds(given.data, LocalEmbeddings(), foreign=given.foreign))
    found = measure(every, seeds=given.seeds)
    print(json.dumps(found, indent=2) if given.json else _table(found))


if __name__ == "__main__":
    main()
