"""`sharpwave policy`: train the network that decides, see what it is worth, hold policies against each other."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sharpwave.commands import policy_llm
from sharpwave.console import JsonOption, UserOption, opened, out, print_json, settings_of, user_of
from sharpwave.memory.errors import InputError
from sharpwave.showing import plain, row, table, when

if TYPE_CHECKING:
    from sharpwave.memory.decide import Policy

Method = Literal["grpo", "supervised", "both"]
Split = Literal["validation", "test"]
Dataset = Literal["own", "traps", "halumem", "automemorybench", "shadow"]
STEPS = 100

DataOption = Annotated[
    Path | None, typer.Option("--data", help="Folder of the data set. The own one is in the sources.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    group = typer.Typer(
        name="policy",
        help="What decides between ADD, UPDATE, DELETE and NOOP: train it, measure it.",
        no_args_is_help=True,
    )
    group.command()(train)
    group.command("eval")(evaluate)
    group.command()(compare)
    group.command()(shadow)
    policy_llm.register(group)
    app.add_typer(group)


def train(
    context: typer.Context,
    to: Annotated[
        Path, typer.Option("--out", help="Where the network goes (.npz); facts about it go beside it (.json).")
    ],
    method: Annotated[
        Method, typer.Option("--method", help="By rewards, by right answers, or the one after the other.")
    ] = "both",
    seed: Annotated[int, typer.Option("--seed", help="The same seed makes the same network.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Train a network on simulated dialogues. Needs the [train] extra, and a minute or two of one CPU."""
    from sharpwave.memory.learning import checkpoint, recipe
    from sharpwave.models import embeddings

    if to.suffix != ".npz":
        raise InputError(f"--out must end in .npz; got {str(to)!r}.")
    encoder = embeddings(settings_of(context))
    training, validation = (recipe.environment(split, encoder) for split in ("train", "validation"))
    trained = recipe.train(method, seed, training, validation, steps=STEPS)
    checkpoint.save(to, trained.weights, encoder, trained.about)
    if as_json:
        print_json({"out": str(to), **trained.about, "curve": trained.curve})
        return
    for step in trained.curve:
        out.print("  ".join(f"{name} {value:g}" for name, value in step.items()), markup=False)
    out.print(plain(f"Written to {to}. On other dialogues: {_told(trained.about['metrics'])}."))


