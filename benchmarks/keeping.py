"""What is kept of long conversations: LoCoMo's evidence turns that are still in the store, at the size the store comes to.

`python -m sharpwave.benchmarks.keeping PATH` prints it as JSON. Every turn is offered as it was said. The network decides alone,
with a toll on adding that makes its store as large as the other one's; by rules, a turn is kept where the extractor finds
something in it that the policy adds or updates with. Chance is the share of all turns: what random turns of that number hold.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from sharpwave.memory.applying import new_memory
from sharpwave.memory.decide import Policy
from sharpwave.memory.decide.learned import LearnedPolicy
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.embed import LocalEmbeddings, embedding_array
from sharpwave.memory.errors import InputError
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.gate import worth_reading
from sharpwave.memory.learning.checkpoint import Checkpoint, load
from sharpwave.memory.learning.features import NEAR, observe
from sharpwave.memory.learning.network import ADD, FIRST, Scores, Weights, scores
from sharpwave.memory.records import Candidate, Decision, Memory, Message, Recall, Score, Turn

_SAID = datetime(2023, 5, 8, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation: its turns in order, and the questions' evidence as indices of turns."""

    turns: tuple[Turn, ...]
    evidence: tuple[frozenset[int], ...]
    cosines: np.ndarray
    """(T, T)."""


def read(path: Path, embeddings: Embeddings) -> list[Conversation]:
    """Return the conversations of a LoCoMo file; adversarial questions, which have no answer, are left out.

    Raises:
        InputError: it cannot be read, or is no LoCoMo file.
    """
    try:
        documents = json.loads(path.read_text("utf-8"))
        return [_conversation(document, embeddings) for document in documents]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} does not look like LoCoMo: {error!r}.") from error


def _conversation(document: dict[str, Any], embeddings: Embeddings) -> Conversation:
    talk = document["conversation"]
    sessions = sorted((k for k in talk if k.startswith("session_") and k.split("_")[-1].isdigit()), key=_number)
    said = [turn for session in sessions for turn in talk[session]]
    turns = tuple(_turn(document["sample_id"], one) for one in said)
    place = {one["dia_id"]: at for at, one in enumerate(said)}
    asked = [
        frozenset(place[e] for e in question["evidence"] if e in place)
        for question in document["qa"]
        if question["category"] != 5
    ]
    vectors = embedding_array(embeddings, [turn.user_text for turn in turns])
    return Conversation(turns, tuple(evidence for evidence in asked if evidence), vectors @ vectors.T)


def _number(session: str) -> int:
    return int(session.split("_")[1])


def _turn(owner: str, one: dict[str, Any]) -> Turn:
    message = Message(id=one["dia_id"], role="user", text=one["text"] or "-", speaker=one["speaker"])
    return Turn(owner=owner, thread=one["dia_id"].split(":")[0], messages=(message,), said_at=_SAID)


def _candidate(turn: Turn) -> Candidate:
    text = turn.user_text
    return Candidate(text=text, quote=text, subject=turn.messages[0].speaker or "user", message_id=turn.message_id)


def by_network(conversation: Conversation, weights: Weights, toll: float = 0.0) -> set[int]:
    """Return the turns that a network keeps; `toll` is taken from the logit of ADD."""
    kept: dict[int, Memory] = {}
    for at, turn in enumerate(conversation.turns):
        candidate = _candidate(turn)
        near = sorted(kept, key=lambda other: -conversation.cosines[at, other])[:NEAR]
        shown = [_recall(kept[other], float(conversation.cosines[at, other])) for other in near]
        action = _action(scores(weights, *observe(candidate, shown)), toll)
        if action >= FIRST:
            del kept[near[(action - FIRST) % len(near)]]
        if action == ADD or FIRST <= action < FIRST + len(near):
            kept[at] = _memory(candidate, turn)
    return set(kept)


def _action(found: Scores, toll: float) -> int:
    logits = found.logits.copy()
    logits[ADD] -= toll
    return int(logits.argmax())


def _memory(candidate: Candidate, turn: Turn) -> Memory:
    return new_memory(turn, Decision(op="ADD", candidate=candidate, reason="said", policy="network"), turn.said_at)


def _recall(memory: Memory, cosine: float) -> Recall:
    parts = Score(cosine=cosine)
    return Recall(
        id=memory.id,
        store="semantic",
        text=memory.text,
        said_at=memory.valid_from,
        score=cosine,
        parts=parts,
        memory=memory,
    )


def by_policy(conversation: Conversation, policy: Policy) -> set[int]:
    """Return the turns that the keyless writing path keeps: gate, rules that extract, a policy that decides."""
    extractor = RulesExtractor()
    kept: dict[str, tuple[int, Memory]] = {}
    for at, turn in enumerate(conversation.turns):
        for candidate in extractor.extract(turn, []) if worth_reading(turn) else []:
            near = sorted(kept.values(), key=lambda held: -conversation.cosines[at, held[0]])[:NEAR]
            shown = [_recall(memory, float(conversation.cosines[at, other])) for other, memory in near]
            for decision in policy.decide([candidate], [shown], turn):
                if decision.target in kept and decision.op in ("UPDATE", "DELETE"):
                    del kept[decision.target]
                if decision.op in ("ADD", "UPDATE"):
                    memory = _memory(decision.candidate, turn)
                    kept[memory.id] = (at, memory)
    return {at for at, _ in kept.values()}


def stored(conversation: Conversation, kept: set[int]) -> float:
    """Return the mean share of a question's evidence that is among the turns kept, 0..1."""
    return float(np.mean([len(evidence & kept) / len(evidence) for evidence in conversation.evidence]))


def as_large(conversation: Conversation, weights: Weights, size: int) -> set[int]:
    """Return what a network keeps with the toll that brings its store nearest to a size."""
    low, high = -20.0, 20.0
    best = by_network(conversation, weights)
    for _ in range(8):
        toll = (low + high) / 2
        kept = by_network(conversation, weights, toll)
        if abs(len(kept) - size) < abs(len(best) - size):
            best = kept
        low, high = (toll, high) if len(kept) > size else (low, toll)
    return best


def measure(conversations: Sequence[Conversation], checkpoint: Checkpoint) -> list[dict[str, float]]:
    """Return, for each conversation, the shares of turns and of evidence that are kept: by the writing path with rules and with
    the learned policy, by the network alone, and by it at the size that rules come to."""
    rows = []
    for conversation in conversations:
        count, rules = len(conversation.turns), by_policy(conversation, RulesPolicy())
        row = {"turns": float(count)}
        for name, kept in (
            ("rules", rules),
            ("learned", by_policy(conversation, LearnedPolicy(checkpoint))),
            ("network", by_network(conversation, checkpoint.weights)),
            ("network_as_large_as_rules", as_large(conversation, checkpoint.weights, len(rules))),
        ):
            row[f"{name}/turns"] = round(len(kept) / count, 4)
            row[f"{name}/evidence"] = round(stored(conversation, kept), 4)
        rows.append(row)
    return rows


def main(path: Path) -> dict[str, Any]:
    """Measure the network that comes with the package on a LoCoMo file."""
    rows = measure(read(path, LocalEmbeddings()), load())
    return {
        "conversations": rows,
        "mean": {key: round(float(np.mean([row[key] for row in rows])), 4) for key in rows[0]},
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1])), indent=2))
