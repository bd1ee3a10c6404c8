"""A chat model with a LoRA adapter: it chooses between legal operations, is taught right ones, and is trained by rewards."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from sharpwave.memory.decide.operations import SHOWN, legal, shown_in
from sharpwave.memory.errors import ConfigError
from sharpwave.memory.learning.environment import Environment
from sharpwave.memory.learning.posed import Posed, asked, carried_out
from sharpwave.memory.learning.reward import (
    WEIGHTS,
    Outcome,
    answer_quality,
    conversation_coherence,
    memory_efficiency,
)

LEGAL_WEIGHT = 0.1
"""What a legal operation earns beside what it does to the store."""
_INSTALL = 'pip install "sharpwave[train-llm]"'
_LONGEST_ANSWER = 8
"""Tokens."""

Progress = Callable[[str, int, Mapping[str, float]], None]
"""Called with the part (`taught` or `rewarded`), the step, and what TRL measured."""


@dataclass(frozen=True)
class Plan:
    """How to train."""

    decisions: int = 152
    """Balanced decisions that are rewarded; as many questions as Memory-R1 had."""
    taught: int = 608
    """Decisions with their right operation, of other dialogues, before that."""
    epochs: float = 2.0
    steps: int = 150
    """Updates by reward; 0 leaves it at the teaching."""
    prompts: int = 8
    """Decisions an update."""
    group: int = 16
    """Answers to each."""
    rank: int = 16
    """Of the LoRA matrices."""
    teaching_rate: float = 2e-4
    rate: float = 2e-5
    kl: float = 0.01
    """Weight of the distance to the taught model."""
    tested: int = 200
    """Decisions of unseen dialogues, in unseen words, for the table before and after."""
    dialogues: int = 160
    seed: int = 0


class Language:
    """A chat model with a LoRA adapter, and its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer

    @classmethod
    def opened(cls, name: str, adapter: Path | None = None) -> "Language":
        """Load a model, in bfloat16 where there is a GPU, with an adapter if there is one."""
        try:
            import jinja2
            import peft
            import torch
            import transformers
        except ImportError as error:
            raise ConfigError(f"Training a chat model takes more packages ({error}). Run: {_INSTALL}") from error
        kind = torch.bfloat16 if torch.cuda.is_available() else torch.float32
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, padding_side="left")
            model = transformers.AutoModelForCausalLM.from_pretrained(name, dtype=kind)
            if adapter is not None:
                model = peft.PeftModel.from_pretrained(model, str(adapter))
        except (OSError, ValueError) as error:
            raise ConfigError(f"The model {name!r} cannot be loaded: {' '.join(str(error).split())[:300]}") from error
        if not tokenizer.chat_template or tokenizer.eos_token_id is None:
            raise ConfigError(f"{name!r} has no chat template, or no end token. Use an instruction-tuned model.")
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        try:
            tokenizer.apply_chat_template(_chat([SystemMessage("s"), HumanMessage("u")]), tokenize=False)
        except jinja2.TemplateError as error:
            raise ConfigError(
                f"The chat template of {name!r} takes no system message: {error}. Use another model."
            ) from error
        return cls(model.to("cuda" if torch.cuda.is_available() else "cpu"), tokenizer)

    def choose(self, messages: Sequence[BaseMessage], operations: Sequence[str]) -> tuple[str, float]:
        """Return the likeliest of the operations and its share of their probability; see `operations.Choose`."""
        import torch

        answers = [self._answer(operation) for operation in operations]
        longest = max(map(len, answers))
        rows = torch.tensor([answer + [answer[-1]] * (longest - len(answer)) for answer in answers])
        prompt = torch.tensor([self._ids(messages)])
        self.model.eval()
        with torch.no_grad():  # the question is read once, whatever follows it
            read = self.model(input_ids=prompt.to(self.model.device), use_cache=True, logits_to_keep=1)
            read.past_key_values.batch_repeat_interleave(len(rows))
            went = self.model(input_ids=rows.to(self.model.device), past_key_values=read.past_key_values)
        logits = torch.cat([read.logits.expand(len(rows), -1, -1), went.logits[:, :-1]], 1)
        logs = logits.float().log_softmax(-1).cpu()  # (operations, longest, vocabulary)
        scores = [sum(float(logs[r, at, token]) for at, token in enumerate(answer)) for r, answer in enumerate(answers)]
        shares = torch.tensor(scores).softmax(0)
        best = int(shares.argmax())
        return operations[best], round(float(shares[best]), 4)

    def teach(self, environment: Environment, lessons: Sequence[Posed], plan: Plan, progress: Progress) -> None:
        """Put an adapter on the model and train it on right operations."""
        import peft
        import trl

        rows = [
            {"prompt": _chat(asked(environment, one)), "completion": [{"role": "assistant", "content": one.right}]}
            for one in lessons
        ]
        lora = peft.LoraConfig(
            r=plan.rank, lora_alpha=2 * plan.rank, target_modules="all-linear", task_type="CAUSAL_LM"
        )
        with tempfile.TemporaryDirectory(prefix="sharpwave-") as folder:
            given = _arguments(folder, plan.teaching_rate, plan.seed)
            config = trl.SFTConfig(
                per_device_train_batch_size=8, num_train_epochs=plan.epochs, max_length=None, **given
            )
            trainer = trl.SFTTrainer(
                self.model, args=config, train_dataset=_dataset(rows), processing_class=self.tokenizer, peft_config=lora
            )
            _run(trainer, "taught", progress)
        self.model = trainer.model

    def reward(self, environment: Environment, decisions: Sequence[Posed], plan: Plan, progress: Progress) -> None:
        """Train the adapter by what its answers earn."""
        import trl

        rows = [{"prompt": _chat(asked(environment, one)), "posed": at} for at, one in enumerate(decisions)]
        earned = rewards(environment, decisions)
        self._only_legal()
        with tempfile.TemporaryDirectory(prefix="sharpwave-") as folder:
            config = trl.GRPOConfig(
                max_steps=plan.steps,
                per_device_train_batch_size=plan.prompts * plan.group,
                num_generations=plan.group,
                max_completion_length=_LONGEST_ANSWER,
                temperature=1.0,
                beta=plan.kl,
                scale_rewards="none",  # a group of nearly equal rewards would be blown up by its small deviation
                reward_weights=[*WEIGHTS.values(), LEGAL_WEIGHT],
                warmup_steps=min(5, plan.steps),
                **_arguments(folder, plan.rate, plan.seed),
            )
            trainer = trl.GRPOTrainer(
                self.model, earned, args=config, train_dataset=_dataset(rows), processing_class=self.tokenizer
            )
            _run(trainer, "rewarded", progress)
        self.model = trainer.model

    def save(self, folder: Path) -> None:
        """Write the adapter and the tokenizer."""
        self.model.save_pretrained(str(folder), selected_adapters=["default"])
        self.tokenizer.save_pretrained(str(folder))

    def _only_legal(self) -> None:
        """Have the model draw from legal operations alone, whoever has it generate."""
        inner = self.model.get_base_model()
        free = inner.generate
        paths = {count: [self._answer(one) for one in legal(count)] for count in range(SHOWN + 1)}

        def generate(*given: Any, **more: Any) -> Any:
            prompts = more["input_ids"]
            width = prompts.shape[1]
            texts = self.tokenizer.batch_decode(prompts, skip_special_tokens=True)
            allowed = [paths[shown_in(text)] for text in texts]

            def following(row: int, ids: Any) -> list[int]:
                return next_tokens(allowed[row], ids[width:].tolist()) or [self.tokenizer.eos_token_id]

            return free(*given, **more, prefix_allowed_tokens_fn=following)

        inner.generate = generate

    def _ids(self, messages: Sequence[BaseMessage]) -> list[int]:
        ids = self.tokenizer.apply_chat_template(_chat(messages), add_generation_prompt=True, return_dict=True)
        return list(ids["input_ids"])

    def _answer(self, operation: str) -> list[int]:
        return [*self.tokenizer.encode(operation, add_special_tokens=False), self.tokenizer.eos_token_id]


