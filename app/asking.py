"""Asking a person at the terminal to approve what would be deleted or changed in memory."""

import re
import sys
from typing import Any

from rich.markup import escape

from sharpwave.console import err
from sharpwave.showing import plain

Answer = bool | list[int]
Asked = dict[str, Any]
"""What a run stopped to ask; see `sharpwave.graphs.approve`."""


def ask(asked: Asked) -> Answer | None:
    """Show what would be deleted or changed, and why, and ask; returns None where nobody answers."""
    if not sys.stdin.isatty():
        return None
    err.print()
    err.print(plain(described(asked)), style="yellow")
    count = len(asked["decisions"])
    some = "" if count == 1 else ", or the numbers of some"
    try:
        while (answer := _read(err.input(escape(f"Do it? [y/n{some}] ")), count)) is None:
            pass
    except (EOFError, KeyboardInterrupt):
        err.print()
        return None
    return answer


def _read(typed: str, count: int) -> Answer | None:
    typed = typed.strip().casefold()
    if typed in ("y", "yes", "n", "no"):
        return typed.startswith("y")
    numbers = [int(number) for number in re.findall(r"\d+", typed)]
    fits = re.fullmatch(r"[\d\s,]+", typed) and all(1 <= number <= count for number in numbers)
    return numbers if fits and numbers else None


def described(asked: Asked) -> str:
    """Return in words what is asked, a few lines for each decision."""
    lines = [f"You said “{_flat(asked['said'])}” – may this be done to what is remembered?"]
    for decision in asked["decisions"]:
        change = "delete" if decision["op"] == "DELETE" else "change"
        to = "" if decision["new"] is None else f" to “{_flat(decision['new'])}”"
        lines.append(f"  {decision['n']}. {change} “{_flat(decision['old'])}”{to}")
        lines.append(
            f"     because of “{_flat(decision['quote'])}”: {_flat(decision['reason'])} ({decision['confidence']:.0%} sure)"
        )
    return "\n".join(lines)


def _flat(text: str) -> str:
    return " ".join(text.split())
