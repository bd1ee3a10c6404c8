"""AutoMemoryBench (Apache-2.0): synthetic dialogues with events that introduce, confirm, replace and delete facts."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from sharpwave.benchmarks.labelled import Case, Fact, Key, LabelledTurn
from sharpwave.memory.errors import InputError

CHANGES = {
    "fact_reinforcement": "NOOP",
    "retention_confirmation": "NOOP",
    "fact_update": "UPDATE",
    "deletion_request": "DELETE",
}
"""What the events about an earlier fact ask for; all other events that are to be stored are ADDs."""


def load(folder: Path) -> list[Case]:
    """Return the cases of all shards in `folder`; raises `InputError` where there are none or one does not fit."""
    files = sorted(path for path in folder.glob("*.json") if path.name != "manifest.json")
    if not files:
        raise InputError(f"{folder} holds no .json file of AutoMemoryBench. Name its folder with --data.")
    return [case for path in files for case in _of_file(path)]


def _of_file(path: Path) -> Iterator[Case]:
    try:
        yield from (_case(case) for case in json.loads(path.read_text("utf-8"))["cases"])
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} does not look like AutoMemoryBench: {error!r}.") from error


def _case(case: dict[str, Any]) -> Case:
    events = {event["source_turn_ids"][0]: event for event in case["events"]}
    about = {
        edge["source_event_id"]: edge["target_event_id"]
        for edge in case["event_edges"]
        if edge["edge_type"] == "supports"
    }
    turns: list[LabelledTurn] = []
    homes: dict[str, Key] = {}
    objects: dict[str, str] = {}
    for session in case["sessions"]:
        for said in session["turns"]:
            if said["role"] != "user":
                continue
            event = events[said["turn_id"]]
            old = event["attributes"].get("supersedes") or about.get(event["event_id"])
            turns.append(_turn(said["content"], event, old, homes, objects))
            homes[event["event_id"]], objects[event["event_id"]] = (len(turns) - 1, 0), event["object"]
    return Case(id=case["case_id"], style=case["domain"], turns=tuple(turns))


def _turn(
    text: str, event: dict[str, Any], old: str | None, homes: dict[str, Key], objects: dict[str, str]
) -> LabelledTurn:
    at = datetime.fromisoformat(event["timestamp"])
    op = CHANGES.get(event["event_type"])
    if op is None and not event["attributes"]["should_store"]:
        return LabelledTurn(user=text, at=at)
    if op is None or old is None:
        return LabelledTurn(user=text, at=at, facts=(Fact(text=text, op="ADD"),), current=(text,))
    gone = [f"is {objects[old]}", f"remains {objects[old]}"] if op in ("UPDATE", "DELETE") else []
    fact = Fact.model_validate({"text": text, "op": op, "target": homes[old]})
    return LabelledTurn(
        user=text, at=at, facts=(fact,), forbidden=tuple(gone), current=(text,) if op == "UPDATE" else ()
    )
