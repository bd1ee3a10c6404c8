"""One life in a world: what comes when, what is asked, and a memory that lives through it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType

import numpy as np

from sharpwave.benchmarks.days import DAYS, Asked, World
from sharpwave.memory import keywords
from sharpwave.memory.candidates import scaled
from sharpwave.memory.priority import DAY, Buffer
from sharpwave.memory.rehearsal import recallable, rehearsed, strengthened
from sharpwave.memory.replay import Chance, select

BATCH = 20
"""Records replayed a night."""
ASKING = 3
"""Days from one asking to the next."""
ASKED = 6
"""Questions asked each time, for feedback."""
PROBES = 10
"""Questions of the past that are asked again every third night; what they once cited and no longer find is repaired."""
STRENGTH = 0.5
"""Strength of what was never replayed."""


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
    probes: list[tuple[Asked, np.ndarray]] = field(default_factory=list)
    """Questions that were answered, each with the records that it cited."""
    found_as: dict[str, set[int]] = field(default_factory=dict)
    """Records by the words that repair has added to them."""

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
        found = self.answer(question)[:10]
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
        if hit.any():
            self.probes.append((question, gold[hit]))

    def answer(self, question: Asked) -> np.ndarray:
        """Return the records that are kept, those that answer best first."""
        return answer(self.life.world, self.kept, question, self.found_as)

    def repair(self) -> None:
        """Ask some questions of the past again; what they once cited and no longer find gets their words."""
        for at in self.rng.permutation(len(self.probes))[:PROBES]:
            question, cited = self.probes[at]
            there = cited[self.kept[cited]]
            for place in there[~np.isin(there, self.answer(question)[:10])].tolist():
                for term in question.terms:
                    self.found_as.setdefault(term, set()).add(place)

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


def answer(
    world: World, kept: np.ndarray, question: Asked, found_as: Mapping[str, set[int]] = MappingProxyType({})
) -> np.ndarray:
    """Return the records that are kept, those that answer best first; `found_as` are words that repair has added."""
    rows = np.flatnonzero(kept)
    if not len(rows):
        return rows
    held = {term: world.postings[term] for term in question.terms if term in world.postings}
    for term in found_as.keys() & set(question.terms):
        held[term] = np.union1d(held.get(term, np.empty(0, np.int64)), np.array(sorted(found_as[term]), np.int64))
    held = {term: some[kept[some]] for term, some in held.items()}
    lengths = world.lengths[rows]
    found = {term: some for term, some in held.items() if len(some)}
    words = keywords.bm25(found, rows, lengths, len(rows), float(lengths.mean()))
    total = scaled(words, low=0.0) + scaled(world.vectors[rows] @ question.vector)
    return rows[np.argsort(-total, kind="stable")]
