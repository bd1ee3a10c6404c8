"""What the comparison of the kinds of memory is asked about when there is no data: the people of the demo, and their tasks."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sharpwave.ingesting import ingest
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.episodes import Episodes
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.records import Message, Turn
from sharpwave.memory.store import MemoryStore
from sharpwave.scenes import SCENES

OWNER = "ana"
MORE = (
    "Mia is married to Tom.",
    "Tom works as a beekeeper in Bergen.",
    "My favourite restaurant is Taberna do Mar.",
    "I was so tired that I put the salt into the coffee this morning.",
)
EPISODES = (
    (
        "export the rota of the ward as a spreadsheet",
        (
            ("export_rota(format='xlsx')", "PermissionError: the rota is locked", True),
            ("export_rota(format='csv')", "saved rota.csv", False),
        ),
        "partial",
        "When the rota is locked, export it as CSV.",
    ),
    (
        "book a ferry for two people and a dog",
        (("book_ferry(pets=1)", "PaymentError: the card was declined", True),),
        "failure",
        "Pets have to be booked by phone before paying.",
    ),
    (
        "renew the library card",
        (("renew_card(years=2)", "renewed until 2028", False),),
        "success",
        None,
    ),
)


class Question(NamedTuple):
    """A question, what it asks for, and a word of its answer."""

    text: str
    asks: str
    answer: str


QUESTIONS = (
    Question("Where do I live?", "what holds now", "Lisbon"),
    Question("What am I allergic to?", "what holds now", "shellfish"),
    Question("Which restaurant do I like best?", "what holds now", "Taberna"),
    Question("Where did I live before?", "what was said", "Oslo"),
    Question("Did I ever work as a nurse?", "what was said", "work as a nurse"),
    Question("What happened with the salt?", "what was said", "coffee"),
    Question("How did booking the ferry go?", "what was tried", "declined"),
    Question("Which format works when the rota cannot be exported?", "what was tried", "csv"),
    Question("What does my sister's husband do for a living?", "somebody by way of another", "beekeeper"),
    Question("What do you know about Tom?", "somebody by name", "beekeeper"),
)


def fill(store: MemoryStore) -> None:
    """Write the demo's conversations of its first user, some more lines, and tasks to a store, by rules."""
    lines = [
        (scene.thread, line.said, scene.at + timedelta(minutes=2 * number))
        for scene in SCENES
        if scene.user == OWNER
        for number, line in enumerate(scene.lines)
    ]
    at = datetime(2026, 5, 1, 9, tzinfo=UTC)
    lines += [("more", text, at + timedelta(minutes=number)) for number, text in enumerate(MORE)]
    ingest(store, [_turn(f"m{n}", *line) for n, line in enumerate(lines)], RulesExtractor(), RulesPolicy())
    for number, (task, steps, outcome, lesson) in enumerate(EPISODES):
        trajectory = [{"action": action, "observation": seen, "failed": failed} for action, seen, failed in steps]
        began = at + timedelta(days=number)
        Episodes(store).add(
            OWNER, task, trajectory, outcome, reflection=lesson, lesson=lesson, started_at=began, ended_at=began
        )


def _turn(name: str, thread: str, text: str, at: datetime) -> Turn:
    return Turn(owner=OWNER, thread=thread, messages=(Message(id=name, role="user", text=text),), said_at=at)
