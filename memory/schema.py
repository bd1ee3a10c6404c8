"""The tables of the ledger, and how they come into being.

`MIGRATIONS` holds one function a schema version; opening a ledger runs those it has not had yet, in order, each in a
transaction of its own. There is no way back: a ledger of a newer version is refused.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Engine,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    event,
    select,
    text,
)
from sqlalchemy.exc import DatabaseError

from sharpwave.memory import keywords
from sharpwave.memory.errors import StoreError
from sharpwave.memory.sql import BUSY_SECONDS, write_ahead

metadata = MetaData()

meta = Table("meta", metadata, Column("key", String, primary_key=True), Column("value", Text, nullable=False))

owners = Table(
    "owners",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("owner", Text, nullable=False, unique=True),
    # Raised by every decision that changes what the owner remembers; a decision made on an older one is made again.
    Column("revision", Integer, nullable=False, default=0),
)

memories = Table(
    "memories",
    metadata,
    Column("row", Integer, primary_key=True),
    Column("id", String(36), nullable=False),
    Column("version", Integer, nullable=False),
    Column("owner", Integer, nullable=False),
    Column("current", Boolean, nullable=False),
    Column("status", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("subject", Text, nullable=False),
    Column("attribute", Text),
    Column("folded", Text, nullable=False),
    Column("recorded_at", Float, nullable=False),
    Column("valid_from", Float, nullable=False),
    Column("valid_to", Float),
    Column("record", Text, nullable=False),
    Column("term_count", Integer, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Column("indexed", Boolean, nullable=False),
    UniqueConstraint("owner", "id", "version"),
    Index("memories_owner", "owner", "current", "status"),
    Index("memories_slot", "owner", "subject", "attribute"),
    Index("memories_folded", "owner", "folded"),
    Index("memories_pending", "indexed", sqlite_where=text("indexed = 0")),
)

utterances = Table(
    "utterances",
    metadata,
    Column("row", Integer, primary_key=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("owner", Integer, nullable=False),
    Column("thread", Text, nullable=False),
    Column("message_id", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("role", String, nullable=False),
    Column("speaker", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("said_at", Float, nullable=False),
    Column("recorded_at", Float, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("term_count", Integer, nullable=False),
    Column("window_term_count", Integer, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Column("indexed", Boolean, nullable=False),
    UniqueConstraint("owner", "thread", "message_id"),
    Index("utterances_thread", "owner", "thread", "position"),
    Index("utterances_pending", "indexed", sqlite_where=text("indexed = 0")),
)

events = Table(
    "events",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("at", Float, nullable=False),
    Column("owner", Integer, nullable=False),
    Column("op", String, nullable=False),
    Column("memory_id", String(36)),
    Column("version", Integer),
    Column("thread", Text),
    Column("message_id", Text),
    Column("policy", String, nullable=False),
    Column("reason", Text, nullable=False),
    # JSON: rows before and after, what was shown, what the policy said, what the guard changed, the quote.
    Column("detail", Text, nullable=False),
    Index("events_owner", "owner", "seq"),
    Index("events_memory", "memory_id", "seq"),
    sqlite_autoincrement=True,
)

turns = Table(
    "turns",
    metadata,
    Column("owner", Integer, primary_key=True),
    Column("thread", Text, primary_key=True),
    Column("message_id", Text, primary_key=True),
    Column("state", String, nullable=False),
    Column("turn", Text, nullable=False),
    Column("queued_at", Float, nullable=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("error", Text),
    Index("turns_pending", "state", "queued_at", sqlite_where=text("state != 'done'")),
)

uses = Table(
    "uses",
    metadata,
    Column("owner", Integer, primary_key=True),
    Column("memory_id", String(36), primary_key=True),
    Column("recalled", Integer, nullable=False),
    Column("last_recalled_at", Float),
    Column("cited", Integer, nullable=False),
    Column("last_cited_at", Float),
)

policies = Table(
    "policies",
    metadata,
    Column("owner", Integer, primary_key=True),
    Column("mask_secrets", Boolean, nullable=False),
)

term_statistics = Table(
    "term_statistics",
    metadata,
    Column("owner", Integer, primary_key=True),
    Column("view", String, primary_key=True),
    Column("records", Integer, nullable=False),
    Column("terms", Integer, nullable=False),
)


def _first(connection: Connection) -> None:
    metadata.create_all(connection)
    keywords.create_tables(connection)
    # Append-only in earnest; erasing an owner is the one exception, and it says so in `meta` while it runs.
    for action in ("UPDATE", "DELETE"):
        connection.exec_driver_sql(
            f"CREATE TRIGGER events_no_{action.lower()} BEFORE {action} ON events "
            "WHEN NOT EXISTS (SELECT 1 FROM meta WHERE key = 'erasing') "
            "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        )


LINKED = (
    """(json_extract(record, '$.depends_on[0]') IS NOT NULL OR json_extract(record, '$.derived_from[0]') IS NOT NULL)"""
)
"""Of a row of `memories`: it rests on other memories."""


def _links(connection: Connection) -> None:
    """Find what rests on other memories without reading all of them."""
    connection.exec_driver_sql(f"CREATE INDEX IF NOT EXISTS memories_linked ON memories (owner) WHERE {LINKED}")


usage = Table(
    "usage",
    metadata,
    Column("owner", Integer, primary_key=True),
    Column("day", String, primary_key=True),
    Column("purpose", String, primary_key=True),
    Column("calls", Integer, nullable=False),
    Column("prompt_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
)


def _usage(connection: Connection) -> None:
    """Add what model calls have cost, by owner, day (UTC) and purpose."""
    usage.create(connection, checkfirst=True)


def _claims_on_turns(connection: Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE turns ADD COLUMN claimed_until FLOAT")
    connection.exec_driver_sql("ALTER TABLE turns ADD COLUMN claimed_by VARCHAR")


def _policies(connection: Connection) -> None:
    """Add what owners say about their secrets."""
    policies.create(connection, checkfirst=True)


records = Table(
    "records",
    metadata,
    Column("row", Integer, primary_key=True),
    Column("owner", Integer, nullable=False),
    Column("kind", String, nullable=False),
    Column("id", String(36), nullable=False),
    Column("at", Float, nullable=False),
    Column("thread", Text),
    Column("key", Text),
    Column("agent", Text),
    Column("status", String, nullable=False),
    Column("record", Text, nullable=False),
    Column("vector", LargeBinary),
    Column("terms", LargeBinary, nullable=False),
    UniqueConstraint("owner", "kind", "id"),
    Index("records_at", "owner", "kind", "at"),
    Index("records_key", "owner", "kind", "key"),
    Index("records_thread", "owner", "kind", "thread"),
)
"""Episodes, procedures, entities, sessions and probes (see `rows`); `terms` are hashes of the words that each is searched for."""

tool_uses = Table(
    "tool_uses",
    metadata,
    Column("row", Integer, primary_key=True),
    Column("owner", Integer, nullable=False),
    Column("agent", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("thread", Text, nullable=False),
    Column("call_id", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("success", Boolean, nullable=False),
    Column("seconds", Float),
    Column("error", Text),
    Column("parameters", Text, nullable=False),
    UniqueConstraint("owner", "agent", "thread", "call_id"),
    Index("tool_uses_tool", "owner", "agent", "tool", "at", "success"),
)

entities = Table(
    "entities",
    metadata,
    Column("owner", Integer, primary_key=True),
    Column("id", String(36), primary_key=True),
    Column("name", Text, nullable=False),
    Column("type", String, nullable=False),
    Column("merged_into", String(36)),
    Column("by_hand", Boolean, nullable=False),
    Column("first_seen", Float, nullable=False),
    Column("last_seen", Float, nullable=False),
)
"""Who and what memories tell of: derived from memories and from what was said about entities by hand (see `linking`)."""

names = Table(
    "names",
    metadata,
    Column("owner", Integer, primary_key=True),
    Column("folded", Text, primary_key=True),
    Column("entity", String(36), primary_key=True),
    Column("name", Text, nullable=False),
    Column("role", Boolean, nullable=False),
    Index("names_entity", "owner", "entity"),
)
"""What entities are called, without case and accents; `role` marks what they are to the user ("sister")."""

mentions = Table(
    "mentions",
    metadata,
    Column("owner", Integer, primary_key=True),
    Column("entity", String(36), primary_key=True),
    Column("memory_id", String(36), primary_key=True),
    Column("part", Integer, nullable=False),
    Index("mentions_memory", "owner", "memory_id"),
    Index("mentions_part", "owner", "entity", "part"),
)
"""Which memories name which entity, whatever their status: 2 as what they are about, 1 as the value of their slot, or 0."""


WEIGHT = "json_extract(record, '$.pinned') DESC, json_extract(record, '$.importance') DESC, valid_from DESC"
"""Order of `memories` by how much they weigh."""
OF_THE_USER = "current AND status = 'active' AND valid_to IS NULL AND subject = 'user'"
"""Of a row of `memories`: it says what holds of the user."""


LEARNED_FROM = "json_extract(detail, '$.row_after.learned_from[#-1]')"
"""Of a row of `events` about a procedure: the episode that it tells of."""
TAUGHT_BY = "op IN ('PROCEDURE', 'COUNT', 'PROMOTE', 'DEMOTE')"
"""Of a row of `events`: a procedure was learned, or has counted an episode."""


PINNED = "current AND status = 'active' AND json_extract(record, '$.pinned')"
"""Of a row of `memories`: it is pinned, and holds."""


def _kinds(connection: Connection) -> None:
    """Add episodes, procedures, entities, sessions, and the use of tools."""
    for table in (records, tool_uses, entities, names, mentions):
        table.create(connection, checkfirst=True)
    connection.exec_driver_sql(
        f"CREATE INDEX IF NOT EXISTS memories_weighty ON memories (owner, {WEIGHT}) WHERE {OF_THE_USER}"
    )
    connection.exec_driver_sql(f"CREATE INDEX IF NOT EXISTS memories_pinned ON memories (owner) WHERE {PINNED}")


REHEARSALS = (
    "store VARCHAR",
    "buffered BOOLEAN NOT NULL DEFAULT 0",
    "lived_at FLOAT",
    "importance FLOAT",
    "success FLOAT",
    "surprise FLOAT",
    "asked INTEGER NOT NULL DEFAULT 0",
    "missed INTEGER NOT NULL DEFAULT 0",
    "strength FLOAT",
    "replayed INTEGER NOT NULL DEFAULT 0",
    "last_replayed_at FLOAT",
    "stability FLOAT",
    "difficulty FLOAT",
    "due_at FLOAT",
)
"""What `uses` says of a record beside how often it was recalled and cited: what replay goes by (see `buffer`)."""


def _replay(connection: Connection) -> None:
    """Let records be rehearsed: the replay buffer is made of rows of `uses`."""
    for column in REHEARSALS:
        connection.exec_driver_sql(f"ALTER TABLE uses ADD COLUMN {column}")
    connection.exec_driver_sql("CREATE INDEX uses_buffered ON uses (owner, lived_at) WHERE buffered")


replays = Table(
    "replays",
    metadata,
    Column("owner", Integer, primary_key=True),
    Column("run", String, primary_key=True),
    Column("begun_at", Float, nullable=False),
    Column("ended_at", Float),
    Column("asked", Text, nullable=False),
    Column("result", Text),
    Column("claimed_by", String),
    Column("claimed_until", Float),
)
"""Runs of replay; one that has not ended is taken up where it stopped."""

replay_steps = Table(
    "replay_steps",
    metadata,
    Column("owner", Integer, primary_key=True),
    Column("run", String, primary_key=True),
    Column("step", String, primary_key=True),
    Column("result", Text, nullable=False),
)
"""What a run that has not ended has done so far."""


def _runs(connection: Connection) -> None:
    """Add runs of replay."""
    for table in (replays, replay_steps):
        table.create(connection, checkfirst=True)


rerankers = Table(
    "rerankers",
    metadata,
    Column("owner", Integer, primary_key=True),
    Column("learned", Text, nullable=False),
)
"""What recall has learned from an owner's citations, as JSON (see `rerank`)."""


