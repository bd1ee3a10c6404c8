"""Rows of the other kinds of memory: found, owned, logged, verified, erased."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fakes import HashEmbeddings

from sharpwave.memory import rows
from sharpwave.memory.erase import erase
from sharpwave.memory.errors import NotFoundError
from sharpwave.memory.kinds import Episode
from sharpwave.memory.portability import export, load
from sharpwave.memory.rebuild import reindex
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.verify import verify

DAY = datetime(2026, 3, 1, 10, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path):
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings(), collections=2) as opened:
        yield opened


def lived(owner: str, task: str, days: int = 0, **fields: object) -> Episode:
    at = DAY + timedelta(days=days)
    return Episode(owner=owner, task=task, outcome="success", started_at=at, ended_at=at, **fields)  # type: ignore[arg-type]


def put(store: MemoryStore, record: Episode, op: str = "EPISODE") -> None:
    store.embed([record.searched])
    with store.transaction(record.owner, writes=True) as (connection, number):
        rows.put(connection, number, record, op=op, at=DAY, policy="user", reason="test", embed=store.vector)


def found(store: MemoryStore, owner: str, **options: object) -> list[str]:
    with store.transaction(owner) as (connection, number):
        return [e.task for e in rows.find(connection, number, owner, Episode, **options)]  # type: ignore[arg-type]


def test_rows_are_found_by_time_thread_key_and_status(store: MemoryStore) -> None:
    put(store, lived("ana", "deploy", 0, thread="a"))
    put(store, lived("ana", "write tests", 5, thread="b"))
    put(store, lived("ana", "old", -400, status="expired"))
    put(store, lived("ben", "secret of Ben", 1))
    assert found(store, "ana") == ["old", "deploy", "write tests"]
    assert found(store, "ana", statuses=("active",), last=1) == ["write tests"]
    assert found(store, "ana", since=DAY, until=DAY + timedelta(days=1)) == ["deploy"]
    assert found(store, "ana", thread="b") == ["write tests"]
    assert found(store, "ana", key="failure") == []
    assert found(store, "nobody") == []


def test_the_nearest_row_is_the_one_that_says_the_same(store: MemoryStore) -> None:
    for owner in ("ana", "ben"):
        put(store, lived(owner, "deploy the shop"))
        put(store, lived(owner, "bake bread"))
    with store.transaction("ana") as (connection, number):
        near = [*rows.nearest(connection, number, "ana", Episode, store.embed_query("deploy the shop | success"), k=1)]
    assert [(e.owner, e.task) for e, _ in near] == [("ana", "deploy the shop")]
    assert near[0][1] == pytest.approx(1, abs=1e-2)


def test_somebody_elses_row_looks_like_none(store: MemoryStore) -> None:
    mine = lived("ana", "deploy")
    put(store, mine)
    put(store, lived("ben", "deploy"))
    with store.transaction("ben") as (connection, number), pytest.raises(NotFoundError, match="no episode"):
        rows.get(connection, number, "ben", Episode, mine.id)


def test_a_row_written_again_is_found_by_what_it_says_now_and_logs_both_states(store: MemoryStore) -> None:
    first = lived("ana", "deploy")
    put(store, first)
    with store.transaction("ana", writes=True) as (connection, number):
        again = first.model_copy(update={"reflection": "Test before."})
        rows.put(connection, number, again, op="REFLECT", at=DAY, policy="user", reason="test", embed=store.vector)
        near = [*rows.nearest(connection, number, "ana", Episode, store.embed_query(again.searched), k=1)]
    assert near[0][0].reflection == "Test before." and near[0][1] == pytest.approx(1, abs=1e-2)
    detail = store.events("ana")[-1].detail
    assert (detail["row_before"]["reflection"], detail["row_after"]["reflection"]) == (None, "Test before.")


def test_verification_notices_rows_that_no_event_left_so(store: MemoryStore) -> None:
    put(store, lived("ana", "deploy"))
    put(store, lived("ana", "bake"))
    assert verify(store).healthy
    with store.ledger.write() as connection:
        connection.exec_driver_sql("UPDATE records SET record = replace(record, 'deploy', 'destroy')")
        connection.exec_driver_sql("DELETE FROM records WHERE record LIKE '%bake%'")
    assert sorted(d.what for d in verify(store).differences) == ["not as the events left it", "the row is gone"]


def test_erasing_an_owner_leaves_nothing_of_their_rows(store: MemoryStore, tmp_path: Path) -> None:
    put(store, lived("ana", "the quixotic deployment"))
    put(store, lived("ben", "bake"))
    report = erase(store, "ana")
    assert report.complete and report.rows["records"] == 1
    assert found(store, "ana") == [] and found(store, "ben") == ["bake"]
    assert not any(b"quixotic" in path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())


def test_an_export_takes_the_rows_along_and_importing_twice_changes_nothing(store: MemoryStore) -> None:
    put(store, lived("ana", "deploy", tags=("work",)))
    lines = [json.dumps(line) for line in export(store, "ana")]
    assert load(store, "ben", lines).records == 1
    again = load(store, "ben", lines)
    assert (again.records, again.known) == (0, 1)
    with store.transaction("ben") as (connection, number):
        (episode,) = rows.find(connection, number, "ben", Episode)
    assert (episode.task, episode.tags, episode.owner) == ("deploy", ("work",), "ben")
    assert verify(store).healthy


def test_another_embedder_makes_the_vectors_of_rows_anew(store: MemoryStore, tmp_path: Path) -> None:
    put(store, lived("ana", "deploy"))
    store.close()
    wide = HashEmbeddings(dimensions=48)
    with MemoryStore.open(tmp_path / "home", embeddings=wide, repair=True) as broken:
        reindex(broken, embed=True)
    with (
        MemoryStore.open(tmp_path / "home", embeddings=wide) as opened,
        opened.transaction("ana") as (connection, number),
    ):
        near = [*rows.nearest(connection, number, "ana", Episode, opened.embed_query("deploy | success"), k=1)]
    assert near[0][1] == pytest.approx(1, abs=1e-2)
