"""The gate: is a turn worth the cost of reading it for facts?

It needs no model and leans towards reading: a needless call costs little, a fact that is never read is lost.
"""

import re

from sharpwave.memory.evidence import asks, own_words, sentences
from sharpwave.memory.extract import languages
from sharpwave.memory.extract.changing import tells_change, tells_end
from sharpwave.memory.extract.clauses import (
    LONGEST_SENTENCE,
    READ_AT_MOST,
    asked_to_keep,
    before_question,
    clauses,
    first_person,
    opened,
    split,
    states,
    states_command,
    telegraphic,
)
from sharpwave.memory.extract.likely import probability
from sharpwave.memory.records import Turn

LEAST_LIKELY = 0.6
"""Probability of telling something from which a clause is worth reading; less than makes rules keep it."""
_LETTERS = re.compile(r"[^\W\d_]")
_BEAT = re.compile(
    r"^\W*(?:heartbeat|ping|pong|keep-?alive|health-?check|status|tick|test(?:ing)?|ack|beep|cron)\b", re.IGNORECASE
)
_REMEMBER = re.compile(
    r"\b(?:remember|keep in mind|note that|don't forget|for the record|forget|correction|delete|no longer|any"
    r" ?more|as (?:always|ever|usual)|(?:as|like) (?:I said|you know))\b",
    re.IGNORECASE,
)
_STATE = re.compile(
    r"\b(?:still|now|again|home|here|gone|broke up|passed away|died|is off|are off|cancelled)\b", re.IGNORECASE
)
_TIED = re.compile(
    r"\b(?:my|our)\s+\w+\s+(?:[A-Z]\w+|who|is|has|was)\b|\b(?:I'm|I am|I have|I've|I live|I work|we have|we're)\b"
)
_ASKS_FACT = re.compile(
    r"\W*(?:what|where|who|when|which|do you (?:know|remember)|am|is|are|do|does|did|was|were|have|has)\b",
    re.IGNORECASE,
)
_DETAIL = re.compile(r"(?<!^)(?<![.!?] )\b[A-Z][a-z]{2,}|\d")


def worth_reading(turn: Turn) -> bool:
    """Whether what the user said in `turn` may hold something to remember."""
    return any(
        may_tell(s) for m in turn.messages if m.role == "user" for s in sentences(own_words(m.text[:READ_AT_MOST]))
    )


def may_tell(sentence: str) -> bool:
    """Whether a sentence of the user's own may hold something to remember."""
    if len(sentence) > LONGEST_SENTENCE:
        return bool(_LETTERS.search(sentence))
    if not _LETTERS.search(sentence) or _BEAT.match(sentence):
        return False
    if not languages.is_english(sentence):
        said = before_question(sentence)
        return len(said) > 2 and not languages.asks(said) and not languages.is_courtesy(said)
    return any(_clausemay_tell(clause) for clause in split(sentence)) or _asks_with_news(sentence) or _guessed(sentence)


def _guessed(sentence: str) -> bool:
    """Whether a clause that states nothing by its form is rather likely to tell something than not, or tells of a change."""
    loose = [clause.text for clause in clauses(sentence) if clause.loose]
    return any(probability(text) >= LEAST_LIKELY or tells_change(text) or tells_end(text) for text in loose)


def _clausemay_tell(quote: str) -> bool:
    if states_command(quote) or asked_to_keep(quote):
        return True
    text = opened(quote)
    if _REMEMBER.search(quote) and not text.endswith("?"):
        return True
    words = len(text.split())
    if words < 2 or not states(text):
        return False
    return (
        words > 3
        or first_person(text)
        or bool(_DETAIL.search(text) or _STATE.search(text))
        or telegraphic(text)
        or tells_change(text)
        or tells_end(text)
    )


def _asks_with_news(sentence: str) -> bool:
    """Whether a question or request tells something by the way ("a gift for my wife Anna, who …")."""
    return asks(sentence) and bool(_TIED.search(sentence)) and not _ASKS_FACT.match(sentence)
