"""Core memory: small blocks of text that a model is always shown, and edits itself.

A block is a tag, `core:<name>`, on pinned memories; its text is that of all of them. Each has a limit, checked when it is
written. What is written goes the way of everything else (see `self_editing`): decided about, guarded, logged, and undone by
`undo`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from sharpwave.memory import semantic
from sharpwave.memory.applying import Applied
from sharpwave.memory.errors import InputError
from sharpwave.memory.records import Memory
from sharpwave.memory.schema import PINNED
from sharpwave.memory.self_editing import Call, forget, insert, replace
from sharpwave.memory.sql import fetch
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.tokens import estimate
from sharpwave.prompts import quoted, render

BLOCKS: Mapping[str, int] = MappingProxyType({"persona": 200, "human": 300})
"""The blocks, each with its limit in tokens: who the agent is, and who the user is."""
_SHOWN = 2000
"""Characters of a memory that are shown at most."""


class CoreMemory:
    """The core memory of the owners of a store. Every call names its owner, and no call reaches anybody else's.

    Args:
        store: where it is kept.
        agent: whose it is, among the owner's agents.
        blocks: names of the blocks, each with its limit in tokens.
    """

    def __init__(self, store: MemoryStore, *, agent: str = "agent", blocks: Mapping[str, int] = BLOCKS) -> None:
        self.store, self.agent, self.blocks = store, agent, blocks

    def memories(self, owner: str) -> dict[str, list[Memory]]:
        """Return what is in each block, in the order in which it was written; also in those that others have made."""
        held: dict[str, list[Memory]] = {name: [] for name in self.blocks}
        for memory in _pinned(self.store, owner):
            for tag in memory.tags:
                agent, _, name = tag.removeprefix(semantic.CORE).rpartition(":")
                if tag.startswith(semantic.CORE) and (agent or "agent") == self.agent:
                    held.setdefault(name, []).append(memory)
        return held

    def text(self, owner: str, block: str) -> str:
        """Return the text of a block, a line a memory."""
        self._limit(block)
        return "\n".join(memory.text for memory in self.memories(owner)[block])

    def append(self, owner: str, block: str, text: str, *, call: Call | None = None) -> Applied | None:
        """Add a statement to a block; what is known already is moved there. None where this call was carried out before.

        Raises:
            InputError: there is no such block, the text is blank, or the block would be larger than its limit.
        """
        self._limit(block)
        held = [memory.text for memory in self.memories(owner)[block]]
        if semantic.folded(text) not in map(semantic.folded, held):
            self._check(block, [*held, text.strip()])
        subject = "agent" if block == "persona" else "user"
        tags = (self._tag(block),)
        return insert(self.store, owner, text, call or Call.by_hand(), subject=subject, tags=tags, pinned=True)

    def replace(self, owner: str, block: str, old: str, new: str, *, call: Call | None = None) -> list[Applied]:
        """Put other words into the place of some of a block; without new words, the statement that holds them is retracted.

        Raises:
            InputError: there is no such block, `old` does not stand in one of its statements, the block would be larger
                than its limit, or the guard does not let this change what is known.
        """
        self._limit(block)
        held = self.memories(owner)[block]
        found = [memory for memory in held if old.strip() and old.strip() in memory.text]
        if len(found) != 1:
            how = "does not stand in" if not found else f"stands in {len(found)} statements of"
            raise InputError(f"{old!r} {how} the block {block!r}. Give words of one of its statements, exactly.")
        memory, call = found[0], call or Call.by_hand()
        text = memory.text.replace(old.strip(), new.strip())
        if not text.strip() or not new.strip():
            reason = f"the agent took it out of {block}"
            return forget(self.store, owner, memory.id, reason, call, unpinned=True)
        self._check(block, [text if one is memory else one.text for one in held])
        return replace(self.store, owner, memory.id, text, call, unpinned=True)

    def shown(self, owner: str) -> str:
        """Return all blocks that hold something, as quoted data for a prompt; empty for nothing."""
        lines: list[str] = []
        for name, memories in self.memories(owner).items():
            size = estimate("\n".join(memory.text for memory in memories))
            limit = f" of {self.blocks[name]}" if name in self.blocks else ""
            lines += [f"{name} ({size}{limit} tokens):"] if memories else []
            lines += [f"- {quoted(memory.text, _SHOWN)}" for memory in memories]
        return render("core", blocks="\n".join(lines)) if lines else ""

    def _tag(self, block: str) -> str:
        own = "" if self.agent == "agent" else f"{self.agent}:"
        return f"{semantic.CORE}{own}{block}"

    def _limit(self, block: str) -> int:
        if block not in self.blocks:
            raise InputError(f"There is no core memory block {block!r}. There are {', '.join(self.blocks)}.")
        return self.blocks[block]

    def _check(self, block: str, texts: list[str]) -> None:
        size, limit = estimate("\n".join(texts)), self._limit(block)
        if size > limit:
            raise InputError(
                f"The block {block!r} would take {size} tokens, and its limit is {limit}. Replace or shorten what is in it, "
                "or put this into archival memory."
            )


def _pinned(store: MemoryStore, owner: str) -> list[Memory]:
    with store.transaction(owner) as (connection, number):
        found = fetch(connection, f"SELECT row FROM memories WHERE owner = ? AND {PINNED}", (number,))
        memories = semantic.load(connection, number, [row for (row,) in found]) if found else []
        return sorted((semantic.read_row(row, number) for row in memories), key=lambda memory: memory.id)


def core_text(store: MemoryStore, owner: str, agent: str = "agent") -> str:
    """Return an owner's core memory as quoted data for a prompt; empty where there is none. See `CoreMemory.shown`."""
    return CoreMemory(store, agent=agent).shown(owner)
