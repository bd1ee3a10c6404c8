"""`sharpwave read`: answer a question from a document of any length."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sharpwave.console import JsonOption, UserOption, err, out, print_json, settings_of
from sharpwave.memory.errors import InputError
from sharpwave.showing import plain

if TYPE_CHECKING:
    from sharpwave.reading import Passed

SHOWN = ("answer", "known", "by", "passages", "pieces", "resumed", "usage")


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("read")(read)


def read(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A text file, UTF-8, of any length.")],
    question: Annotated[str, typer.Option("--question", "-q", help="What the document is to answer.")],
    user: UserOption = None,
    thread: Annotated[
        str | None,
        typer.Option("--thread", "-t", help="Name of this reading. Default: one for each file and question."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Read a document piece by piece and answer a question from it.

    Without a model it quotes the passages that come nearest. What is read is kept as it goes: when it was cut off, the same
    command goes on from there.
    """
    from sharpwave.models import provider_errors
    from sharpwave.reading import Task
    from sharpwave.reading import read as read_document

    settings = settings_of(context)
    if not question.strip():
        raise InputError("The question is blank.")
    started = time.perf_counter()
    try:
        with provider_errors(settings), _progress(shown=err.is_terminal) as passed:
            state = read_document(settings, Task(file, question, user, thread), passed)
    except KeyboardInterrupt:
        err.print("Interrupted. What is read so far is kept: the same command goes on from there.", style="yellow")
        raise typer.Exit(130) from None
    size, seconds = state["document"]["size"], round(time.perf_counter() - started, 3)
    if as_json:
        print_json({"file": str(file), "question": question, "size": size} | _picked(state) | {"seconds": seconds})
    else:
        _show(state, size, seconds)


def _picked(state: dict[str, Any]) -> dict[str, Any]:
    return {key: state[key] for key in SHOWN}


def _show(state: dict[str, Any], size: int, seconds: float) -> None:
    out.print(plain(state["answer"]), style="cyan" if state["known"] else "yellow")
    usage = state["usage"]
    cost = "extractive, no language model"
    if usage["llm_calls"]:
        tokens = f"{usage['prompt_tokens']} + {usage['completion_tokens']} tokens"
        cost = f"{usage['llm_calls']} model calls, {tokens}"
    out.print(f"  {size:,} bytes in {state['pieces']} pieces · {cost} · {seconds:.1f} s", style="dim", markup=False)


@contextmanager
def _progress(*, shown: bool) -> "Iterator[Passed]":
    """Show a progress bar on standard error; yields what moves it on."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not shown) as progress:
        task = progress.add_task("reading", total=None)
        yield lambda read, size: progress.update(task, completed=read, total=size)
