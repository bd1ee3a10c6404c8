"""What there is to consolidate: the parts of a plan, read off the ledger. Nothing is written here."""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection

from sharpwave.memory import concluding, deriving, episodic, insights, merging, rolling_up, rows, semantic, settling
from sharpwave.memory.kinds import Episode, Procedure, Session
from sharpwave.memory.practice import followed, has_calls, task_of
from sharpwave.memory.records import Memory, Utterance
from sharpwave.memory.schema import LEARNED_FROM, TAUGHT_BY
from sharpwave.memory.sql import fetch

ASKED = 5
"""Groups of messages that one plan has a model read."""

MERGED = 100
"""Memories that one part has others merged into."""

TAUGHT = 50
"""Episodes that one part learns procedures from."""

Part = dict[str, Any]
"""JSON-like: `kind`, `ids` of what it is about, `why`."""


KINDS = ("settle", "merge", "derive", "roll_up", "procedures", "insight")
"""Kinds of parts, in the order of a plan."""


def parts(
    connection: Connection, number: int, owner: str, *, with_model: bool, kinds: Collection[str] = KINDS
) -> Iterator[Part]:
    """Yield what there is to do for an owner, each part independent of the others.

    Args:
        connection: a view of the ledger.
        number: the owner's number.
        owner: the owner.
        with_model: also what only a model can do.
        kinds: leave out all others.
    """
    versions = semantic.all_versions(connection, number)
    newest = list({memory.id: memory for memory in versions}.values())
    live = [memory for memory in newest if memory.status == "active"]
    found: dict[str, Callable[[], Iterator[Part]]] = {
        "settle": lambda: _to_settle(connection, number, live),
        "merge": lambda: _to_merge(connection, number, live),
        "derive": lambda: _to_derive(connection, number, owner, versions, with_model),
        "roll_up": lambda: _to_roll_up(connection, number, owner, newest),
        "procedures": lambda: _to_learn(connection, number, owner),
        "insight": lambda: _to_understand(connection, number, owner, newest),
    }
    for kind, parts_of in found.items():
        if kind in kinds:
            yield from parts_of()


def _part(kind: str, ids: Sequence[str], why: str, **more: Any) -> Part:
    return {"kind": kind, "ids": list(ids), "why": why, **more}


def _to_settle(connection: Connection, number: int, live: Sequence[Memory]) -> Iterator[Part]:
    for memory in live:
        found = settling.verdict(connection, number, memory) if memory.needs_review else None
        if found:
            yield _part("settle", [memory.id], f"{found.op} {memory.text!r}: {found.reason}")


def _to_merge(connection: Connection, number: int, live: Sequence[Memory]) -> Iterator[Part]:
    batch: list[merging.Group] = []
    whole = merging.connected(merging.groups(live, merging.apart(connection, number)))
    for at, together in enumerate(whole, 1):
        batch += together
        if len(batch) >= MERGED or at == len(whole):
            ids = [[kept.id, *(other.id for other in others)] for kept, others in batch]
            kept, others = batch[0]
            why = f"{len(batch)} memories say all that others do: {kept.text!r} and {others[0].text!r}"
            yield _part("merge", list(dict.fromkeys(one for group in ids for one in group)), why, groups=ids)
            batch = []


def _to_derive(
    connection: Connection, number: int, owner: str, memories: Sequence[Memory], with_model: bool
) -> Iterator[Part]:
    said = episodic.find(connection, number, owner)
    facts = list(deriving.repeated(said, memories))
    if facts:
        ids = list(dict.fromkeys(source.id for fact in facts for source in fact.sources))
        why = f"{len(facts)} statements were made more than once, and are not kept"
        yield _part("derive", ids, why, by="rules", facts=len(facts))
    if with_model:
        looked_at = concluding.considered(connection, number, "facts")
        looked_at |= {one for memory in memories for one in memory.derived_from}
        vectors = _vectors(connection, "utterances", number, [one.id for one in said])
        for group in deriving.clusters(said, vectors, looked_at)[:ASKED]:
            ids = [one.id for one in group]
            yield _part("derive", ids, f"{len(ids)} messages speak of the same", by="model")


def _to_roll_up(connection: Connection, number: int, owner: str, newest: Sequence[Memory]) -> Iterator[Part]:
    sessions = rows.find(connection, number, owner, Session)
    for one in rolling_up.roll_ups(sessions, [memory for memory in newest if memory.kind == "summary"]):
        why = f"{one.title}: {len(one.sessions)} conversations"
        yield _part("roll_up", [session.id for session in one.sessions], why, name=one.name)


