"""Whether Chroma's files are whole, told from their sizes, without opening them.

Chroma reads a shortened vector file without complaint and then finds a part of what it held, or nothing; a shortened
header ends the process. So this is looked at before Chroma is. What is read here: `segments` and `max_seq_id` in
`chroma.sqlite3`, and the header that hnswlib writes (format 1).
"""

import os
import sqlite3
import struct
from pathlib import Path

REPAIR = "Nothing is lost: `sharpwave reindex` rebuilds it from the ledger."

_HEADER = struct.Struct("<i6QiI3QdQ")
"""Format, offset, capacity, elements, bytes an element, and what else describes the graph."""

_WRITTEN = """
SELECT segments.id FROM segments JOIN max_seq_id ON max_seq_id.segment_id = segments.id
WHERE segments.type = 'urn:chroma:segment/vector/hnsw-local-persisted'
"""


def flaw(path: Path, *, filled: bool) -> str | None:
    """Return what is wrong with the Chroma folder at `path`, or None; `filled` says that it ought to hold vectors.

    A finding may pass while another process is writing.
    """
    database = path / "chroma.sqlite3"
    if not database.is_file() or database.stat().st_size == 0:
        return f"{database.name} is missing or empty" if filled else None
    try:
        connection = sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True, timeout=30)
        try:
            segments = [row[0] for row in connection.execute(_WRITTEN)]
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        return f"{database.name}: {error}"
    return next((found for found in (_segment_flaw(path / segment) for segment in segments) if found), None)


def _segment_flaw(folder: Path) -> str | None:
    try:
        header = (folder / "header.bin").read_bytes()
        if len(header) != _HEADER.size:
            return f"{folder.name}/header.bin has {len(header)} bytes, not {_HEADER.size}"
        form, _, _, elements, size, *_ = _HEADER.unpack(header)
        if form != 1:
            return None
        for name, least in (
            ("data_level0.bin", elements * size),
            ("length.bin", elements * 4),
            ("link_lists.bin", elements * 4),
        ):
            found = os.stat(folder / name).st_size
            if found < least:
                return f"{folder.name}/{name} has {found} bytes, not {least}"
        if not os.stat(folder / "index_metadata.pickle").st_size:
            return f"{folder.name}/index_metadata.pickle is empty"
    except OSError as error:
        return f"{folder.name}/{Path(error.filename).name}: {error.strerror}"
    return None


def wipe_unused(segment: Path) -> None:
    """Write zeros over the places for vectors that are not taken yet in a segment's files; no client may have them open.

    Chroma makes room for vectors without clearing it, and writes it out: what the process had in its memory lies there.
    """
    header = segment / "header.bin"
    if not header.exists():
        return
    form, _, _, elements, size, *_ = _HEADER.unpack(header.read_bytes())
    if form != 1:
        return
    for name, used in (("data_level0.bin", elements * size), ("length.bin", elements * 4)):
        with (segment / name).open("r+b") as file:
            unused = file.seek(0, os.SEEK_END) - used
            file.seek(used)
            file.write(bytes(max(0, unused)))
