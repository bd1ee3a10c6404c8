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
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sharpwave.benchmarks.days import DAYS, World, worlds
from sharpwave.benchmarks.lives import Life, Memory
from sharpwave.memory.choosing import MISFITS
from sharpwave.memory.embed import LocalEmbeddings
from sharpwave.memory.rehearsal import recallable
from sharpwave.memory.worth import Standing, need, worth

CAPACITY = 0.25
"""Share of all records that there is room for."""
SEEDS = 5
SCORED_ON = (30, 45, 60, 75, 90)
"""Days on which the other questions are asked, those whose evidence was told by then."""
BUDGET = 500
"""Tokens."""


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


def by_use(memory: Memory, places: np.ndarray) -> np.ndarray:
    """Return 0.3 recency + 0.3 frequency + 0.4 importance: 1 / (1 + days since it was used), and log(1 + uses) over the most."""
    uses = np.log1p(memory.recalled[places] + memory.cited[places])
    recency = 1 / (1 + memory.day - memory.used[places])
    known: np.ndarray = 0.3 * recency + 0.4 * memory.life.world.importance[places]
    found: np.ndarray = known + 0.3 * uses / max(float(uses.max()), 1e-9)
    return found


class Policy(NamedTuple):
    """How one memory keeps within its room."""

    value: Value | None
    """None keeps everything."""
    replay: str | Mapping[str, float] | None = None
    gate: bool = False
    settles: bool = False
    """Whether what a newer value took the place of goes at once."""
    repairs: bool = False
    """Whether questions of the past are asked again, and what they no longer find is repaired."""


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
    "recency, frequency, importance": Policy(by_use),
    "default": Policy(learned, MIX, settles=True, repairs=True),
    "default without rehearsal": Policy(learned, settles=True, repairs=True),
    "default without repair": Policy(learned, MIX, settles=True),
    "default without feedback": Policy(unlearned, MIX, settles=True),
}
"""What is compared; those named after the default show which part of it does what."""


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
        if policy.repairs and day in life.asked:
            memory.repair()
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
        found = memory.answer(question)
        share = float(np.isin(question.gold, found[:10]).mean())
        rows["r@10"].append(share)
        if number in apart:
            rows["r@10 apart"].append(share)
        rows["r@500 tokens"].append(float(np.isin(question.gold, _within(world, found)).mean()))
    for number in life.changed:
        question = world.changed[number]
        if life.at[question.gold].max() >= memory.day:
            continue
        first = [place for place in memory.answer(question)[:10] if place in (question.old, question.gold[0])]
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
