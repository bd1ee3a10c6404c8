"""`examine`: is what a store holds whole, and do ledger and index agree?

Counts prove nothing about vectors: another process can destroy them with `count()` unchanged. So vectors are asked for
themselves, by a process of its own (`probe`), which a damaged index may end without ending this one.
"""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pydantic import computed_field
from sqlalchemy import Connection

from sharpwave.memory import chroma_files, erase, fingerprint, keywords, ledger, rebuild, retrace, schema
from sharpwave.memory.errors import ConfigError, ModelError, StoreError
from sharpwave.memory.records import Record

if TYPE_CHECKING:
    from sharpwave.memory.store import MemoryStore

SAMPLE = 2000
"""Vectors that are asked for themselves; all of them where there are no more."""
PROBE_TIMEOUT = 300
REINDEX = "Run `sharpwave reindex`; it rebuilds this from the ledger."
RESTORE = (
    "Put a copy of the folder from before back in its place, or keep what is readable: `sharpwave memories export`."
)


class Check(Record):
    """One thing that was looked at."""

    name: str
    ok: bool
    found: str
    advice: str | None = None
    """What to do; absent when all is well."""


class Report(Record):
    """What an examination found."""

    checks: tuple[Check, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def healthy(self) -> bool:
        """Whether nothing needs doing."""
        return all(check.ok for check in self.checks)


def examine(store: "MemoryStore", *, sample: int = SAMPLE) -> Report:
    """Look at everything in the store's folder, and change nothing.

    Args:
        store: opened with `repair=True`, which takes it in whatever state it is.
        sample: about how many vectors are asked for themselves.

    Other processes that want to write wait meanwhile.
    """
    with store.locked():
        return Report(checks=tuple(_checks(store, sample)))


def _checks(store: "MemoryStore", sample: int) -> Iterator[Check]:
    yield _folder(store)
    whole = _in_ledger(store, "ledger", _integrity)
    yield whole
    if not whole.ok:
        return
    yield _in_ledger(store, "versions", _versions)
    yield _in_ledger(store, "events", _events)
    yield _in_ledger(store, "utterances", _utterances)
    yield _in_ledger(store, "vectors", _sizes)
    yield _in_ledger(store, "keywords", _keywords, writes=True)
    yield _in_ledger(store, "queue", _queue)
    yield _embedder(store)
    yield _in_ledger(store, "waiting", _waiting)
    yield _erasure(store)
    yield _index(store, sample)


def _verdict(name: str, problems: list[str], well: str, advice: str) -> Check:
    return Check(
        name=name, ok=not problems, found="; ".join(problems) if problems else well, advice=advice if problems else None
    )


def _in_ledger(store: "MemoryStore", name: str, look: Callable[[Connection], Check], *, writes: bool = False) -> Check:
    """Run a check inside a transaction; that the database refuses is a finding."""
    try:
        with store.ledger.write() if writes else store.ledger.read() as connection:
            return look(connection)
    except StoreError as error:
        return Check(name=name, ok=False, found=str(error), advice=REINDEX if name == "keywords" else RESTORE)


def _folder(store: "MemoryStore") -> Check:
    problems = []
    for path in (store.home, store.ledger.path):
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            problems.append(f"{path} is open to other users of this machine ({mode:o})")
    if not os.access(store.home, os.W_OK | os.X_OK):
        problems.append(f"{store.home} cannot be written to")
    return _verdict(
        "folder", problems, f"{store.home} is private", "Correct the permissions of the folder (chmod -R go= …)."
    )


def _integrity(connection: Connection) -> Check:
    found = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check(5)")]
    version = ledger.get_meta(connection, "schema_version")
    problems = [] if found == ["ok"] else found
    if version != str(len(schema.MIGRATIONS)):
        problems.append(f"schema version {version}, not {len(schema.MIGRATIONS)}")
    return _verdict("ledger", problems, f"sound, schema version {version}", RESTORE)


def _number(connection: Connection, statement: str) -> int:
    return int(connection.exec_driver_sql(f"SELECT COUNT(*) FROM ({statement})").scalar_one())


def _versions(connection: Connection) -> Check:
    total = _number(connection, "SELECT DISTINCT owner, id FROM memories")
    torn = _number(connection, "SELECT 1 FROM memories GROUP BY owner, id HAVING SUM(current) != 1")
    old = _number(
        connection,
        "SELECT 1 FROM memories m WHERE current AND EXISTS "
        "(SELECT 1 FROM memories n WHERE n.owner = m.owner AND n.id = m.id AND n.version > m.version)",
    )
    problems = [f"{torn} memories without exactly one current version"] if torn else []
    problems += [f"{old} memories whose current version is not the newest"] if old else []
    return _verdict("versions", problems, f"{total} memories, each with one current version", RESTORE)


def _events(connection: Connection) -> Check:
    found = retrace.differences(connection)
    problems = [f"{len(found)} differences between the decisions and what they led to"] if found else []
    problems += [difference.told() for difference in found[:3]]
    advice = f"`sharpwave ledger --verify` lists them. {RESTORE}"
    return _verdict("events", problems, "the rows are what the decisions made them", advice)


def _utterances(connection: Connection) -> Check:
    total = _number(connection, "SELECT 1 FROM utterances")
    double = _number(connection, "SELECT 1 FROM utterances GROUP BY owner, thread, message_id HAVING COUNT(*) > 1")
    placed = _number(connection, "SELECT 1 FROM utterances GROUP BY owner, thread, position HAVING COUNT(*) > 1")
    problems = [f"{double} messages kept twice"] if double else []
    problems += [f"{placed} places in a thread taken twice"] if placed else []
    return _verdict("utterances", problems, f"{total} messages, each kept once", RESTORE)


def _sizes(connection: Connection) -> Check:
    made = json.loads(ledger.get_meta(connection, "embedder") or "{}")
    size = 2 * int(made.get("dimensions", 0))
    problems = []
    for table in ("memories", "utterances"):
        odd = _number(connection, f"SELECT 1 FROM {table} WHERE length(vector) != {size}")
        problems += [f"{odd} {table} have a vector of another size"] if odd else []
    well = f"float16, {made['dimensions']} dimensions" if made else "none yet"
    return _verdict("vectors", problems, well, "Run `sharpwave reindex --embed`; it embeds everything anew.")


_VIEWS = {
    "memory_terms": ("memories", "term_count"),
    "utterance_terms": ("utterances", "term_count"),
    "window_terms": ("utterances", "window_term_count"),
}


def _keywords(connection: Connection) -> Check:
    problems = []
    for view in keywords.TABLES:
        connection.exec_driver_sql(f"INSERT INTO {view}({view}) VALUES ('integrity-check')")
        table, length = _VIEWS[view]
        missing = _number(connection, f"SELECT row FROM {table} EXCEPT SELECT rowid FROM {view}")
        extra = _number(connection, f"SELECT rowid FROM {view} EXCEPT SELECT row FROM {table}")
        counted = f"SELECT owner, COUNT(*), SUM({length}) FROM {table} GROUP BY owner"
        kept = f"SELECT owner, records, terms FROM term_statistics WHERE view = '{view}' AND records > 0"
        off = _number(
            connection, f"SELECT * FROM ({counted} EXCEPT {kept}) UNION SELECT * FROM ({kept} EXCEPT {counted})"
        )
        problems += [f"{view} lacks {missing} rows"] if missing else []
        problems += [f"{view} has {extra} rows too many"] if extra else []
        problems += [f"{view} has wrong statistics"] if off else []
    return _verdict("keywords", problems, "as many as rows, with the right statistics", REINDEX)


def _queue(connection: Connection) -> Check:
    turns, dead = ledger.pending_turns(connection), ledger.pending_turns(connection, state="failed")
    failed = [(turn, error) for turn, _, error in turns if error]
    problems = [f"{len(failed)} of {len(turns)} turns that wait could not be written"] if failed else []
    problems += [f"{len(dead)} turns could not be written and are not tried again"] if dead else []
    named = [*failed, *((turn, error) for turn, _, error in dead)][:3]
    problems += [f"{turn.owner}, {turn.thread}, {turn.message_id}: {error}" for turn, error in named]
    advice = "Mend what the error names, then run `sharpwave retry`."
    return _verdict("queue", problems, f"{len(turns)} turns wait to be written" if turns else "empty", advice)


def _embedder(store: "MemoryStore") -> Check:
    try:
        with store.ledger.read() as connection:
            kept = ledger.get_meta(connection, "embedder")
            if kept is not None:
                fingerprint.check(connection, store.embeddings, store.home)
    except (StoreError, ConfigError, ModelError) as error:
        return Check(name="embedder", ok=False, found=str(error), advice="See there.")
    name = json.loads(kept)["name"] if kept else "none yet"
    return Check(name="embedder", ok=True, found=f"{name}, the one that is configured" if kept else name)


def _waiting(connection: Connection) -> Check:
    rows = _number(
        connection, "SELECT row FROM memories WHERE NOT indexed UNION ALL SELECT row FROM utterances WHERE NOT indexed"
    )
    problems = ["a rebuild was interrupted"] if ledger.get_meta(connection, "rebuilding") == "1" else []
    well = f"{rows} rows wait to be indexed, which the next command does" if rows else "everything is indexed"
    return _verdict("waiting", problems, well, "Run `sharpwave reindex`.")


def _erasure(store: "MemoryStore") -> Check:
    begun = erase.interrupted(store.home)
    problems = [f"that of {begun[0]!r} was begun and is not finished"] if begun else []
    return _verdict("erasure", problems, "none under way", f"Run {erase.advice(*begun)}." if begun else "")


def _index(store: "MemoryStore", sample: int) -> Check:
    with store.ledger.read() as connection:
        filled = rebuild.any_indexed(connection)
    flaw = chroma_files.flaw(store.index.path, filled=filled)
    if flaw:
        return _verdict("index", [f"damaged: {flaw}"], "", REINDEX)
    if not (store.index.path / "chroma.sqlite3").exists():
        return _verdict("index", [], "none yet", REINDEX)
    answer = _probe(store, sample)
    if "error" in answer:
        return _verdict("index", [f"damaged: {answer['error']}"], "", REINDEX)
    problems = [
        f"{answer[key]['count']} {what} (as {', '.join(answer[key]['ids'])})"
        for key, what in (
            ("missing", "vectors are not there"),
            ("unknown", "vectors are not of this ledger"),
            ("different", "vectors are not what the ledger holds"),
            ("lost", "vectors do not find themselves"),
        )
        if answer[key]["count"]
    ]
    return _verdict(
        "index", problems, f"{answer['looked_at']} of {answer['known']} vectors asked, each finds itself", REINDEX
    )


def _probe(store: "MemoryStore", sample: int) -> dict[str, Any]:
    store.index.forget()  # nothing of it may be open here while another process looks
    command = [sys.executable, "-P", "-m", "sharpwave.memory.probe", str(store.home), str(sample)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"reading it did not end within {PROBE_TIMEOUT} s"}
    if done.returncode < 0:
        return {"error": f"reading it ended the process (signal {-done.returncode})"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]}
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
