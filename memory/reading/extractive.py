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
from sharpwave.memory.evidence import sentences
from sharpwave.memory.keywords import idf, terms
from sharpwave.memory.meanings import speaks_of
from sharpwave.memory.reading.document import Piece
from sharpwave.memory.reading.reader import Found, Memory
from sharpwave.memory.tokens import estimate

PIECE = 4_000
"""Tokens of a piece."""
ENCODED = 8
"""Sentences of a piece that are encoded."""
FLOOR = 0.5
"""Least score of a passage that has to do with the question."""
CLOSE = 0.15
"""How far behind the best passage another one may be and still be told."""
TOLD = 3
"""Most passages of an answer."""
LONGEST = 400
"""Characters of a passage; longer sentences, and lines without any, are read in parts."""
NEAR, LOOSE = 0.5, 0.7
"""What a word counts that stands in the sentence before; one that only means the same."""
SAME = 0.8
"""Share of their words that two passages have in common when one of them is enough."""
LONGEST_QUESTION = 2_000
NOTHING = "Nothing in the document answers that."

_PART = re.compile(rf".{{1,{LONGEST}}}(?!\S)|.{{{LONGEST}}}|.+", re.DOTALL)


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
        """Return the tokens of a text, by estimate."""
        return estimate(text)

    def read(self, question: str, memory: Memory, piece: Piece, line: int) -> Memory:
        """Return the passages that matter after a piece, and how often the words of the question have come up."""
        words = _Words(question, memory)
        found = list(_sentences(piece, line))
        for sentence in found:
            words.learn(sentence.text)
        scores = np.array([words.covered(sentence.text, sentence.before) for sentence in found])
        best = sorted(int(at) for at in np.argsort(-scores, kind="stable")[:ENCODED] if scores[at] > 0)
        fresh = [found[at]._asdict() for at in best]
        cosines = self._cosines(question, [words.quoted(passage) for passage in fresh])
        for passage, cosine in zip(fresh, cosines, strict=True):
            passage["cosine"] = cosine
        return {**words.learned(), "passages": self._kept(words, [*memory.get("passages", ()), *fresh])}

    def answer(self, question: str, memory: Memory) -> Found:
        """Return the passages that come nearest to the question, quoted, or say that nothing does."""
        words = _Words(question, memory)
        scored = [(self._score(words, passage), passage) for passage in memory.get("passages", ())]
        scored.sort(key=lambda one: -one[0])
        near = [(score, passage) for score, passage in scored if score >= max(FLOOR, scored[0][0] - CLOSE)][:TOLD]
        passages = tuple(
            {"text": words.quoted(passage), "line": passage["line"], "score": round(score, 3)}
            for score, passage in near
        )
        told = "\n".join(f"“{passage['text']}” (line {passage['line']})" for passage in passages)
        return Found(answer=told or NOTHING, known=bool(passages), passages=passages)

    def _cosines(self, question: str, texts: Sequence[str]) -> list[float]:
        if self._embeddings is None or not texts:
            return [0.0] * len(texts)
        vectors = embedding_array(self._embeddings, texts)
        return [round(float(cosine), 4) for cosine in vectors @ self._vector(question)]

    def _score(self, words: "_Words", passage: Mapping[str, Any]) -> float:
        """Return how much a passage has to do with the question, as `recall.relevance` does."""
        covered = words.covered(passage["text"], passage["before"])
        return passage["cosine"] + covered / 2 if self._embeddings else covered

    def _kept(self, words: "_Words", passages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the best passages within the budget, in the order of the document; of those that say the same one."""
        kept: list[dict[str, Any]] = []
        seen: list[frozenset[str]] = []
        left = self.budget
        for passage in sorted(passages, key=lambda passage: -self._score(words, passage)):
            said, size = frozenset(terms(passage["text"])), estimate(passage["text"] + passage["before"])
            if size > left or any(len(said & other) >= SAME * len(said | other) for other in seen):
                continue
            kept.append(passage)
            seen.append(said)
            left -= size
        return sorted(kept, key=lambda passage: passages.index(passage))


class _Words:
    """The words of a question, and how many sentences so far hold each of them, or one of like meaning."""

    def __init__(self, question: str, memory: Memory) -> None:
        self.asked = tuple(dict.fromkeys(terms(question)))
        self.sentences: int = memory.get("sentences", 0)
        self.exact: dict[str, int] = dict(memory.get("exact", {}))
        self.loose: dict[str, int] = dict(memory.get("loose", {}))

    def learned(self) -> Memory:
        """Return the counts, as plain data."""
        return {"sentences": self.sentences, "exact": self.exact, "loose": self.loose}

    def learn(self, text: str) -> None:
        """Count a sentence."""
        exact, loose = self._held(text)
        self.sentences += 1
        for word in exact:
            self.exact[word] = self.exact.get(word, 0) + 1
        for word in exact | loose:
            self.loose[word] = self.loose.get(word, 0) + 1

    def covered(self, text: str, before: str) -> float:
        """Return the share of the question's words that a sentence and the one before it hold, by weight: 0..1."""
        own, near = self._weights(text), self._weights(before)
        whole = sum(idf(self.sentences, self.exact.get(word, 0)) for word in self.asked)
        held = sum(max(own.get(word, 0.0), NEAR * near.get(word, 0.0)) for word in self.asked)
        return held / whole if whole else 0.0

    def quoted(self, passage: Mapping[str, Any]) -> str:
        """Return a passage, with the sentence before it where that adds words of the question."""
        adds = self._weights(passage["before"]).keys() - self._weights(passage["text"]).keys()
        return f"{passage['before']} {passage['text']}" if adds else str(passage["text"])

    def _weights(self, text: str) -> dict[str, float]:
        exact, loose = self._held(text)
        meant = {word: LOOSE * idf(self.sentences, self.loose.get(word, 0)) for word in loose - exact}
        return meant | {word: idf(self.sentences, self.exact.get(word, 0)) for word in exact}

    def _held(self, text: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return which words of the question a text holds, and which it holds another of like meaning of."""
        said = frozenset(terms(text))
        return said & frozenset(self.asked), frozenset(word for stem in said for word in _meant(stem, self.asked))


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
                if terms(part):
                    yield _Sentence(part.strip(), before, number)
                    before = part.strip()
