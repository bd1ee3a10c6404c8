"""`sharpwave memories export` and `import`: move a user's memory from one store to another."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from sharpwave import json_files
from sharpwave.console import JsonOption, UserOption, opened, out, print_json, settings_of, user_of
from sharpwave.memory.errors import InputError
from sharpwave.showing import plain


def export(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="[FILE|-]", help="Where to; - is standard output.")] = "-",
    user: UserOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write all of a user's memory as lines of JSON: memories in all versions, messages, history."""
    from sharpwave.memory import portability

    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        records = list(portability.export(store, owner))
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    if file == "-":
        sys.stdout.write(lines)
        return
    try:
        Path(file).write_text(lines, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(
            f"Cannot write {file}: {getattr(error, 'strerror', None) or error}. Choose another file."
        ) from error
    counts = {name: records[0][name] for name in portability.COUNTED}
    if as_json:
        print_json({"user": owner, "file": file, **counts})
    else:
        out.print(plain(f"{file}: {', '.join(f'{count} {name}' for name, count in counts.items())} of {owner}."))


def import_(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="What `memories export` wrote; - is standard input.")],
    user: UserOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read an export into a user's memory. What is there already stays as it is."""
    from sharpwave.memory import portability

    settings = settings_of(context)
    owner = user_of(settings, user)
    lines = sys.stdin.buffer.readlines() if file == "-" else _lines(Path(file))
    with opened(settings) as store:
        try:
            done = portability.load(store, owner, lines)
        except InputError as error:
            raise InputError(f"{'Standard input' if file == '-' else file}: {error}") from error
    if as_json:
        print_json({"user": owner, **done.model_dump()})
    else:
        more = f", {done.records} other records" if done.records else ""
        more += f", {done.tool_uses} tool uses" if done.tool_uses else ""
        out.print(
            f"{done.memories} memories and {done.utterances} messages{more} imported, {done.known} were there already."
        )
        if done.masked:
            out.print(f"{done.masked} of them held secrets, which were masked.", style="yellow")


def _lines(path: Path) -> list[bytes]:
    json_files.check(path)
    return path.read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines()
