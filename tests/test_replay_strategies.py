"""Each strategy's exact choice and order, the importance weights, and that nothing starves."""

import time

import numpy as np
import pytest

from sharpwave.memory.errors import InputError
from sharpwave.memory.priority import LEAST, Buffer, beta, draw, priority, reference
from sharpwave.memory.replay import STRATEGIES, Chance, select

NOW, DAY = 1_000_000.0, 86_400.0
NEVER = float("nan")


def buffer(n: int = 6, **columns: object) -> Buffer:
    """Return `n` traces, one lived each hour, the last of them an hour ago."""
    given = {
        "ids": np.array([f"m{i}" for i in range(n)]),
        "at": NOW - 3600.0 * np.arange(n, 0, -1),
        "importance": np.full(n, 0.5),
        "success": np.full(n, 0.5),
        "surprise": np.zeros(n),
        "usefulness": np.zeros(n),
        "failures": np.zeros(n),
        "strength": np.full(n, 0.5),
        "replayed": np.zeros(n, int),
        "last": np.full(n, NEVER),
        "due": np.full(n, NEVER),
    }
    return Buffer(**{**given, **{name: np.asarray(column) for name, column in columns.items()}})


def chance(seed: int = 0, **fields: object) -> Chance:
    return Chance(NOW, np.random.default_rng(seed), **fields)  # type: ignore[arg-type]


def chosen(strategy: str, n: int, traces: Buffer, **fields: object) -> list[str]:
    return list(traces.ids[select(traces, n, strategy, chance(**fields)).places])


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("recent", ["m3", "m4", "m5"]),
        ("oldest", ["m0", "m1", "m2"]),
        ("reverse", ["m5", "m4", "m3"]),
        ("interleaved", ["m0", "m5", "m1"]),
        ("surprise", ["m2", "m4", "m0"]),
        ("spaced", ["m3", "m1", "m5"]),
    ],
)
def test_what_each_strategy_chooses_and_in_which_order(strategy: str, expected: list[str]) -> None:
    traces = buffer(
        surprise=[0.5, 0.1, 0.9, 0.2, 0.7, 0.3],
        due=[NOW + DAY, NOW - DAY, NOW + 1, NOW - 2 * DAY, NOW + DAY, NOW - 60],
    )
    assert chosen(strategy, 3, traces) == expected


def test_contextual_replay_is_of_what_is_nearest_to_the_cue() -> None:
    angles = np.array([0.0, 1.5, 0.3, 0.1, 1.0, 0.2])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float16)
    traces = buffer(vectors=vectors)
    assert chosen("contextual", 3, traces, cue=np.array([1.0, 0.0])) == ["m0", "m3", "m5"]
    with pytest.raises(InputError, match="cue"):
        select(traces, 3, "contextual", chance())


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_nothing_is_chosen_twice_and_never_more_than_there_is(strategy: str) -> None:
    traces = buffer(vectors=np.eye(6, dtype=np.float16))
    for n in (0, 1, 6, 50):
        found = chosen(strategy, n, traces, cue=np.eye(6)[0])
        assert len(found) == len(set(found)) == min(n, 6)
    assert chosen(strategy, 5, traces.only(np.arange(0)), cue=np.eye(6)[0]) == []


def test_nothing_is_due_before_its_time() -> None:
    assert chosen("spaced", 6, buffer(due=np.full(6, NOW + 1))) == []


def test_the_reference_formula() -> None:
    traces = buffer(2, at=[NOW - 3600, NOW], importance=[1.0, 0.0], success=[0.5, 1.0], replayed=[0, 3])
    expected = [0.4 + 0.2 / 2 + 0.2 * 0.5 + 0.2, 0.0 + 0.2 + 0.2 + 0.2 / 4]
    assert reference(traces, NOW) == pytest.approx(expected)


def test_the_priority_rises_with_each_of_its_parts_and_surprise_wears_off() -> None:
    plain = priority(buffer(1), NOW)[0]
    for part in ("surprise", "usefulness", "failures"):
        assert priority(buffer(1, **{part: [1.0]}), NOW)[0] > plain + 0.2
    assert priority(buffer(1, last=[NOW - 30 * DAY]), NOW)[0] > priority(buffer(1, last=[NOW]), NOW)[0]
    again = buffer(1, surprise=[1.0], replayed=[1], last=[NOW])
    assert priority(again, NOW)[0] == pytest.approx(0.15)
    assert priority(buffer(1, last=[NOW]), NOW)[0] == LEAST
    assert priority(buffer(1, at=[NOW + DAY]), NOW)[0] == LEAST  # a clock that jumped back


