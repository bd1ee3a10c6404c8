"""Made-up talk to write to memory: statements, changes, confirmations, retractions, questions and small talk."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
SAID = (
    "I live in {city}.",
    "I moved to {city} last month.",
    "I no longer live in {city}.",
    "My sister {name} works as a {job}.",
    "My brother {name} lives in {city}.",
    "I work as a {job}.",
    "I'm allergic to {food}.",
    "I am not allergic to {food} any more.",
    "I like {food}.",
    "I have a dog called {name}.",
    "My favourite colour is {colour}, and I play the {instrument}.",
    "I'm going to {city} with {name} next week.",
    "We had {food} at {name}'s place yesterday and I met a {job} from {city}.",
)
CHATTER = (
    "Thanks!",
    "Haha, that is a good one.",
    "What should I cook tonight?",
    "Can you help me with an email to {name}?",
    "Good morning. How are you?",
    "Okay, see you later.",
    "What is the weather like in {city}?",
)
WORDS = {
    "city": "Oslo Lisbon Porto Turku Graz Ghent Kraków Seville Lyon Bergen".split(),
    "name": "Oona Mirek Ines Tariq Bruno Saga Kenji Lotte".split(),
    "job": "nurse carpenter teacher geologist baker translator".split(),
    "food": "shellfish walnuts mangoes rye mushrooms lentils olives".split(),
    "colour": "green ochre violet grey".split(),
    "instrument": "cello accordion harp clarinet".split(),
}


def talk(owners: int, turns: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield messages as `ingest` reads them from JSON lines; the same arguments always give the same ones.

    Args:
        owners: how many users speak, in turns.
        turns: messages in all; two of three say something to remember.
        seed: of the choice of words.
    """
    chance = random.Random(seed)
    for number in range(turns):
        owner = number % owners
        text = chance.choice(SAID if chance.random() < 2 / 3 else CHATTER)
        yield {
            "id": f"m{number}",
            "user": f"user-{owner}",
            "thread": f"t{number // (25 * owners)}",
            "role": "user",
            "content": text.format(**{slot: chance.choice(words) for slot, words in WORDS.items()}),
            "timestamp": (START + timedelta(hours=number)).isoformat(),
        }
