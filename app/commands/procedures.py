"""`sharpwave procedures`: which strategies work, and which tools do."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sharpwave.arguments import PREFIX, one_of, whole_id
from sharpwave.console import JsonOption, UserOption, opened, out, print_json, settings_of, user_of
from sharpwave.memory.errors import NotFoundError
from sharpwave.memory.kinds import Procedure
from sharpwave.showing import plain, row, short_ids, table, when

if TYPE_CHECKING:
    from sharpwave.memory.ledger import Event
    from sharpwave.memory.procedures import Procedures
    from sharpwave.memory.tool_use import Guidance

STATUSES = ("candidate", "active", "demoted", "expired")

IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help=f"The procedure's id, or its beginning ({PREFIX} characters or more).")
]
AgentOption = Annotated[str, typer.Option("--agent", help="Which of the user's agents.")]

group = typer.Typer(
    help="Look at strategies and tools: how often they worked, and how sure that is.", no_args_is_help=True
)


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.add_typer(group, name="procedures")


@group.command("list")
def list_(
    context: typer.Context,
    user: UserOption = None,
    agent: AgentOption = "agent",
    status: Annotated[
        str | None, typer.Option("--status", help=f"{', '.join(STATUSES)}. Default: all.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List procedures with their counts and the lower bound of their success rate (Wilson, 95 %)."""
    from sharpwave.memory.procedures import Procedures

    settings = settings_of(context)
    owner = user_of(settings, user)
    one_of("status", status, STATUSES)
    with opened(settings) as store:
        found = Procedures(store).find(owner, agent=agent)
    short = short_ids([procedure.id for procedure in found])
    chosen = [procedure for procedure in found if status in (None, procedure.status)]
    if as_json:
        print_json({"user": owner, "agent": agent, "procedures": [as_data(procedure) for procedure in chosen]})
    elif not chosen:
        out.print("Nothing to list.")
    else:
        shown = table("Id", "Procedure", "Steps", "Worked", "Bound", "Status")
        for one in chosen:
            row(
                shown,
                short[one.id],
                one.name,
                " → ".join(one.actions),
                _worked(one),
                f"{one.confidence:.2f}",
                one.status,
            )
        out.print(shown)


def _worked(procedure: Procedure) -> str:
    return f"{procedure.successes} of {procedure.successes + procedure.failures}"


@group.command()
def show(context: typer.Context, procedure: IdArgument, user: UserOption = None, as_json: JsonOption = False) -> None:
    """Show a procedure: when it applies, what to do, and what happened to it."""
    from sharpwave.memory.procedures import Procedures

    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        kept = Procedures(store)
        found = kept.get(owner, _find_id(kept, owner, procedure))
        events = kept.history(owner, found.id)
    if as_json:
        print_json({**as_data(found), "events": [_told(event) for event in events]})
        return
    shown = table("", "")
    parts = {
        "name": found.name,
        "applies": found.conditions,
        **{f"step {number}": step for number, step in enumerate(found.steps, 1)},
        "worked": f"{_worked(found)} times (lower bound {found.confidence:.2f})",
        "status": f"{found.status}, version {found.version}, of {found.agent}",
    }
    for name, value in parts.items():
        row(shown, name, value)
    out.print(shown)
    changes = table("Time", "What", "Worked", "Failed", "Version", "Status", "Why")
    for event in events:
        after = event.detail["row_after"]
        counts = [str(after[name]) for name in ("successes", "failures", "version")]
        why = f"{event.reason} ({event.policy})"
        row(changes, when(event.at, settings.timezone), event.op, *counts, after["status"], why)
    out.print(changes)


def _told(event: "Event") -> dict[str, Any]:
    told = {name: getattr(event, name) for name in ("seq", "op", "reason", "policy")}
    before, after = event.detail["row_before"], event.detail["row_after"]
    return {**told, "at": event.at.isoformat(), "before": before, "after": after}


@group.command()
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="One that is there gets a new version.")],
    step: Annotated[list[str], typer.Option("--step", help="What to do; give it once for each step, in order.")],
    when_: Annotated[str, typer.Option("--when", help="When it applies.")],
    worked: Annotated[int, typer.Option("--worked", min=0, help="How often it is known to have worked.")] = 0,
    failed: Annotated[int, typer.Option("--failed", min=0, help="How often it is known to have failed.")] = 0,
    agent: AgentOption = "agent",
    user: UserOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a procedure, or change the one of this name. An agent is told of it once it has worked often enough."""

    def work(kept: "Procedures", owner: str) -> Procedure:
        return kept.add(owner, name, when_, step, agent=agent, successes=worked, failures=failed)

    _change(context, user, as_json, work)


@group.command()
def retire(
    context: typer.Context,
    procedure: IdArgument,
    reason: Annotated[str, typer.Option("--reason", help="Why; it is kept in the history.")] = "retired by hand",
    user: UserOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a procedure out of use; its history stays."""
    _change(context, user, as_json, lambda kept, owner: kept.retire(owner, _find_id(kept, owner, procedure), reason))


@group.command()
def tools(
    context: typer.Context, user: UserOption = None, agent: AgentOption = "agent", as_json: JsonOption = False
) -> None:
    """Show what the latest uses of each tool teach: success rate, its lower bound, mean time, commonest errors."""
    from sharpwave.memory.tool_use import ToolUses

    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        uses = ToolUses(store)
        found = [guidance for tool in uses.tools(owner, agent) if (guidance := uses.guidance(owner, tool, agent))]
    if as_json:
        print_json({"user": owner, "agent": agent, "tools": [guidance.model_dump(mode="json") for guidance in found]})
    elif not found:
        out.print("No tool has been used yet.")
    else:
        _print_tools(found)


def _print_tools(found: "list[Guidance]") -> None:
    shown = table("Tool", "Worked", "Bound", "Mean", "Errors", "Successes had")
    for one in found:
        errors = "\n".join(f"{error.count} × {error.kind}" for error in one.errors)
        given = "\n".join(f"{name}={known.value!r} ({known.share:.0%})" for name, known in one.parameters.items())
        worked = f"{one.uses - one.failures} of {one.uses} ({one.success_rate:.0%})"
        took = "" if one.seconds is None else f"{one.seconds:.2f} s"
        name = f"{one.tool}\n(warned of)" if one.warned else one.tool
        row(shown, name, worked, f"{one.confidence:.2f}", took, errors, given)
    out.print(shown)


def as_data(procedure: Procedure) -> dict[str, Any]:
    """Return a procedure as plain data, with its confidence."""
    return {**procedure.model_dump(mode="json"), "confidence": procedure.confidence}


def _find_id(kept: "Procedures", owner: str, given: str) -> str:
    found = whole_id(given, [procedure.id for procedure in kept.find(owner)])
    if found is None:
        raise NotFoundError(
            f"There is no procedure {given!r} for this user. `sharpwave procedures list` shows the ids."
        )
    return found


def _change(
    context: typer.Context, user: str | None, as_json: bool, work: "Callable[[Procedures, str], Procedure]"
) -> None:
    from sharpwave.memory.procedures import Procedures

    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        done = work(Procedures(store), owner)
    if as_json:
        print_json(as_data(done))
    else:
        out.print(plain(f"{done.id}  {done.name}: {done.status}, version {done.version}, bound {done.confidence:.2f}"))
