"""Simulated dialogues, what a store is worth, what a network sees, and how it is trained."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fakes import HashEmbeddings

from sharpwave.memory.decide.learned import Network
from sharpwave.memory.errors import ConfigError
from sharpwave.memory.learning import checkpoint, features, network, recipe
from sharpwave.memory.learning.dialogues import SPLITS, TURNS, dialogue, phrasings, unseen_cues, wordings
from sharpwave.memory.learning.environment import DELETES, UPDATES, Environment, act
from sharpwave.memory.learning.playing import always, by, oracle, play
from sharpwave.memory.learning.reward import (
    Outcome,
    answer_quality,
    conversation_coherence,
    memory_efficiency,
    reward,
)

FEW = 12
Make = Callable[..., Outcome]


@pytest.fixture(scope="module")
def played() -> Environment:
    return Environment([dialogue("train", n) for n in range(FEW)], HashEmbeddings())


# Dialogues


def test_no_wording_value_or_predicate_is_in_two_splits() -> None:
    for key in (
        phrasings,
        lambda split: [p["name"] for p in wordings(split)["predicate"]],
        lambda split: [v.casefold() for p in wordings(split)["predicate"] for v in p["values"]],
        lambda split: [*wordings(split)["voice"]["people"], *wordings(split)["voice"]["names"]],
    ):
        seen: set[str] = set()
        for split in SPLITS:
            own = {text for text in key(split) if text != "{c}"}
            assert not own & seen, own & seen
            seen |= own


def test_no_turn_of_one_split_is_said_in_another() -> None:
    said = [{t.text for n in range(60) for t in dialogue(split, n).turns} for split in SPLITS]
    assert not (said[0] & said[1] or said[0] & said[2] or said[1] & said[2])


def test_a_dialogue_is_the_same_whenever_it_is_made() -> None:
    assert dialogue("test", 3) == dialogue("test", 3)
    assert dialogue("test", 3) != dialogue("test", 3, seed=1)


def test_what_is_true_follows_from_what_was_said() -> None:
    for number in range(20):
        true: set[int] = set()
        for turn in dialogue("train", number).turns:
            true = (true - {turn.ends}) | ({turn.says} if turn.says is not None else set())
            assert turn.true == true, turn


def test_every_kind_of_turn_occurs_in_the_users_words_and_facts_of_others_in_both_voices() -> None:
    turns = [(n % 2, t.kind) for n in range(60) for t in dialogue("train", n).turns]
    own, named = ({kind for voice, kind in turns if voice == v} for v in (0, 1))
    assert own == {"new", "other", "confirm", "change", "correct", "end", "past", "maybe", "quote", "chat"}
    assert named == {"new", "other", "confirm", "change", "end", "past"}


def test_the_strict_variant_says_no_word_of_change_that_training_has_not() -> None:
    hidden = unseen_cues("test")
    assert {"ditched", "rescheduled", "slashed"} <= hidden
    values = {w.casefold() for p in wordings("test")["predicate"] for v in p["values"] for w in v.split()}
    for number in range(20):
        for turn in dialogue("test", number, strict=True).turns:
            assert not ({w.strip(".,:?").casefold() for w in turn.text.split()} - values) & hidden


# Reward


@pytest.fixture
def outcome() -> Make:
    """Two slots of three facts: a first value of one, the one that took its place, and another slot's."""

    def make(kept: tuple[int, ...] = (0, 1), true: tuple[int, ...] = (1, 2), near: object = None) -> Outcome:
        entries = np.zeros(3, bool)
        entries[list(kept)] = True
        holds = np.zeros(3, bool)
        holds[list(true)] = True
        slots = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], bool)
        nearness = np.eye(3) if near is None else np.array(near, float)
        return Outcome(np.eye(3, dtype=bool), entries, holds, np.ones(3, bool), slots, nearness)

    return make


def test_a_store_of_what_is_true_is_worth_all(outcome: Make) -> None:
    assert reward(outcome(kept=(1, 2))) == pytest.approx(1.0)


