"""Finding out what is wrong with a store, and putting it right."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings

from sharpwave.memory import chroma_files, doctor, ledger, rebuild
from sharpwave.memory.errors import StoreError
from sharpwave.memory.keywords import TABLES
from sharpwave.memory.records import Memory, Message, Turn
from sharpwave.memory.store import MemoryStore

START = datetime(2026, 3, 1, tzinfo=UTC)
MANY = 1200
"""Chroma writes its vector files only from a thousand vectors on."""


def opened(home: Path, embeddings: HashEmbeddings | None = None, *, repair: bool = False) -> MemoryStore:
    return MemoryStore.open(home, embeddings=embeddings or HashEmbeddings(), repair=repair)


def fill(store: MemoryStore, owner: str, count: int) -> None:
    texts = [f"Note {n} about topic {n * 7 % 311}" for n in range(count)]
    store.put_memories(
        owner, [Memory(owner=owner, text=text, recorded_at=START, valid_from=START) for text in texts], "test"
    )


def small(home: Path) -> None:
    """Fill a store with what each kind of check looks at."""
    with opened(home) as store:
        for owner in ("ana", "bo"):
            messages = [Message(id=f"m{n}", role="user", text=f"{owner} said {n} things") for n in range(4)]
            store.queue([Turn(owner=owner, thread="t1", messages=(message,), said_at=START) for message in messages])
            store.index_pending()
            fill(store, owner, 5)
            store.edit(owner, store.memories(owner)[0].id, "Something else")
            store.delete(owner, store.memories(owner)[1].id)
        store.queue(
            [Turn(owner="ana", thread="t2", messages=(Message(id="m", role="user", text="ok"),) * 2, said_at=START)]
        )
    spoil(home, "UPDATE utterances SET indexed = 0 WHERE thread = 't2'")  # as if its process had died


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("whole") / "home"
    small(home)
    return home


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("large") / "home"
    with opened(home) as store:
        fill(store, "ana", MANY)
    return home


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Callable[[Path], Path]]:
    yield lambda home: Path(shutil.copytree(home, tmp_path / "home"))


def report(home: Path, embeddings: HashEmbeddings | None = None) -> doctor.Report:
    with opened(home, embeddings, repair=True) as store:
        return doctor.examine(store, sample=300)


def wrong(home: Path, embeddings: HashEmbeddings | None = None) -> dict[str, str]:
    return {check.name: check.found for check in report(home, embeddings).checks if not check.ok}


def spoil(home: Path, *statements: str) -> None:
    with opened(home, repair=True) as store, store.ledger.write() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def find_themselves(store: MemoryStore, owner: str, step: int = 1) -> int:
    with store.ledger.read() as connection:
        generation = ledger.generation(connection)
    found = 0
    for memory in store.memories(owner)[::step]:
        ids = store.index.nearest("semantic", owner, store.vector(memory.text), 5, generation, live=True)
        found += any(memory.id in one for one in ids)
    return found


def test_a_whole_store_is_healthy(whole: Path) -> None:
    found = report(whole)
    assert found.healthy, found
    assert all(check.advice is None for check in found.checks)
    by_name = {check.name: check.found for check in found.checks}
    assert by_name["queue"] == "9 turns wait to be written"
    assert by_name["versions"] == "10 memories, each with one current version"
    assert by_name["index"] == "20 of 20 vectors asked, each finds itself"
    assert by_name["waiting"] == "1 rows wait to be indexed, which the next command does"


def test_an_empty_store_is_healthy(tmp_path: Path) -> None:
    assert report(tmp_path / "new").healthy


@pytest.mark.parametrize(
    ("statement", "check", "says"),
    [
        ("DELETE FROM memory_terms WHERE rowid = 2", "keywords", "memory_terms lacks 1 rows"),
        ("INSERT INTO window_terms(rowid, body) VALUES (99, '1oword')", "keywords", "window_terms has 1 rows too many"),
        ("UPDATE term_statistics SET terms = terms + 1 WHERE view = 'utterance_terms'", "keywords", "wrong statistics"),
        ("UPDATE memories SET current = 0 WHERE row = 3", "versions", "1 memories without exactly one current version"),
        ("UPDATE utterances SET position = 0 WHERE owner = 1 AND position = 1", "utterances", "taken twice"),
        ("UPDATE memories SET vector = x'0000' WHERE row = 3", "vectors", "1 memories have a vector of another size"),
        (
            "UPDATE turns SET error = 'no answer', attempts = 2 WHERE message_id = 'm2'",
            "queue",
            "bo, t1, m2: no answer",
        ),
        ("UPDATE meta SET value = '0' WHERE key = 'schema_version'", "ledger", "schema version 0"),
    ],
)
def test_what_is_wrong_in_the_ledger_is_found(
    whole: Path, copy: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch, statement: str, check: str, says: str
) -> None:
    home = copy(whole)
    monkeypatch.setattr(doctor, "_probe", lambda store, sample: {"error": "not asked in this test"})
    with opened(home, repair=True) as store:
        with store.ledger.write() as connection:
            connection.exec_driver_sql(statement)
        found = {one.name: one for one in doctor.examine(store).checks if not one.ok}
    assert says in found[check].found
    assert found[check].advice


def test_what_is_wrong_in_the_index_is_found_though_the_counts_agree(whole: Path, copy: Callable[[Path], Path]) -> None:
    home = copy(whole)
    with opened(home) as store:
        memories = store.memories("ana")
        with store.ledger.read() as connection:
            generation = ledger.generation(connection)
        ids = [f"1:{memory.id}:{memory.version}" for memory in memories]
        store.index.delete("semantic", "ana", ids[:2], generation)
        stranger = ("ana", "1:stranger:1", store.vector("who is this"), {"live": True, "at": 0.0})
        moved = ("ana", ids[1], store.vector("quite another text"), {"live": True, "at": 0.0})
        store.index.upsert("semantic", [stranger, moved], generation)
    found = wrong(home)
    assert list(found) == ["index"]
    assert f"1 vectors are not there (as {ids[0]})" in found["index"]
    assert "1 vectors are not of this ledger (as 1:stranger:1)" in found["index"]
    assert "2 vectors are not what the ledger holds" in found["index"]

    with opened(home, repair=True) as store:
        assert rebuild.reindex(store) == 21
    with opened(home) as store:
        assert find_themselves(store, "ana") == len(store.memories("ana"))


def test_keywords_are_rebuilt_just_as_they_are_written(whole: Path, copy: Callable[[Path], Path]) -> None:
    home = copy(whole)

    def state() -> dict[str, Any]:
        with opened(home, repair=True) as store, store.ledger.read() as connection:
            queries = {view: f"SELECT rowid, body FROM {view} ORDER BY rowid" for view in TABLES}
            queries["statistics"] = "SELECT * FROM term_statistics WHERE records > 0 ORDER BY owner, view"
            queries["lengths"] = "SELECT row, term_count, window_term_count FROM utterances ORDER BY row"
            found = {name: connection.exec_driver_sql(query).fetchall() for name, query in queries.items()}
        return {
            name: [(row[0], sorted(row[1].split())) for row in rows] if name in TABLES else rows
            for name, rows in found.items()
        }

    written = state()
    assert all(written.values())
    spoil(home, "DELETE FROM window_terms", "DELETE FROM memory_terms WHERE rowid > 2", "DELETE FROM term_statistics")
    spoil(home, "UPDATE utterances SET term_count = 1, window_term_count = 1")
    with opened(home, repair=True) as store:
        rebuild.reindex(store)
    assert state() == written


CUTS = ["data_level0.bin", "header.bin", "length.bin", "index_metadata.pickle", "chroma.sqlite3"]


@pytest.mark.parametrize("name", CUTS)
def test_a_damaged_index_is_named_and_rebuilt_whole(large: Path, copy: Callable[[Path], Path], name: str) -> None:
    home = copy(large)
    file = next((home / "chroma").rglob(name))
    os.truncate(file, file.stat().st_size // 2)
    with pytest.raises(StoreError, match="sharpwave reindex"), opened(home) as store:
        store.recall("ana", "Note 77 about topic 228", k=5)
    if name == "data_level0.bin":
        assert "damaged" in wrong(home)["index"]
    with opened(home, repair=True) as store:
        assert rebuild.reindex(store) == MANY
    with opened(home) as store:
        assert len(store.memories("ana")) == MANY
        assert find_themselves(store, "ana", step=40) == MANY // 40
        assert store.recall("ana", "Note 77 about topic 228", k=1)[0].text == "Note 77 about topic 228"
    assert sorted(path.name for path in home.iterdir() if path.is_dir()) == ["chroma"]


def test_all_of_a_rebuilt_index_finds_itself(large: Path, copy: Callable[[Path], Path]) -> None:
    home = copy(large)
    shutil.rmtree(home / "chroma")
    with pytest.raises(StoreError, match="missing or empty"):
        opened(home)
    with opened(home, repair=True) as store:
        rebuild.reindex(store)
        found = {check.name: check for check in doctor.examine(store).checks}["index"]
    assert (found.ok, found.found) == (True, f"{MANY} of {MANY} vectors asked, each finds itself")


def test_an_index_that_ends_the_process_which_reads_it_does_not_end_doctor(
    whole: Path, copy: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = subprocess.run

    def killed(command: list[str], **options: Any) -> "subprocess.CompletedProcess[str]":
        return run([sys.executable, "-c", f"import os; os.kill(os.getpid(), {signal.SIGSEGV.value})"], **options)

    monkeypatch.setattr(subprocess, "run", killed)
    assert wrong(copy(whole)) == {"index": f"damaged: reading it ended the process (signal {signal.SIGSEGV.value})"}


def test_files_that_a_killed_writer_left_unfit_are_rebuilt_on_opening(
    large: Path, copy: Callable[[Path], Path]
) -> None:
    home = copy(large)
    file = next((home / "chroma").rglob("length.bin"))
    os.truncate(file, 8)
    assert chroma_files.flaw(home / "chroma", filled=True)
    spoil(home, "UPDATE meta SET value = '1' WHERE key = 'indexing'")
    with opened(home) as store:
        assert find_themselves(store, "ana", step=100) == MANY // 100


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from fakes import HashEmbeddings
from sharpwave.memory import rebuild
from sharpwave.memory.store import MemoryStore

def heard(stage, done, total):
    if stage == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

with MemoryStore.open(Path(sys.argv[2]), embeddings=HashEmbeddings(dimensions=96), repair=True) as store:
    rebuild.reindex(store, embed=True, progress=heard)
"""


