"""Searching files for bytes, as a process of its own (see `traces.search`); so this imports next to nothing."""

import pickle
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from ahocorasick_rs import BytesAhoCorasick

BLOCK = 1 << 22


def read_files(
    folder: Path, wanted: Mapping[str, set[bytes]], leave_out: Path
) -> tuple[tuple[str, ...], int, dict[str, tuple[bytes, ...]]]:
    """Return which files lie under `folder`, without `leave_out`, how many bytes were read, and which of the bytes that are
    `wanted`, by kind, each file holds."""
    patterns = sorted(set().union(*wanted.values()))
    finder = BytesAhoCorasick(patterns) if patterns else None
    longest = max(map(len, patterns), default=1)
    files: list[str] = []
    size = 0
    found: dict[str, tuple[bytes, ...]] = {}
    for path in sorted(folder.rglob("*")):
        if path == leave_out or not path.is_file():
            continue
        try:
            with path.open("rb") as file:
                there: set[int] = set()
                for block in _blocks(file, longest - 1):
                    size += len(block)
                    there |= hits(finder, block)
        except FileNotFoundError:  # a journal that another process has done with
            continue
        files.append(str(path.relative_to(folder)))
        if there:
            found[files[-1]] = tuple(patterns[hit] for hit in there)
    return tuple(files), size, found


def hits(finder: BytesAhoCorasick | None, data: bytes) -> set[int]:
    """Return the numbers of the patterns of `finder` that `data` holds."""
    return {hit for hit, _, _ in finder.find_matches_as_indexes(data, overlapping=True)} if finder else set()


def _blocks(file: IO[bytes], overlap: int) -> Iterator[bytes]:
    tail = b""
    while part := file.read(BLOCK):
        yield tail + part
        tail = (tail + part)[-overlap:] if overlap else b""


if __name__ == "__main__":
    sys.stdout.buffer.write(pickle.dumps(read_files(*pickle.load(sys.stdin.buffer))))
