"""Simulated dialogues of several sessions, with what is true after every turn.

Somebody tells facts, says them again in other words, changes, corrects and takes them back, speaks of other people and of
former times, supposes, quotes and chats. A dialogue is in one of two voices: the user's own words, or the statements about
a named person that an extractor makes of them. Wordings, values and predicates are those of one split; the files of the
three splits share none.
"""

import random
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
TURNS = 24
SESSION_ENDS = (7, 15, 23)
"""Turns after which a session is over, and the store is asked."""
MOST_FACTS = 24

_WEIGHTS = {
    "new": 3.5,
    "other": 1.5,
    "confirm": 2.0,
    "change": 2.2,
    "correct": 0.6,
    "end": 1.2,
    "past": 0.7,
    "maybe": 0.5,
    "quote": 0.4,
    "chat": 0.9,
}
_USERS_OWN = frozenset({"correct", "maybe", "quote", "chat"})
"""Kinds of turn that an extractor makes no statement of."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that can be true: a value in a slot."""

    slot: tuple[str, ...]
    """Whose, which predicate, and for what takes several values the value too: one fact holds in a slot at a time."""
    value: str
    question: str


@dataclass(frozen=True, slots=True)
class Said:
    """One turn."""

    text: str
    kind: str
    says: int | None
    """Index of the fact that it states."""
    ends: int | None
    """Index of the fact that is no longer true after it."""
    true: frozenset[int]
    """Indices of the facts that hold after it."""


@dataclass(slots=True)
class Dialogue:
    """What was said, in order, and the facts that it is about."""

    speaker: str
    """"user", or the name of the person that all statements are about."""
    facts: list[Fact] = field(default_factory=list)
    turns: list[Said] = field(default_factory=list)


@cache
def wordings(split: Split) -> dict[str, Any]:
    """Return the wordings of a split: `voice`, `wrap` and a list of `predicate`s."""
    return tomllib.loads(Path(__file__).with_name(f"{split}.toml").read_text("utf-8"))


def dialogue(split: Split, number: int, *, seed: int = 0, strict: bool = False) -> Dialogue:
    """Return one dialogue; equal arguments make equal dialogues.

    Args:
        split: whose wordings.
        number: which of the split's dialogues; odd ones are statements about a named person.
        seed: of all of them.
        strict: leave out every word that carries a change or an end in this split and occurs in no wording for training.
    """
    made = _Maker(split, random.Random(f"{split}-{seed}-{number}"), named=number % 2 == 1).made()
    if strict and split != "train":
        hidden = unseen_cues(split)
        made.turns = [_without(turn, hidden) for turn in made.turns]
    return made


@cache
def unseen_cues(split: Split) -> frozenset[str]:
    """Return the words of a split's wordings that no wording for training has, but for those that name what facts are about."""
    neutral = [c for p in wordings(split)["predicate"] for key in _NEUTRAL for c in p.get(key, [])]
    known = _words(" ".join([*phrasings("train"), *neutral]))
    return _words(" ".join(phrasings(split))) - known


def phrasings(split: Split) -> list[str]:
    """Return all wordings of a split, with their placeholders."""
    found = wordings(split)
    lists = [*found["wrap"].values(), *(v for p in found["predicate"] for k, v in p.items() if k not in _NO_WORDING)]
    return [text for entry in lists for text in ([entry] if isinstance(entry, str) else entry)]


_NO_WORDING = frozenset({"name", "many", "flips", "values"})
_NEUTRAL = ("values", "say", "against", "of", "of_against")
"""Entries of a predicate that tell what is so, and not that anything changes."""


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip(".,:?") for word in text.casefold().split() if "{" not in word)


def _without(turn: Said, hidden: frozenset[str]) -> Said:
    kept = " ".join(word for word in turn.text.split() if word.casefold().strip(".,:?") not in hidden)
    return Said(kept or "Well", turn.kind, turn.says, turn.ends, turn.true)


