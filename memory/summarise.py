"""What a conversation was about: a few sentences and topics, by a model or, without one, taken from what was said.

The keyless version is extractive: each sentence of its summary was said so, and each topic is a word that came up often.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import log1p, sqrt
from typing import NamedTuple

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from sharpwave.memory.evidence import own_words, sentences
from sharpwave.memory.keywords import terms
from sharpwave.memory.lived import clipped
from sharpwave.memory.records import Record, Text, Utterance
from sharpwave.memory.structured import ask
from sharpwave.memory.trust import looks_like_instruction
from sharpwave.prompts import quoted, render

EXTRACTIVE, MODEL = "extractive/1", "llm/1"
SENTENCES, TOPICS = 3, 5
"""Most of each in a summary."""
LONGEST_SENTENCE, LONGEST_TOPIC, LONGEST_LINE = 200, 60, 400
READ_AT_MOST = 24_000
"""Characters of a conversation that a model is shown: the first third of them from its start, the rest from its end."""

_WEIGHTS = {"user": 1.0, "assistant": 0.5}
_WORD = re.compile(r"[^\W\d_][\w'’-]*\w")
_CHATTER = frozenset(
    term
    for term in terms(
        """hi hello hey keep mind thanks thank please sorry yes yeah ok okay sure maybe really near before after over under between without
        within during while until since because though whether very good great nice fine well like want
        need know think guess see look get got make made take give go going went come came thing things something anything
        everything nothing lot lots bit way kind today yesterday tomorrow now later time day week month year one two first
        last next new still also always never often much many more most little let lets say said tell told talk ask help
        could would should might must right course actually probably used use"""
    )
)


class Summary(Record):
    """What a conversation was about."""

    text: Text = ""
    """At most three sentences; nothing where nothing was said."""
    topics: tuple[Text, ...] = ()
    """Five at most, the foremost first."""
    policy: str
    """What made it: `extractive/1` or `llm/1`."""


def summarise(utterances: Sequence[Utterance], model: BaseChatModel | None = None) -> Summary:
    """Return what a conversation was about; what tools said, and what reads like an instruction of somebody else's, is passed over.

    Args:
        utterances: what was said, in order.
        model: is asked once; without one, or where nothing was said, sentences and words are taken from what was said.

    Raises:
        ModelError: the model failed, or gave no usable answer.
    """
    lines = [line for utterance in utterances if (line := _line(utterance)).text]
    if model is None or not lines:
        return Summary(text=_told(lines), topics=_topics(lines), policy=EXTRACTIVE)
    messages = [SystemMessage(render("conversation")), HumanMessage(_transcript(lines))]
    answer = ask(model, messages, _Summarised, purpose="summarise")
    topics = dict.fromkeys(clipped(" ".join(topic.split()), LONGEST_TOPIC) for topic in answer.topics if topic.strip())
    return Summary(text=" ".join(answer.summary.split()), topics=tuple(topics)[:TOPICS], policy=MODEL)


class _Summarised(BaseModel):
    summary: str = Field(min_length=3)
    topics: list[str] = []


class _Line(NamedTuple):
    speaker: str
    text: str
    weight: float


class _Sentence(NamedTuple):
    at: int
    speaker: str
    text: str
    terms: frozenset[str]
    weight: float


def _line(utterance: Utterance) -> _Line:
    weight = _WEIGHTS.get(utterance.role, 0.0)
    text = own_words(utterance.text) if utterance.role == "user" else utterance.text
    foreign = utterance.role != "user" and looks_like_instruction(text)
    return _Line(utterance.speaker, "" if foreign or not weight else text.strip(), weight)


def _transcript(lines: Sequence[_Line]) -> str:
    written = [f"{clipped(line.speaker, 40)}: {quoted(line.text, LONGEST_LINE)}" for line in lines]
    head = _within(written, READ_AT_MOST // 3)
    tail = _within(list(reversed(written[head:])), READ_AT_MOST - READ_AT_MOST // 3)
    left_out = len(written) - head - tail
    gap = [f"({left_out} messages are left out)"] if left_out else []
    return "\n".join([*written[:head], *gap, *written[len(written) - tail :]])


def _within(written: Sequence[str], limit: int) -> int:
    """Return how many of the first lines fit into so many characters."""
    count = 0
    for line in written:
        limit -= len(line) + 1
        if limit < 0:
            break
        count += 1
    return count


# Without a model


def _told(lines: Sequence[_Line]) -> str:
    """Return the sentences that hold most of what came up again and again, in the order in which they were said."""
    found = [
        _Sentence(at, line.speaker, clipped(text, LONGEST_SENTENCE), frozenset(terms(text)) - _CHATTER, line.weight)
        for at, line in enumerate(lines)
        for text in sentences(line.text)
    ]
    counts = _mentions(lines)
    chosen: list[int] = []
    while len(chosen) < SENTENCES:
        covered = frozenset[str]().union(*(found[one].terms for one in chosen))
        scores = {one: _worth(sentence, counts, covered) for one, sentence in enumerate(found) if one not in chosen}
        best = max(scores, key=scores.__getitem__, default=None)
        if best is None or (chosen and scores[best] <= 0):
            break
        chosen.append(best)
    return _joined([found[one] for one in sorted(chosen)])


def _worth(sentence: _Sentence, counts: Mapping[str, float], covered: frozenset[str]) -> float:
    """Return how much a sentence adds: the weights of its terms that are not covered yet, for its length."""
    new = sum(log1p(counts[term]) for term in sentence.terms - covered)
    asked = 0.7 if sentence.text.endswith(("?", "？")) else 1.0  # what was found or decided says more
    return asked * sentence.weight * new / sqrt(len(sentence.terms) + 3)


def _joined(chosen: Sequence[_Sentence]) -> str:
    named = len({sentence.speaker for sentence in chosen}) > 1
    return " ".join(f"{sentence.speaker}: {sentence.text}" if named else sentence.text for sentence in chosen)


def _mentions(lines: Sequence[_Line]) -> dict[str, float]:
    """Return for each term in how many messages it stands; those of the assistant count half."""
    counts: dict[str, float] = defaultdict(float)
    for line in lines:
        for term in set(terms(line.text)) - _CHATTER:
            counts[term] += line.weight
    return counts


def _topics(lines: Sequence[_Line]) -> tuple[str, ...]:
    """Return words, and pairs of words that stand together more than once, that came up in most messages; names count more."""
    scores: dict[tuple[str, ...], float] = defaultdict(float)
    looks: dict[tuple[str, ...], Counter[str]] = {}
    for line in lines:
        for key, written in {key: written for text in sentences(line.text) for key, written in _phrases(text)}.items():
            scores[key] += line.weight * (1.5 if written[:1].isupper() else 1.0)
            looks.setdefault(key, Counter())[written] += 1
    pairs = {key for key, score in scores.items() if len(key) > 1 and score >= 2}
    inside = {(term,) for key in pairs for term in key if scores[key] >= 0.6 * scores[(term,)]}
    ranked = [
        key
        for key in sorted(scores, key=lambda key: -scores[key])
        if key not in inside and (len(key) == 1 or key in pairs)
    ]
    return tuple(clipped(looks[key].most_common(1)[0][0], LONGEST_TOPIC) for key in ranked[:TOPICS])


def _phrases(sentence: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the words of a sentence, and its pairs of neighbouring words, each by its terms and as it is written.

    The first word is written small, as its capital says nothing.
    """
    words = [found.group() for found in _WORD.finditer(sentence)]
    words = [words[0].lower(), *words[1:]] if words and not words[0].isupper() else words
    keyed = [(_key(word), word) for word in words]
    for key, word in keyed:
        if len(key) == 1:
            yield key, word
        yield from (((term,), term) for term in key if len(key) > 1)  # a script without spaces: pairs of characters
    for (one, first), (other, second) in pairwise(keyed):
        if len(one) == len(other) == 1:
            yield (*one, *other), f"{first} {second}"


def _key(word: str) -> tuple[str, ...]:
    return tuple(term for term in terms(word) if term not in _CHATTER and len(term) > 1)