def next_tokens(answers: Sequence[Sequence[int]], said: Sequence[int]) -> list[int]:
    """Return the tokens with which any of the answers goes on after `said`; none where no answer begins so."""
    at = len(said)
    return sorted({answer[at] for answer in answers if len(answer) > at and list(answer[:at]) == list(said)})


def rewards(environment: Environment, decisions: Sequence[Posed]) -> list[Callable[..., list[float]]]:
    """Return the reward functions in the order of their weights, as TRL calls them: the parts of the reward, and legality.

    Each takes `completions` and the column `posed` (places in `decisions`). What is not legal earns 0 everywhere.
    """

    def part(name: str, worth: Callable[[Outcome], float]) -> Callable[..., list[float]]:
        def earned(completions: Sequence[Any], posed: Sequence[int], **more: Any) -> list[float]:
            outcomes = [
                carried_out(environment, decisions[at], _said(answer))
                for answer, at in zip(completions, posed, strict=True)
            ]
            return [worth(outcome) if outcome else 0.0 for outcome in outcomes]

        earned.__name__ = name
        return earned

    parts = {part.__name__: part for part in (answer_quality, memory_efficiency, conversation_coherence)}
    return [*(part(name, parts[name]) for name in WEIGHTS), part("legal", lambda outcome: 1.0)]


def _said(completion: Any) -> str:
    return completion if isinstance(completion, str) else str(completion[-1]["content"])


def _chat(messages: Sequence[BaseMessage]) -> list[dict[str, str]]:
    roles = {True: "system", False: "user"}
    return [{"role": roles[isinstance(message, SystemMessage)], "content": message.text} for message in messages]


def _dataset(rows: list[dict[str, Any]]) -> Any:
    import datasets

    return datasets.Dataset.from_list(rows)


def _arguments(folder: str, rate: float, seed: int) -> dict[str, Any]:
    import torch

    gpu = torch.cuda.is_available()
    return {
        "output_dir": folder,
        "learning_rate": rate,
        "seed": seed,
        "bf16": gpu,
        "use_cpu": not gpu,
        "gradient_checkpointing": False,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
    }


def _run(trainer: Any, part: str, progress: Progress) -> None:
    import transformers

    class Told(transformers.TrainerCallback):  # type: ignore[misc]
        def on_log(
            self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **more: Any
        ) -> None:
            measured = {name: float(value) for name, value in (logs or {}).items() if isinstance(value, int | float)}
            progress(part, state.global_step, measured)

    trainer.remove_callback(transformers.PrinterCallback)
    trainer.add_callback(Told())
    trainer.train()
