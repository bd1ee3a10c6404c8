"""Text files of any length, read piece by piece: nothing but the piece at hand is ever in memory."""

import codecs
import hashlib
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from sharpwave.memory.errors import InputError
from sharpwave.memory.records import Record
from sharpwave.memory.tokens import estimate

BLOCK = 1 << 20
BYTES_A_TOKEN = 5
"""Bytes that are looked at for each token of a piece; English takes about four."""
BEFORE = 300
"""Characters ahead of a piece that are shown with it."""

_MARKS = (  # those of UTF-32 begin like those of UTF-16, so they come first
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ENDS = tuple(re.compile(ending) for ending in (r"\n[ \t\r]*\n", r"\n", r"[.!?…][\"'”’)\]]*\s+|[。！？]", r"\s"))
"""Where a piece may end, best first: paragraphs, lines, sentences, words."""


class Document(Record):
    """What is known of a file that is being read."""

    path: str
    size: int
    """Bytes."""
    digest: str
    """BLAKE2b of its bytes."""
    encoding: str
    start: int
    """Where the text begins: behind a byte order mark."""


class Piece(NamedTuple):
    """A part of a document, with line ends as `\\n`."""

    text: str
    start: int
    """Where its first byte stands."""
    end: int
    """Where the next piece begins."""
    before: str
    """The end of the text ahead of it."""


def describe(path: Path) -> Document:
    """Read a file once, block by block, and return what is known of it.

    Text is UTF-8, or UTF-16 or UTF-32 with a byte order mark; other encodings are refused rather than guessed.

    Raises:
        InputError: it is no readable text file, or holds nothing.
    """
    digest, blank, size = hashlib.blake2b(digest_size=16), True, 0
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"{path} is no regular file. Name a text file.")
        with path.open("rb") as file:
            mark, encoding = _encoding(file.read(4))
            file.seek(0)
            decoder = codecs.getincrementaldecoder(encoding)()
            while block := file.read(BLOCK):
                digest.update(block)
                blank = not _decoded(decoder, block, size, path).strip("\ufeff \t\r\n") and blank
                size += len(block)
            _decoded(decoder, b"", size, path, final=True)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}. Check its name and its permissions.") from error
    if blank:
        raise InputError(f"{path} is empty: there is nothing to read in it.")
    return Document(path=str(path), size=size, digest=digest.hexdigest(), encoding=encoding, start=mark)


def _encoding(head: bytes) -> tuple[int, str]:
    return next(((len(mark), encoding) for mark, encoding in _MARKS if head.startswith(mark)), (0, "utf-8"))


def _decoded(decoder: codecs.IncrementalDecoder, block: bytes, offset: int, path: Path, *, final: bool = False) -> str:
    try:
        text = decoder.decode(block, final)
    except UnicodeDecodeError as error:
        at = offset - (len(error.object) - len(block)) + error.start
        raise InputError(
            f"{path} is not {error.encoding} text (byte {at}). Save it as UTF-8; other encodings are not guessed."
        ) from error
    if "\0" in text:
        raise InputError(f"{path} is no text: it holds zero bytes. Save its text as UTF-8 first.")
    return text


def piece_at(document: Document, offset: int, tokens: int, count: Callable[[str], int] = estimate) -> Piece:
    """Return the part of a document that begins at byte `offset`, of at most `tokens`.

    It ends with a paragraph, else with a line, a sentence or a word, if one ends in its second half, and else where
    `tokens` are full: a file may be one line.

    Raises:
        InputError: the file cannot be read.
    """
    path = Path(document.path)
    wide = 4 if "32" in document.encoding else 2 if "16" in document.encoding else 1
    ahead = min(offset - document.start, 4 * BEFORE)
    try:
        with path.open("rb") as file:
            file.seek(offset - ahead)
            led = file.read(ahead)
            data = file.read(max(64, tokens * BYTES_A_TOKEN * wide))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}. Check its name and its permissions.") from error
    whole = offset + len(data) >= document.size
    text = codecs.getincrementaldecoder(document.encoding)("ignore").decode(data)
    kept = text if whole and count(text) <= tokens else _cut(_within(text, tokens, count))
    end = document.size if len(kept) == len(text) and whole else offset + len(kept.encode(document.encoding))
    before = led.decode(document.encoding, "ignore")[-BEFORE:]
    return Piece(_plain(kept), offset, end, _plain(before))


def _within(text: str, tokens: int, count: Callable[[str], int]) -> str:
    """Return a beginning of `text` of at most `tokens`, and not much less; one character at least."""
    while len(text) > 1 and (size := count(text)) > tokens:
        text = text[: max(1, min(len(text) - 1, int(len(text) * tokens / size * 0.99)))]
    return text


def _cut(text: str) -> str:
    """Return `text` up to the best place to end in its second half."""
    for ending in _ENDS:
        ends = [found.end() for found in ending.finditer(text, len(text) // 2)]
        if ends:
            return text[: ends[-1]]
    return text


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
