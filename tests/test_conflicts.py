"""Where the stores disagree, the stronger statement is shown, and the other one is named."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from sharpwave.memory.conflicts import Kind, Statement, resolve

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ALIKE = np.array([1.0, 0.0])


def said(kind: Kind, text: str, days: float = 0, **fields: object) -> Statement:
    return Statement(text, kind, text, NOW - timedelta(days=days), **fields)  # type: ignore[arg-type]


def city(kind: Kind, value: str, days: float = 0) -> Statement:
    return said(kind, f"Lives in {value}", days, attribute="home_city", value=value)


@pytest.mark.parametrize(
    ("strong", "weak"),
    [
        (city("working", "Oslo", 2), city("semantic", "Rome")),
        (city("episodic", "Oslo", 3), city("semantic", "Rome")),
        (city("semantic", "Oslo", 300), city("episodic", "Rome", 30)),
        (city("semantic", "Oslo", 1), city("semantic", "Rome", 2)),
        (
            said("procedural", "Call the endpoint /v2", 90, vector=ALIKE),
            said("semantic", "Call the endpoint /v1", vector=ALIKE),
        ),
        (
            said("working", "The tests do not pass", vector=ALIKE),
            said("episodic", "The tests pass", vector=ALIKE),
        ),
    ],
)
def test_the_stronger_of_two_that_disagree_is_shown(strong: Statement, weak: Statement) -> None:
    for given in ([strong, weak], [weak, strong]):
        kept, lost = resolve(given, NOW)
        assert kept == [strong]
        assert [(one.statement, one.winner) for one in lost] == [(weak, strong)] and lost[0].reason


@pytest.mark.parametrize(
    "pair",
    [
        (city("semantic", "Oslo"), city("working", "oslo")),
        (city("semantic", "Oslo"), city("semantic", "Rome")._replace(subject="user's sister")),
        (
            said("semantic", "Has a dog", attribute="pet", value="dog"),
            said("working", "Has a cat", attribute="pet", value="cat"),
        ),
        (
            said("semantic", "Lived in Rome", attribute="former:home_city", value="Rome"),
            said("semantic", "Lived in Oslo", attribute="former:home_city", value="Oslo"),
        ),
        (said("semantic", "Likes tea", vector=ALIKE), said("working", "Loves tea", vector=ALIKE)),
        (said("semantic", "Paid invoice 1041", vector=ALIKE), said("semantic", "Paid invoice 1042", vector=ALIKE)),
        (said("semantic", "Has 2 cats"), said("working", "Has 3 cats")),
        (
            said("semantic", "Has 2 cats", vector=ALIKE),
            said("working", "Has 3 cats", vector=np.array([0.0, 1.0])),
        ),
    ],
)
def test_what_does_not_disagree_is_all_shown(pair: tuple[Statement, Statement]) -> None:
    assert resolve(pair, NOW) == ([*pair], [])


def test_what_lost_does_not_beat_anything() -> None:
    first, second, third = city("working", "Oslo"), city("episodic", "Rome"), city("semantic", "Bern")
    kept, lost = resolve([third, second, first], NOW)
    assert kept == [first] and {one.winner.id for one in lost} == {first.id}