def evaluate(
    context: typer.Context,
    split: Annotated[Split, typer.Option("--split", help="Which dialogues.")] = "test",
    strict: Annotated[
        bool, typer.Option("--strict", help="Leave out words of change that no wording for training has.")
    ] = False,
    network: Annotated[list[Path] | None, typer.Option("--network", help="More networks (.npz) to measure.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Play simulated dialogues with each policy, and print what it earns: 0.5 answers + 0.3 economy + 0.2 coherence."""
    from sharpwave.memory.decide.learned import LearnedPolicy, Network
    from sharpwave.memory.decide.rules import RulesPolicy
    from sharpwave.memory.learning import recipe
    from sharpwave.memory.learning.checkpoint import load
    from sharpwave.models import embeddings

    encoder = embeddings(settings_of(context))
    shipped = load(embeddings=encoder)
    policies: dict[str, Policy] = {
        "rules": RulesPolicy(),
        "learned": LearnedPolicy(shipped),
        "network": Network(shipped),
        **{path.stem: Network(load(path, encoder)) for path in network or []},
    }
    test = recipe.environment(split, encoder, strict=strict)
    found = recipe.table(test, recipe.environment("train", encoder), policies)
    if as_json:
        print_json({"split": split, "strict": strict, "dialogues": len(test.dialogues), "policies": found})
        return
    shown = table("Policy", *next(iter(found.values())))
    for name, summary in sorted(found.items(), key=lambda item: -item[1]["reward"]):
        row(shown, name, *(f"{value:g}" for value in summary.values()))
    out.print(shown)


def compare(
    context: typer.Context,
    one: Annotated[
        str, typer.Argument(metavar="A", help="rules, learned, network, a network's .npz, or a folder of `train-llm`.")
    ],
    other: Annotated[str, typer.Argument(metavar="B", help="The same; what is held against A.")],
    dataset: Annotated[
        Dataset, typer.Option("--dataset", help="Labelled dialogues, or what `policy shadow` shows.")
    ] = "own",
    data: DataOption = None,
    split: Annotated[Literal["tune", "held", "all"], typer.Option("--split", help="Part of the own set.")] = "tune",
    user: UserOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hold policy B against policy A, with intervals, and say whether B may go first.

    It may if it deletes no more wrongly and decides more rightly. The shadow log has no right answers: there it is told how
    often the two differ, and in what.
    """
    if dataset == "shadow":
        _compare_log(context, one, other, user, as_json)
        return
    from sharpwave.benchmarks.compare import compare as compared
    from sharpwave.benchmarks.write import evaluate as written
    from sharpwave.commands.bench_write import cases_of, extractor_of
    from sharpwave.models import embeddings

    encoder = embeddings(settings_of(context))
    policies = [_policy(name, encoder) for name in (one, other)]
    cases = [case for case in cases_of(dataset, data, split) if case.language == "en"]
    scores = [written(extractor_of(dataset, "rules", None, encoder), policy, cases, encoder) for policy in policies]
    found = {"dataset": dataset, "policies": [one, other], **compared(*scores)}
    if as_json:
        print_json(found)
        return
    shown = table("", one, other, "Difference (95 %)")
    for name, (a, b) in found["rates"].items():
        mean, low, high = found["differences"].get(name, (None, None, None))
        told = "–" if mean is None else f"{mean:+.3f} ({low:+.3f} … {high:+.3f})"
        row(shown, name.replace("_", " "), *("–" if rate is None else f"{rate:.3f}" for rate in (a, b)), told)
    for kind, counts in found["kinds"].items():
        row(
            shown,
            f"{kind} made {kind}",
            *(f"{n} of {sum(made.values())}" for n, made in zip(counts["right"], counts["made"], strict=True)),
            "",
        )
    out.print(shown)
    out.print(plain(f"{other} {'may' if found['promote'] else 'may not'} take the place of {one}."))


def _policy(name: str, encoder: Any) -> "Policy":
    from sharpwave.memory.decide.learned import LearnedPolicy, Network
    from sharpwave.memory.decide.rules import RulesPolicy
    from sharpwave.memory.learning.checkpoint import load

    if name.endswith(".npz"):
        return LearnedPolicy(load(Path(name), encoder))
    if Path(name).is_dir():
        from sharpwave.memory.learning import llm

        return llm.load(Path(name))
    match name:
        case "rules":
            return RulesPolicy()
        case "learned":
            return LearnedPolicy(load(embeddings=encoder))
        case "network":
            return Network(load(embeddings=encoder))
    raise InputError(
        f"There is no policy {name!r}: rules, learned, network, a network's .npz, or a folder of train-llm."
    )


def shadow(context: typer.Context, user: UserOption = None, as_json: JsonOption = False) -> None:
    """Show where the policy that only watches (SHARPWAVE_SHADOW) would have decided otherwise than the one that decides."""
    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        events = store.events(owner)
        said = {(u.thread, u.message_id): u.text for u in store.utterances(owner)}
    found = [event for event in events if event.op == "SHADOW"]
    if as_json:
        print_json({"user": owner, "differences": [event.model_dump(mode="json") for event in found]})
        return
    if not found:
        out.print("Nothing differed, or no policy watches. SHARPWAVE_SHADOW names one.")
        return
    shown = table("Time", "Said", "Why")
    for event in found:
        text = said.get((event.thread or "", event.message_id or ""), "")
        row(shown, when(event.at, settings.timezone), text, event.reason)
    out.print(shown)


def _compare_log(context: typer.Context, one: str, other: str, user: str | None, as_json: bool) -> None:
    settings = settings_of(context)
    owner = user_of(settings, user)
    with opened(settings) as store:
        events = store.events(owner)
    from sharpwave.memory.decide.shadow import tally

    found = {"dataset": "shadow", "policies": [one, other], **tally(events, one, other)}
    if as_json:
        print_json(found)
        return
    shown = table(one, other, "Decisions")
    for (a, b), count in found["kinds"]:
        row(shown, a, b, str(count))
    out.print(shown)
    low, high = found["interval"]
    out.print(
        plain(f"They differ in {found['differ']} of {found['decisions']} decisions (95 %: {low:.3f} … {high:.3f}).")
    )


def _told(summary: dict[str, float]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in summary.items())
