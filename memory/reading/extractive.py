"""Reading without a model: the sentences that matter to a question are kept, as they stand.

Each sentence is held against the words of the question, with those of the sentence before it counting half, since "He
repairs them" follows the name. What a word weighs is learned from the document as it is read: one that stands in every
other sentence tells little. Of each piece only the few best sentences are encoded, so the cost is that of the words.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings

from sharpwave.memory.embed import embedding_array, query_array
from sharpwave.memory.errors import InputError
from sharpwave.memory.evidence import asks, sentences
from sharpwave.memory.keywords import idf
from sharpwave.memory.meanings import speaks_of
from sharpwave.memory.reading.document import Piece
from sharpwave.memory.reading.reader import Found, Memory
from sharpwave.memory.reading.verbs import words as words_of
from sharpwave.memory.tokens import estimate

PIECE = 4_000
"""Tokens of a piece."""
ENCODED, SHARE = 6, 0.25
"""Sentences of a piece that are encoded at most; the share of the best one's words that each of them has to hold."""
FLOOR = 0.5
"""Least score of a passage that has to do with the question."""
TOLD, CLOSE = 3, 0.4
"""Most passages of an answer; how far behind the best one another may be."""
LONGEST = 400
"""Characters of a passage; longer sentences, and lines without any, are read in parts."""
NEAR, LOOSE = 0.5, 0.8
"""What a word counts that stands in the sentence before; one that only means the same."""
WANTED = 0.15
"""What a passage gains that holds what is asked for: a number or date, or a name that the question does not have."""
ASKS = 0.7
"""What is left of the score of a passage that itself asks."""
SAME = 0.8
"""Share of their words that two passages have in common when one of them is enough."""
LONGEST_QUESTION = 2_000
NOTHING = "Nothing in the document answers that."

_PART = re.compile(rf".{{1,{LONGEST}}}(?!\S)|.{{{LONGEST}}}|.+", re.DOTALL)
_ASKS_NUMBER = re.compile(
    r"\b(?:how (?:many|much|old|long|tall|far|high|big|deep|heavy|often)|when|what (?:year|date|day|time|age|number|price))\b",
    re.IGNORECASE,
)
_ASKS_NAME = re.compile(r"\b(?:who|whom|whose)\b|\bnames?\b", re.IGNORECASE)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|\w+(?:teen|ty)|hundred|thousand|million|once|twice"
    r"|january|february|march|april|may|june|july|august|september|october|november|december|\w+day)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[^\W\d_] )[A-Z][\w'’-]+|(?<=[,;:] )[A-Z][\w'’-]+")


class _Sentence(NamedTuple):
    text: str
    before: str
    line: int


