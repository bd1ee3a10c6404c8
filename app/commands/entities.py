"""`sharpwave entities`: the people, places and things that memories tell of."""

from typing import TYPE_CHECKING, Annotated, get_args

import typer

from sharpwave.arguments import PREFIX, one_of
from sharpwave.console import JsonOption, UserOption, opened, out, print_json, settings_of, user_of
from sharpwave.memory.errors import InputError, NotFoundError
from sharpwave.memory.kinds import Entity, EntityType
from sharpwave.showing import plain, row, short_ids, table, when

if TYPE_CHECKING:
    from sharpwave.memory.entities import Entities

NAME = "A name, alias or role (sister), an id or its beginning, or `user`."
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help=NAME)]

group = typer.Typer(help="People, places and things that memories tell of.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.add_typer(group, name="entities")


def find(entities: "Entities", owner: str, given: str) -> str:
    """Return the id of the entity that is meant by a name, an id, or the beginning of one."""
    try:
        return entities.get(owner, given).id
    except NotFoundError:
        everything = entities.list(owner, told=False, merged=True)
        begun = [one.id for one in everything if len(given) >= PREFIX and one.id.startswith(given)]
        if len(begun) != 1:
            raise
    return begun[0]


@group.command("list")
def list_(
    context: typer.Context,
    user: UserOption = None,
    type_: Annotated[
        str | None, typer.Option("--type", help=", ".join(get_args(EntityType)), show_default=False)
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Also what no present memory tells of, and what was merged.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List who and what is spoken of, what was spoken of last first."""
    from sharpwave.memory.entities import Entities

    settings = settings_of(context)
    owner = user_of(settings, user)
    one_of("type", type_, get_args(EntityType))
    with opened(settings) as store:
        entities = Entities(store)
        found = [e for e in entities.list(owner, told=not all_, merged=all_) if type_ in (None, e.type)]
        short = short_ids([entity.id for entity in entities.list(owner, told=False, merged=True)])
    if as_json:
        print_json({"user": owner, "entities": [entity.model_dump(mode="json") for entity in found]})
        return
    if not found:
        out.print("Nothing to list.")
        return
    shown = table("Id", "Name", "Type", "Also", "Last")
    for entity in found:
        kind = f"{entity.type}, merged" if entity.status == "merged" else entity.type
        last = when(entity.last_seen_at, settings.timezone)[:10]
        row(shown, short[entity.id], entity.name, kind, ", ".join(entity.aliases), last)
    out.print(shown)


@group.command()
def show(
    context: typer.Context,
    name: NameArgument,
    user: UserOption = None,
    facts: Annotated[int, typer.Option("--facts", help="At most so many facts.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Show what is known of somebody or something."""
    from sharpwave.memory.entities import Entities

    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        entities = Entities(store)
        entity = find(entities, owner, name)
        text = entities.context(owner, entity, facts)
        if as_json:
            related = [relation.model_dump(mode="json") for relation in entities.relations(owner, entity)]
            about = entities.get(owner, entity).model_dump(mode="json")
            print_json({**about, "relations": related, "context": text})
            return
    out.print(plain(text))


@group.command()
def merge(
    context: typer.Context,
    keep: Annotated[str | None, typer.Argument(metavar="KEEP", help=NAME, show_default=False)] = None,
    other: Annotated[str | None, typer.Argument(metavar="OTHER", help=NAME, show_default=False)] = None,
    user: UserOption = None,
    suggest: Annotated[bool, typer.Option("--suggest", help="List what may be one; change nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say that two entities are one. `unmerge` takes it back."""
    from sharpwave.memory.entities import Entities

    settings = settings_of(context)
    owner = user_of(settings, user)
    if suggest:
        _suggest(context, owner, as_json)
        return
    if keep is None or other is None:
        raise InputError("Which two? Name them, or pass --suggest to see what may be one.")
    with opened(settings) as store:
        entities = Entities(store)
        kept = entities.merge(owner, find(entities, owner, keep), find(entities, owner, other))
    _print(kept, f"{other} is {kept.name} from now on.", as_json)


def _suggest(context: typer.Context, owner: str, as_json: bool) -> None:
    from sharpwave.memory.entities import Entities

    with opened(settings_of(context)) as store:
        found = Entities(store).suggestions(owner)
    if as_json:
        print_json({"user": owner, "suggestions": [one.model_dump(mode="json") for one in found]})
        return
    if not found:
        out.print("Nothing looks alike.")
        return
    shown = table("Keep", "Id", "Other", "Id", "Why")
    short = short_ids([entity.id for one in found for entity in (one.keep, one.other)])
    for one in found:
        row(shown, one.keep.name, short[one.keep.id], one.other.name, short[one.other.id], one.reason)
    out.print(shown)


@group.command()
def unmerge(context: typer.Context, entity: NameArgument, user: UserOption = None, as_json: JsonOption = False) -> None:
    """Take a merge back: name the one that was merged by its id, as `list --all` shows it."""
    from sharpwave.memory.entities import Entities

    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        entities = Entities(store)
        apart = entities.unmerge(owner, find(entities, owner, entity))
    _print(apart, f"{apart.name} stands alone again.", as_json)


@group.command()
def relate(
    context: typer.Context,
    source: NameArgument,
    relation: Annotated[str, typer.Argument(metavar="RELATION", help="A word (sister) or a verb (works at).")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help=NAME)],
    user: UserOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remember how two entities are related."""
    from sharpwave.memory.entities import Entities

    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        made = Entities(store).relate(owner, source, relation, target)
    if as_json:
        print_json(made.model_dump(mode="json"))
    else:
        out.print(plain(f"{made.source_name}.{made.relation} = {made.target_name} (memory {made.memory_id})"))


def _print(entity: Entity, told: str, as_json: bool) -> None:
    if as_json:
        print_json(entity.model_dump(mode="json"))
    else:
        out.print(plain(told))
