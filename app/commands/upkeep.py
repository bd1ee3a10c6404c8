"""`sharpwave doctor`, `reindex`, `retry` and `stats`: is all well, put it right, how much is there."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from sharpwave.console import JsonOption, err, opened, out, print_json, settings_of
from sharpwave.settings import Settings
from sharpwave.showing import plain, row, table

if TYPE_CHECKING:
    from sharpwave.memory.rebuild import Progress
    from sharpwave.memory.store import MemoryStore


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    for command in (doctor, reindex, retry, stats):
        app.command(command.__name__)(command)


@contextmanager
def _open_for_repair(settings: Settings) -> "Iterator[MemoryStore]":
    """Open the store in whatever state it is."""
    from sharpwave.memory.store import MemoryStore
    from sharpwave.models import embeddings, provider_errors

    with (
        provider_errors(settings),
        MemoryStore.open(
            settings.home, embeddings=embeddings(settings), collections=settings.collections, repair=True
        ) as store,
    ):
        yield store


def doctor(context: typer.Context, as_json: JsonOption = False) -> None:
    """Check the store: the ledger, the keywords, and that each vector finds itself. Exit 1 when something is wrong."""
    from sharpwave.memory import doctor as medicine

    with _open_for_repair(settings_of(context)) as store:
        report = medicine.examine(store)
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        shown = table("", "Check", "Found", "What to do")
        for check in report.checks:
            row(shown, "ok" if check.ok else "NO", check.name, check.found, check.advice or "")
        out.print(shown)
        out.print("All is well." if report.healthy else "Something is wrong; see the last column.")
    if not report.healthy:
        raise typer.Exit(1)


def reindex(
    context: typer.Context,
    embed: Annotated[
        bool, typer.Option("--embed", help="Embed everything anew with the embedder of the settings.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Rebuild the vector index and the keywords from the ledger. It can be interrupted and run again."""
    from sharpwave.memory import rebuild

    start = time.monotonic()
    with _open_for_repair(settings_of(context)) as store, _bar(as_json) as progress:
        rows = rebuild.reindex(store, embed=embed, progress=progress)
    seconds = round(time.monotonic() - start, 2)
    if as_json:
        print_json({"rows": rows, "embedded": embed, "seconds": seconds})
    else:
        out.print(f"{rows} rows {'embedded and indexed' if embed else 'indexed'} anew in {seconds} s.")


@contextmanager
def _bar(hidden: bool) -> "Iterator[Progress]":
    """Show a bar on standard error for each stage."""
    from rich.progress import Progress as Bar

    with Bar(console=err, disable=hidden, transient=True) as bar:
        tasks = {}

        def heard(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage)
            bar.update(tasks[stage], completed=done, total=total)

        yield heard


def retry(
    context: typer.Context,
    user: Annotated[
        str | None, typer.Option("--user", "-u", help="Of whom. Default: of everybody.", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Approve what SHARPWAVE_CONFIRM would ask about.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write to memory what waits, and what could not be written before. Exit 1 when something still cannot."""
    from sharpwave.asking import ask
    from sharpwave.assembly import write_waiting
    from sharpwave.memory.turn_queue import TurnQueue

    settings = settings_of(context)
    with opened(settings) as store:
        TurnQueue(store.ledger).revive(user)
        written = write_waiting(settings, store, user, lambda asked: yes or ask(asked))
        waiting = store.pending(user)
    if as_json:
        print_json({"user": user, "written": written, "waiting": len(waiting)})
    else:
        out.print(f"{written} messages written to memory, {len(waiting)} still wait.")
        for error in dict.fromkeys(error for _, _, error in waiting if error):
            out.print(plain(error), style="yellow")
    if waiting:
        raise typer.Exit(1)


def _counted(part: str, count: int | dict[str, int]) -> str:
    if isinstance(count, int):
        return f"{count:,} {part}"
    tokens = count["prompt_tokens"] + count["completion_tokens"]
    return f"{part}: {count['llm_calls']:,} calls, {tokens:,} tokens"


def stats(
    context: typer.Context,
    user: Annotated[
        str | None, typer.Option("--user", "-u", help="Of whom. Default: of everybody.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Count what there is."""
    from sharpwave.memory import stats as counting

    with opened(settings_of(context)) as store:
        found = counting.count(store, user)
    if as_json:
        print_json({"user": user, **found.model_dump()})
        return
    shown = table("", "")
    for name, value in found.model_dump().items():
        text = (
            ", ".join(_counted(part, count) for part, count in value.items())
            if isinstance(value, dict)
            else f"{value:,}"
        )
        row(shown, name.replace("_", " "), text or "none")
    out.print(shown)
    if found.failed_turns:
        out.print(plain("Some turns could not be written; sharpwave doctor says why."), style="yellow")
