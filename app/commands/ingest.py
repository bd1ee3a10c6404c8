"""`sharpwave ingest`: write whole conversations to memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sharpwave.console import JsonOption, UserOption, err, opened, out, print_json, settings_of
from sharpwave.conversations import Format, count, read
from sharpwave.memory.records import Turn
from sharpwave.settings import Settings

if TYPE_CHECKING:
    from sharpwave.ingesting import Ingested

FormatOption = Annotated[Format, typer.Option("--format", help="Format of the file; `auto` tells by its content.")]
ThreadOption = Annotated[
    str | None,
    typer.Option("--thread", "-t", help="Conversation, where the file names none. Default: the file's name."),
]
FactsOption = Annotated[
    bool, typer.Option("--facts/--no-facts", help="Find facts in what was said, or keep it verbatim and nothing else.")
]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("ingest")(ingest)


def ingest(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A conversation: messages as JSON, JSON lines, or LoCoMo.")
    ],
    user: UserOption = None,
    format: FormatOption = "auto",
    thread: ThreadOption = None,
    facts: FactsOption = True,
    as_json: JsonOption = False,
) -> None:
    """Write the conversations of a file to memory, each message once.

    Turns that an earlier run has written are passed over, so a run that was cut off is finished by the same command. Turns
    written with --no-facts count as written.
    """
    settings = settings_of(context)
    owner = user if user is not None else settings.user
    total = count(file, format, owner=owner)
    turns = read(file, format, owner=owner, thread=thread, timezone=settings.timezone)
    with _progress(total, shown=err.is_terminal) as advance:
        done = _run(settings, turns, facts, advance)
    summary = {"file": str(file), "format": format, **done.report()}
    if as_json:
        print_json(summary)
    else:
        _show(summary)
    if done.failed:
        err.print(f"{done.failed} turns could not be written; they are kept. Run the same command again.", markup=False)
        raise typer.Exit(1)


def _run(settings: Settings, turns: Iterator[Turn], facts: bool, advance: Callable[[], None]) -> "Ingested":
    from sharpwave.assembly import writers
    from sharpwave.ingesting import ingest
    from sharpwave.memory.decide.rules import RulesPolicy

    with opened(settings) as store:
        extractor, policy = writers(settings, store.embeddings) if facts else (None, RulesPolicy())
        return ingest(store, turns, extractor, policy, passed=lambda turn, written: advance())


@contextmanager
def _progress(total: int, *, shown: bool) -> Iterator[Callable[[], None]]:
    """Show a progress bar on standard error; yields what moves it on by one turn."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not shown) as progress:
        task = progress.add_task("turns", total=total)
        yield lambda: progress.advance(task)


def _show(summary: dict[str, Any]) -> None:
    owners = summary["owners"]
    who = ", ".join(owners[:5]) + (f" and {len(owners) - 5} more" if len(owners) > 5 else "")
    out.print(
        f"{summary['written']} turns written, {summary['skipped']} were there already. For: {who or 'nobody'}",
        markup=False,
    )
    operations = ", ".join(f"{number} {op}" for op, number in sorted(summary["operations"].items()))
    out.print(
        f"Decisions: {operations or 'none'}. {summary['texts_embedded']} texts embedded in {summary['seconds']:.1f} s.",
        markup=False,
    )