@pytest.mark.parametrize("stage", ["embedding", "indexing"])
def test_embedding_anew_can_be_killed_and_run_again(large: Path, copy: Callable[[Path], Path], stage: str) -> None:
    home = copy(large)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(Path(__file__).parent), str(home), stage], check=False)
    assert killed.returncode == -signal.SIGKILL
    new = HashEmbeddings(dimensions=96)
    # Before the swap the store is as it was; after it, it is the new embedder's, and opening it goes on.
    with opened(home, HashEmbeddings() if stage == "embedding" else new) as store:
        assert find_themselves(store, "ana", step=50) == MANY // 50
    with opened(home, new, repair=True) as store:
        assert rebuild.reindex(store, embed=True) == MANY
    with opened(home, new) as store:
        assert find_themselves(store, "ana", step=50) == MANY // 50


@pytest.mark.parametrize("other", [HashEmbeddings(dimensions=96), HashEmbeddings(salt="another model")])
def test_another_embedder_is_refused_until_everything_is_embedded_anew(
    whole: Path, copy: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch, other: HashEmbeddings
) -> None:
    home = copy(whole)
    with pytest.raises(StoreError, match=rf"64 dimensions.*{other.dimensions} dimensions.*sharpwave reindex --embed"):
        opened(home, other)
    with monkeypatch.context() as patch:
        patch.setattr(doctor, "_probe", lambda store, sample: {"error": "not asked in this test"})
        assert "reindex --embed" in wrong(home, other)["embedder"]
    with opened(home) as store:
        before = [(memory.id, memory.text) for memory in store.memories("ana", statuses=())]

    with opened(home, other, repair=True) as store:
        rebuild.reindex(store, embed=True)
    with opened(home, other) as store:
        assert [(memory.id, memory.text) for memory in store.memories("ana", statuses=())] == before
        assert find_themselves(store, "ana") == len(store.memories("ana"))
        assert "ana said 2 things" in [hit.text for hit in store.recall("ana", "What did ana say, 2 things?")]
    with pytest.raises(StoreError, match="reindex --embed"):
        opened(home)


