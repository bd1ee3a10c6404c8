"""`sharpwave bench kinds`: which kind of memory finds what."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sharpwave.console import JsonOption, out, print_json, settings_of
from sharpwave.showing import plain

LENGTH = 74
"""Characters that are shown of a text."""


def register(bench: typer.Typer) -> None:
    """Add the command to `bench`."""
    bench.command("kinds")(kinds)


def kinds(
    context: typer.Context,
    dataset: Annotated[
        Literal["demo", "locomo"] | None,
        typer.Option("--dataset", help="Default: demo, or locomo where --data names a file.", show_default=False),
    ] = None,
    data: Annotated[Path | None, typer.Option("--data", help="LoCoMo's file.", show_default=False)] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask 10 questions of semantic and episodic memory and of entities, side by side, and say when each wins.

    Of LoCoMo it is the first conversation, with all of its questions in the figures. Nothing is read from the home folder.
    """
    from sharpwave.benchmarks.kinds import measure
    from sharpwave.models import embeddings, provider_errors

    settings = settings_of(context)
    with provider_errors(settings):
        found = measure(dataset or ("locomo" if data else "demo"), data, embeddings(settings))
    if as_json:
        print_json(found)
    else:
        _show(found)


def _show(found: dict[str, Any]) -> None:
    for number, query in enumerate(found["queries"], 1):
        _show_query(number, query)
    _show_scores(found)
    costs = ", ".join(f"{kind} {spent:.1f} ms" for kind, spent in found["own_cpu_ms_per_query"].items())
    held = ", ".join(f"{count} {what}" for what, count in found["holds"].items())
    for kind, asks in found["wins_at"].items():
        out.print(plain(f"{kind} is best at: {', '.join(asks) or 'nothing here'}"))
    out.print(plain(f"Asked of {held}. Own CPU a query, the question encoded: {costs}."))


def _show_query(number: int, query: dict[str, Any]) -> None:
    from rich import box
    from rich.table import Table

    winners = " and ".join(query["wins"])
    title = f"{number}. {query['question']}  ({query['asks']}; {f'{winners} first' if winners else 'none of them'})"
    shown = Table(title=plain(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for kind in query["found"]:
        shown.add_column(kind, width=30, overflow="fold")
    best = max(len(hits) for hits in query["found"].values())
    for rank in range(best):
        shown.add_row(*(plain(_cell(hits, rank)) for hits in query["found"].values()))
    out.print(shown)


def _cell(hits: list[dict[str, Any]], rank: int) -> str:
    if rank >= len(hits):
        return "" if rank else "–"
    text = " ".join(hits[rank]["text"].split())
    cut = text if len(text) <= LENGTH else f"{text[: LENGTH - 1]}…"
    return f"{'✓' if hits[rank]['answers'] else '·'} {cut}"


def _show_scores(found: dict[str, Any]) -> None:
    from rich.table import Table

    kinds = list(found["own_cpu_ms_per_query"])
    shown = Table("asked for", "n", title="Answered in the first 3 (the only kind to) / won", title_justify="left")
    for kind in kinds:
        shown.add_column(kind, justify="right")
    for asks, scores in [*found["questions"].items(), ("all", found["overall"])]:
        cells = (
            f"{scores[kind]['hit@3']:.2f} ({scores[kind]['alone']:.2f}) / {scores[kind]['wins']:.2f}" for kind in kinds
        )
        shown.add_row(plain(asks), str(scores["n"]), *cells)
    out.print(shown)
