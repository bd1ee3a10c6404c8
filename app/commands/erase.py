"""`sharpwave erase`: destroy all that is kept of a user, and search the folder for what is left."""

from typing import TYPE_CHECKING, Annotated

import typer

from sharpwave.console import JsonOption, confirm, opened, out, print_json, settings_of
from sharpwave.showing import plain, row, table

if TYPE_CHECKING:
    from sharpwave.memory.erase import Erasure
    from sharpwave.memory.traces import Marks

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("erase")(erase)


def erase(
    context: typer.Context,
    user: Annotated[str, typer.Argument(help="Whose memory.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would go.")] = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Destroy everything that is kept of a user: memories, messages, history, conversations. It cannot be undone.

    Deleting alone leaves bytes in files. So they are rewritten, and all of them searched: texts, ids, vectors. Exit 1 when
    something is left. An erasure that was interrupted goes on when it is asked for again.
    """
    from sharpwave.checkpoints import erase_conversations
    from sharpwave.memory import erase as erasing
    from sharpwave.memory.ledger import check_owner

    check_owner(user)
    settings = settings_of(context)

    def conversations(_marks: "Marks", count_only: bool) -> dict[str, int]:
        return erase_conversations(settings.home, user, dry_run=count_only)

    with opened(settings) as store:
        if not dry_run:
            confirm(f"Destroy everything that is kept of {user!r}? This cannot be undone.", yes)
        work = erasing.preview if dry_run else erasing.erase
        done = work(store, user, outside=conversations)
    finish(done, as_json)


def purge(context: typer.Context, user: str, memory_id: str, yes: bool, as_json: bool) -> None:
    """Destroy one memory, by its id or the beginning of it."""
    from sharpwave.arguments import find_id
    from sharpwave.checkpoints import erase_conversations
    from sharpwave.memory import erase as erasing

    settings = settings_of(context)

    def conversations(marks: "Marks", count_only: bool) -> dict[str, int]:
        return erase_conversations(settings.home, user, marks["text"], dry_run=count_only)

    with opened(settings) as store:
        begun = erasing.interrupted(settings.home)
        whole = memory_id if begun == (user, memory_id) else find_id(store, user, memory_id)
        confirm(f"Destroy memory {whole} with the messages that it was taken from? This cannot be undone.", yes)
        done = erasing.purge_memory(store, user, whole, outside=conversations)
    finish(done, as_json)


def finish(done: "Erasure", as_json: bool) -> None:
    """Print the report; exit 1 when something is left."""
    if as_json:
        print_json(done.model_dump(mode="json"))
    else:
        _show(done)
    if done.findings:
        raise typer.Exit(1)


def _show(done: "Erasure") -> None:
    what = f"memory {done.memory} of {done.owner}" if done.memory else done.owner
    out.print(plain(f"Would be erased: {what}" if done.dry_run else f"Erased: {what}"))
    shown = table("", "")
    for name, count in done.rows.items():
        row(shown, name.replace("_", " "), f"{count:,}")
    row(shown, "threads", ", ".join(done.threads) or "none")
    row(shown, "collections" + (" to rebuild" if done.dry_run else " rebuilt"), ", ".join(done.collections))
    row(shown, "files to search" if done.dry_run else "files searched", f"{len(done.files):,}")
    out.print(shown)
    if done.dry_run:
        out.print("Nothing was changed.")
        return
    pieces = ", ".join(f"{count:,} of {kind}s" for kind, count in done.searched_for.items())
    out.print(
        plain(f"Searched {done.bytes_searched:,} bytes for {pieces} ({done.used_elsewhere:,} that others use too).")
    )
    if done.memory:
        out.print(plain("The messages that it was taken from went too; that something was there stays in the log."))
    for finding in done.findings:
        out.print(plain(f"LEFT: {finding.what} in {finding.file}"), style="red")
    out.print(
        "Nothing is left."
        if done.complete
        else "Something is left. Remove these files, or end what holds them, and run it again."
    )
