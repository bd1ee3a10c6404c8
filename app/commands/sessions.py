"""`sharpwave sessions`: which sessions there were, what they were about, and end one."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sharpwave.arguments import PREFIX, whole_id
from sharpwave.console import JsonOption, UserOption, opened, out, print_json, settings_of, user_of
from sharpwave.showing import plain, row, short_ids, table, when

if TYPE_CHECKING:
    from sharpwave.memory.kinds import Session
    from sharpwave.memory.sessions import Ended, Sessions

NEWEST = 20

group = typer.Typer(help="Look at sessions, and end them.", no_args_is_help=True)

ThreadOption = Annotated[
    str | None, typer.Option("--thread", "-t", help="Those of this conversation.", show_default=False)
]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.add_typer(group, name="sessions")


@group.command("list")
def list_(
    context: typer.Context,
    user: UserOption = None,
    thread: ThreadOption = None,
    last: Annotated[int, typer.Option("--last", help="How many of the newest.")] = NEWEST,
    as_json: JsonOption = False,
) -> None:
    """List sessions in the order of their time, the newest 20 unless --last says otherwise."""
    from sharpwave.memory.sessions import Sessions

    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        sessions = Sessions(store)
        every = sessions.find(owner)
    short = short_ids([session.id for session in every])
    chosen = [session for session in every if thread in (None, session.thread)]
    found = chosen[max(0, len(chosen) - max(last, 0)) :]
    if as_json:
        print_json({"user": owner, "sessions": [_data(session) for session in found]})
        return
    if not found:
        out.print("No sessions. One begins with the first message to the agent.")
        return
    shown = table("Id", "Thread", "From", "To", "Messages", "Status", "Summary")
    for one in found:
        span = (when(one.started_at, settings.timezone), when(one.last_at, settings.timezone))
        row(shown, short[one.id], one.thread, *span, str(one.messages), one.status, one.summary or "")
    out.print(shown)


@group.command()
def show(
    context: typer.Context,
    session: Annotated[
        str, typer.Argument(metavar="ID", help=f"The session's id, or its beginning ({PREFIX} characters or more).")
    ],
    user: UserOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a session with its summary and what was told in it."""
    from sharpwave.memory.sessions import Sessions

    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        sessions = Sessions(store)
        found = _chosen(sessions, owner, session)
        told = sessions.told(found)
    if as_json:
        print_json({**_data(found), "memories": [{"id": memory.id, "text": memory.text} for memory in told]})
        return
    shown = table("", "")
    for name, value in _data(found).items():
        if value not in (None, [], ""):
            row(shown, name, ", ".join(value) if isinstance(value, list) else str(value))
    for memory in told:
        row(shown, memory.kind, memory.text)
    out.print(shown)


@group.command()
def end(
    context: typer.Context,
    user: UserOption = None,
    thread: Annotated[str, typer.Option("--thread", "-t", help="Name of the conversation.")] = "main",
    idle: Annotated[
        bool, typer.Option("--idle", help="Instead, end those in which nobody has said anything for half an hour.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """End the session of a conversation: write what waits, and keep two or three sentences of it. Twice is as good as once."""
    from sharpwave.assembly import write_waiting
    from sharpwave.memory.sessions import Sessions
    from sharpwave.models import chat_model

    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        sessions, model = Sessions(store), chat_model(settings)
        if idle:
            done = sessions.end_idle(owner, model=model)
        else:
            write = lambda name: write_waiting(settings, store, name, None)
            done = [sessions.end_session(owner, thread, model=model, write=write)]
    if as_json:
        print_json({"user": owner, "ended": [report(one) for one in done]})
        return
    for one in done:
        out.print(plain(line(one)))
    if not done:
        out.print("No session is idle.")


def report(ended: "Ended") -> dict[str, Any]:
    """Return what became of a session, as plain data."""
    return {
        **_data(ended.session),
        "changed": ended.changed,
        "problem": ended.problem,
        "memories": [{"id": memory.id, "kind": memory.kind, "text": memory.text} for memory in ended.memories],
    }


def line(ended: "Ended") -> str:
    """Return in one line what became of a session."""
    session = ended.session
    counts = f"{session.messages} messages, {len(ended.memories)} facts and preferences"
    state = "Session ended" if ended.changed else "The session had ended"
    text = " ".join((session.summary or "").split())
    return f"{state} ({counts}).{f' {text}' if text else ''}{f' [{ended.problem}]' if ended.problem else ''}"


def _chosen(sessions: "Sessions", owner: str, given: str) -> "Session":
    known = {session.id: session for session in sessions.find(owner)}
    found = whole_id(given, list(known))
    return known[found] if found else sessions.get(owner, given)


def _data(session: "Session") -> dict[str, Any]:
    return session.model_dump(mode="json", exclude={"owner"})
