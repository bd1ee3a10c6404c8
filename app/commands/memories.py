"""`sharpwave memories`: look at what is remembered, and change it by hand."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from sharpwave.arguments import PREFIX, AsOfOption, KnownAtOption, find_id, moment, one_of
from sharpwave.commands import erase, log, moving, trust
from sharpwave.commands.log import print_changes, print_events
from sharpwave.console import JsonOption, UserOption, opened, out, print_json, settings_of, user_of
from sharpwave.memory import times
from sharpwave.memory.errors import InputError
from sharpwave.memory.records import Kind, Memory, Status
from sharpwave.settings import Settings
from sharpwave.showing import change, plain, row, short_ids, slot, table, when

if TYPE_CHECKING:
    from sharpwave.memory.applying import Applied
    from sharpwave.memory.store import MemoryStore

IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help=f"The memory's id, or its beginning ({PREFIX} characters or more).")
]
TextArgument = Annotated[str, typer.Argument(metavar="TEXT", help="One statement that stands on its own.")]

group = typer.Typer(help="Look at memories and change them by hand.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.add_typer(group, name="memories")
    app.command("undo")(log.undo)
    app.command("ledger")(log.ledger)


@group.command("list")
def list_(
    context: typer.Context,
    user: UserOption = None,
    status: Annotated[
        str | None,
        typer.Option("--status", help=f"all, {', '.join(get_args(Status))}. Default: active.", show_default=False),
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", help=", ".join(get_args(Kind)), show_default=False)] = None,
    as_of: AsOfOption = None,
    known_at: KnownAtOption = None,
    as_json: JsonOption = False,
) -> None:
    """List memories in the order they were recorded; what is doubted (confidence below 0.5) with --status all."""
    settings = settings_of(context)
    owner, at, known = user_of(settings, user), moment(as_of, settings), moment(known_at, settings)
    one_of("status", status, ("all", *get_args(Status)))
    one_of("kind", kind, get_args(Kind))
    if (at or known) and status:
        raise InputError("--as-of and --known-at list what held then, whatever became of it; leave out --status.")
    statuses = () if status == "all" else (status or "active",)
    with opened(settings) as store:
        found = store.memories(owner, statuses=statuses, kinds=(kind,) if kind else (), as_of=at, known_at=known)
        short = short_ids([memory.id for memory in store.memories(owner, statuses=())])
    if as_json:
        print_json({"user": owner, "memories": [memory.model_dump(mode="json") for memory in found]})
        return
    _print_memories(found, short, settings)


def _print_memories(found: Sequence[Memory], short: Mapping[str, str], settings: Settings) -> None:
    if not found:
        out.print("Nothing to list.")
        return
    shown, now = table("Id", "Memory", "Slot", "Conf.", "Since", "Status"), times.now()
    for memory in found:
        since = when(memory.valid_from, settings.timezone)[:10]
        row(shown, short[memory.id], memory.text, slot(memory), f"{memory.confidence:.2f}", since, _state(memory, now))
    out.print(shown)


def _state(memory: Memory, now: datetime) -> str:
    """Return the status of a memory, with its marks."""
    from sharpwave.memory.staleness import is_stale

    stale = memory.status == "active" and is_stale(memory, now)
    marks = {"pinned": memory.pinned, "to review": memory.needs_review, "stale": stale}
    return ", ".join([memory.status, *(mark for mark, holds in marks.items() if holds)])


@group.command()
def show(context: typer.Context, memory: IdArgument, user: UserOption = None, as_json: JsonOption = False) -> None:
    """Show everything that is known of one memory."""
    from sharpwave.memory.rehearsal import effective

    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        found = store.get(owner, find_id(store, owner, memory))
    record = {**found.model_dump(mode="json"), "strength_now": round(effective(found, times.now()), 3)}
    if as_json:
        print_json(record)
        return
    shown = table("", "")
    for name, value in record.items():
        if value not in (None, [], {}, "", 0):
            row(shown, name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    out.print(shown)


@group.command()
def history(context: typer.Context, memory: IdArgument, user: UserOption = None, as_json: JsonOption = False) -> None:
    """Show what happened to one memory, and why, in the order of time."""
    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        found = find_id(store, owner, memory)
        events, versions = store.history(owner, found), store.versions(owner, found)
    if as_json:
        print_json(
            {
                "id": found,
                "events": [change(event) for event in events],
                "versions": [version.model_dump(mode="json") for version in versions],
            }
        )
        return
    print_events(events, settings)


@group.command()
def add(
    context: typer.Context,
    text: TextArgument,
    user: UserOption = None,
    kind: Annotated[str, typer.Option("--kind", help=", ".join(get_args(Kind)))] = "fact",
    importance: Annotated[float | None, typer.Option("--importance", help="0 to 1.", show_default=False)] = None,
    subject: Annotated[
        str | None, typer.Option("--subject", help="Whom or what it is about.", show_default=False)
    ] = None,
    attribute: Annotated[
        str | None, typer.Option("--attribute", help="Slot, such as home_city.", show_default=False)
    ] = None,
    value: Annotated[str | None, typer.Option("--value", help="What fills the slot.", show_default=False)] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="May be given several times.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Add a memory."""
    one_of("kind", kind, get_args(Kind))
    given = {"importance": importance, "subject": subject, "attribute": attribute, "value": value}
    fields = {name: entry for name, entry in given.items() if entry is not None}
    _change(
        context, user, as_json, lambda store, owner: store.add(owner, text, kind=kind, tags=tuple(tag or ()), **fields)
    )


