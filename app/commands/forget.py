"""`sharpwave forget`: let go of what the rules of forgetting no longer keep; it can be brought back."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from sharpwave.commands import episodes
from sharpwave.commands.episodes import IdArgument, at_hand, chosen
from sharpwave.console import JsonOption, UserOption, err, opened, out, print_json, settings_of, user_of
from sharpwave.memory.errors import InputError
from sharpwave.showing import plain, row, short_ids, table

if TYPE_CHECKING:
    from sharpwave.memory.forget import Forgetting

SHOWN = 50


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("forget")(forget)
    episodes.group.command("restore")(restore)


def forget(
    context: typer.Context,
    user: UserOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would go, and why.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask. More than a fifth of everything never goes unasked.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Let what is doubted, stale, contradicted, expired, over the capacity or old leave the current view.

    Nothing is destroyed: `memories restore` and `episodes restore` bring back what went, `undo --last N` the last memories.
    """
    from sharpwave.memory.forget import forget as let_go

    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        planned = let_go(store, owner, dry_run=True)
        if not as_json:
            _print(planned)
        done = planned
        if planned.doomed and not dry_run:
            asked = not yes and _agreed(planned)
            done = let_go(store, owner, largest_share=1.0) if asked else let_go(store, owner)
    if as_json:
        print_json({"user": owner, **done.model_dump(mode="json")})
    elif done.doomed and not done.dry_run and not done.stopped:
        out.print(f"{len(done.doomed)} forgotten. `memories restore ID` and `episodes restore ID` bring one back.")
    if done.stopped and not dry_run:
        err.print("More than a fifth of everything would go, so nothing went. Run it at a terminal, to be asked.")
        raise typer.Exit(1)


def _agreed(planned: "Forgetting") -> bool:
    """Ask a person; ends the command where the answer is no."""
    if not sys.stdin.isatty():
        raise InputError("Nobody is there to be asked. Pass --yes to let them go, or --dry-run to only see them.")
    return typer.confirm(f"Forget {len(planned.doomed)} of {planned.considered}?", abort=True, err=True)


def _print(planned: "Forgetting") -> None:
    if not planned.doomed:
        out.print(f"Nothing to forget among {planned.considered} memories and episodes.")
        return
    short = short_ids([one.id for one in planned.doomed])
    shown = table("Id", "What", "Rule", "Text", "Why")
    for one in planned.doomed[:SHOWN]:
        row(shown, short[one.id], one.store, one.rule, one.text, one.reason)
    out.print(shown)
    if len(planned.doomed) > SHOWN:
        out.print(plain(f"… and {len(planned.doomed) - SHOWN} more; --json lists them all."))
    if planned.stopped:
        out.print(plain(f"That is more than a fifth of all {planned.considered}."), style="yellow")


def restore(context: typer.Context, episode: IdArgument, user: UserOption = None, as_json: JsonOption = False) -> None:
    """Bring back an episode that was forgotten."""
    settings = settings_of(context)
    owner = user_of(settings, user)
    with at_hand(settings) as (_, kept):
        back = kept.restore(owner, chosen(kept, owner, episode).id)
    if as_json:
        print_json(back.model_dump(mode="json"))
    else:
        out.print(plain(f"RESTORE {back.id}: {back.task} ({back.outcome})"))
