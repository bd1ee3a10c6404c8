"""JSON files, with errors that name the file, the line and the column."""

import codecs
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from sharpwave.memory.errors import InputError


def check(path: Path) -> None:
    """Raise `InputError` when `path` is no readable UTF-8 text file, or an empty one."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
            blank = not head.removeprefix(codecs.BOM_UTF8).strip() and not file.read().strip()
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from error
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in head:
        raise InputError(f"{path} is not UTF-8 text but UTF-16 or a binary file. Save it as UTF-8.")
    if blank:
        raise InputError(f"{path} is empty.")


def load(path: Path) -> Any:
    """Return what a file of one JSON document holds; raises `InputError`."""
    try:
        return parse(path, path.read_bytes())
    except InputError as error:
        raise InputError(f"{error} It was read as one document; with a document on each line it is JSONL.") from error


def parse(path: Path, data: bytes, line: int | None = None) -> Any:
    """Return what `data` holds: the whole of a file, or its line number `line`.

    Raises:
        InputError: not UTF-8, not JSON, nested too deeply, or an object that has a key twice.
    """
    first = line or 1
    try:
        return json.loads(data.rstrip().decode("utf-8-sig"), object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        at = first + data.count(b"\n", 0, error.start)
        raise InputError(f"{path}: line {at} is not UTF-8 text. Save the file as UTF-8.") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: line {first + error.lineno - 1}, column {error.colno}: {error.msg}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {f'line {line}: ' if line else ''}{error}.") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        key = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise ValueError(
            f'the key "{key}" is given twice, in {well_formed(json.dumps(fields, ensure_ascii=False))[:80]}'
        )
    return fields


def well_formed(text: str) -> str:
    """Return `text` with U+FFFD for halves of a surrogate pair, which JSON can hold and UTF-8 cannot."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def kind(value: Any) -> str:
    """Name the JSON type of `value` for an error; a text is named blank, since that is what is wrong with one."""
    names = {str: "blank text", list: "a list", dict: "an object", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def checked_name(value: Any, what: str) -> str:
    """Return `value` if it can name somebody or something; raises `InputError` that calls it `what`."""
    if not (isinstance(value, str) and value.strip()):
        raise InputError(f"The {what} is {kind(value)}; it must be a text that is not blank.")
    return well_formed(value)
