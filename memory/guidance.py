"""What an agent is told before it acts: strategies that are proven, tools that keep failing, what the user prefers."""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from sharpwave.memory.kinds import Procedure
from sharpwave.memory.procedures import Procedures
from sharpwave.memory.tokens import estimate
from sharpwave.memory.tool_use import ToolUses, Unreliable
from sharpwave.memory.trust import looks_like_instruction
from sharpwave.prompts import quoted, render

if TYPE_CHECKING:
    from sharpwave.memory.store import MemoryStore

CONFIDENCE, SUCCESSES = 0.5, 3
"""Least Wilson lower bound and successes of a strategy that is told. At 95 % the bound asks for more: four successes without
a failure, seven with one, nine with two."""
STRATEGIES = PREFERENCES = 5
"""At most so many of each."""


def guidance_text(
    store: "MemoryStore",
    owner: str,
    context: str,
    agent: str = "agent",
    *,
    budget: int = 300,
    known: Collection[str] = (),
) -> str:
    """Return what the owner's procedural memory says to a situation, as quoted data for a prompt; empty for nothing.

    Lines that do not fit into the budget are left out, whole: first come strategies (the best first), then warnings of
    tools, then preferences (the most important first). What reads like an instruction of somebody else's is left out too.

    Args:
        store: the memory.
        owner: whose.
        context: what is asked, in words.
        agent: which of the owner's agents is told.
        budget: most tokens of it all, estimated.
        known: ids of memories that the prompt holds already.
    """
    lines: list[str] = []
    for line in _lines(store, owner, context, agent, known):
        if estimate(render("guidance", lines="\n".join([*lines, line]))) <= budget:
            lines.append(line)
    return render("guidance", lines="\n".join(lines)) if lines else ""


def proven(store: "MemoryStore", owner: str, context: str, agent: str = "agent") -> list[Procedure]:
    """Return the strategies that are told in a situation, the best first, at most `STRATEGIES`."""
    fit = Procedures(store).applicable(owner, context, agent=agent, k=4 * STRATEGIES)
    return [one.procedure for one in fit if _proven(one.procedure)][:STRATEGIES]


def warnings(store: "MemoryStore", owner: str, agent: str = "agent") -> list[str]:
    """Return a line for each tool that keeps failing."""
    return [_warning(tool) for tool in ToolUses(store).warnings(owner, agent)]


def _lines(store: "MemoryStore", owner: str, context: str, agent: str, known: Collection[str]) -> Iterator[str]:
    yield from map(told, proven(store, owner, context, agent))
    yield from warnings(store, owner, agent)
    preferred = store.memories(owner, kinds=("preference",))
    preferred.sort(key=lambda memory: (memory.importance, memory.recorded_at), reverse=True)
    for memory in preferred[:PREFERENCES]:
        if memory.id not in known:
            yield f"- Preference: {quoted(memory.text, 160)}"


def _proven(procedure: Procedure) -> bool:
    if any(looks_like_instruction(step) for step in procedure.steps):
        return False
    return procedure.confidence >= CONFIDENCE and procedure.successes >= SUCCESSES


def told(procedure: Procedure) -> str:
    """Return a strategy as one line of quoted data, with how often it worked."""
    tries = procedure.successes + procedure.failures
    steps = " then ".join(quoted(step, 100) for step in procedure.steps)
    return f"- Worked {procedure.successes} of {tries} times for {quoted(procedure.conditions, 100)}: {steps}"


def _warning(tool: Unreliable) -> str:
    name = " ".join(tool.tool.split())[:60]
    text = f"- Tool {name} failed in {tool.failures} of its last {tool.uses} uses"
    if not tool.error or looks_like_instruction(tool.error):
        return text
    return f"{text}, mostly {quoted(tool.error, 100)}"
