"""HaluMem (Chen et al. 2025): third-person memory points, some of which must take the place of earlier ones.

A case is one session of one user: what the user's sessions before it added, and the originals that its updates name, are
known before; its own points are written one a turn. Planted falsehoods ("interference") are left out, for a policy cannot
tell them from the truth.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sharpwave.benchmarks.labelled import Case, Fact, LabelledTurn, given, lines
from sharpwave.memory.errors import InputError

EARLIER = 20
"""Points of earlier sessions that are known before."""


def load(folder: Path) -> list[Case]:
    """Return the cases of all `*.jsonl` files in `folder`; raises `InputError` where there are none or one does not fit."""
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise InputError(f"{folder} holds no .jsonl file of HaluMem. Name its folder with --data.")
    return [case for path in files for case in _of_file(path)]


def _of_file(path: Path) -> Iterator[Case]:
    for number, line in enumerate(lines(path), 1):
        try:
            yield from _of_user(json.loads(line))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"Line {number} of {path} does not look like HaluMem: {error!r}.") from error


def _of_user(user: dict[str, Any]) -> Iterator[Case]:
    earlier: list[str] = []
    for number, session in enumerate(user["sessions"]):
        points = [p for p in session["memory_points"] if p["memory_source"] != "interference"]
        if any(_replaces(point) for point in points):
            yield _case(f"{user['uuid']}-{number}", _name(user), session["start_time"], points, earlier[-EARLIER:])
        earlier = [text for text in earlier if text not in {old for p in points for old in _originals(p)}]
        earlier += [point["memory_content"] for point in points]


def _case(name: str, about: str, at: str, points: Sequence[dict[str, Any]], earlier: Sequence[str]) -> Case:
    said = datetime.strptime(at, "%b %d, %Y, %H:%M:%S").replace(tzinfo=UTC)
    known = list(dict.fromkeys([*earlier, *(old for point in points for old in _originals(point))]))
    turns = [given([(text, Fact(text=text, op="ADD")) for text in known], said, seed=True)] if known else []
    replaced: set[str] = set()
    for point in points:
        turns.append(_turn(point, known, replaced, said))
        replaced.update(_originals(point))
    return Case(id=name, about=about, turns=tuple(turns))


def _turn(point: dict[str, Any], known: Sequence[str], replaced: set[str], at: datetime) -> LabelledTurn:
    text = " ".join(point["memory_content"].split())
    old = [original for original in dict.fromkeys(_originals(point)) if original not in replaced]
    if not old:
        return LabelledTurn(user=text, at=at, facts=(Fact(text=text, op="ADD"),), current=(text,))
    targets = [(0, known.index(original)) for original in old]
    fact = Fact(text=text, op="UPDATE", target=targets[0], also=tuple(targets[1:]))
    return LabelledTurn(user=text, at=at, facts=(fact,), forbidden=tuple(old), current=(text,))


def _replaces(point: dict[str, Any]) -> bool:
    return bool(point["is_update"] == "True" and point["original_memories"])


def _originals(point: dict[str, Any]) -> list[str]:
    return [" ".join(text.split()) for text in point["original_memories"]] if _replaces(point) else []


def _name(user: dict[str, Any]) -> str:
    """Return the name that the points speak of: the two words most of them begin with."""
    starts = [
        " ".join(p["memory_content"].split()[:2]).removesuffix("'s")
        for s in user["sessions"]
        for p in s["memory_points"]
    ]
    return max(set(starts), key=starts.count)