def test_a_store_open_elsewhere_notices_that_everything_was_embedded_anew(
    whole: Path, copy: Callable[[Path], Path]
) -> None:
    home = copy(whole)
    with opened(home) as old:
        assert old.recall("ana", "Something else")
        with opened(home, HashEmbeddings(dimensions=96), repair=True) as store:
            rebuild.reindex(store, embed=True)
        with pytest.raises(StoreError, match="Open it again"):
            old.recall("ana", "Something else")
        with pytest.raises(StoreError, match="Open it again"):
            old.add("ana", "One more")


def test_texts_written_while_everything_is_embedded_anew_are_embedded_too(
    whole: Path, copy: Callable[[Path], Path]
) -> None:
    home = copy(whole)
    new = HashEmbeddings(dimensions=96)
    with opened(home) as old, opened(home, new, repair=True) as store:
        late: list[str] = []

        def heard(stage: str, done: int, total: int) -> None:
            if stage == "embedding" and not late:
                late.append("Said in the meantime")
                old.add("ana", late[0])

        rebuild.reindex(store, embed=True, progress=heard)
    with opened(home, new) as store:
        assert find_themselves(store, "ana") == len(store.memories("ana"))
        assert late[0] in [memory.text for memory in store.memories("ana")]


def test_a_store_opened_for_repair_neither_recalls_nor_writes(whole: Path) -> None:
    with opened(whole, repair=True) as store:
        with pytest.raises(StoreError, match="repair"):
            store.recall("ana", "Something else")
        with pytest.raises(StoreError, match="repair"):
            store.add("ana", "One more")


def test_a_reindex_that_cannot_write_says_so(
    whole: Path, copy: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = copy(whole)

    def refuse(self: Path, target: Path) -> Path:
        raise PermissionError(13, "Permission denied", str(self))

    with opened(home, repair=True) as store:
        monkeypatch.setattr(Path, "rename", refuse)
        with pytest.raises(StoreError, match=r"cannot be replaced: Permission denied.*reindex"):
            rebuild.reindex(store)
        monkeypatch.undo()
    with opened(home) as store:
        assert find_themselves(store, "ana") == len(store.memories("ana"))