def rolling(connection: Connection, number: int, owner: str, name: str) -> rolling_up.RollUp | None:
    """Return what is to be rolled up under a name, if there still is anything."""
    sessions = rows.find(connection, number, owner, Session)
    summaries = semantic.find(connection, number, statuses=(), kinds=("summary",))
    return next((one for one in rolling_up.roll_ups(sessions, summaries) if one.name == name), None)


def _to_learn(connection: Connection, number: int, owner: str) -> Iterator[Part]:
    waiting = untaught(connection, number, owner)
    for at in range(0, len(waiting), TAUGHT):
        some = waiting[at : at + TAUGHT]
        why = f"{len(some)} episodes that no procedure has counted, such as {some[0].task[:80]!r}"
        yield _part("procedures", [episode.id for episode in some], why)


def untaught(connection: Connection, number: int, owner: str, ids: Sequence[str] | None = None) -> list[Episode]:
    """Return the episodes, all or of these `ids`, that a procedure may be learned from, and that none has counted."""
    done = _taught(connection, number, ids)
    done |= concluding.considered(connection, number, "procedures")
    known = rows.find(connection, number, owner, Procedure)
    return [
        episode
        for episode in rows.find(connection, number, owner, Episode, statuses=("active",), ids=ids)
        if episode.id not in done
        and task_of(episode)
        and has_calls(episode)
        and (
            episode.outcome == "success"
            or (episode.outcome == "failure" and any(followed(one, episode) for one in known))
        )
    ]


def _taught(connection: Connection, number: int, ids: Sequence[str] | None) -> set[str]:
    """Return the episodes, all or of these `ids`, that a procedure has counted: each event tells of one, the last learned from."""
    among = "" if ids is None else f" AND {LEARNED_FROM} IN (SELECT value FROM json_each(?))"
    statement = f"SELECT DISTINCT {LEARNED_FROM} FROM events WHERE owner = ? AND {TAUGHT_BY}{among}"
    return {one for (one,) in fetch(connection, statement, (number, *([] if ids is None else [json.dumps(ids)])))}


def _to_understand(connection: Connection, number: int, owner: str, newest: Sequence[Memory]) -> Iterator[Part]:
    episodes = rows.find(connection, number, owner, Episode, statuses=("active",), last=insights.LATEST)
    gained = [memory for memory in newest if memory.kind == "insight"]
    vectors = _vectors(connection, "records", number, [episode.id for episode in episodes])
    for group in insights.sorts(episodes, vectors):
        if insights.grown(group, insights.known_of(group, gained)):
            yield _part("insight", [one.id for one in group], f"{len(group)} episodes like {group[0].task[:80]!r}")


def insight_of(
    connection: Connection, number: int, owner: str, ids: Sequence[str]
) -> tuple[list[Episode], Memory | None]:
    """Return those of these episodes that are there, and what is known of them."""
    episodes = rows.find(connection, number, owner, Episode, statuses=("active",), ids=ids)
    return episodes, insights.known_of(episodes, semantic.find(connection, number, statuses=(), kinds=("insight",)))


def there(connection: Connection, number: int, ids: Sequence[str]) -> set[str]:
    """Return those of these ids of utterances that are there."""
    statement = "SELECT id FROM utterances WHERE owner = ? AND id IN (SELECT value FROM json_each(?))"
    return {one for (one,) in fetch(connection, statement, (number, json.dumps(list(ids))))}


def sources(
    connection: Connection, number: int, owner: str, ids: Sequence[str]
) -> tuple[list[Utterance], list[Memory]]:
    """Return those of these utterances that are there, and all versions of all memories."""
    wanted = set(ids)
    said = [utterance for utterance in episodic.find(connection, number, owner) if utterance.id in wanted]
    return said, semantic.all_versions(connection, number)


def _vectors(connection: Connection, table: str, number: int, ids: Sequence[str]) -> np.ndarray:
    """Return the vectors of utterances or records, a row each in the order of `ids`; zeros where there is none."""
    if not ids:
        return np.empty((0, 0), np.float32)
    found: dict[str, bytes] = dict(fetch(connection, f"SELECT id, vector FROM {table} WHERE owner = ?", (number,)))
    size = max(len(found[one] or b"") for one in ids)
    return (
        np.frombuffer(b"".join(found[one] or bytes(size) for one in ids), np.float16)
        .reshape(len(ids), -1)
        .astype(np.float32)
    )
