"""Simulated dialogues as arrays, so that many stores can be played through at once.

An entry of a store is the text of the turn that made it: ADD keeps the turn, UPDATE keeps it in the place of another,
DELETE takes one away. No text is written, so a store is a row of booleans, one a turn. In comments, D is dialogues, T turns,
F facts, S stores, K neighbours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
from langchain_core.embeddings import Embeddings

from sharpwave.memory.applying import new_memory
from sharpwave.memory.embed import embedding_array
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.learning import features
from sharpwave.memory.learning.dialogues import SESSION_ENDS, TURNS, Dialogue
from sharpwave.memory.learning.features import NEAR, Floats
from sharpwave.memory.learning.network import ADD, FIRST, NOOP
from sharpwave.memory.learning.reward import Bools, Outcome, reward
from sharpwave.memory.records import Candidate, Decision, Memory, Message, Turn

Ints = npt.NDArray[np.int64]
UPDATES, DELETES = FIRST, FIRST + NEAR
"""First places of the two groups of actions that name a neighbour."""
_START = datetime(2026, 1, 5, 9, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a policy sees of one turn, in S stores at once."""

    which: Ints
    """(S,): the dialogue of each store."""
    turn: int
    near: Ints
    """(S, K): the turns whose entries are near, best first."""
    there: Bools
    """(S, K): whether there is such an entry."""
    candidate: Floats
    """(S, CANDIDATE)."""
    pairs: Floats
    """(S, K, PAIR)."""


Actor = Callable[["Environment", Seen], Ints]
"""Chooses an action (S,) for each store: ADD, NOOP, `UPDATES` + k or `DELETES` + k."""


class Environment:
    """Dialogues, ready to be played. `embeddings` gives the cosines."""

    def __init__(self, dialogues: Sequence[Dialogue], embeddings: Embeddings) -> None:
        self.dialogues = dialogues
        self.records = [_records(dialogue) for dialogue in dialogues]
        count, facts = len(dialogues), max(len(d.facts) for d in dialogues)
        self.states = np.zeros((count, TURNS, facts), bool)
        self.true = np.zeros((count, TURNS, facts), bool)
        self.slots = np.zeros((count, facts, facts), bool)
        self.nearness = np.zeros((count, facts, TURNS))
        self.candidates = np.zeros((count, TURNS, features.CANDIDATE), np.float32)
        self.pairs = np.zeros((count, TURNS, TURNS, features.PAIR), np.float32)
        vectors = _vectors(dialogues, embeddings)
        for at, dialogue in enumerate(dialogues):
            self._fill(at, dialogue, vectors)
        self.told = np.maximum.accumulate(self.states, axis=1)
        self.order = self.pairs[..., 0] + 0.5 * (self.pairs[..., 2] + self.pairs[..., 3])
        """(D, T, T): how near an entry is, by its cosine and the words in common."""
        self._values: dict[tuple[int, int, bytes], float] = {}

    def _fill(self, at: int, dialogue: Dialogue, vectors: dict[str, Floats]) -> None:
        said = np.stack([vectors[turn.text] for turn in dialogue.turns])
        cosines = said @ said.T
        for t, turn in enumerate(dialogue.turns):
            candidate = self.records[at][t][0]
            self.candidates[at, t] = features.of_candidate(candidate)
            for u in range(t):
                self.pairs[at, t, u] = features.of_pair(candidate, self.records[at][u][1], float(cosines[t, u]))
            if turn.says is not None:
                self.states[at, t, turn.says] = True
            self.true[at, t, sorted(turn.true)] = True
        for f, fact in enumerate(dialogue.facts):
            self.nearness[at, f] = said @ vectors[fact.question]
            self.slots[at, f, : len(dialogue.facts)] = [fact.slot == other.slot for other in dialogue.facts]

    def see(self, kept: Bools, which: Ints, turn: int) -> Seen:
        """Return what there is to see at a turn in stores (S, T) of the dialogues `which` (S,)."""
        nearness = np.where(kept, self.order[which, turn], -np.inf)
        near = np.argsort(-nearness, axis=1, kind="stable")[:, :NEAR]
        there = np.take_along_axis(kept, near, 1)
        pairs = np.where(there[..., None], self.pairs[which[:, None], turn, near], 0).astype(np.float32)
        return Seen(which, turn, near, there, self.candidates[which, turn], pairs)

    def value(self, kept: Bools, dialogue: int, turn: int) -> float:
        """Return the reward of one store (T,) after a turn, 0..1."""
        key = (dialogue, turn, kept.tobytes())
        if key not in self._values:
            self._values[key] = reward(self.outcome(kept, dialogue, turn))
        return self._values[key]

    def outcome(self, kept: Bools, dialogue: int, turn: int) -> Outcome:
        """Return what a store holds after a turn, as the reward sees it."""
        return Outcome(
            states=self.states[dialogue],
            kept=kept,
            true=self.true[dialogue, turn],
            told=self.told[dialogue, turn],
            slots=self.slots[dialogue],
            nearness=self.nearness[dialogue],
        )

    def right(self, kept: Bools, seen: Seen) -> Ints:
        """Return the right action (S,) in each store (S, T), given what it holds: what a teacher would say."""
        return np.array([self._right(kept[s], seen, s) for s in range(len(kept))])

    def _right(self, kept: Bools, seen: Seen, store: int) -> int:
        dialogue = int(seen.which[store])
        turn = self.dialogues[dialogue].turns[seen.turn]
        near = [(k, int(u)) for k, u in enumerate(seen.near[store]) if seen.there[store, k]]
        states = self.states[dialogue]
        if turn.says is None:
            gone = [k for k, u in near if turn.ends is not None and states[u, turn.ends]]
            return DELETES + gone[0] if gone else NOOP
        if states[kept, turn.says].any():
            return NOOP
        outdated = self.slots[dialogue, turn.says] & ~self.true[dialogue, seen.turn]
        old = [k for k, u in near if (states[u] & outdated).any()]
        return UPDATES + old[0] if old else ADD


