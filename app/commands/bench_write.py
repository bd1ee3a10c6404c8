"""`sharpwave bench write`: how often what is written to memory is wrong."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sharpwave.console import JsonOption, out, print_json, settings_of
from sharpwave.memory.errors import ConfigError, InputError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models.chat_models import BaseChatModel

    from sharpwave.benchmarks.labelled import Case
    from sharpwave.memory.decide import Policy
    from sharpwave.memory.extract import Extractor

Dataset = Literal["own", "traps", "halumem", "automemorybench"]


def register(bench: typer.Typer) -> None:
    """Add the command to `bench`."""
    bench.command("write")(write)


def write(
    context: typer.Context,
    dataset: Annotated[Dataset, typer.Option("--dataset", help="What to measure on.")] = "own",
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder of the data set. The own one is in the sources.")
    ] = None,
    split: Annotated[Literal["tune", "held", "all"], typer.Option("--split", help="Part of the own sets.")] = "all",
    extractor: Annotated[Literal["rules", "llm"], typer.Option("--extractor", help="Who finds the facts.")] = "rules",
    policy: Annotated[
        Literal["rules", "learned", "network", "llm", "always-add", "cosine"],
        typer.Option("--policy", help="Who decides; `learned` is the default without a model."),
    ] = "learned",
    failures: Annotated[
        bool, typer.Option("--failures", help="With --json: list what went wrong, of the part to tune on.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure the write path on labelled dialogues: wrong deletes and updates, duplicates, unsupported facts.

    The rules alone run along, and two baselines: always ADD, and UPDATE of the nearest memory from a cosine of 0.85 on. The
    first figures are for English. `own` and `traps` are our own, the second written to mislead. HaluMem's statements are
    given as facts, so there the policy alone is measured.
    """
    from sharpwave.models import chat_model, embeddings, provider_errors

    settings = settings_of(context)
    model = chat_model(settings) if "llm" in (extractor, policy) else None
    cases, encoder = cases_of(dataset, data, split), embeddings(settings)
    with provider_errors(settings):
        found = _measure(
            cases,
            dataset,
            extractor_of(dataset, extractor, model, encoder),
            _policy(policy, model),
            encoder,
            failures,
        )
    found = {"dataset": dataset, "split": split if dataset in ("own", "traps") else None, **found}
    if as_json:
        print_json(found)
    else:
        _show(found)


def cases_of(dataset: Dataset, data: Path | None, split: Literal["tune", "held", "all"]) -> "list[Case]":
    """Return the cases of a data set; raises `InputError` where it cannot be read."""
    from sharpwave.benchmarks import automemory, halumem, labelled

    if dataset in ("own", "traps"):
        return labelled.load(split, data or (labelled.HERE if dataset == "own" else labelled.TRAPS))
    if data is None:
        raise InputError(f"Where is {dataset}? Name its folder with --data.")
    return halumem.load(data) if dataset == "halumem" else automemory.load(data)


def extractor_of(dataset: Dataset, name: str, model: "BaseChatModel | None", embeddings: "Embeddings") -> "Extractor":
    """Return who finds the facts of a data set: HaluMem's statements are given."""
    from sharpwave.benchmarks.write import Statements
    from sharpwave.memory.extract.llm import LLMExtractor
    from sharpwave.memory.extract.rules import rules_for

    if dataset == "halumem":
        return Statements()
    return rules_for(embeddings) if name == "rules" else LLMExtractor(_needed(model))


def _policy(name: str, model: "BaseChatModel | None") -> "Policy":
    from sharpwave.benchmarks.write import AlwaysAdd, Cosine
    from sharpwave.memory.decide.learned import LearnedPolicy, Network
    from sharpwave.memory.decide.llm import LLMPolicy
    from sharpwave.memory.decide.rules import RulesPolicy

    match name:
        case "rules":
            return RulesPolicy()
        case "learned":
            return LearnedPolicy()
        case "network":
            return Network()
        case "llm":
            return LLMPolicy(_needed(model))
        case "cosine":
            return Cosine()
        case _:
            return AlwaysAdd()


def _needed(model: "BaseChatModel | None") -> "BaseChatModel":
    if model is None:
        raise ConfigError(
            "llm needs a chat model. Set OPENAI_API_KEY, OPENAI_BASE_URL or SHARPWAVE_LOCAL_GGUF, or use rules."
        )
    return model


def _measure(
    cases: "list[Case]", dataset: Dataset, extractor: "Extractor", policy: "Policy", embeddings: Any, failures: bool
) -> dict[str, Any]:
    from sharpwave.benchmarks.write import AlwaysAdd, Cosine, evaluate, grouped, summary
    from sharpwave.memory.decide.rules import RulesPolicy

    scores = evaluate(extractor, policy, cases, embeddings)
    english = [score for score in scores if score.case.language == "en"]
    found: dict[str, Any] = {
        "extractor": extractor.name,
        "policy": policy.name,
        "language": "en",
        **summary(english, intervals=True),
    }
    found["styles"] = grouped(english, "style")
    if dataset == "own":
        found["languages"] = grouped(scores, "language")
        found["splits"] = grouped(english, "split")
    found["baselines"] = {}
    for other in (RulesPolicy(), AlwaysAdd(), Cosine()):
        if other.name != policy.name:
            scored = evaluate(extractor, other, [score.case for score in english], embeddings)
            found["baselines"][other.name] = summary(scored, intervals=True)
    if failures:
        found["failures"] = [f for score in scores if score.case.split == "tune" for f in score.failures]
    return found


def _show(found: dict[str, Any]) -> None:
    from rich.table import Table

    rows = {found["policy"]: found, **found["baselines"]}
    table = Table(
        title=f"{found['dataset']}: {found['cases']} cases, {found['turns']} turns, extractor {found['extractor']}"
    )
    table.add_column("")
    for name in rows:
        table.add_column(name, justify="right")
    for measure in dict.fromkeys(name for row in rows.values() for name in row["counts"]):
        table.add_row(measure.replace("_", " "), *(_cell(row, measure) for row in rows.values()))
    out.print(table)


def _cell(row: dict[str, Any], measure: str) -> str:
    hit, of = row["counts"].get(measure, (0, 0))
    if not of:
        return "–"
    low, high = row["intervals"][measure]
    return f"{hit / of:.3f} ({low:.3f}–{high:.3f})"
