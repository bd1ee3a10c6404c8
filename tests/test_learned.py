"""The learned policy, a policy that only watches, and two policies held against each other."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from fakes import HashEmbeddings

from sharpwave import cli
from sharpwave.assembly import write_graph, writers
from sharpwave.benchmarks.compare import compare, promotes
from sharpwave.benchmarks.labelled import Case
from sharpwave.benchmarks.scoring import CaseScore
from sharpwave.commands import policy as commands
from sharpwave.graphs import Context
from sharpwave.memory.decide import Policy
from sharpwave.memory.decide.learned import LearnedPolicy, Network
from sharpwave.memory.decide.shadow import Shadowed, tally
from sharpwave.memory.embed import LocalEmbeddings
from sharpwave.memory.errors import ConfigError
from sharpwave.memory.learning import checkpoint, network
from sharpwave.memory.learning.features import NEAR
from sharpwave.memory.records import Candidate, Decision, Memory, Message, Operation, Recall, Score, Turn
from sharpwave.memory.store import MemoryStore
from sharpwave.settings import Settings

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def turn_of(text: str, number: int = 1) -> Turn:
    message = Message(id=f"m{number}", role="user", text=text)
    return Turn(owner="ana", thread="t1", messages=(message,), said_at=NOW + timedelta(minutes=number))


def candidate(text: str, **more: Any) -> Candidate:
    return Candidate(text=text, quote=text, message_id="m1", **more)


def near(*texts: str, cosine: float = 0.6) -> list[Recall]:
    found = []
    for text in texts:
        memory = Memory(owner="ana", text=text, recorded_at=NOW, valid_from=NOW)
        parts = Score(cosine=cosine)
        found.append(
            Recall(id=memory.id, store="semantic", text=text, said_at=NOW, score=0.5, parts=parts, memory=memory)
        )
    return found


class Always:
    """Decides one thing, about the first memory that it is shown."""

    def __init__(self, op: Operation, name: str = "always/1") -> None:
        self.op, self.name = op, name

    def decide(
        self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Recall]], turn: Turn
    ) -> list[Decision]:
        return [
            Decision(
                op=self.op,
                candidate=c,
                target=shown[0].id if self.op != "ADD" and shown else None,
                reason="always",
                policy=self.name,
            )
            for c, shown in zip(candidates, neighbours, strict=True)
        ]


def leaning(op: Operation) -> checkpoint.Checkpoint:
    """A network without weights but for a lean towards one operation."""
    weights = {name: np.zeros(shape, np.float32) for name, shape in network.SHAPES.items()}
    if op in ("ADD", "NOOP"):
        weights["whole.2.bias"] = np.array([10, 0] if op == "ADD" else [0, 10], np.float32)
    else:
        weights["heads.bias"] = np.array([10, 0, 0] if op == "UPDATE" else [0, 10, 0], np.float32)
    return checkpoint.Checkpoint(weights, {})


# The policy


def test_the_network_is_asked_where_rules_only_add() -> None:
    shown = near("The launch is in March.")
    said = candidate("We go live in May.")
    policy = LearnedPolicy(leaning("UPDATE"), rules=Always("ADD"))
    assert isinstance(policy, Policy)
    (decided,) = policy.decide([said], [shown], turn_of(said.text))
    assert (decided.op, decided.target, decided.policy) == ("UPDATE", shown[0].id, "learned/1")
    assert decided.confidence > 0.9 and shown[0].text in decided.reason


def test_what_rules_find_stands() -> None:
    shown = near("The launch is in March.")
    (decided,) = LearnedPolicy(leaning("UPDATE"), rules=Always("DELETE")).decide(
        [candidate("No launch.")], [shown], turn_of("No launch.")
    )
    assert (decided.op, decided.policy) == ("DELETE", "always/1")


def test_a_network_that_is_not_sure_leaves_it_to_the_rules() -> None:
    shown = near("I have a cat.", "I have a dog.")  # two alike: neither gets more than half
    (decided,) = LearnedPolicy(leaning("UPDATE"), rules=Always("ADD")).decide(
        [candidate("I have a bird.")], [shown], turn_of("I have a bird.")
    )
    assert decided.op == "ADD"


def test_nothing_is_left_out_that_no_memory_says_already() -> None:
    (decided,) = LearnedPolicy(leaning("NOOP"), rules=Always("ADD")).decide(
        [candidate("I keep bees.")], [near("I live in Oslo.")], turn_of("I keep bees.")
    )
    assert decided.op == "ADD"


def test_what_was_said_earlier_in_the_turn_is_not_added_again() -> None:
    said = [candidate("I keep bees."), candidate("I keep bees.")]
    for policy in (LearnedPolicy(leaning("ADD")), Network(leaning("ADD"))):
        assert [d.op for d in policy.decide(said, [[], []], turn_of("I keep bees."))] == ["ADD", "NOOP"]


def test_the_network_alone_names_the_memory_that_it_means() -> None:
    shown = near("I live in Oslo.")
    for op in ("ADD", "NOOP", "UPDATE", "DELETE"):
        (decided,) = Network(leaning(op)).decide([candidate("I live in Rome.")], [shown], turn_of("I live in Rome."))
        assert decided.op == op
        assert decided.target == (shown[0].id if op in ("UPDATE", "DELETE") else None)


def test_more_memories_than_the_network_looks_at_are_no_trouble() -> None:
    shown = near(*(f"I own boat number {n}." for n in range(NEAR + 4)))
    (decided,) = Network(leaning("DELETE")).decide([candidate("I own a boat.")], [shown], turn_of("I own a boat."))
    assert decided.target in {recall.id for recall in shown[:NEAR]}


# The network that comes with the package


def test_the_shipped_network_knows_a_change_in_words_that_rules_do_not() -> None:
    shown = near("Our team sync is on Tuesday at 9.", "I play the viola.", cosine=0.7)
    (decided,) = Network().decide(
        [candidate("The team sync got shifted to Thursday at 11.")],
        [shown],
        turn_of("The team sync got shifted to Thursday at 11."),
    )
    assert (decided.op, decided.target) == ("UPDATE", shown[0].id)


def test_the_shipped_network_says_how_it_was_made() -> None:
    about = checkpoint.load().about
    assert {"method", "seed", "steps", "dialogues", "metrics", "embedder", "data"} <= set(about)
    assert about["data"] == checkpoint.digest("train.toml", "validation.toml", "test.toml")
    assert about["metrics"]["reward"] > 0.75


def test_a_decision_with_ten_memories_takes_well_under_a_millisecond() -> None:
    policy = Network()
    shown = near(*(f"My friend number {n} works as a nurse in Leeds and likes jazz." for n in range(10)))
    texts = [f"My boss moved {n} times and lives in Rome now." for n in range(100)]
    policy.decide_one(candidate("I live in Rome."), shown)
    started = time.process_time()
    for text in texts:
        policy.decide_one(candidate(text), shown)
    assert (time.process_time() - started) / len(texts) < 0.001  # 0.3 ms on an idle machine


# Settings


def test_settings_choose_the_learned_policy_and_refuse_it_with_another_embedder() -> None:
    assert writers(Settings(policy="learned"), LocalEmbeddings())[1].name == "learned/1"
    with pytest.raises(ConfigError, match="embedder"):
        writers(Settings(policy="learned"), HashEmbeddings())


def test_the_learned_policy_decides_by_default_with_the_embedder_that_it_knows() -> None:
    assert writers(Settings(), LocalEmbeddings())[1].name == "learned/1"
    assert writers(Settings(), HashEmbeddings())[1].name == "rules/1"
    assert writers(Settings(policy="rules"), LocalEmbeddings())[1].name == "rules/1"


# A policy that only watches


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings(), collections=1) as opened:
        yield opened


def test_a_watching_policy_changes_nothing_and_is_noted_where_it_differs(store: MemoryStore) -> None:
    turn = turn_of("I live in Rome.")
    policy = Shadowed(Always("ADD", "live/1"), Always("NOOP", "other/2"), store.note_shadow)
    shown = near("I live in Oslo.")
    for _ in range(2):  # a decision that is made anew is noted once
        (decided,) = policy.decide([candidate(turn.user_text)], [shown], turn)
        assert (decided.op, decided.policy, policy.name) == ("ADD", "live/1", "live/1")
    (event,) = store.events("ana")
    assert (event.op, event.policy, event.message_id, event.memory_id) == ("SHADOW", "other/2", "m1", None)
    assert (event.detail["live"]["op"], event.detail["shadow"]["op"]) == ("ADD", "NOOP")
    assert "Rome" not in json.dumps(event.detail)
    assert store.memories("ana") == []


def test_policies_that_agree_leave_no_trace(store: MemoryStore) -> None:
    policy = Shadowed(Always("ADD", "live/1"), Always("ADD", "other/2"), store.note_shadow)
    policy.decide([candidate("I live in Rome.")], [[]], turn_of("I live in Rome."))
    assert store.owners() == []


def test_a_turn_is_written_as_the_live_policy_says_while_another_watches(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sharpwave.assembly.LearnedPolicy", lambda checkpoint: Always("NOOP", "learned/1"))
    monkeypatch.setattr("sharpwave.assembly.load", lambda embeddings: None)
    graph = write_graph(Settings(policy="rules", shadow="learned", write="inline"), store).compile()
    turn = turn_of("I live in Rome.")
    graph.invoke(
        {"turn": turn.model_dump(mode="json"), "messages": []},
        context=Context(user_id="ana", thread="t1", now=turn.said_at),
    )
    assert [memory.text for memory in store.memories("ana")] == ["I live in Rome."]
    events = store.events("ana")
    assert sorted(event.op for event in events) == ["ADD", "SHADOW"]
    found = tally(events, "rules", "learned")
    assert (found["decisions"], found["differ"], found["kinds"]) == (1, 1, [[["ADD", "NOOP"], 1]])


# Two policies


def scores(*hits: tuple[int, int], harms: int = 0) -> list[CaseScore]:
    found = []
    for right, of in hits:
        score = CaseScore(Case(id="x", turns=()))
        score.counts.update(
            {"accuracy/hit": right, "accuracy/all": of, "wrong_delete/hit": harms, "wrong_delete/all": 4}
        )
        found.append(score)
    return found


def test_a_difference_comes_with_its_interval_over_cases() -> None:
    found = compare(scores((5, 10), (6, 10), (7, 10)), scores((7, 10), (8, 10), (9, 10)))
    assert found["differences"]["accuracy"] == pytest.approx([0.2, 0.2, 0.2])
    assert found["promote"]


@pytest.mark.parametrize(
    ("accuracy", "harm", "may"),
    [((0.8, 0.9), (0.0, 0.0), True), ((0.8, 0.9), (0.0, 0.1), False), ((0.8, 0.8), (0.1, 0.0), False)],
)
def test_a_policy_goes_first_only_if_it_is_better_and_does_no_more_harm(
    accuracy: tuple[float, float], harm: tuple[float, float], may: bool
) -> None:
    assert promotes({"accuracy": [*accuracy], "wrong_delete": [*harm]}) is may


# The command line

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    app = typer.Typer()
    app.callback()(cli.options)
    commands.register(app)
    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setattr(cli, "_register", lambda: None)

    def once(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sharpwave", "--home", str(tmp_path / "home"), *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        shown = capsys.readouterr()
        return int(ended.value.code or 0), shown.out, shown.err

    return once


def test_the_log_of_a_watching_policy_is_shown_and_counted(
    run: Run, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = turn_of("I live in Rome.")
    store.queue([turn])
    policy = Shadowed(Always("ADD", "rules/1"), Always("NOOP", "learned/1"), store.note_shadow)
    store.apply(turn, policy.decide([candidate(turn.user_text)], [[]], turn), revision=None)
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: HashEmbeddings())
    code, out, _ = run("policy", "shadow", "--user", "ana")
    assert code == 0 and "I live in Rome." in out and "would have been NOOP" in out
    code, out, _ = run("policy", "compare", "rules", "learned", "--dataset", "shadow", "--user", "ana", "--json")
    assert code == 0 and json.loads(out)["differ"] == 1


def test_a_policy_or_place_that_is_none_is_refused(run: Run, tmp_path: Path) -> None:
    code, out, err = run("policy", "compare", "rules", "nobody")
    assert (code, out) == (2, "") and "nobody" in err
    code, _, err = run("policy", "train", "--out", str(tmp_path / "net.txt"))
    assert code == 2 and ".npz" in err


def test_policies_are_measured_on_simulated_dialogues(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from sharpwave.memory.learning import recipe

    monkeypatch.setattr(recipe, "DIALOGUES", {"train": 2, "validation": 2, "test": 3})
    code, out, err = run("policy", "eval", "--split", "test", "--json")
    found = json.loads(out)
    assert code == 0, err
    assert {"rules", "learned", "network", "oracle", "random", "cues-tuned", "cosine"} <= set(found["policies"])
    assert {"reward", "accuracy", "wrong_delete"} <= set(found["policies"]["rules"])
