"""The benchmark of ninety days, on a small made-up conversation."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fakes import HashEmbeddings

from sharpwave.benchmarks.days import DAYS, World, worlds
from sharpwave.benchmarks.everyday import changes, facts, small_talk
from sharpwave.benchmarks.lives import Life, answer
from sharpwave.benchmarks.longitudinal import POLICIES, SCORED_ON, interval, live, measure

PETS = (
    "corgi",
    "parrot",
    "ferret",
    "gecko",
    "rabbit",
    "tortoise",
    "canary",
    "hamster",
    "beagle",
    "poodle",
    "pony",
    "goat",
)


def sample(name: str) -> dict[str, Any]:
    talk: dict[str, Any] = {"speaker_a": "Ana", "speaker_b": "Bo"}
    for n, pet in enumerate(PETS, 1):
        talk[f"session_{n}_date_time"] = f"1:56 pm on {n} May, 2023"
        lines = [f"{name} adopted a {pet} called Rex{n}.", "Nice!"]
        talk[f"session_{n}"] = [
            {"speaker": ("Ana", "Bo")[at], "dia_id": f"D{n}:{at + 1}", "text": text} for at, text in enumerate(lines)
        ]
    asked = [
        {"question": f"Who adopted the {pet}?", "evidence": [f"D{n}:1"], "category": 4, "answer": ""}
        for n, pet in enumerate(PETS, 1)
    ]
    return {"sample_id": name, "conversation": talk, "qa": asked}


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> list[World]:
    path = tmp_path_factory.mktemp("data") / "locomo.json"
    path.write_text(json.dumps([sample("Mia"), sample("Leo")]))
    return list(worlds(path, HashEmbeddings(), noise=9))


def test_a_world_holds_the_conversation_and_its_share_of_noise(every: list[World]) -> None:
    world = every[0]
    real = ~np.isnan(world.at)
    assert real.sum() == 2 * len(PETS) and len(world.at) == 10 * real.sum()
    assert np.nanmin(world.at) >= 0 and np.nanmax(world.at) < DAYS
    assert all(world.change[asked.old] == 1 and world.change[asked.gold].tolist() == [2] for asked in world.changed)


def test_feedback_and_scored_questions_are_disjoint_and_asked_after_their_evidence(every: list[World]) -> None:
    for seed in range(3):
        life = Life.of(every[0], seed)
        fed = {id(one) for some in life.asked.values() for one in some}
        scored = {id(every[0].questions[n]) for n in life.scored} | {id(every[0].changed[n]) for n in life.changed}
        assert fed and scored and not fed & scored
        assert all(life.at[one.gold].max() < day for day, some in life.asked.items() for one in some)
        touched = {place for some in life.asked.values() for one in some for place in one.gold.tolist()}
        assert not any(touched & set(every[0].questions[n].gold.tolist()) for n in life.apart)


@pytest.mark.parametrize("name", [name for name in POLICIES if POLICIES[name].value])
def test_no_policy_keeps_more_than_there_is_room_for(every: list[World], name: str) -> None:
    life = Life.of(every[0], 0)
    sizes = [int(memory.kept.sum()) for memory in live(life, POLICIES[name], 40)]
    assert len(sizes) == len(SCORED_ON) and max(sizes) <= 40 and sizes[-1] > 20


def test_keeping_everything_keeps_what_was_told_by_then_and_no_more(every: list[World]) -> None:
    life = Life.of(every[0], 0)
    for memory in live(life, POLICIES["keep everything"], 1):
        assert np.array_equal(memory.kept, life.at < memory.day)


def test_what_is_gone_answers_nothing(every: list[World]) -> None:
    question = every[0].questions[0]
    kept = np.ones(len(every[0].at), bool)
    assert answer(every[0], kept, question)[0] == question.gold[0]
    kept[question.gold] = False
    assert question.gold[0] not in answer(every[0], kept, question)
    assert len(answer(every[0], np.zeros_like(kept), question)) == 0


def test_the_same_seeds_give_the_same_report(every: list[World]) -> None:
    few = {name: POLICIES[name] for name in ("keep everything", "random removal", "default")}
    first, second = (measure(every, seeds=2, policies=few) for _ in range(2))
    for report in (first, second):
        for row in report["policies"].values():
            assert row.pop("cpu_seconds") >= 0
    assert first == second
    assert set(first["default_minus"]) == {"keep everything", "random removal"}
    assert first["policies"]["keep everything"]["kept"] == 1.0 and first["policies"]["default"]["kept"] <= 0.25
    assert all(
        low <= mean <= high for mean, low, high in (first["policies"]["default"][key] for key in ("r@10", "stale"))
    )


def test_a_newer_value_takes_the_place_of_an_older_one(every: list[World]) -> None:
    slots = tuple((("Ana/home_city", value),) if value else () for value in ("Rome", "", "Rome", "Oslo"))
    world = replace(every[0], slots=slots + ((),) * (len(every[0].at) - 4), change=np.zeros(len(every[0].at), int))
    at = np.arange(float(len(world.at)))
    life = Life.of(replace(world, at=at * DAYS / len(at)), 0)
    assert np.isinf(life.superseded[[0, 1, 3]]).all() and life.superseded[2] == life.at[3]


def test_intervals_hold_the_mean_and_are_points_where_nothing_varies() -> None:
    table = np.random.default_rng(1).random((5, 4))
    mean, low, high = interval(table)
    assert low < mean < high and abs(mean - table.mean()) < 1e-3
    assert interval(np.full((3, 2), 0.5)) == [0.5, 0.5, 0.5]


def test_made_up_talk_is_as_much_as_asked_for_and_varied() -> None:
    told = facts(("Ana", "Bo"), 300, np.random.default_rng(0))
    assert len(set(told)) == 300 and {speaker for speaker, _ in told} == {"Ana", "Bo"}
    assert len(small_talk(("Ana", "Bo"), 50, np.random.default_rng(0))) == 50
    assert not any("{" in text for _, text in told)
    assert all(
        one.old != one.new and one.speaker in one.question for one in changes(("Ana", "Bo"), np.random.default_rng(0))
    )
