"""Fit and measure what tells the user's own words from those of others (see `memory.extract.attribution`).

    python -m sharpwave.benchmarks.attribution --json      # on the messages of two writers that it was not fitted to
    python -m sharpwave.benchmarks.attribution --fit       # fit it anew (needs the [train] extra; some ten minutes on two cores)

`labelled/attribution.jsonl` holds messages with the words in them that read like a statement of the user about himself: those that
are somebody else's, or made up, and those that are his own. They are meant to mislead, as each kind is written to look like the other. It is
fitted to these, to the English dialogues of the labelled tune part, and to what is said in long talks (`labelled/chats/`) and in
`labelled/pairs.jsonl`, where nearly all is the user's own.
"""

import argparse
import json
import random
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sharpwave.benchmarks import chats, labelled, pairs
from sharpwave.memory.embed import open_tokenizer, packaged_files
from sharpwave.memory.extract import attribution
from sharpwave.memory.extract.attribution import FOREIGN, MAX_TOKENS, Attribution, Span, tokens_in
from sharpwave.memory.extract.rules import RulesExtractor
from sharpwave.memory.learning import low_rank
from sharpwave.memory.learning.low_rank import UNTOLD, Row
from sharpwave.memory.phrases import stems
from sharpwave.memory.records import Message as Spoken
from sharpwave.memory.records import Record, Turn

EPOCHS = 6
PLAIN = 1000
"""Plain statements that are taken beside; every other one with another after it."""
_SENTENCE = re.compile(r"[^.!?\s][^.!?]*[.!?]*")
_OF_ONESELF = re.compile(r"\b(?:I|my|me|we|our|us)\b", re.IGNORECASE)
_SPOKEN = re.compile(
    r"[\"“‘]|\b(?:sa(?:ys?|id)|told|tells|call(?:s|ed|ing)|wrote|writes|goes|asked|shout(?:s|ed)|yelled|texted|like)\b",
    re.IGNORECASE,
)
LEAST = (0.5, 0.7, 0.8, 0.9, 0.95)

Example = tuple[str, list[tuple[Span, int]]]
"""A message, and spans of it with 1 for words of others, 0 for own ones."""


class Message(Record):
    """A message, and what of it reads like a statement of the user about himself, word by word."""

    writer: str
    split: Literal["tune", "held"]
    user: str
    foreign: tuple[str, ...]
    own: tuple[str, ...]


def messages(split: Literal["tune", "held"]) -> Iterator[Message]:
    """Yield the messages of one part."""
    lines = (labelled.HERE / "attribution.jsonl").read_text("utf-8").splitlines()
    return (message for message in map(Message.model_validate_json, lines) if message.split == split)


def posed(text: str, own: Sequence[str], foreign: Sequence[str]) -> Example:
    """Return a message with the places of its words."""
    return text, [
        ((at, at + len(words)), kind)
        for kind, some in ((0, own), (1, foreign))
        for words in some
        if (at := text.find(words)) >= 0
    ]


def examples(seed: int = 0) -> list[Example]:
    """Return all that it is fitted to."""
    found = [posed(message.user, message.own, message.foreign) for message in messages("tune")]
    for case in (case for case in labelled.load("tune") if case.language == "en"):
        found += [posed(turn.user, [fact.text for fact in turn.facts], turn.foreign) for turn in case.turns]
    for chat in chats.load("tune"):
        found += [(turn.user, own_sentences(turn.user)) for turn in chat.turns]
    said = [text for person in pairs.people("tune") for text, _, _ in person.said]
    random.Random(seed).shuffle(said)
    for at in range(0, 2 * PLAIN, 2):
        text = said[at] if at % 4 else f"{said[at].rstrip('.!? ')}. {said[at + 1]}"
        found.append((text, [((0, len(text)), 0)]))
    return [example for example in found if example[1]]


def own_sentences(text: str) -> list[tuple[Span, int]]:
    """Return the sentences of a message in a long talk as the user's own, but those that tell what somebody said."""
    return [
        ((one.start(), one.end()), 0)
        for one in _SENTENCE.finditer(text)
        if _OF_ONESELF.search(one[0]) and not _SPOKEN.search(one[0])
    ]


def encoded(examples: Sequence[Example]) -> list[Row]:
    """Return examples as they are fitted to: with the class of each token."""
    tokenizer = open_tokenizer(packaged_files().tokenizer)
    tokenizer.enable_truncation(MAX_TOKENS)
    rows = []
    for row, (_, spans) in zip(tokenizer.encode_batch([text for text, _ in examples]), examples, strict=True):
        classes = [UNTOLD] * len(row.ids)
        for span, kind in spans:
            for place in tokens_in(row.offsets, span):
                classes[place] = kind
        rows.append((row.ids, row.type_ids, classes))
    return rows


def measured(messages: Sequence[Message]) -> dict[str, Any]:
    """Return by least probability the share of others' words that are told, and of own ones that are taken for others'; and what the
    rules alone, and with it, keep of each."""
    reader = Attribution()
    likely: dict[int, list[float]] = {0: [], 1: []}
    for message in messages:
        text, spans = posed(message.user, message.own, message.foreign)
        for (_, kind), one in zip(spans, reader.foreign(text, [span for span, _ in spans]), strict=True):
            likely[kind].append(one)
    own, foreign = np.array(likely[0]), np.array(likely[1])
    return {
        "messages": len(messages),
        "own": len(own),
        "foreign": len(foreign),
        "by_least_probability": {
            least: {
                "foreign_told": round(float((foreign >= least).mean()), 4),
                "own_taken_for_foreign": round(float((own >= least).mean()), 4),
            }
            for least in LEAST
        },
        "kept": {"rules": kept(messages, None), f"and read, from {FOREIGN}": kept(messages, reader)},
    }


def kept(messages: Sequence[Message], reader: Attribution | None) -> dict[str, float]:
    """Return the share of the words of others, and of own ones, that an extractor keeps."""
    extractor = RulesExtractor(attribution=reader)
    counts = {"own": [0, 0], "foreign": [0, 0]}
    for message in messages:
        turn = Turn(
            owner="anybody",
            thread="t",
            messages=(Spoken(id="m", role="user", text=message.user),),
            said_at=datetime(2026, 1, 1, tzinfo=UTC),
        )
        texts = [stems(candidate.text) for candidate in extractor.extract(turn, [])]
        for kind, some in (("own", message.own), ("foreign", message.foreign)):
            for words in map(stems, some):
                counts[kind][0] += any(len(words & text) >= max(1, 0.7 * len(words)) for text in texts)
                counts[kind][1] += 1
    return {kind: round(hit / of, 4) for kind, (hit, of) in counts.items()}


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true", help="fit it anew, and keep the weights in the package")
    parser.add_argument("--out", type=Path, default=attribution.WEIGHTS, help="where the weights are kept")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    if given.fit:
        fitted = low_rank.fit(encoded(examples()), 2, epochs=EPOCHS, told=print)
        np.savez_compressed(given.out, allow_pickle=False, **fitted)
        return
    result = measured(list(messages("held")))
    print(json.dumps(result, indent=2) if given.json else result)


if __name__ == "__main__":
    main()
