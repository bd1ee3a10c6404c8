"""`sharpwave policy train-llm`: train a chat model of your own to decide."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from sharpwave.console import JsonOption, err, out, print_json, settings_of
from sharpwave.showing import row, table

COLUMNS = ("accuracy", "ADD", "UPDATE", "DELETE", "NOOP", "reward", "wrong_delete")


def register(group: typer.Typer) -> None:
    """Add the command to the group `policy`."""
    group.command("train-llm")(train_llm)


def train_llm(
    context: typer.Context,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Folder of a Hugging Face chat model, or its name.")],
    folder: Annotated[Path, typer.Option("--out", help="New folder for the adapter (LoRA) and its report.")],
    steps: Annotated[int, typer.Option("--steps", min=0, help="Updates by reward (GRPO), after the teaching.")] = 150,
    taught: Annotated[int, typer.Option("--taught", min=4, help="Decisions that are taught first.")] = 608,
    decisions: Annotated[int, typer.Option("--decisions", min=4, help="Balanced decisions that are rewarded.")] = 152,
    prompts: Annotated[int, typer.Option("--prompts", min=1, help="Decisions an update.")] = 8,
    group: Annotated[int, typer.Option("--group", min=2, help="Answers to each of them.")] = 16,
    tested: Annotated[int, typer.Option("--tested", min=4, help="Unseen decisions before and after.")] = 200,
    seed: Annotated[int, typer.Option("--seed", help="Of the dialogues that are drawn, and of the training.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Teach a chat model to choose ADD, UPDATE, DELETE or NOOP, then train it by what its answers earn.

    On simulated dialogues. It takes the extra `train-llm` and, for more than a trial, a GPU.
    """
    from sharpwave.memory.learning.language import Plan
    from sharpwave.memory.learning.llm import train
    from sharpwave.models import embeddings, provider_errors

    settings = settings_of(context)
    plan = Plan(decisions=decisions, taught=taught, steps=steps, prompts=prompts, group=group, tested=tested, seed=seed)
    with provider_errors(settings):
        report = train(model, folder, embeddings(settings), plan, _told)
    if as_json:
        print_json(report)
    else:
        _show(report, folder)


def _told(part: str, step: int, measured: Mapping[str, float]) -> None:
    shown = [
        f"{name} {measured[name]:.3f}" for name in ("loss", "reward", "kl", "frac_reward_zero_std") if name in measured
    ]
    if shown:
        err.print(f"{part}, step {step}: {', '.join(shown)}", style="dim", markup=False)


def _show(report: dict[str, Any], folder: Path) -> None:
    shown = table("", *COLUMNS)
    for part, figures in report["table"].items():
        row(shown, part, *(f"{figures[name]:.3f}" for name in COLUMNS))
    out.print(shown)
    out.print(f"The adapter is in {folder}.", markup=False)