def act(kept: Bools, seen: Seen, actions: Ints) -> None:
    """Carry out one action in each store (S, T), in place."""
    stores = np.arange(len(kept))
    place = np.where(actions >= DELETES, actions - DELETES, actions - UPDATES)
    aimed = actions >= UPDATES
    kept[stores[aimed], seen.near[stores[aimed], place[aimed]]] = False
    kept[(actions == ADD) | (aimed & (actions < DELETES)), seen.turn] = True


def sessions(turn: int) -> int:
    """Return how many sessions are over before a turn."""
    return sum(turn > end for end in SESSION_ENDS)


def turn_of(dialogue: int, at: int, text: str) -> Turn:
    """Return a turn as the writing path sees it."""
    message = Message(id=f"m{at}", role="user", text=text)
    said_at = _START + timedelta(days=7 * sessions(at), minutes=5 * at)
    return Turn(owner=f"d{dialogue}", thread=f"s{sessions(at)}", messages=(message,), said_at=said_at)


def _records(dialogue: Dialogue) -> list[tuple[Candidate, Memory]]:
    """Return the candidate of each turn, and the memory that keeping it would make."""
    extractor, made = RulesExtractor(), []
    for at, said in enumerate(dialogue.turns):
        turn = turn_of(0, at, said.text)
        found = extractor.extract(turn, []) if dialogue.speaker == "user" else []
        bare = Candidate(text=said.text, quote=said.text, subject=dialogue.speaker, message_id=f"m{at}")
        candidate = found[0] if len(found) == 1 else bare
        added = Decision(op="ADD", candidate=candidate, reason="said", policy="simulation")
        made.append((candidate, new_memory(turn, added, turn.said_at)))
    return made


def _vectors(dialogues: Sequence[Dialogue], embeddings: Embeddings) -> dict[str, Floats]:
    texts = dict.fromkeys(t.text for d in dialogues for t in d.turns)
    texts |= dict.fromkeys(f.question for d in dialogues for f in d.facts)
    vectors = embedding_array(embeddings, list(texts))
    return dict(zip(texts, vectors.astype(np.float32), strict=True))
