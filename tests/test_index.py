"""The vector index by itself: what is written is found, by its owner, whatever else there is."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sharpwave.memory import index as indexing
from sharpwave.memory.errors import StoreError
from sharpwave.memory.index import VectorIndex, apart, share

RNG = np.random.default_rng(7)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[VectorIndex]:
    made, release = share(tmp_path / "chroma", 2)
    yield made
    release()


def unit(count: int, dimensions: int = 32) -> np.ndarray:
    vectors = RNG.standard_normal((count, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def write(
    index: VectorIndex, owner: str, vectors: dict[str, np.ndarray], *, live: bool = True, generation: int = 0
) -> None:
    rows = [(owner, key, vector, {"live": live, "at": 0.0}) for key, vector in vectors.items()]
    index.upsert("semantic", rows, generation)


def test_what_is_written_is_found_by_its_owner_and_store_alone(index: VectorIndex) -> None:
    owners = {owner: unit(5) for owner in ("ana", "bo", "用户1", "$ne", "")}
    for owner, vectors in owners.items():
        write(index, owner, {f"{owner}:{i}": vector for i, vector in enumerate(vectors)})
    for owner, vectors in owners.items():
        for i, vector in enumerate(vectors):
            found = index.nearest("semantic", owner, vector, 50, 0, live=True)
            assert found[0] == f"{owner}:{i}" and len(found) == 5
            assert {key.rpartition(":")[0] for key in found} == {owner}
    assert index.nearest("episodic", "ana", owners["ana"][0], 5, 0, live=True) == []
    assert index.nearest("semantic", "nobody", owners["ana"][0], 5, 0, live=True) == []
    assert index.nearest("semantic", "ana", owners["ana"][0], 2, 0, live=True)[0] == "ana:0"


def test_an_index_that_is_not_there_yet_holds_nothing(index: VectorIndex) -> None:
    assert index.nearest("semantic", "ana", unit(1)[0], 5, 0, live=True) == []
    assert index.vectors("semantic", "ana", ["x"], 0) == {}
    assert index.vectors("semantic", "ana", [], 0) == {}


def test_writing_an_id_again_changes_its_metadata_and_keeps_its_vector(index: VectorIndex) -> None:
    first, second = unit(2)
    write(index, "ana", {"m": first})
    kept = index.vectors("semantic", "ana", ["m", "unknown"], 0)
    write(index, "ana", {"m": first, "n": second}, live=False)
    assert index.nearest("semantic", "ana", first, 5, 0, live=True) == []
    assert index.nearest("semantic", "ana", first, 5, 0, live=False) == ["m", "n"]
    assert np.array_equal(index.vectors("semantic", "ana", ["m"], 0)["m"], kept["m"])
    index.delete("semantic", "ana", ["n"], 0)
    write(index, "ana", {"m": first})
    assert index.nearest("semantic", "ana", first, 5, 0, live=True) == ["m"]
    index.delete("semantic", "ana", ["m", "unknown"], 0)
    assert index.nearest("semantic", "ana", first, 5, 0, live=False) == []


def test_batches_above_what_chroma_takes_are_split(index: VectorIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    write(index, "ana", {"m": unit(1)[0]})
    monkeypatch.setattr(index._chroma(), "get_max_batch_size", lambda: 7)
    vectors = {f"m{i}": vector for i, vector in enumerate(unit(30))}
    write(index, "ana", vectors)
    assert len(index.vectors("semantic", "ana", list(vectors), 0)) == 30
    index.delete("semantic", "ana", list(vectors), 0)
    assert index.vectors("semantic", "ana", list(vectors), 0) == {}


def test_what_everybody_says_alike_hides_nothing(index: VectorIndex) -> None:
    alike, own = unit(1, 64)[0], unit(600, 64)
    meta = {"live": True, "at": 0.0}
    rows = [
        (f"user-{n}", f"{n}:{what}", v, meta) for n, o in enumerate(own) for what, v in (("own", o), ("alike", alike))
    ]
    for at in range(0, len(rows), 40):
        index.upsert("semantic", rows[at : at + 40], 0)
    for n in range(0, 600, 10):
        found = index.nearest("semantic", f"user-{n}", unit(1, 64)[0], 60, 0, live=True)
        assert set(found) == {f"{n}:own", f"{n}:alike"}
        assert index.nearest("semantic", f"user-{n}", alike, 60, 0, live=True)[0] == f"{n}:alike"


def test_vectors_are_moved_by_a_hair_that_stays_the_same() -> None:
    for dimensions in (4, 64, 384, 1536):
        vector = unit(1, dimensions)[0]
        moved = apart("m:1", vector)
        assert moved.dtype == np.float32 and np.array_equal(moved, apart("m:1", vector))
        assert 0 < np.linalg.norm(moved - vector) < 2 * indexing.HAIR
        assert not np.array_equal(moved, apart("m:2", vector))


def test_one_folder_has_one_index_in_a_process_until_all_have_let_go(tmp_path: Path) -> None:
    first, release_first = share(tmp_path / "chroma", 2)
    (tmp_path / "x").mkdir()
    second, release_second = share(tmp_path / "x" / ".." / "chroma", 2)
    assert first is second
    write(first, "ana", {"m": unit(1)[0]})
    release_first()
    release_first()
    assert second.nearest("semantic", "ana", unit(1)[0], 5, 0, live=True) == ["m"]
    release_second()
    assert first._client is None
    third, release_third = share(tmp_path / "chroma", 2)
    assert third is not first
    release_third()


def test_a_client_is_opened_anew_when_another_process_wrote(index: VectorIndex) -> None:
    write(index, "ana", {"m": unit(1)[0]}, generation=1)
    client = index._client
    index.nearest("semantic", "ana", unit(1)[0], 5, 1, live=True)
    assert index._client is client
    index.nearest("semantic", "ana", unit(1)[0], 5, 0, live=True)
    assert index._client is client
    index.nearest("semantic", "ana", unit(1)[0], 5, 2, live=True)
    assert index._client is not client


def test_readers_and_reopening_do_not_collide(index: VectorIndex) -> None:
    vectors = unit(20)
    write(index, "ana", {str(i): vector for i, vector in enumerate(vectors)})
    errors: list[BaseException] = []

    def read(start: int) -> None:
        try:
            for i in range(25):
                assert index.nearest("semantic", "ana", vectors[i % 20], 5, start + i, live=True)[0] == str(i % 20)
        except BaseException as error:  # noqa: BLE001 - handed to the main thread
            errors.append(error)

    threads = [threading.Thread(target=read, args=(start,)) for start in (0, 3, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_owners_are_spread_over_a_fixed_number_of_collections() -> None:
    index = VectorIndex(Path("nowhere"), 64)
    names = {index.collection_name("semantic", f"user-{i}") for i in range(2000)}
    assert len(names) == 64
    assert all(3 <= len(name) <= 63 and name.isascii() for name in names)
    assert index.collection_name("semantic", "用户1") == index.collection_name("semantic", "用户1")
    assert index.collection_name("semantic", "ana") != index.collection_name("episodic", "ana")


def test_an_index_that_is_damaged_says_so_and_how_to_mend_it(tmp_path: Path) -> None:
    folder = tmp_path / "chroma"
    folder.mkdir()
    (folder / "chroma.sqlite3").write_bytes(b"no database at all " * 500)
    index, release = share(folder, 2)
    with pytest.raises(StoreError, match="sharpwave reindex"):
        index.nearest("semantic", "ana", unit(1)[0], 5, 0, live=True)
    release()


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "chroma").write_text("x")
    index, release = share(tmp_path / "chroma", 2)
    with pytest.raises(StoreError, match="chroma"):
        write(index, "ana", {"m": unit(1)[0]})
    release()
