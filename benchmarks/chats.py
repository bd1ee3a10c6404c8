"""What long talks with nothing wrong in them do to memory: how often it is changed, and how often rightly.

    python -m sharpwave.benchmarks.chats --json

`labelled/chats/` holds conversations of some forty turns about a few subjects that develop over months. In such talk nearly all that is said
leaves what was said before as true as it was; each turn that puts something out of date names the earlier words. The
dialogues of `bench write` are short and full of changes, and do not show what a policy does to a subject that comes back.
"""

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from langchain_core.embeddings import Embeddings

from sharpwave.benchmarks.labelled import HERE
from sharpwave.memory.applying import Applied
from sharpwave.memory.decide import Policy
from sharpwave.memory.decide.learned import LearnedPolicy
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.embed import LocalEmbeddings
from sharpwave.memory.extract.rules import rules_for
from sharpwave.memory.phrases import stems
from sharpwave.memory.records import Message, Record, Turn
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.writing import read, settle

Split = Literal["tune", "held"]


class Said(Record):
    """One turn of a conversation."""

    user: str
    at: datetime
    ends: tuple[str, ...] = ()
    """Words of earlier turns that hold no longer."""
    done: tuple[str, ...] = ()
    """Words of earlier turns that told of a plan which is carried out now: to end it is right, to leave it is no fault."""


class Chat(Record):
    """One conversation."""

    id: str
    turns: tuple[Said, ...]


def load(split: Split) -> list[Chat]:
    """Return the conversations of one part."""
    lines = (HERE / "chats" / f"{split}.jsonl").read_text("utf-8").splitlines()
    return [Chat.model_validate_json(line) for line in lines]


def measure(chats: Sequence[Chat], policy: Policy, embeddings: Embeddings) -> dict[str, Any]:
    """Return what a policy changed in all conversations, and how much of it rightly."""
    talks = [_talk(chat, policy, embeddings) for chat in chats]
    counts: Counter[str] = sum((counted for counted, _ in talks), Counter())
    return {
        "conversations": len(chats),
        **{name: counts[name] for name in ("turns", "statements", "changed", "changed_rightly", "changed_wrongly")},
        "wrong_in_a_thousand_statements": round(1000 * counts["changed_wrongly"] / max(1, counts["statements"]), 1),
        "ended": counts["ended"],
        "still_shown": counts["still_shown"],
        "wrong": [one for _, wrong in talks for one in wrong],
    }


def _talk(chat: Chat, policy: Policy, embeddings: Embeddings) -> tuple[Counter[str], list[dict[str, str]]]:
    """Write one conversation, and return the counts and what was changed wrongly."""
    counts, wrong = Counter[str](), list[dict[str, str]]()
    extractor = rules_for(embeddings)
    with tempfile.TemporaryDirectory() as home, MemoryStore.open(home, embeddings=embeddings) as store:
        for at, said in enumerate(chat.turns):
            message = Message(id=f"m{at}", role="user", text=said.user)
            turn = Turn(owner=chat.id, thread="chat", messages=(message,), said_at=said.at)
            store.queue([turn])
            candidates = read(store, turn, extractor)
            ended = (*said.ends, *said.done)
            for done in settle(store, turn, candidates, policy, index=False):
                counts["statements"] += 1
                if done.op in ("UPDATE", "DELETE") and not _tells_more(done):
                    right = any(tells(done.before or "", words) for words in ended)
                    counts["changed"] += 1
                    counts["changed_rightly" if right else "changed_wrongly"] += 1
                    if not right:
                        wrong.append(
                            {"op": done.op, "was": done.before or "", "said": done.quote or "", "why": done.reason}
                        )
            current = [m.text for m in store.memories(chat.id) if m.valid_to is None and m.confidence >= 0.5]
            counts["turns"] += 1
            counts["ended"] += len(said.ends)
            counts["still_shown"] += sum(any(tells(text, words) for text in current) for words in said.ends)
    return counts, wrong


def _tells_more(done: Applied) -> bool:
    """Whether what was changed is still told, with something more."""
    return done.op == "UPDATE" and stems(done.before or "") <= stems(done.text)


def tells(text: str, words: str) -> bool:
    """Whether a memory is about words of a turn: one holds the other, or nearly all that it says."""
    if words in text or (text.strip() and text.rstrip(".!? ") in words):
        return True
    told = stems(words)
    return bool(told) and len(told & stems(text)) >= 0.7 * len(told)


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=("tune", "held"), default="held", help="which part")
    parser.add_argument(
        "--show",
        action="store_true",
        help="print what was changed wrongly too (not of the held part, if it is to stay that)",
    )
    given = parser.parse_args()
    chats = load(given.split)
    policies: dict[str, Policy] = {"rules": RulesPolicy(), "learned": LearnedPolicy()}
    results = {name: measure(chats, policy, LocalEmbeddings()) for name, policy in policies.items()}
    if not given.show:
        for result in results.values():
            del result["wrong"]
    print(json.dumps(results, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