def test_an_empty_store_earns_nothing_while_facts_hold(outcome: Make) -> None:
    assert reward(outcome(kept=())) == 0.0
    assert memory_efficiency(outcome(kept=(), true=())) == 1.0


def test_an_outdated_value_that_is_nearer_halves_an_answer(outcome: Make) -> None:
    near = [[0, 0, 0], [0.9, 0.5, 0], [0, 0, 1]]
    assert answer_quality(outcome(kept=(0, 1, 2), near=near)) == 0.75
    assert answer_quality(outcome(kept=(1, 2), near=near)) == 1.0


def test_what_was_taken_back_must_not_be_found(outcome: Make) -> None:
    told = outcome(kept=(1, 2), true=(2,), near=[[0, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert answer_quality(outcome(kept=(2,), true=(2,))) == 1.0
    assert answer_quality(told) == pytest.approx(1 / 3)


def test_efficiency_is_the_share_of_entries_that_are_good_for_something(outcome: Make) -> None:
    assert memory_efficiency(outcome(kept=(0, 1, 2))) == pytest.approx(2 / 3)


def test_coherence_counts_slots_and_not_facts(outcome: Make) -> None:
    assert conversation_coherence(outcome(kept=(0, 1, 2))) == 0.5
    assert conversation_coherence(outcome(kept=(0, 2))) == 0.5


def test_the_oracle_is_right_and_doing_nothing_earns_next_to_nothing(played: Environment) -> None:
    assert play(played, always(network.NOOP)).rewards.mean() < 0.2
    right = play(played, oracle)
    assert right.right.all() and right.harms == 0
    assert right.parts[:, 1:].mean() >= 0.99


# Environment


def test_update_puts_a_turn_in_the_place_of_another_and_delete_takes_it_away(played: Environment) -> None:
    kept = np.zeros((3, TURNS), bool)
    kept[:, :2] = True
    seen = played.see(kept, np.zeros(3, int), 2)
    place = int(np.nonzero(seen.near[0] == 0)[0][0])
    act(kept, seen, np.array([network.ADD, UPDATES + place, DELETES + place]))
    assert [row.nonzero()[0].tolist() for row in kept] == [[0, 1, 2], [1, 2], [1]]


def test_only_what_is_kept_is_near(played: Environment) -> None:
    kept = np.zeros((1, TURNS), bool)
    kept[0, [1, 4]] = True
    seen = played.see(kept, np.zeros(1, int), 6)
    assert set(seen.near[0][seen.there[0]]) == {1, 4}


# Features


def read(text: str) -> features.Reading:
    return features.read(text)


def test_cues_are_read_by_word_stem_and_particle() -> None:
    assert read("I switched to tea").has("change")
    assert read("She gave up the piano").has("end") and not read("She gave me the piano").has("end")
    assert read("I don't eat meat").has("negation")
    assert not any(read("I live in Oslo").has(cue) for cue in features.CUES)


def test_names_and_numbers_are_exact_and_cues_are_no_content() -> None:
    found = read("My rent went up from 620 to Mr Walsh's 700 now")
    assert found.numbers == {"620", "700"} and found.exact >= {"mr", "620"}
    assert not {"now"} & found.content


def test_features_have_the_lengths_that_the_network_takes(played: Environment) -> None:
    candidate, memory = played.records[0][0]
    assert len(features.of_candidate(candidate)) == features.CANDIDATE
    assert len(features.of_pair(candidate, memory, 0.5)) == features.PAIR


# Network, training, checkpoint


def weights(seed: int = 0) -> dict[str, features.Floats]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in network.SHAPES.items()}


def saved(folder: Path, embeddings: HashEmbeddings, **about: object) -> Path:
    path = folder / "net.npz"
    checkpoint.save(path, weights(), embeddings, {"method": "grpo", "seed": 0, **about})
    return path


def test_a_network_decides_the_same_after_it_was_written_and_read(
    tmp_path: Path, embeddings: HashEmbeddings, played: Environment
) -> None:
    read_back = checkpoint.load(saved(tmp_path, embeddings), embeddings)
    assert read_back.about["seed"] == 0
    both = [Network(one) for one in (checkpoint.Checkpoint(weights(), {}), read_back)]
    one, other = (play(played, by(policy)).actions for policy in both)
    assert (one == other).all()


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"features": -1}, "other features"),
        ({"cues": "0" * 64}, "other features"),
        ({"features": None}, "other features"),
    ],
)
def test_a_network_for_something_else_is_refused(
    tmp_path: Path, embeddings: HashEmbeddings, changed: dict[str, object], why: str
) -> None:
    path = saved(tmp_path, embeddings)
    about = json.loads(path.with_suffix(".json").read_text())
    path.with_suffix(".json").write_text(json.dumps(about | changed))
    with pytest.raises(ConfigError, match=why):
        checkpoint.load(path, embeddings)