@group.command()
def edit(
    context: typer.Context, memory: IdArgument, text: TextArgument, user: UserOption = None, as_json: JsonOption = False
) -> None:
    """Give a memory a new text. The old one stays as an earlier version."""
    _change(context, user, as_json, lambda store, owner: store.edit(owner, find_id(store, owner, memory), text))


@group.command()
def delete(
    context: typer.Context,
    memory: IdArgument,
    user: UserOption = None,
    reason: Annotated[str, typer.Option("--reason", help="Why; it is kept in the history.")] = "deleted by hand",
    purge: Annotated[
        bool,
        typer.Option(
            "--purge", help="Destroy it: all versions, what was derived from it, and the messages it is from."
        ),
    ] = False,
    yes: erase.YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Retract a memory. Its history is kept, unless --purge says otherwise."""
    if purge:
        erase.purge(context, user_of(settings_of(context), user), memory, yes, as_json)
        return
    _change(
        context,
        user,
        as_json,
        lambda store, owner: store.delete(owner, find_id(store, owner, memory), reason),
        "It is recalled no more; its text and history are kept by design: sharpwave memories restore {id} brings it back, "
        "sharpwave memories delete {id} --purge destroys it.",
    )


@group.command()
def restore(
    context: typer.Context,
    memory: IdArgument,
    user: UserOption = None,
    version: Annotated[
        int | None,
        typer.Option("--version", help="Which one. Default: the one before the present.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make an earlier version of a memory the present one."""
    _change(context, user, as_json, lambda store, owner: store.restore(owner, find_id(store, owner, memory), version))


@group.command()
def pin(
    context: typer.Context,
    memory: IdArgument,
    user: UserOption = None,
    off: Annotated[bool, typer.Option("--off", help="Let it go again.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Pin a memory: no decision changes it, and nothing forgets it."""
    _change(context, user, as_json, lambda store, owner: store.pin(owner, find_id(store, owner, memory), not off))


@group.command()
def review(
    context: typer.Context,
    memory: Annotated[
        str | None, typer.Argument(metavar="ID", help="Which one to settle. Default: list them.", show_default=False)
    ] = None,
    user: UserOption = None,
    keep: Annotated[bool, typer.Option("--keep", help="It still holds.")] = False,
    delete: Annotated[bool, typer.Option("--delete", help="It no longer holds.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List what may be out of date because what it rests on has changed; or settle one of them.

    What earlier conversations were about is not listed: that stays as it was, and is recalled no longer.
    """
    if memory is None:
        if keep or delete:
            raise InputError("Which memory? `sharpwave memories review` lists their ids.")
        _list_reviews(context, user, as_json)
    elif keep == delete:
        raise InputError("Say what becomes of the memory: --keep or --delete.")
    elif keep:
        _change(context, user, as_json, lambda store, owner: store.keep(owner, find_id(store, owner, memory)))
    else:
        why = "no longer holds, said in review"
        _change(context, user, as_json, lambda store, owner: store.delete(owner, find_id(store, owner, memory), why))


def _list_reviews(context: typer.Context, user: str | None, as_json: bool) -> None:
    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        everything = store.memories(owner, statuses=())
    reviewed = [memory for memory in everything if memory.needs_review and memory.status == "active"]
    found = [memory for memory in reviewed if memory.subject != "conversation"]
    if as_json:
        print_json({"user": owner, "memories": [memory.model_dump(mode="json") for memory in found]})
    else:
        _print_memories(found, short_ids([memory.id for memory in everything]), settings)


def _change(
    context: typer.Context,
    user: str | None,
    as_json: bool,
    work: "Callable[[MemoryStore, str], Applied]",
    note: str = "",
) -> None:
    """Change one memory and say what was done."""
    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        done = work(store, owner)
    print_changes([done], as_json, done.model_dump(mode="json"))
    if note and not as_json:
        out.print(plain(note.format(id=done.memory_id)), style="dim")


group.command("export")(moving.export)
group.command("import")(moving.import_)
group.command("secrets")(trust.secrets)
group.add_typer(trust.group, name="quarantine")
