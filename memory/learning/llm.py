"""Training a chat model to decide: taught by right answers first, then by what its own answers earn (GRPO), as a LoRA adapter.

In the spirit of Memory-R1 (Yan et al. 2025, arXiv 2508.19828), on simulated dialogues. A model that never names a legal operation
earns nothing whatever it says, and learns nothing from that, so it is first taught on other decisions. The decisions of
the second part are balanced: in the dialogues one of eleven is a DELETE, and a model that never says so is seldom wrong.
Departures: a reward is that of the store right after one decision; a sample is always legal, since what follows is drawn
from the tokens that legal operations go on with, while the ratio is that of the whole distribution (after the first
part nearly all of it is legal).

TRL trains, and torch, transformers and peft with it: the extra `[train-llm]`.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from sharpwave.memory.decide.operations import OperationPolicy, legal
from sharpwave.memory.errors import ConfigError
from sharpwave.memory.learning.dialogues import Split, dialogue
from sharpwave.memory.learning.environment import Environment
from sharpwave.memory.learning.language import Language, Plan, Progress
from sharpwave.memory.learning.posed import OPERATIONS, Posed, asked, balance, carried_out, loses, pose
from sharpwave.memory.learning.reward import reward
from sharpwave.prompts import render

REPORT = "training.json"


def train(
    model: str,
    out: Path,
    embeddings: Embeddings,
    plan: Plan | None = None,
    progress: Progress = lambda part, step, measured: None,
) -> dict[str, Any]:
    """Train an adapter for a Hugging Face chat model, write it to a folder with its report, and return the report.

    Args:
        model: folder of the model, or its name at the hub, from where transformers then fetches it.
        out: a folder that does not exist or is empty.
        embeddings: give the simulation its cosines.
        plan: how.
        progress: told of each step.

    Raises:
        ConfigError: the extra is missing, the model cannot be loaded or is no chat model, or `out` is taken.
    """
    plan = plan or Plan()
    if out.exists() and any(out.iterdir()):
        raise ConfigError(f"{out} is not empty. Name a new folder for the adapter.")
    model = str(Path(model).resolve()) if Path(model).is_dir() else model
    language = Language.opened(model)
    half = plan.dialogues // 2
    teaching = _environment("train", range(half), embeddings)
    rewarding = _environment("train", range(half, plan.dialogues), embeddings)
    testing = _environment("test", range(max(8, plan.tested // 3)), embeddings)
    lessons, decisions = pose(teaching, plan.taught, plan.seed), pose(rewarding, plan.decisions, plan.seed)
    exam = pose(testing, plan.tested, plan.seed)
    table = {"before": measure(language, testing, exam)}
    language.teach(teaching, lessons, plan, progress)
    table["taught"] = measure(language, testing, exam)
    if plan.steps:
        language.reward(rewarding, decisions, plan, progress)
        table["rewarded"] = measure(language, testing, exam)
    language.save(out)
    counts = {"taught": balance(lessons), "rewarded": balance(decisions), "tested": balance(exam)}
    report = {"model": model, "plan": asdict(plan), "prompt": render("operate"), "decisions": counts, "table": table}
    out.joinpath(REPORT).write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return report


def load(folder: Path) -> OperationPolicy:
    """Return the policy that `train` has written to a folder, run by transformers in this process.

    It scores each legal operation, so it never names another; its confidence is the share of the probability.

    Raises:
        ConfigError: the folder holds no such adapter, or it was trained on another prompt.
    """
    try:
        report = json.loads(folder.joinpath(REPORT).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{folder} holds no trained policy: {error}. Train one: sharpwave policy train-llm."
        ) from error
    if report.get("prompt") != render("operate"):
        raise ConfigError(f"The policy in {folder} was trained on another prompt. Train it again.")
    return OperationPolicy(Language.opened(report["model"], folder).choose)


def measure(language: "Language", environment: Environment, decisions: Sequence[Posed]) -> dict[str, float]:
    """Return accuracy by operation, mean reward, and the share of UPDATEs and DELETEs that lose a fact, all 0..1."""
    said = [language.choose(asked(environment, one), legal(len(one.near)))[0] for one in decisions]
    pairs = list(zip(decisions, said, strict=True))
    outcomes = [carried_out(environment, one, word) for one, word in pairs]
    changes = [(one, word) for one, word in pairs if word.startswith(("UPDATE", "DELETE"))]
    row = {"accuracy": _share([word == one.right for one, word in pairs])}
    row |= {op: _share([word == one.right for one, word in pairs if one.op == op]) for op in OPERATIONS}
    row["reward"] = round(sum(reward(outcome) for outcome in outcomes if outcome) / max(1, len(outcomes)), 4)
    row["wrong_delete"] = _share([loses(environment, one, word) for one, word in changes])
    return row


def _share(right: Sequence[bool]) -> float:
    return round(sum(right) / len(right), 4) if right else 0.0


def _environment(split: Split, numbers: range, embeddings: Embeddings) -> Environment:
    return Environment([dialogue(split, number) for number in numbers], embeddings)
