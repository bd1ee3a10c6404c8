"""`sharpwave bench`: measure this Sharpwave, on data sets that you have."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sharpwave.commands import bench_kinds, bench_write
from sharpwave.console import JsonOption, out, print_json, settings_of

Dataset = Literal["locomo", "halumem"]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    bench = typer.Typer(name="bench", help="Measure on labelled data. Nothing is downloaded.", no_args_is_help=True)
    bench.command("recall")(recall)
    bench.command("citations")(citations)
    bench.command("cost")(cost)
    bench_write.register(bench)
    bench_kinds.register(bench)
    app.add_typer(bench)


def recall(
    context: typer.Context,
    dataset: Annotated[Dataset, typer.Option("--dataset", help="What the data is.")],
    data: Annotated[Path, typer.Option("--data", help="Its file, or folder.")],
    as_json: JsonOption = False,
) -> None:
    """Measure how much of the labelled evidence is found, and what a query costs.

    LoCoMo: what was said, verbatim; the overall figures are of categories 1-4. HaluMem: statements. What the store in the
    home folder does not hold yet is measured in a temporary one.
    """
    from sharpwave.benchmarks.recall import measure
    from sharpwave.models import embeddings, provider_errors

    settings = settings_of(context)
    with provider_errors(settings):
        found = measure(dataset, data, settings.home, embeddings(settings))
    print_json(found) if as_json else _show_recall(found)


def citations(
    context: typer.Context,
    data: Annotated[Path, typer.Option("--data", help="LoCoMo's file.")],
    as_json: JsonOption = False,
) -> None:
    """Measure what recall learns from citations: r@10 and MRR against the fixed order, with intervals."""
    from sharpwave.benchmarks.citations import measure, shown
    from sharpwave.models import embeddings, provider_errors

    settings = settings_of(context)
    with provider_errors(settings):
        found = measure(data, settings.home, embeddings(settings))
    print_json(found) if as_json else out.print(shown(found), markup=False, highlight=False)


def cost(context: typer.Context, as_json: JsonOption = False) -> None:
    """Measure the own CPU time of a turn without a model, and of plain Chroma in the same run."""
    from sharpwave.benchmarks.cost import measure
    from sharpwave.models import embeddings, provider_errors

    settings = settings_of(context)
    with provider_errors(settings):
        found = measure(embeddings(settings))
    if as_json:
        print_json(found)
    else:
        for name, value in found.items():
            out.print(f"{name:28} {value}", markup=False)


def _show_recall(found: dict[str, Any]) -> None:
    from rich.table import Table

    names = list(found["overall"])
    table = Table("", *names, title=found["dataset"])
    for category, scores in [*found["categories"].items(), ("overall", found["overall"])]:
        table.add_row(category, *(str(scores[name]) if name == "n" else f"{scores[name]:.3f}" for name in names))
    out.print(table)
    out.print(
        f"Own CPU a query: {found['cpu_ms_per_query']:.1f} ms, {found['ratio_to_chroma']:.2f} times one filtered Chroma query "
        f"({found['chroma_query_cpu_ms']:.1f} ms); encoding the question {found['encoder_cpu_ms_per_query']:.1f} ms.",
        markup=False,
    )