def test_the_chance_of_a_draw_is_the_priority_to_the_power_alpha() -> None:
    priorities = np.array([0.1, 0.2, 0.4, 0.8, 0.05])
    waited = np.array([0.0, 0, 0, 0, 1e9])  # the last one's place in the batch is its own
    rng = np.random.default_rng(1)
    first = [draw(priorities, waited, 2, rng, 1.0)[0] for _ in range(20_000)]
    counts = np.bincount([one for pair in first for one in pair if one != 4], minlength=4)[:4]
    expected = priorities[:4] ** 0.6 / (priorities[:4] ** 0.6).sum()
    assert counts / counts.sum() == pytest.approx(expected, abs=0.015)


def test_importance_weights_are_those_of_the_paper() -> None:
    priorities = np.array([0.1, 0.2, 0.4, 0.8])
    chances = priorities**0.6 / (priorities**0.6).sum()
    for correction in (0.4, 1.0):
        places, weights = draw(priorities, np.zeros(4), 4, np.random.default_rng(0), correction)
        expected = (4 * chances) ** -correction
        assert weights == pytest.approx((expected / expected.max())[places])
    assert (beta(0), beta(25), beta(50), beta(999)) == (0.4, 0.7, 1.0, 1.0)


def test_fully_corrected_a_weighted_draw_strengthens_as_a_uniform_one_would() -> None:
    priorities, rng = np.array([0.1, 0.1, 0.8, 0.4, 0.2]), np.random.default_rng(2)
    powered = priorities**0.6
    gained = np.zeros(5)
    for _ in range(20_000):  # single draws, as P is the chance of one
        place = rng.choice(5, p=powered / powered.sum())
        gained[place] += (5 * powered[place] / powered.sum()) ** -1.0
    assert gained / gained.sum() == pytest.approx(np.full(5, 0.2), abs=0.01)


@pytest.mark.parametrize("strategy", ["prioritized", "reference"])
def test_everything_is_replayed_within_a_bounded_number_of_runs(strategy: str) -> None:
    n, batch = 200, 16
    traces = buffer(n, surprise=np.linspace(0, 1, n), importance=np.linspace(0, 1, n))
    last, rng = traces.last.copy(), np.random.default_rng(3)
    bound = n // (batch // 8)
    for run in range(bound):
        places = select(buffer(n, surprise=traces.surprise, last=last), batch, strategy, Chance(NOW + run, rng)).places
        last[places] = NOW + run
    assert not np.isnan(last).any()


def test_several_strategies_share_a_batch() -> None:
    assert chosen_by({"recent": 0.5, "oldest": 0.25, "surprise": 0.25}, 4) == ["m4", "m5", "m0", "m2"]
    assert chosen_by({"recent": 1, "reverse": 1}, 4) == ["m4", "m5", "m3", "m2"]
    assert chosen_by({"recent": 1, "oldest": 2}, 2) == ["m5", "m0"]


def chosen_by(shares: dict[str, float], n: int) -> list[str]:
    traces = buffer(surprise=[0.5, 0.1, 0.9, 0.2, 0.7, 0.3])
    return list(traces.ids[select(traces, n, shares, chance()).places])


def test_what_one_strategy_leaves_unused_the_others_fill() -> None:
    traces = buffer(due=np.full(6, NOW + 1))
    found = select(traces, 4, {"spaced": 0.5, "recent": 0.5}, chance())
    assert list(traces.ids[found.places]) == ["m4", "m5", "m2", "m3"]


@pytest.mark.parametrize(
    ("n", "strategies", "named"),
    [
        (-1, "recent", "0 or more"),
        (3, "sometimes", "'sometimes'"),
        (3, {}, "none given"),
        (3, {"recent": 0.0}, "above 0"),
        (3, {"recent": -1.0, "oldest": 2.0}, "above 0"),
        (3, {"recent": float("nan")}, "above 0"),
    ],
)
def test_what_cannot_be_chosen_by_is_refused(n: int, strategies: object, named: str) -> None:
    with pytest.raises(InputError, match=named):
        select(buffer(), n, strategies, chance())  # type: ignore[arg-type]


def test_a_hundred_thousand_traces_are_ranked_in_the_time_that_sorting_them_takes() -> None:
    n, rng = 100_000, np.random.default_rng(4)
    traces = buffer(n, surprise=rng.random(n), usefulness=rng.random(n), at=np.sort(rng.random(n) * NOW))

    def cost(work: object) -> float:
        started = time.process_time()
        for _ in range(5):
            work()  # type: ignore[operator]
        return time.process_time() - started

    numbers = rng.random(n)
    ranking = cost(lambda: np.argsort(numbers, kind="stable"))
    assert cost(lambda: select(traces, 64, "prioritized", Chance(NOW, rng))) < 4 * ranking