class _Maker:
    """Makes one dialogue, turn by turn."""

    def __init__(self, split: Split, rng: random.Random, *, named: bool) -> None:
        found = wordings(split)
        self.rng, self.named, self.wrap = rng, named, found["wrap"]
        self.predicates = {p["name"]: p for p in rng.sample(found["predicate"], min(7, len(found["predicate"])))}
        self.values = {name: rng.sample(p["values"], len(p["values"])) for name, p in self.predicates.items()}
        name = rng.choice(found["voice"]["names"])
        self.me = name if named else "I"
        people = rng.sample(found["voice"]["people"], 2)
        self.people = [p.replace("my", f"{name}'s") if named else p for p in people]
        self.dialogue = Dialogue(name if named else "user")
        self.true: dict[int, tuple[str, str]] = {}
        """The facts that hold and can change: who and which predicate, by index."""
        self.lasting: set[int] = set()
        """Facts about the past: they stay true."""

    def made(self) -> Dialogue:
        while len(self.dialogue.turns) < TURNS:
            kinds = [kind for kind in _WEIGHTS if not (self.named and kind in _USERS_OWN)]
            kind = self.rng.choices(kinds, [_WEIGHTS[kind] for kind in kinds])[0]
            steps: Mapping[str, Callable[[], tuple[str, int | None, int | None] | None]] = {
                "new": lambda: self._new(self.me),
                "other": lambda: self._new(self.rng.choice(self.people)),
                "confirm": self._confirm,
                "change": self._change,
                "correct": self._correct,
                "end": self._end,
                "past": self._past,
            }
            step = steps.get(kind, lambda kind=kind: self._nothing(kind))
            if (found := step()) is not None:
                self._say(kind, *found)
        return self.dialogue

    def _say(self, kind: str, text: str, says: int | None, ends: int | None) -> None:
        text = text[:1].upper() + text[1:] + ("" if text.endswith("?") else ".")
        true = frozenset(self.true) | self.lasting
        self.dialogue.turns.append(Said(text, kind, says, ends, true))

    # What can be said

    def _new(self, who: str) -> tuple[str, int, None] | None:
        name = self.rng.choice(list(self.predicates))
        rule = self.predicates[name]
        if not rule.get("many") and any(held == (who, name) for held in self.true.values()):
            return None
        fact = self._fresh(who, name)
        if fact is None:
            return None
        more = bool(rule.get("many")) and (who, name) in self.true.values() and self.rng.random() < 0.5
        self.true[fact] = (who, name)
        return self._wrapped("more" if more else "tell", self._clause(fact, "say")), fact, None

    def _confirm(self) -> tuple[str, int, None] | None:
        if not self.true:
            return None
        fact = self.rng.choice(list(self.true))
        clause = self._clause(fact, "say")
        plain = self.rng.random() < 0.5
        return (self._wrapped("tell", clause) if plain else self._wrapped("again", clause)), fact, None

    def _change(self) -> tuple[str, int, int] | None:
        found = self._replaced()
        if found is None:
            return None
        old, new = found
        who, name = self.true[new]
        own = self.predicates[name].get("change" if who == "I" else "of_change", [])
        way = self.rng.random()
        if own and way < 0.6:
            text = self._filled(self.rng.choice(own), new, old)
        elif way < 0.8 or self.named:
            text = self._wrapped("tell", self._clause(new, "say"))
        else:
            text = self._wrapped("change", self._clause(new, "say"), old)
        return text, new, old

    def _correct(self) -> tuple[str, int, int] | None:
        found = self._replaced()
        if found is None:
            return None
        old, new = found
        return self._wrapped("correct", self._clause(new, "say"), old), new, old

    def _replaced(self) -> tuple[int, int] | None:
        """Put a new value in the place of one that held; return both."""
        held = [f for f, (_, n) in self.true.items() if not self.predicates[n].get("many") or self._flips(n)]
        if not held:
            return None
        old = self.rng.choice(held)
        who, name = self.true[old]
        new = self._opposite(old) if self._flips(name) else self._fresh(who, name)
        if new is None:
            return None
        del self.true[old]
        self.true[new] = (who, name)
        return old, new

    def _end(self) -> tuple[str, None, int] | None:
        held = [f for f, (_, n) in self.true.items() if not self._flips(n)]
        if not held:
            return None
        fact = self.rng.choice(held)
        who, name = self.true.pop(fact)
        if who == "I" and self.rng.random() < 0.35:
            return self._wrapped("end", self._filled(self.rng.choice(self.predicates[name]["say"]), fact)), None, fact
        key = "end" if who == "I" else "of_end"
        return self._filled(self.rng.choice(self.predicates[name][key]), fact), None, fact

    def _past(self) -> tuple[str, int, None] | None:
        who, name = self.rng.choice([self.me, *self.people]), self.rng.choice(list(self.predicates))
        fact = self._fresh(who, name, former=True)
        if fact is None:
            return None
        self.lasting.add(fact)
        clause = self._filled(self.rng.choice(self.predicates[name]["was" if who == "I" else "of_was"]), fact)
        return (self._wrapped("past", clause) if who == "I" else clause), fact, None

    def _nothing(self, kind: str) -> tuple[str, None, None] | None:
        name = self.rng.choice(list(self.predicates))
        value = self.rng.choice(self.predicates[name]["values"])
        clause = self.rng.choice(self.predicates[name]["say"]).replace("{v}", value)
        text = self.rng.choice(self.wrap[kind])
        return text.replace("{c}", clause).replace("{v}", value), None, None

    # Facts and their wording

    def _flips(self, name: str) -> bool:
        return bool(self.predicates[name].get("flips"))

    def _fresh(self, who: str, name: str, *, former: bool = False) -> int | None:
        if not self.values[name] or len(self.dialogue.facts) >= MOST_FACTS:
            return None
        value, rule = self.values[name].pop(), self.predicates[name]
        slot = (who, name, *(["former", value] if former else [value] if rule.get("many") else []))
        question = self._question(rule["ask"], who, value)
        self.dialogue.facts.append(Fact(slot, value, f"{question} In the past." if former else question))
        return len(self.dialogue.facts) - 1

    def _opposite(self, fact: int) -> int | None:
        old = self.dialogue.facts[fact]
        value = old.value.removeprefix("not ") if old.value.startswith("not ") else f"not {old.value}"
        turned = Fact(old.slot, value, old.question)
        if turned in self.dialogue.facts:
            return self.dialogue.facts.index(turned)
        if len(self.dialogue.facts) >= MOST_FACTS:
            return None
        self.dialogue.facts.append(turned)
        return len(self.dialogue.facts) - 1

    def _question(self, ask: str, who: str, value: str) -> str:
        me = who == "I"
        text = ask.replace("{of}", "my" if me else f"{who}'s").replace("{who}", "I" if me else who)
        return (text.replace("does I", "do I").replace("is I ", "am I ") if me else text).replace("{v}", value)

    def _clause(self, fact: int, key: str) -> str:
        who, name = self.true[fact]
        against = self.dialogue.facts[fact].value.startswith("not ") and self._flips(name)
        key = ("against" if who == "I" else "of_against") if against else ("say" if who == "I" else "of")
        return self._filled(self.rng.choice(self.predicates[name][key]), fact)

    def _filled(self, clause: str, fact: int, old: int | None = None) -> str:
        value = self.dialogue.facts[fact].value.removeprefix("not ")
        before = self.dialogue.facts[old].value.removeprefix("not ") if old is not None else ""
        return clause.replace("{v}", value).replace("{o}", before).replace("{S}", self.dialogue.facts[fact].slot[0])

    def _wrapped(self, kind: str, clause: str, old: int | None = None) -> str:
        """Put a clause into a wrapping of a kind; most statements about a named person have wrappings of their own."""
        if self.named and kind != "more":
            kind = "third"
        plain = kind == "tell" and self.rng.random() < 0.5
        fits = [
            w
            for w in self.wrap[kind]
            if "{o}" not in w or (old is not None and len(self.dialogue.facts[old].slot) == 2)
        ]
        if plain or not fits:
            return clause
        before = self.dialogue.facts[old].value if old is not None else ""
        return str(self.rng.choice(fits)).replace("{c}", clause).replace("{p}", clause).replace("{o}", before)
