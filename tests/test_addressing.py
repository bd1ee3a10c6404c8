"""A name that is only spoken to tells nothing of whom it names."""

from datetime import UTC, datetime

import pytest

from sharpwave.memory.extract.addressing import unaddressed
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.records import Memory, Message, Recall, Turn

WHEN = datetime(2026, 3, 1, tzinfo=UTC)


def kept(text: str) -> list[tuple[str, str]]:
    known = Memory.model_validate(
        {"owner": "a", "text": "My cousin is called Gina", "recorded_at": WHEN, "valid_from": WHEN}
    )
    hit = Recall(id=known.id, store="semantic", text=known.text, said_at=WHEN, score=0.5, memory=known)
    turn = Turn(owner="a", thread="t", messages=(Message(id="m", role="user", text=text),), said_at=WHEN)
    return [
        (candidate.text, candidate.subject)
        for candidate in RulesExtractor().extract(turn, [hit])
        if not candidate.tentative
    ]


@pytest.mark.parametrize(
    "text",
    ["Thanks, Gina!", "No worries, Gina!", "Gina, congrats on the shop!", "Wow, Gina, you're doing an awesome job."],
)
def test_what_is_only_said_to_somebody_is_not_kept(text: str) -> None:
    assert kept(text) == []


def test_what_is_told_of_somebody_or_beside_a_name_is() -> None:
    assert kept("Gina got a job at the bakery.") == [("Gina got a job at the bakery.", "Gina")]
    assert [text for text, _ in kept("Gina, I quit my job today!")] == ["I quit my job today!"]
    assert [text for text, _ in kept("I'm moving to Leeds, Gina!")] == ["I'm moving to Leeds, Gina!"]


@pytest.mark.parametrize("text", ["Leo, my son, plays the cello", "I went with Mia and Leo", "Mia's moving to Leeds"])
def test_a_name_that_is_spoken_of_stays(text: str) -> None:
    assert unaddressed(text) == text


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("I told the nurse I'm allergic to latex", "I'm allergic to latex"),
        ("I reminded Tom I don't eat pork", "I don't eat pork"),
        ("so I told my boss that I have a second job", "I have a second job"),
    ],
)
def test_what_users_report_of_themselves_is_kept(text: str, own: str) -> None:
    assert [said for said, _ in kept(text)] == [own]


def test_what_users_told_of_the_moment_is_not() -> None:
    assert kept("I told him I had to go") == kept("I told her I'm fine") == []
