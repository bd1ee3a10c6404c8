"""`sharpwave memories quarantine` and `secrets`: what is kept out of recall, and what is kept out of the store."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from sharpwave.arguments import find_id, one_of
from sharpwave.commands.log import print_changes
from sharpwave.console import JsonOption, UserOption, opened, out, print_json, settings_of, user_of
from sharpwave.showing import plain, row, short_ids, table, when

if TYPE_CHECKING:
    from sharpwave.memory.applying import Applied
    from sharpwave.memory.store import MemoryStore

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The memory's id, or its beginning.")]
SwitchArgument = Annotated[
    str | None, typer.Argument(metavar="[on|off]", help="What to do from now on. Default: show it.", show_default=False)
]

group = typer.Typer(
    help="What reads like an instruction and is not in the user's own words: list, release or drop it.",
    no_args_is_help=True,
)


@group.command("list")
def list_(context: typer.Context, user: UserOption = None, as_json: JsonOption = False) -> None:
    """List what is in quarantine. None of it is recalled."""
    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        found = store.memories(owner, statuses=("quarantined",))
        short = short_ids([memory.id for memory in store.memories(owner, statuses=())])
    if as_json:
        print_json({"user": owner, "memories": [memory.model_dump(mode="json") for memory in found]})
        return
    if not found:
        out.print("Nothing is in quarantine.")
        return
    shown = table("Id", "Text", "From", "Since")
    for memory in found:
        since = when(memory.recorded_at, settings.timezone)[:10]
        row(shown, short[memory.id], memory.text, memory.source.kind, since)
    out.print(shown)


@group.command()
def release(context: typer.Context, memory: IdArgument, user: UserOption = None, as_json: JsonOption = False) -> None:
    """Let a memory out of quarantine: it is recalled from now on. `undo` puts it back."""
    _settle(context, user, as_json, lambda store, owner: store.release(owner, find_id(store, owner, memory)))


@group.command()
def drop(context: typer.Context, memory: IdArgument, user: UserOption = None, as_json: JsonOption = False) -> None:
    """Retract a memory that is in quarantine. Its history is kept."""
    _settle(context, user, as_json, lambda store, owner: store.drop(owner, find_id(store, owner, memory)))


def _settle(
    context: typer.Context, user: str | None, as_json: bool, work: "Callable[[MemoryStore, str], Applied]"
) -> None:
    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        done = work(store, owner)
    print_changes([done], as_json, done.model_dump(mode="json"))


def secrets(
    context: typer.Context, switch: SwitchArgument = None, user: UserOption = None, as_json: JsonOption = False
) -> None:
    """Say whether passwords, keys and card numbers are masked before anything is written. They are, unless turned off.

    What was written before stays as it is.
    """
    settings = settings_of(context)
    owner = user_of(settings, user)
    one_of("switch", switch, ("on", "off"))
    with opened(settings) as store:
        if switch is not None:
            store.set_policy(owner, mask_secrets=switch == "on")
        masks = store.masks_secrets(owner)
    if as_json:
        print_json({"user": owner, "mask_secrets": masks})
    else:
        out.print(plain(f"Secrets of {owner} are {'masked' if masks else 'kept as they are said'}."))
