"""Does a clause that no rule reads tell something worth keeping? A guess from its form, learned from labelled dialogues.

Logistic regression over a few dozen traits of a clause: whether it holds a number or a name, speaks of a change, a mood, the
person addressed… People tell most things in passing and in no set form ("the commute is so much shorter from here"), of
which rules find little. What is kept for this is kept word by word, without a slot. English. The weights were fitted by
`python -m sharpwave.benchmarks.likely`.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from functools import cache, lru_cache
from pathlib import Path

from sharpwave.memory.extract.slotting import mentioned
from sharpwave.memory.phrases import straight

LEAST = 0.9
"""Probability from which a clause is kept. In ten-fold cross-validation by dialogues on the labelled tune part, more than half of
the facts among the clauses that rules leave are found so (175), with 5 clauses that are none."""

PERHAPS = 0.3
"""Probability from which a clause is held against what is known: it is kept only if it changes that, or says it again."""

KNOWN = "known name"

Trait = Callable[[str, Collection[str]], bool]


def _word(pattern: str) -> Trait:
    found = re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
    return lambda text, names: bool(found.search(text))


def _form(pattern: str, flags: int = 0) -> Trait:
    found = re.compile(pattern, flags)
    return lambda text, names: bool(found.search(text))


TRAITS: Mapping[str, Trait] = {
    "I": _form(r"\b(?:I|i|im|ive)\b|\bI'"),
    "my": _word("my|our|mine|ours|me|us|we"),
    "he begins": _form(r"^(?:he|she|they)\b", re.IGNORECASE),
    "his begins": _form(r"^(?:his|her|their)\b", re.IGNORECASE),
    "it begins": _form(r"^(?:it|that|this|there|those|these)\b", re.IGNORECASE),
    "the begins": _form(r"^(?:the|a|an)\b", re.IGNORECASE),
    "verb begins": _form(r"^[a-z]+(?:ed|ing)\b", re.IGNORECASE),
    "no subject": _form(
        r"^(?:got|had|bought|booked|moved|quit|joined|been|still|no|not|just|turns|turned|gave|went|sold|on|in|about|from|with"
        r"|half|two|three|both|everyone|lost|last|new|old|next|allergic|married|born|based|work|live)\b",
        re.IGNORECASE,
    ),
    "name begins": _form(r"^[A-Z][a-z]+(?:'s\b|\s+(?:is|has|was|got|can|will|had|went|[a-z]+(?:ed|s))\b)"),
    "number": _form(r"\d"),
    "name": _form(r"(?<!^)(?<![.!?] )\b[A-Z][a-z]+"),
    KNOWN: lambda text, names: any(word.casefold() in names for word in re.findall(r"[\w-]+", text)),
    "kin": lambda text, names: mentioned(text) is not None,
    "two words": lambda text, names: len(text.split()) <= 2,
    "four words": lambda text, names: len(text.split()) <= 4,
    "long": lambda text, names: len(text.split()) > 12,
    "how it stands": _word(
        "now|any ?more|still|these days|no longer|used to|nowadays|again|from now on|by now|any longer"
    ),
    "over time": _word(r"since|for (?:years|\d+ \w+|\w+ (?:years|months|weeks))|every|each|weekly|always|usually"),
    "you": _word("you|your|u|ur"),
    "today": _word(
        "today|tonight|this (?:morning|evening|afternoon)|right now|just now|at the moment|for now|currently"
    ),
    "past day": _word(
        "yesterday|last (?:night|week|month|year)|on (?:mon|tues|wednes|thurs|fri|satur|sun)day|in (?:january|february|march"
        "|april|may|june|july|august|september|october|november|december)|ago"
    ),
    "courtesy": _word(
        "thanks|thank|please|pls|plz|lol|ha(?:ha)+|ok|okay|cheers|great|nice|cool|perfect|sorry|wow|omg|ugh|hmm|hi|hello|hey"
        "|bye|morning|brilliant|lovely|ta"
    ),
    "verb": _form(r"\b(?:is|are|was|were|has|have|had|got|went|came|did|does|am)\b|'(?:s|re|ve|m|d)\b", re.IGNORECASE),
    "change": _word(
        "mov(?:ed|ing)|started|stopped|quit|booked|cancell?ed|switched|changed|sold|bought|joined|left|died|dropped|born|pregnant"
        "|expecting|engaged|married|divorced|retired|promoted|hired|fired|laid off|transferred|relocated|swapped|replaced|ended"
        "|finished|gave|given|handed|picked up|adopted|signed|passed|failed|broke|split|lost|became|turned|pushed|shelved"
        "|scrapped|ditched|binned|upgraded|renewed|postponed|rescheduled|bumped|packed|stepped|closed|opened|merged|renamed"
        "|healed|diagnosed|put me on|off the|down to|up to|back to"
    ),
    "modal": _word(
        "might|maybe|perhaps|could|would|should|probably|if|wonder|wondering|unless|suppose|imagine|hopefully|may|must"
    ),
    "mind": _word(
        "think|thought|feels?|felt|guess|hope|wish|know|knew|mean|believe|sounds|looks|seems|understand|remember|forgot"
        "|wondering|sure|curious|want|wanted|need|trying|try|tried"
    ),
    "mood": _word(
        r"tired|knackered|bored|hungry|happy|sad|excited|nervous|annoyed|stressed|panic\w*|gutted|chuffed|exhausted|starving"
        "|shattered|ill|sick|awful|amazing|fun|funny|weird|scary|hard|easy|boring|terrible|fantastic|hilarious|sweet|cute"
        "|freezing|boiling|raining|weather"
    ),
    "exclaims": _form(r"!\s*$"),
    "anybody": _word("people|everybody|nobody|someone|somebody|anyone"),
    "health": _word(
        r"doctor|gp|physio|tablets?|pills?|mg|surgery|allerg\w+|intoleran\w+|diagnos\w+|asthma|diabet\w+|pregnan\w+|vegan"
        "|vegetarian|gluten|dairy"
    ),
}
"""What is looked at in a clause, by name; `names` are those that the user has told of before, in lower case."""


TIES = frozenset(
    "I,my,kin,known name,he begins,his begins,change,number,how it stands,past day,no subject,verb begins,over time,today,health".split(
        ","
    )
)
"""Traits that tie a clause to somebody's life. What has none of them ("the capital of Peru is Lima") may be true of the world."""


def traits(text: str, names: Collection[str] = ()) -> list[bool]:
    """Return which of `TRAITS` a clause has."""
    plain = straight(text)
    return [
        trait(plain, names) if name == KNOWN else has
        for (name, trait), has in zip(TRAITS.items(), _alone(plain), strict=True)
    ]


@lru_cache(maxsize=4096)
def _alone(plain: str) -> tuple[bool, ...]:
    """Return the traits of a clause by itself: a turn's clauses are asked about by the gate, and again when they are read."""
    return tuple(trait(plain, ()) for trait in TRAITS.values())


def probability(text: str, names: Collection[str] = ()) -> float:
    """Return how likely a clause that no rule reads tells a fact, 0..1; `names` are those that are known, in lower case."""
    weights, has_trait = _weights(), traits(text, names)
    if not any(has for name, has in zip(TRAITS, has_trait, strict=True) if name in TIES):
        return 0.0
    total = weights["bias"] + sum(weights[name] for name, has in zip(TRAITS, has_trait, strict=True) if has)
    return 1 / (1 + math.exp(-total))


@cache
def _weights() -> dict[str, float]:
    return dict(json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")))