def _rerankers(connection: Connection) -> None:
    """Let recall learn from citations."""
    rerankers.create(connection, checkfirst=True)


def _ranking(connection: Connection) -> None:
    """Tell how long many records are, and which live, from an index: a quarter of the time that reading the rows takes."""
    connection.exec_driver_sql("CREATE INDEX memories_ranked ON memories (row, term_count, current, status)")
    connection.exec_driver_sql("CREATE INDEX utterances_ranked ON utterances (row, term_count, window_term_count)")


def _teaching(connection: Connection) -> None:
    """Tell from an index which episodes procedures have counted."""
    connection.exec_driver_sql(f"CREATE INDEX events_taught ON events (owner, {LEARNED_FROM}) WHERE {TAUGHT_BY}")


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (
    _first,
    _usage,
    _claims_on_turns,
    _policies,
    _links,
    _kinds,
    _replay,
    _runs,
    _rerankers,
    _ranking,
    _teaching,
)


PRAGMAS = (
    "synchronous = FULL",
    "secure_delete = ON",
    "foreign_keys = ON",
    "recursive_triggers = ON",  # so that REPLACE cannot get around the triggers on what it deletes
)


def connect(path: Path) -> Engine:
    """Return an engine on the SQLite file at `path`: WAL, 30 s busy timeout, and BEGIN IMMEDIATE where a block writes.

    Blocks opened with the execution option `writes=True` take the write lock at once: a read that turns into a write
    fails with "database is locked" whatever the timeout.
    """
    try:
        path.touch(mode=0o600)  # before SQLite makes it: its journal files take over the permissions of the database
    except OSError as error:
        raise StoreError(
            f"The ledger {path} cannot be written: {error.strerror}. Choose another folder with --home."
        ) from error
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _configure(connection, _record) -> None:  # type: ignore[no-untyped-def]
        connection.isolation_level = None
        write_ahead(connection)
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if connection.get_execution_options().get("writes", False):
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            driver: Any = connection.connection.driver_connection
            driver.execute("BEGIN")  # by SQLAlchemy it takes five times as long, and recall has a dozen of these

    return engine


def migrate(engine: Engine) -> int:
    """Bring the ledger behind `engine` to the newest schema version and return that version.

    Raises:
        StoreError: the file is no ledger, is damaged, or comes from a newer Sharpwave.
    """
    try:
        with engine.connect().execution_options(writes=True) as connection, connection.begin():
            connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS meta (key VARCHAR PRIMARY KEY, value TEXT NOT NULL)")
            row = connection.execute(select(meta.c.value).where(meta.c.key == "schema_version")).scalar()
            version = int(row or 0)
            if version > len(MIGRATIONS):
                raise StoreError(
                    f"The ledger {engine.url.database} has schema version {version}; this Sharpwave knows {len(MIGRATIONS)}. "
                    "Upgrade Sharpwave to open it."
                )
            for number, migration in enumerate(MIGRATIONS[version:], version + 1):
                migration(connection)
                connection.execute(
                    text("INSERT OR REPLACE INTO meta VALUES ('schema_version', :v)"), {"v": str(number)}
                )
    except DatabaseError as error:
        raise StoreError(
            f"The ledger {engine.url.database} cannot be opened: {error.orig}. Check the file, or choose another folder with --home."
        ) from error
    return len(MIGRATIONS)