class ExtractiveReader:
    """Keeps the passages that matter to the question, within a budget; see `Reader`.

    Args:
        embeddings: tell how near a passage is to the question in meaning; without them its words alone must do.
        budget: tokens of the passages that are kept.
    """

    name = "extractive/1"

    def __init__(self, embeddings: Embeddings | None = None, *, budget: int = 1_000) -> None:
        self._embeddings, self.budget = embeddings, budget
        self._vector = lru_cache(maxsize=8)(lambda text: query_array(embeddings, text) if embeddings else np.zeros(1))

    def room(self, question: str) -> int:
        """Return the tokens of a piece; raises `InputError` for a question that is longer than any question."""
        if len(question) > LONGEST_QUESTION:
            raise InputError(
                f"The question has {len(question)} characters; at most {LONGEST_QUESTION} are read. Shorten it."
            )
        return PIECE

    def count(self, text: str) -> int:
        """Return about how many tokens a text takes: only a model has a window that must not be missed."""
        return -(-len(text) // 4)

    def read(self, question: str, memory: Memory, piece: Piece, line: int) -> Memory:
        """Return the passages that matter after a piece, and how often the words of the question have come up."""
        words = _Words(question, memory)
        found = list(_sentences(piece, line))
        for sentence in found:
            words.learn(sentence.text)
        fresh = [found[at]._asdict() for at in self._promising(words, found, memory)]
        cosines = self._cosines(question, [words.quoted(passage) for passage in fresh])
        for passage, cosine in zip(fresh, cosines, strict=True):
            passage["cosine"] = cosine
        return {**words.learned(), "passages": self._kept(words, [*memory.get("passages", ()), *fresh])}

    def answer(self, question: str, memory: Memory) -> Found:
        """Return the passages that come nearest to the question, quoted, or say that nothing does."""
        words = _Words(question, memory)
        scored = [(self._score(words, passage), passage) for passage in memory.get("passages", ())]
        scored.sort(key=lambda one: -one[0])
        least = max(FLOOR, scored[0][0] - CLOSE) if scored else FLOOR
        texts = {passage["text"] for score, passage in scored[:TOLD]}
        near = [(score, p) for score, p in scored if score >= least and not (p["before"] in texts and words.trails(p))]
        passages = tuple(
            {"text": words.quoted(passage), "line": passage["line"], "score": round(score, 3)}
            for score, passage in near[:TOLD]
        )
        told = "\n".join(f"“{passage['text']}” (line {passage['line']})" for passage in passages)
        return Found(answer=told or NOTHING, known=bool(passages), passages=passages)

    def _cosines(self, question: str, texts: Sequence[str]) -> list[float]:
        if self._embeddings is None or not texts:
            return [0.0] * len(texts)
        vectors = embedding_array(self._embeddings, texts)
        return [round(float(cosine), 4) for cosine in vectors @ self._vector(question)]

    def _promising(self, words: "_Words", found: Sequence[_Sentence], memory: Memory) -> list[int]:
        """Return which sentences hold so much of the question, beside what is kept already, that they are worth encoding."""
        known = [words.covered(passage["text"], passage["before"]) for passage in memory.get("passages", ())]
        scores = np.array([words.covered(sentence.text, sentence.before) for sentence in found])
        least = SHARE * max([*known, *scores], default=0.0)
        best = np.argsort(-scores, kind="stable")[:ENCODED]
        return sorted(int(at) for at in best if scores[at] > 0 and scores[at] >= least)

    def _score(self, words: "_Words", passage: Mapping[str, Any]) -> float:
        """Return how much a passage has to do with the question: as `recall.relevance`, and whether it looks like an answer."""
        covered = words.covered(passage["text"], passage["before"])
        score = float(passage["cosine"] + covered / 2 if self._embeddings else covered)
        return ASKS * score if asks(passage["text"]) else score + WANTED * words.wanted(passage["text"])

    def _kept(self, words: "_Words", passages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the best passages within the budget, in the order of the document; of those that say the same one."""
        kept: list[dict[str, Any]] = []
        seen: list[frozenset[str]] = []
        left = self.budget
        for passage in sorted(passages, key=lambda passage: -self._score(words, passage)):
            said, size = frozenset(words_of(passage["text"])), estimate(passage["text"] + passage["before"])
            if size > left or any(len(said & other) >= SAME * len(said | other) for other in seen):
                continue
            kept.append(passage)
            seen.append(said)
            left -= size
        return sorted(kept, key=lambda passage: passages.index(passage))


class _Words:
    """The words of a question, and how many sentences so far hold each of them, or one of like meaning."""

    def __init__(self, question: str, memory: Memory) -> None:
        self.question, self.asked = question, tuple(dict.fromkeys(words_of(question)))
        self.sentences: int = memory.get("sentences", 0)
        self.exact: dict[str, int] = dict(memory.get("exact", {}))
        self.loose: dict[str, int] = dict(memory.get("loose", {}))

    def learned(self) -> Memory:
        """Return the counts, as plain data."""
        return {"sentences": self.sentences, "exact": self.exact, "loose": self.loose}

    def learn(self, text: str) -> None:
        """Count a sentence."""
        exact, loose = _held(text, self.asked)
        self.sentences += 1
        for word in exact:
            self.exact[word] = self.exact.get(word, 0) + 1
        for word in exact | loose:
            self.loose[word] = self.loose.get(word, 0) + 1

    def covered(self, text: str, before: str) -> float:
        """Return the share of the question's words that a sentence and the one before it hold, by weight: 0..1.

        What stands behind a question belongs to it as a whole.
        """
        own, ahead = self._weights(text), self._weights(before)
        near = 1.0 if ahead and asks(before) else NEAR
        whole = sum(idf(self.sentences, self.exact.get(word, 0)) for word in self.asked)
        held = sum(max(own.get(word, 0.0), near * ahead.get(word, 0.0)) for word in self.asked)
        return held / whole if whole else 0.0

    def wanted(self, text: str) -> bool:
        """Whether a text holds what the question asks for: a number or date, or a name that is new."""
        if _ASKS_NUMBER.search(self.question):
            return bool(_NUMBER.search(text))
        names = _NAME.findall(text) if _ASKS_NAME.search(self.question) else []
        return any(name not in self.question for name in names)

    def quoted(self, passage: Mapping[str, Any]) -> str:
        """Return a passage, with the sentence before it where that adds words of the question."""
        adds = self._weights(passage["before"]).keys() - self._weights(passage["text"]).keys()
        return f"{passage['before']} {passage['text']}" if adds else str(passage["text"])

    def trails(self, passage: Mapping[str, Any]) -> bool:
        """Whether a passage has no word of the question itself, and answers none: it only follows one that has."""
        return not self._weights(passage["text"]) and not asks(passage["before"])

    def _weights(self, text: str) -> dict[str, float]:
        exact, loose = _held(text, self.asked)
        meant = {word: LOOSE * idf(self.sentences, self.loose.get(word, 0)) for word in loose - exact}
        return meant | {word: idf(self.sentences, self.exact.get(word, 0)) for word in exact}


@lru_cache(maxsize=4_096)
def _held(text: str, asked: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """Return which of the words asked for a text holds, and of which it holds another one of like meaning."""
    said = frozenset(words_of(text))
    return said & frozenset(asked), frozenset(word for stem in said for word in _meant(stem, asked))


@lru_cache(maxsize=16_384)
def _meant(stem: str, asked: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in asked if word != stem and speaks_of(stem, word))


def _sentences(piece: Piece, line: int) -> Iterator[_Sentence]:
    """Yield the sentences of a piece, each with the one before it and its line; without letters or digits none counts."""
    earlier = sentences(piece.before)
    before = earlier[-1][-LONGEST:] if earlier else ""
    for number, written in enumerate(piece.text.split("\n"), line):
        for sentence in sentences(written):
            for part in _PART.findall(sentence) if len(sentence) > LONGEST else (sentence,):
                if words_of(part):
                    yield _Sentence(part.strip(), before, number)
                    before = part.strip()