def test_a_network_of_another_embedder_is_refused(tmp_path: Path, embeddings: HashEmbeddings) -> None:
    class Others(HashEmbeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[-x for x in vector] for vector in super().embed_documents(texts)]

    with pytest.raises(ConfigError, match="embedder"):
        checkpoint.load(saved(tmp_path, embeddings), Others())


def test_pickled_weights_and_missing_files_are_refused(tmp_path: Path, embeddings: HashEmbeddings) -> None:
    path = saved(tmp_path, embeddings)
    np.savez(path, **{name: np.array([object()]) for name in network.SHAPES}, allow_pickle=True)
    with pytest.raises(ConfigError, match="no trained network"):
        checkpoint.load(path, embeddings)
    with pytest.raises(ConfigError, match="cannot be read"):
        checkpoint.load(tmp_path / "none.npz", embeddings)


def test_numpy_and_torch_come_to_the_same(played: Environment) -> None:
    torch = pytest.importorskip("torch", reason="training needs the [train] extra")
    built = network.build(0)
    plain = {name: value.numpy() for name, value in built.state_dict().items()}
    kept = np.random.default_rng(0).random((FEW, TURNS)) < 0.4
    kept[0] = False
    seen = played.see(kept, np.arange(FEW), 15)
    with torch.no_grad():
        logs = network.log_probabilities(
            built, *(torch.from_numpy(part) for part in (seen.candidate, seen.pairs, seen.there))
        ).numpy()
    for store in range(FEW):
        count = int(seen.there[store].sum())
        logits = network.scores(plain, seen.candidate[store], seen.pairs[store, :count]).logits
        wanted = logits - np.logaddexp.reduce(logits)
        found = np.concatenate([logs[store, :2], logs[store, 2 : 2 + count], logs[store, DELETES : DELETES + count]])
        assert np.abs(found - wanted).max() < 1e-4


def test_a_group_whose_members_did_alike_teaches_nothing() -> None:
    pytest.importorskip("torch", reason="training needs the [train] extra")
    from sharpwave.memory.learning import grpo

    worth = np.tile(np.random.default_rng(0).random((TURNS, 1)), (1, 2 * grpo.GROUP))
    worth[3, grpo.GROUP] += 0.2
    advantages = grpo.credit(worth, np.zeros_like(worth))
    assert not advantages[:, 0].any()
    assert advantages[3, 1, 0] > 0 > advantages[3, 1, 1]
    assert np.abs(advantages).max() < 4


def test_training_by_reward_raises_the_reward() -> None:
    pytest.importorskip("torch", reason="training needs the [train] extra")
    training = recipe.environment("train", HashEmbeddings(), count=40)
    start, *_, end = recipe.train("grpo", 0, training, training, steps=10).curve
    assert end["validation"] > start["validation"] + 0.01


def test_the_same_seed_trains_the_same_network(played: Environment) -> None:
    pytest.importorskip("torch", reason="training needs the [train] extra")
    one, other = (recipe.train("both", 0, played, played, steps=1) for _ in range(2))
    assert all((one.weights[name] == other.weights[name]).all() for name in network.SHAPES)


def test_training_without_torch_says_what_to_install(monkeypatch: pytest.MonkeyPatch, played: Environment) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ConfigError, match=r"sharpwave\[train\]"):
        recipe.train("grpo", 0, played, played, steps=1)
