"""`sharpwave episodes`: look at what was lived through, find it again, and learn from it."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from sharpwave.arguments import PREFIX, age, one_of, since_when, whole_id
from sharpwave.commands import talks
from sharpwave.console import JsonOption, UserOption, opened, out, print_json, settings_of, user_of
from sharpwave.memory.errors import InputError
from sharpwave.memory.kinds import Outcome
from sharpwave.settings import Settings
from sharpwave.showing import plain, row, short_ids, table, when

if TYPE_CHECKING:
    from sharpwave.memory.episodes import Episodes, Found
    from sharpwave.memory.kinds import Episode
    from sharpwave.memory.store import MemoryStore

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
NEWEST = 20

IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help=f"The episode's id, or its beginning ({PREFIX} characters or more).")
]
OutcomeOption = Annotated[str | None, typer.Option("--outcome", help=", ".join(OUTCOMES) + ".", show_default=False)]
SinceOption = Annotated[
    str | None,
    typer.Option("--since", help="From this date or time on (ISO 8601), or 30d, 12h, 2w.", show_default=False),
]
UntilOption = Annotated[
    str | None, typer.Option("--until", help="Before this date or time, or that long ago.", show_default=False)
]
TagOption = Annotated[
    list[str] | None, typer.Option("--tag", help="Those with this tag; may be given several times.", show_default=False)
]
ThreadOption = Annotated[
    str | None, typer.Option("--thread", "-t", help="Those of this conversation.", show_default=False)
]
CountOption = Annotated[int, typer.Option("--k", "-k", help="Most results.")]

group = typer.Typer(help="Look at what was lived through, and learn from it.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.add_typer(group, name="episodes")


@contextmanager
def at_hand(settings: Settings) -> "Iterator[tuple[MemoryStore, Episodes]]":
    """Open the store that the settings describe, with its episodes, for the length of a block."""
    from sharpwave.memory.episodes import Episodes

    with opened(settings) as store:
        yield store, Episodes(store)


def chosen(episodes: "Episodes", owner: str, given: str) -> "Episode":
    """Return the episode with an id that is, or begins with, what was given; raises `NotFoundError` or `InputError`."""
    known = {episode.id: episode for episode in episodes.find(owner, statuses=())}
    found = whole_id(given, list(known))
    return known[found] if found else episodes.get(owner, given)


def _filters(
    settings: Settings,
    outcome: str | None,
    tag: list[str] | None,
    thread: str | None,
    since: str | None,
    until: str | None,
) -> dict[str, Any]:
    one_of("outcome", outcome, OUTCOMES)
    times = {"since": since_when(since, settings), "until": since_when(until, settings)}
    return {"outcome": outcome, "tags": tuple(tag or ()), "thread": thread, **times}


@group.command("list")
def list_(
    context: typer.Context,
    user: UserOption = None,
    outcome: OutcomeOption = None,
    tag: TagOption = None,
    thread: ThreadOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    last: Annotated[int, typer.Option("--last", help="How many of the newest.")] = NEWEST,
    as_json: JsonOption = False,
) -> None:
    """List episodes in the order in which they ended, the newest 20 unless --last says otherwise."""
    settings = settings_of(context)
    owner = user_of(settings, user)
    asked = _filters(settings, outcome, tag, thread, since, until)
    with at_hand(settings) as (_, episodes):
        found = episodes.find(owner, last=last, **asked)
        short = short_ids([episode.id for episode in episodes.find(owner, statuses=())])
    if as_json:
        print_json({"user": owner, "episodes": [_data(episode) for episode in found]})
    else:
        _print([(episode, None) for episode in found], short, settings)


@group.command()
def show(context: typer.Context, episode: IdArgument, user: UserOption = None, as_json: JsonOption = False) -> None:
    """Show an episode with all its steps and what was learned."""
    settings = settings_of(context)
    owner = user_of(settings, user)
    with at_hand(settings) as (_, episodes):
        found = chosen(episodes, owner, episode)
    if as_json:
        print_json(_data(found))
        return
    shown = table("", "")
    for name, value in found.model_dump(mode="json", exclude={"trajectory"}).items():
        if value not in (None, [], {}, "", 0):
            row(shown, name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    out.print(shown)
    if not found.trajectory:
        out.print("No steps were recorded.", style="dim")
        return
    steps = table("#", "Thought", "Action", "Observation")
    for at, step in enumerate(found.trajectory, 1):
        row(steps, str(at), step.thought, step.action, ("failed: " if step.failed else "") + step.observation)
    out.print(steps)


@group.command()
def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Any words, in any script.")],
    user: UserOption = None,
    outcome: OutcomeOption = None,
    tag: TagOption = None,
    thread: ThreadOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    k: CountOption = 10,
    as_json: JsonOption = False,
) -> None:
    """Find episodes by what they were about, and by the words in their steps."""
    settings = settings_of(context)
    owner = user_of(settings, user)
    asked = _filters(settings, outcome, tag, thread, since, until)
    if not query.strip():
        raise InputError("The question is blank.")
    with at_hand(settings) as (_, episodes):
        found = episodes.search(owner, query, k=k, **asked)
        _print_found(query, found, episodes, owner, settings, as_json)


@group.command()
def similar(
    context: typer.Context,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="What is at hand; or the id of an episode, for others like it.")
    ],
    user: UserOption = None,
    outcome: OutcomeOption = None,
    max_age: Annotated[
        str | None, typer.Option("--max-age", help="Not older than 30d, 12h or 2w.", show_default=False)
    ] = None,
    k: CountOption = 3,
    as_json: JsonOption = False,
) -> None:
    """Find episodes whose task is like the one at hand."""
    settings = settings_of(context)
    owner = user_of(settings, user)
    one_of("outcome", outcome, OUTCOMES)
    oldest = None if max_age is None else age(max_age)
    if not text.strip():
        raise InputError("The text is blank.")
    with at_hand(settings) as (_, episodes):
        known = {episode.id: episode for episode in episodes.find(owner, statuses=())}
        itself = whole_id(text, list(known))
        asked = known[itself].task if itself else text
        found = episodes.similar(owner, asked, k + bool(itself), outcome, oldest)  # type: ignore[arg-type]
        found = [one for one in found if one.episode.id != itself][:k]
        _print_found(asked, found, episodes, owner, settings, as_json)


@group.command()
def reflect(
    context: typer.Context,
    episode: Annotated[list[str], typer.Argument(metavar="ID...", help="One episode, or several for their pattern.")],
    user: UserOption = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Remember the pattern in several episodes as an insight.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Reflect on an episode and keep what it teaches with it; or look for the pattern in several.

    Without a model it is extractive: read off the steps.
    """
    from sharpwave.memory.usage import metering
    from sharpwave.models import chat_model

    settings = settings_of(context)
    owner = user_of(settings, user)
    if keep and len(episode) == 1:
        raise InputError("--keep goes with several episodes; the reflection on one is kept with it.")
    with at_hand(settings) as (store, episodes):
        ids = [chosen(episodes, owner, one).id for one in episode]
        model, limit = chat_model(settings), settings.max_tokens_per_day
        with metering(tokens=None if limit is None else limit - store.tokens_today(owner)) as meter:
            try:
                if len(episode) == 1:
                    _print_reflection(episodes.reflect(owner, ids[0], model), as_json)
                    return
                pattern, memory = episodes.synthesise(owner, ids, model, keep=keep)
            finally:
                store.spend(owner, meter.usage)
    if as_json:
        print_json({**pattern.model_dump(mode="json"), "memory_id": memory.id if memory else None})
        return
    out.print(plain(f"{pattern.text}\nLesson: {pattern.lesson}"))
    out.print(plain(_maker(pattern.policy)), style="dim")
    if memory:
        out.print(plain(f"Kept as memory {memory.id}."), style="dim")


