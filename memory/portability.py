"""Moving one owner's memory between stores, as lines of JSON that people can read.

The first line is a header. The others are memories (all versions, oldest first), utterances in the order they were said,
episodes, procedures, entities, sessions and probes, tool uses, and events, the history, which is there to be read and is not
imported: the store that imports keeps a log of its own.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from pydantic import ValidationError
from sqlalchemy import Connection, select

from sharpwave.memory import episodic, ledger, linking, rows, schema, semantic, times, tool_use
from sharpwave.memory.errors import InputError
from sharpwave.memory.kinds import KINDS, Entity, Kept
from sharpwave.memory.ledger import Event, check_owner
from sharpwave.memory.records import Memory, Record, Utterance, new_id
from sharpwave.memory.tool_use import ToolUse, ToolUses

if TYPE_CHECKING:
    from sharpwave.memory.store import MemoryStore

FORMAT, VERSION = "sharpwave-memory", 1
BATCH = 500
MOST_VERSIONS = 10**6
COUNTED = ("memories", "utterances", "records", "tool_uses", "events")
"""What the header counts; records are episodes, procedures, entities, sessions and probes."""
TYPE = "entity_type"
"""What the type of an entity is called in a line, where `type` says which record it is."""
MODELS: dict[str, type[Record]] = {"memory": Memory, "utterance": Utterance, "tool_use": ToolUse, **KINDS}
_COUNTS = {"memory": "memories", "utterance": "utterances", "tool_use": "tool_uses", "event": "events"}

T = TypeVar("T")
R = TypeVar("R", bound=Record)


class Imported(Record):
    """What an import brought: how many of each were new, and how many were there already."""

    memories: int
    utterances: int
    records: int
    """Episodes, procedures, entities, sessions and probes."""
    tool_uses: int
    known: int
    masked: int = 0
    """Records that held secrets, which were masked."""


def export(store: "MemoryStore", owner: str) -> Iterator[dict[str, Any]]:
    """Return the lines that hold all of an owner's memory, as of one instant.

    The header says how many lines of each type follow, so that a file that was cut short is noticed.
    """
    with store.ledger.read() as connection:
        number = ledger.owner_number(connection, check_owner(owner)) or 0
        latest = semantic.find(connection, number, statuses=())
        memories = [version for memory in latest for version in semantic.versions(connection, number, memory.id)]
        utterances = episodic.find(connection, number, owner)
        kept = [record for kind in KINDS.values() for record in rows.find(connection, number, owner, kind)]
        uses = tool_use.read(connection, number, owner)
        events = ledger.read_events(connection, number)
    yield {
        "format": FORMAT,
        "version": VERSION,
        "owner": owner,
        "exported_at": times.now().isoformat(),
        "memories": len(memories),
        "utterances": len(utterances),
        "records": len(kept),
        "tool_uses": len(uses),
        "events": len(events),
    }
    typed: list[tuple[str, Record]] = [("memory", memory) for memory in memories] + [
        ("utterance", utterance) for utterance in utterances
    ]
    typed += [(record.kind, record) for record in kept] + [("tool_use", use) for use in uses]
    typed += [("event", event) for event in events]
    for kind, record in typed:
        fields = record.model_dump(mode="json", exclude={"owner"})
        if "type" in fields:  # of an entity
            fields[TYPE] = fields.pop("type")
        yield {"type": kind, **fields}


def load(store: "MemoryStore", owner: str, lines: Iterable[str | bytes]) -> Imported:
    """Import what `export` wrote, for `owner`, whoever it was of. Nothing is written before all lines have been checked.

    Memories keep their ids; versions that this owner has already are left as they are, and so are messages of the same id
    in the same thread. So importing twice changes nothing. New messages follow after those that a thread has.

    Raises:
        InputError: a line is not of this format, or lines are missing; says which.
    """
    check_owner(owner)
    read = _read(owner, lines)
    safe: list[Record] = store.masked(owner, read)
    masked = sum(one is not other for one, other in zip(safe, read, strict=True))
    memories = sorted((r for r in safe if isinstance(r, Memory)), key=lambda memory: (memory.id, memory.version))
    utterances = [record for record in safe if isinstance(record, Utterance)]
    kept = [record for record in safe if isinstance(record, Kept)]
    uses = [record for record in safe if isinstance(record, ToolUse)]
    new = [sum(store.put_memories(owner, part, "imported") for part in _parts(memories))]
    new += [sum(store.put_utterances(owner, part) for part in _parts(utterances))]
    new += [sum(_put_records(store, owner, part) for part in _parts(kept))]
    new += [sum(ToolUses(store).record_all(owner, part) for part in _parts(uses))]
    store.index_pending()
    counts = dict(zip(("memories", "utterances", "records", "tool_uses"), new, strict=True))
    return Imported(**counts, known=len(safe) - sum(new), masked=masked)


def _put_records(store: "MemoryStore", owner: str, records: Sequence[Kept]) -> int:
    """Keep episodes, procedures, entities, sessions and probes from elsewhere; those that are there already are left alone."""
    at = times.now()
    store.embed([record.searched for record in records if record.searched])
    with store.transaction(owner, writes=True) as (connection, number):
        new = [record for record in records if not rows.known(connection, number, record)]
        for record in new:
            rows.put(
                connection, number, record, op="IMPORT", at=at, policy="user", reason="imported", embed=store.vector
            )
        if any(isinstance(record, Entity) for record in new):
            linking.rebuild(connection, number)
    return len(new)


def _parts(records: Sequence[T]) -> Iterator[Sequence[T]]:
    for at in range(0, len(records), BATCH):
        yield records[at : at + BATCH]


def put_utterances(
    connection: Connection, number: int, owner: str, records: Sequence[Utterance], embed: Callable[[str], np.ndarray]
) -> int:
    """Keep messages from elsewhere after those that their threads have; returns how many were new."""
    ids = [record.id for record in records]
    taken = set(connection.execute(select(schema.utterances.c.id).where(schema.utterances.c.id.in_(ids))).scalars())
    batch: dict[tuple[str, str], tuple[Utterance, np.ndarray]] = {}
    for thread in dict.fromkeys(record.thread for record in records):
        said = [record for record in records if record.thread == thread]
        known = episodic.known_messages(connection, number, thread, [record.message_id for record in said])
        position = episodic.next_position(connection, number, thread)
        for record in said:
            if record.message_id in known or (thread, record.message_id) in batch:
                continue
            # Another owner may have imported the same file: ids of messages are unique in the whole store.
            changes = {"owner": owner, "position": position, "id": new_id() if record.id in taken else record.id}
            taken.add(record.id)
            vector = embed(episodic.spoken(record.speaker, record.text))
            batch[thread, record.message_id] = record.model_copy(update=changes), vector
            position += 1
    episodic.put(connection, number, list(batch.values()))
    return len(batch)


def _read(owner: str, lines: Iterable[str | bytes]) -> list[Record]:
    """Return the records of a whole export, checked; of each event no more than that it is one."""
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    header = _header(next(numbered, None))
    records: list[Record] = []
    counted = dict.fromkeys(COUNTED, 0)
    for number, line in numbered:
        fields = _object(number, line)
        kind = fields.pop("type", None)
        if TYPE in fields and kind == Entity.kind:
            fields["type"] = fields.pop(TYPE)
        if kind == "event":
            _checked(number, Event, fields)
        elif kind in MODELS:
            records.append(_checked(number, MODELS[kind], {**fields, "owner": owner}))
        else:
            raise InputError(f"Line {number}: a line of type {kind!r}; known are {', '.join(MODELS)} and event.")
        counted[_COUNTS.get(kind, "records")] += 1
    for name, count in counted.items():
        if header[name] != count:
            raise InputError(
                f"The header promises {header[name]} {name}, and {count} are there. Was the file cut short?"
            )
    return records


def _header(first: tuple[int, str | bytes] | None) -> dict[str, Any]:
    if first is None:
        raise InputError("There is nothing to import; an export starts with a header line.")
    header = _object(*first)
    if header.get("format") != FORMAT:
        raise InputError(
            f"Line {first[0]}: this is no export of memories ({FORMAT!r} is not its format). Conversations are read by "
            "`sharpwave ingest`."
        )
    if header.get("version") != VERSION:
        raise InputError(
            f"Line {first[0]}: format version {header.get('version')!r}; this Sharpwave reads version {VERSION}."
        )
    missing = [name for name in COUNTED if name not in header]
    if missing:
        raise InputError(f"Line {first[0]}: the header lacks {', '.join(missing)}.")
    return header


def _object(number: int, line: str | bytes) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except UnicodeDecodeError as error:
        raise InputError(f"Line {number} is not UTF-8 text.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"Line {number} is not JSON: {error}.") from error
    if not isinstance(fields, dict):
        raise InputError(f"Line {number} is not a JSON object.")
    if not ledger.is_unicode(json.dumps(fields, ensure_ascii=False)):
        raise InputError(f"Line {number} holds a half of a surrogate pair, which is no text.")
    return fields


def _checked(number: int, model: type[R], fields: dict[str, Any]) -> R:
    try:
        record = model.model_validate(fields)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise InputError(f"Line {number}: {place}: {problem['msg']}.") from error
    except InputError as error:
        raise InputError(f"Line {number}: {error}") from error
    if isinstance(record, Memory | Utterance) and not (record.id.strip() and record.text.strip()):
        raise InputError(f"Line {number}: id and text must not be blank.")
    if isinstance(record, Memory) and not 1 <= record.version <= MOST_VERSIONS:
        raise InputError(f"Line {number}: version must be 1 to {MOST_VERSIONS}.")
    return record
