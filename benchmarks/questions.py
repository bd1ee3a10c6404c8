"""Questions with labelled evidence: LoCoMo (Maharana et al. 2024) and HaluMem (Chen et al. 2025)."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sharpwave.conversations import read
from sharpwave.memory.errors import InputError
from sharpwave.memory.records import Memory, Source, Turn

LOCOMO = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""Names of the categories. Of the adversarial ones, finding the evidence is no success of an answer."""
# A handful of labels are malformed: "D8:6; D9:17", "D30:05", "D:11:26", "D".
_TURN = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True)
class Question:
    """A question to one owner's memory, and the ids of all the records that hold its answer."""

    owner: str
    text: str
    gold: frozenset[str]
    category: str


def locomo(path: Path) -> tuple[list[Turn], list[Question]]:
    """Return the turns of all conversations, and the questions whose evidence is among them, by message id.

    Raises:
        InputError: the file is not LoCoMo's.
    """
    turns = list(read(path, "locomo", owner=None))
    said: dict[str, set[str]] = defaultdict(set)
    for turn in turns:
        said[turn.owner].add(turn.message_id)
    questions = []
    for sample in json.loads(path.read_bytes()):
        owner = sample["sample_id"]
        for asked in sample.get("qa", []):
            named = {f"D{int(a)}:{int(b)}" for label in asked.get("evidence", []) for a, b in _TURN.findall(label)}
            if gold := named & said[owner]:
                questions.append(Question(owner, asked["question"], frozenset(gold), LOCOMO[asked["category"]]))
    return turns, questions


def halumem(folder: Path) -> tuple[list[Memory], list[Question]]:
    """Return the statements of all users in the `*.jsonl` files of `folder`, and the questions about them, by memory id.

    Planted falsehoods ("interference") are left out: they are not to be stored.

    Raises:
        InputError: there are no such files, or one does not fit.
    """
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise InputError(f"{folder} holds no .jsonl file of HaluMem. Name its folder with --data.")
    memories: list[Memory] = []
    questions: list[Question] = []
    for path in files:
        try:
            for line in path.read_text(encoding="utf-8").splitlines():
                user = json.loads(line)
                own = list(_statements(user))
                memories += own
                questions += _asked(user, own)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} does not look like HaluMem: {error!r}.") from error
    return memories, questions


def _statements(user: dict[str, Any]) -> Iterator[Memory]:
    for session in user["sessions"]:
        at = datetime.strptime(session["start_time"], "%b %d, %Y, %H:%M:%S").replace(tzinfo=UTC)
        for point in session["memory_points"]:
            if point["memory_source"] != "interference":
                text, source = point["memory_content"], Source(kind="import")
                yield Memory(owner=user["uuid"], text=text, source=source, recorded_at=at, valid_from=at)


def _asked(user: dict[str, Any], memories: list[Memory]) -> Iterator[Question]:
    ids: dict[str, set[str]] = defaultdict(set)
    for memory in memories:
        ids[memory.text].add(memory.id)
    for session in user["sessions"]:
        for asked in session.get("questions") or []:
            gold = {i for evidence in asked["evidence"] or [] for i in ids.get(evidence["memory_content"], ())}
            if gold:
                yield Question(user["uuid"], asked["question"], frozenset(gold), asked["question_type"])
