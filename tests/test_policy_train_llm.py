"""A chat model is trained to decide: two steps of each part, on a tiny model without any knowledge."""

import json
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings

pytest.importorskip("trl", reason="needs the extra [train-llm]")
pytest.importorskip("peft", reason="needs the extra [train-llm]")

from sharpwave.memory.decide.operations import legal
from sharpwave.memory.errors import ConfigError
from sharpwave.memory.learning import language, llm
from sharpwave.memory.learning.dialogues import dialogue
from sharpwave.memory.learning.environment import Environment
from sharpwave.memory.learning.posed import asked, pose

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the libraries that train

TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SMALL = llm.Plan(decisions=8, taught=16, epochs=1, steps=2, prompts=2, group=4, rank=2, tested=8, dialogues=24)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chat model of a few thousand random weights, with a tokenizer made of the training's own words."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    words = [turn.text for number in range(4) for turn in dialogue("train", number).turns] + legal(5) * 20
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        words,
        trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False),
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|end|>")
    fast.chat_template = TEMPLATE
    fast.save_pretrained(str(folder))
    torch.manual_seed(0)
    torch.set_num_threads(1)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    ends = {"bos_token_id": None, "eos_token_id": fast.eos_token_id, "pad_token_id": fast.pad_token_id}
    LlamaForCausalLM(LlamaConfig(vocab_size=len(fast), **sizes, **ends)).save_pretrained(str(folder))
    return folder


def test_two_steps_leave_an_adapter_that_loads_as_a_policy(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, int, Any]] = []
    sampled: list[str] = []
    real = language.rewards

    def watched(environment: Environment, decisions: Any) -> Any:
        functions = real(environment, decisions)

        def legal_too(completions: Any, **more: Any) -> list[float]:
            sampled.extend(answer[-1]["content"] for answer in completions)
            return functions[-1](completions=completions, **more)

        legal_too.__name__ = "legal"
        return [*functions[:-1], legal_too]

    monkeypatch.setattr(language, "rewards", watched)
    out = tmp_path / "adapter"
    report = llm.train(str(tiny), out, HashEmbeddings(), SMALL, lambda *step: told.append(step))
    assert len(sampled) == SMALL.steps * SMALL.prompts * SMALL.group and set(sampled) <= set(legal(5))
    assert set(report["table"]) == {"before", "taught", "rewarded"}
    assert [step for part, step, row in told if part == "rewarded" and "rewards/legal/mean" in row] == [1, 2]
    assert all(row["rewards/legal/mean"] == 1.0 for part, _, row in told if "rewards/legal/mean" in row)
    assert report["decisions"]["rewarded"] == {"ADD": 2, "UPDATE": 2, "DELETE": 2, "NOOP": 2}
    assert json.loads((out / "training.json").read_text(encoding="utf-8"))["table"] == report["table"]
    assert not (out / "ref").exists() and (out / "adapter_model.safetensors").stat().st_size < 200_000

    testing = Environment([dialogue("test", number) for number in range(8)], HashEmbeddings())
    exam = pose(testing, SMALL.tested, SMALL.seed)
    policy = llm.load(out)
    again = llm.measure(policy._choose.__self__, testing, exam)  # type: ignore[attr-defined]
    assert again == report["table"]["rewarded"]
    said, sure = policy._choose(asked(testing, exam[0]), legal(len(exam[0].near)))
    assert said in legal(len(exam[0].near)) and 0 < sure <= 1


def test_a_folder_that_is_taken_and_a_model_that_is_none_are_refused(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="is not empty"):
        llm.train(str(tiny), tmp_path, HashEmbeddings(), SMALL)
    with pytest.raises(ConfigError, match="cannot be loaded"):
        llm.train(str(tmp_path), tmp_path / "out", HashEmbeddings(), SMALL)
