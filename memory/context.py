"""The assembler: everything that a model is shown, fitted into its context window.

The window is laid out in shares, as 8,000 tokens usually are; what a section does not need flows on to the next. Nothing is
ever over the window, and what did not fit is named.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from sharpwave.memory.errors import InputError
from sharpwave.memory.tokens import estimate

Count = Callable[[str], int]
"""Returns how many tokens a text takes."""

LAYOUT: Mapping[str, int] = {
    "system": 500,
    "tools": 800,
    "query": 200,
    "summary": 800,
    "procedural": 500,
    "profile": 500,
    "facts": 700,
    "experiences": 300,
    "recent": 3000,
    "reserve": 700,
}
"""Tokens of a window of 8,000: the instructions, the tools, what the user asks, the summary of what was said before, the four
sections of memories (2,000 together, in the order of their claims), the recent messages, and what is left for the answer.
Other windows are laid out in the same proportions."""

FLEXIBLE = ("summary", "procedural", "profile", "facts", "experiences", "recent")
"""Sections that take what there is, in the order in which they are served."""

LEAST_QUERY = 16
"""Fewest tokens in which a message still says something."""


class Section(NamedTuple):
    """One section of a prompt, as far as it fits."""

    name: str
    lines: tuple[str, ...]
    tokens: int
    left_out: tuple[str, ...]
    """The lines that did not fit: those of the lowest rank."""


class Assembled(NamedTuple):
    """A prompt that fits."""

    window: int
    reserve: int
    """Tokens that are left for the answer."""
    fixed: int
    """Tokens of the instructions and the tools."""
    sections: tuple[Section, ...]
    recent: int
    """Tokens that the recent messages may take."""
    query: int
    """Tokens that the user's message may take: all that it has, where there is room."""

    @property
    def tokens(self) -> int:
        """Tokens of everything that is shown, at most `window - reserve`."""
        return self.fixed + sum(section.tokens for section in self.sections) + self.recent + self.query

    def section(self, name: str) -> Section:
        """Return a section by its name."""
        return next(section for section in self.sections if section.name == name)


def assemble(
    window: int,
    *,
    system: int,
    query: int,
    recent: int = 0,
    tools: int = 0,
    sections: Mapping[str, Sequence[str]] | None = None,
    reserve: int | None = None,
    count: Count = estimate,
) -> Assembled:
    """Fit a prompt into a context window.

    The instructions and the tools go in whole, and so does the user's message wherever it fits. Each other section may
    take its share of the rest and what those before it left; what is left in the end is offered once more to those that
    had to leave something out, in the same order. Lines are left out from the last, those of the lowest rank.

    Args:
        window: tokens that the model takes, the answer's included.
        system: tokens of the instructions.
        query: tokens of the user's message.
        recent: tokens of the other messages of the conversation.
        tools: tokens of what the model is told of its tools.
        sections: lines, best first, of `summary`, `procedural`, `profile`, `facts` and `experiences`.
        reserve: tokens for the answer; by default their share of the window.
        count: counts tokens.

    Raises:
        InputError: the window does not hold the instructions, the tools and a message; says how large it must be.
    """
    if reserve is None:
        reserve = window * LAYOUT["reserve"] // sum(LAYOUT.values())
    rest = window - reserve - system - tools
    if rest < min(query, LEAST_QUERY):
        least = window - rest + LEAST_QUERY
        raise InputError(
            f"A context window of {window} tokens does not hold the system prompt, the tools, a message and room for an "
            f"answer; about {least} are needed."
        )
    asked = min(query, rest)
    wanted = {name: tuple((sections or {}).get(name, ())) for name in FLEXIBLE if name != "recent"}
    filled, granted = _served(rest - asked, wanted, recent, count)
    return Assembled(window, reserve, system + tools, filled, granted, asked)


def _served(
    rest: int, wanted: Mapping[str, tuple[str, ...]], recent: int, count: Count
) -> tuple[tuple[Section, ...], int]:
    """Return the flexible sections within `rest` tokens, and the tokens of the recent messages."""
    costs = {name: [count(line) + 1 for line in lines] for name, lines in wanted.items()}  # 1 for the end of the line
    taken = dict.fromkeys(FLEXIBLE, 0)

    def serve(name: str, budget: int) -> int:
        """Give a section as much of `budget` as it can use beside what it has; returns what is left."""
        had = taken[name]
        taken[name] = _within(costs[name], had + budget) if name in costs else min(recent, had + budget)
        return budget - (taken[name] - had)

    left, shares = 0, sum(LAYOUT[name] for name in FLEXIBLE)
    for name in FLEXIBLE:
        left = serve(name, left + rest * LAYOUT[name] // shares)
    left = rest - sum(taken.values())
    for name in FLEXIBLE:
        left = serve(name, left)
    return tuple(_section(name, lines, costs[name], taken[name]) for name, lines in wanted.items()), taken["recent"]


def _within(costs: Sequence[int], budget: int) -> int:
    """Return the sum of the first costs, as many as `budget` pays for."""
    return max((paid for paid in accumulate(costs) if paid <= budget), default=0)


def _section(name: str, lines: tuple[str, ...], costs: Sequence[int], taken: int) -> Section:
    shown = sum(paid <= taken for paid in accumulate(costs))
    return Section(name, lines[:shown], taken, lines[shown:])
