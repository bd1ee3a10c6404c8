"""The script of the demo: who says what when, and what has to come of it."""

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True)
class Line:
    """What a person says, and what has to come of it."""

    said: str
    operations: tuple[str, ...] = ()
    """What is done to memory, in order."""
    answer: str = ""
    """What the reply has to hold."""


@dataclass(frozen=True)
class Scene:
    """A conversation."""

    title: str
    user: str
    thread: str
    at: datetime
    lines: tuple[Line, ...]


def _on(month: int, day: int, hour: int) -> datetime:
    return datetime(2026, month, day, hour, tzinfo=UTC)


UNKNOWN = "don't know"
SCENES = (
    Scene(
        "1  Getting to know each other",
        "ana",
        "hello",
        _on(3, 2, 18),
        (
            Line("Hi! I'm Ana and I live in Oslo.", ("ADD", "ADD")),
            Line("Please remember that I'm allergic to shellfish.", ("ADD",)),
            Line("I work as a nurse.", ("ADD",)),
            Line("My cat is called Miso.", ("ADD",)),
            Line("My sister Mia has a dog called Rex.", ("ADD",)),
            Line("Thanks, that's all for today!"),
        ),
    ),
    Scene(
        "2  Three weeks later: one thing confirmed, one changed",
        "ana",
        "spring",
        _on(3, 23, 19),
        (
            Line("As I said, I'm allergic to shellfish.", ("NOOP",)),
            Line("I moved to Lisbon last week.", ("UPDATE",)),
        ),
    ),
    Scene(
        "3  Three weeks later: one thing is no longer so",
        "ana",
        "april",
        _on(4, 13, 8),
        (
            Line("I no longer work as a nurse.", ("DELETE",)),
            Line("Thanks, talk to you soon!"),
        ),
    ),
    Scene(
        "A new thread: nothing of the others is in it, memory is",
        "ana",
        "questions",
        _on(5, 4, 9),
        (
            Line("Where do I live?", answer="Lisbon"),
            Line("What am I allergic to?", answer="shellfish"),
            Line("What is Mia's dog called?", answer="Rex"),
            Line("What is my job?", answer=UNKNOWN),
        ),
    ),
    Scene(
        "Somebody else, in a thread of the same name",
        "bob",
        "questions",
        _on(5, 4, 10),
        (Line("Where do I live?", answer=UNKNOWN),),
    ),
)
AFTER_UNDO = Scene("Asked again", "ana", "again", _on(5, 4, 11), (Line("What is my job?", answer="nurse"),))
ASKED = "Where do I live?"
BEFORE_THE_MOVE = _on(3, 9, 12)
