"""What an agent writes to memory by itself, in a call of a tool: by the same decisions, guard and log as what users say.

Whose words a text is decides what it may do. What stands word for word in the user's message counts as the user's, what a tool
said as the tool's, and all else as the agent's own: it changes nothing that the user has said, and is quarantined where it
reads like an instruction.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from sharpwave.memory import times
from sharpwave.memory.applying import Applied
from sharpwave.memory.decide import Policy
from sharpwave.memory.decide.guard import guard
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.errors import InputError
from sharpwave.memory.evidence import own_words
from sharpwave.memory.records import Candidate, Decision, Memory, Message, Recall, Role, Turn, new_id
from sharpwave.memory.semantic import folded
from sharpwave.memory.store import MemoryStore, StaleDecision
from sharpwave.memory.writing import settle

POLICY = "agent/1"
"""Who decided, of what an agent changed by its id."""
SHORTEST = 3
"""Words from which a text is taken for the user's own because it stands in the user's message."""


class Call(NamedTuple):
    """The call of a tool by which an agent writes. The same call is carried out once."""

    thread: str
    id: str
    at: datetime
    exchange: tuple[Message, ...] = ()
    """What was said in this turn so far."""
    timezone: str = "UTC"

    @classmethod
    def by_hand(cls) -> "Call":
        """Return a call from outside of any conversation, now."""
        return cls("by hand", new_id(), times.now())


def speaker(text: str, exchange: Sequence[Message]) -> Role:
    """Return whose words a text is: the user's, a tool's, or the agent's own."""
    words = f" {folded(text)} "
    for message in exchange:
        if (
            message.role == "user"
            and len(words.split()) >= SHORTEST
            and words in f" {folded(own_words(message.text))} "
        ):
            return "user"
    said_by_tool = any(m.role == "tool" and words in f" {folded(m.text)} " for m in exchange)
    return "tool" if said_by_tool else "assistant"


def insert(
    store: MemoryStore,
    owner: str,
    text: str,
    call: Call,
    *,
    subject: str = "user",
    tags: Sequence[str] = (),
    pinned: bool = False,
    policy: Policy | None = None,
) -> Applied | None:
    """Have a text decided about and carried out; None where this call was carried out before.

    Args:
        store: the memory.
        owner: whose.
        text: one statement.
        call: where it comes from.
        subject: whom it is about.
        tags: of the memory that it becomes, or is found to repeat.
        pinned: whether that is pinned.
        policy: decides; by default by rules.

    Raises:
        InputError: the text is blank.
        ModelError: the policy's model or the embedder failed.
    """
    text = _clean(store, owner, text)
    turn, candidate = _said(owner, text, call)
    candidate = candidate.model_copy(update={"subject": subject, "tags": tuple(tags), "pinned": pinned})
    done = settle(store, turn, [candidate], policy or RulesPolicy())
    return done[-1] if done else None


def replace(
    store: MemoryStore, owner: str, target: str, text: str, call: Call, *, unpinned: bool = False
) -> list[Applied]:
    """Give a memory another text: as a new version, or as a memory in its place where it says something else altogether.

    `unpinned` says that being pinned does not protect it; returns nothing where this call was carried out before.

    Raises:
        InputError: the text is blank, or the guard does not let this change the memory; nothing is changed then.
        NotFoundError: there is no such memory.
    """
    text = _clean(store, owner, text)
    turn, candidate = _said(owner, text, call)

    def decisions(memory: Memory) -> list[Decision]:
        like = {"subject": memory.subject, "kind": memory.kind, "importance": memory.importance}
        new = candidate.model_copy(update={**like, "tags": memory.tags, "pinned": memory.pinned})
        (update,) = _guarded([_decision("UPDATE", new, memory, "edited by the agent")], memory, turn, unpinned)
        if update.guarded is None or update.guarded.startswith("quarantined"):
            return [update]
        gone = _decision("DELETE", _retraction(new, memory, text), memory, "replaced by the agent")
        added = _decision("ADD", new, None, f"in place of {memory.text!r}")
        return _guarded([gone, added], memory, turn, unpinned)

    return _carried_out(store, turn, target, decisions)


def forget(
    store: MemoryStore, owner: str, target: str, reason: str, call: Call, *, unpinned: bool = False
) -> list[Applied]:
    """Retract a memory; it leaves a tombstone and can be restored. Arguments and errors as of `replace`."""
    reason = _clean(store, owner, reason)
    turn, candidate = _said(owner, reason, call)

    def decisions(memory: Memory) -> list[Decision]:
        gone = _decision("DELETE", _retraction(candidate, memory, reason), memory, reason)
        return _guarded([gone], memory, turn, unpinned)

    return _carried_out(store, turn, target, decisions)


def _clean(store: MemoryStore, owner: str, text: str) -> str:
    if not text.strip():
        raise InputError("There is no text: say what is to be kept, or why something is to go.")
    return store.masked(owner, text.strip())


def _said(owner: str, text: str, call: Call) -> tuple[Turn, Candidate]:
    role = speaker(text, call.exchange)
    message = Message(id=call.id, role=role, text=text)
    turn = Turn(owner=owner, thread=call.thread, messages=(message,), said_at=call.at, timezone=call.timezone)
    kind = "user" if role == "user" else "tool" if role == "tool" else "assistant"
    return turn, Candidate(text=text, quote=text, message_id=call.id, source_kind=kind)


def _decision(op: str, candidate: Candidate, memory: Memory | None, reason: str) -> Decision:
    fields = {"op": op, "candidate": candidate, "target": memory.id if memory else None, "reason": reason}
    return Decision.model_validate({**fields, "policy": POLICY})


def _retraction(candidate: Candidate, memory: Memory, words: str) -> Candidate:
    """Return what takes a memory back: the user's words must be about it, the agent names it by its own text."""
    text = words if candidate.source_kind == "user" else memory.text
    return candidate.model_copy(update={"text": text, "subject": memory.subject, "polarity": "retract"})


def _guarded(decisions: list[Decision], memory: Memory, turn: Turn, unpinned: bool) -> list[Decision]:
    shown = memory.model_copy(update={"pinned": memory.pinned and not unpinned})
    hit = Recall(id=memory.id, store="semantic", text=memory.text, said_at=memory.valid_from, score=1.0, memory=shown)
    return guard(decisions, [[hit]], turn)


def _carried_out(
    store: MemoryStore, turn: Turn, target: str, decisions: Callable[[Memory], list[Decision]]
) -> list[Applied]:
    while True:
        _, revision = store.neighbours(turn.owner, [])
        memory = store.get(turn.owner, target)
        made = decisions(memory)
        refused = made[0].guarded
        if refused and not refused.startswith("quarantined"):
            raise InputError(f"{memory.text!r} was not changed: {refused}.")
        try:
            return store.apply(turn, made, revision=revision, shown=[memory.id])
        except StaleDecision:
            continue
