"""`sharpwave undo` and `ledger`: read the log of decisions, and take changes back."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sharpwave.console import JsonOption, UserOption, opened, out, print_json, settings_of, user_of
from sharpwave.memory.errors import InputError
from sharpwave.settings import Settings
from sharpwave.showing import change, plain, row, table, told, when

if TYPE_CHECKING:
    from sharpwave.memory.applying import Applied
    from sharpwave.memory.ledger import Event

NEWEST = 20

LastOption = Annotated[int | None, typer.Option("--last", help="How many of the newest.", show_default=False)]


def undo(
    context: typer.Context,
    user: UserOption = None,
    last: LastOption = None,
    turn: Annotated[
        str | None, typer.Option("--turn", help="Message id of the turn to take back.", show_default=False)
    ] = None,
    thread: Annotated[
        str | None, typer.Option("--thread", "-t", help="Thread of that turn.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Take back the last change to memory, the last N, or those of one turn. What is undone stays in the history."""
    settings = settings_of(context)
    owner = user_of(settings, user)
    if (turn is None) != (thread is None):
        raise InputError("A turn is named by --turn and --thread together.")
    if turn is not None and last is not None:
        raise InputError("Give --last, or --turn and --thread, not both.")
    with opened(settings) as store:
        named = None if turn is None or thread is None else (thread, turn)
        done = store.undo(owner, last=1 if last is None else last, turn=named)
    print_changes(done, as_json, {"user": owner, "undone": [one.model_dump(mode="json") for one in done]})


def ledger(
    context: typer.Context,
    user: UserOption = None,
    last: LastOption = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Recompute rows and indexes of everybody from the log, and report differences."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the log of decisions: what was done, why, and on which words. The newest 20, unless --last says otherwise."""
    settings = settings_of(context)
    if verify:
        _verify(settings, as_json)
        return
    owner = user_of(settings, user)
    if last is not None and last < 1:
        raise InputError(f"--last must be at least 1; got {last}.")
    with opened(settings) as store:
        events = store.events(owner, last=last or NEWEST)
    if as_json:
        print_json({"user": owner, "events": [change(event) for event in events]})
    elif events:
        print_events(events, settings)
    else:
        out.print("Nothing has been decided yet.")


def _verify(settings: Settings, as_json: bool) -> None:
    """Say whether rows and indexes are what the log makes them; exit 1 when they are not."""
    from sharpwave.memory import verify

    with opened(settings) as store:
        found = verify.verify(store)
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        shown = table("Where", "What")
        for difference in found.differences:
            row(shown, difference.where, difference.what)
        if found.differences:
            out.print(shown)
        out.print(
            plain(
                f"{found.events:,} events, {found.rows:,} rows: "
                + ("all is well." if found.healthy else "they differ.")
            )
        )
    if not found.healthy:
        raise typer.Exit(1)


def print_events(events: "Sequence[Event]", settings: Settings) -> None:
    """Print events as a table, with what they changed and why."""
    shown = table("#", "Time", "Op", "Memory", "Why")
    for event in events:
        changed = change(event)
        why = f"{event.reason} ({event.policy})"
        why += f"\nguard: {changed['guarded']}" if changed["guarded"] else ""
        why += f"\n“{changed['quote']}”" if changed["quote"] else ""
        row(shown, str(event.seq), when(event.at, settings.timezone), event.op, told(changed), why)
    out.print(shown)


def print_changes(changes: "Sequence[Applied]", as_json: bool, data: Any) -> None:
    """Print what was done to memory, or `data` as JSON."""
    if as_json:
        print_json(data)
        return
    for done in changes:
        text = done.text if done.before in (None, done.text) else f"{done.before} → {done.text}"
        out.print(plain(f"{done.op} {done.memory_id} (version {done.version}): {text} ({done.reason})"))