@group.command()
def add(
    context: typer.Context,
    task: Annotated[str, typer.Argument(metavar="TASK", help="What was to be done.")],
    outcome: Annotated[str, typer.Option("--outcome", help=", ".join(OUTCOMES) + ".")],
    user: UserOption = None,
    step: Annotated[
        list[str] | None,
        typer.Option("--step", help="ACTION, or 'ACTION => RESULT'; may be given several times.", show_default=False),
    ] = None,
    reflection: Annotated[
        str | None, typer.Option("--reflection", help="What was learned.", show_default=False)
    ] = None,
    started: Annotated[
        str | None, typer.Option("--started", help="ISO 8601. Default: when it ended.", show_default=False)
    ] = None,
    ended: Annotated[str | None, typer.Option("--ended", help="ISO 8601. Default: now.", show_default=False)] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="May be given several times.", show_default=False)
    ] = None,
    thread: Annotated[
        str | None, typer.Option("--thread", "-t", help="The conversation it belongs to.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Record an episode by hand."""
    settings = settings_of(context)
    owner = user_of(settings, user)
    one_of("outcome", outcome, OUTCOMES)
    steps = [
        dict(zip(("action", "observation"), map(str.strip, one.split("=>", 1)), strict=False)) for one in step or ()
    ]
    times: dict[str, Any] = {
        "started_at": since_when(started, settings),
        "ended_at": since_when(ended, settings),
    }
    with at_hand(settings) as (_, episodes):
        made = episodes.add(owner, task, steps, outcome, reflection=reflection, tags=tag or (), thread=thread, **times)
    if as_json:
        print_json(_data(made))
    else:
        out.print(plain(f"EPISODE {made.id}: {made.task} ({made.outcome}; steps: {len(made.trajectory)})"))


group.command("conversations")(talks.conversations)


def _data(episode: "Episode") -> dict[str, Any]:
    return {**episode.model_dump(mode="json", exclude={"owner"}), "seconds": episode.seconds}


def _print_found(
    query: str, found: "Sequence[Found]", episodes: "Episodes", owner: str, settings: Settings, as_json: bool
) -> None:
    if as_json:
        print_json({"query": query, "results": [{"score": one.score, **_data(one.episode)} for one in found]})
        return
    short = short_ids([episode.id for episode in episodes.find(owner, statuses=())])
    _print([(one.episode, one.score) for one in found], short, settings)


def _print(found: "Sequence[tuple[Episode, float | None]]", short: dict[str, str], settings: Settings) -> None:
    if not found:
        out.print("No such episode.")
        return
    scored = any(score is not None for _, score in found)
    shown = table("Id", *(["Score"] if scored else []), "Ended", "Outcome", "Task", "Steps", "Lesson")
    for episode, score in found:
        marks = [] if score is None else [f"{score:.2f}"]
        learned = episode.lesson or episode.reflection or ""
        ended = when(episode.ended_at, settings.timezone)
        row(
            shown,
            short[episode.id],
            *marks,
            ended,
            episode.outcome,
            episode.task,
            str(len(episode.trajectory)),
            learned,
        )
    out.print(shown)


def _print_reflection(episode: "Episode", as_json: bool) -> None:
    if as_json:
        print_json(_data(episode))
        return
    out.print(plain(episode.reflection or ""))
    out.print(plain(_maker(episode.reflected_by or "")), style="dim")


def _maker(policy: str) -> str:
    extractive = policy.startswith("extractive")
    return f"({policy}: {'taken from the steps; no model was asked' if extractive else 'by the model'})"
