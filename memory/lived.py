"""From a turn to the episodes in it: what was asked, what was tried with tools, and how it ended.

A turn is one exchange as a rule. Where earlier ones were cut off before they were answered, it holds them too, and each
that used tools is an episode of its own.
"""

import json
import re
import uuid
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import takewhile

from sharpwave.memory.evidence import own_words
from sharpwave.memory.kinds import Episode, Outcome, Step
from sharpwave.memory.records import Message, ToolCall, Turn

LONGEST_TASK, LONGEST_TEXT, LONGEST_ACTION = 600, 500, 300
"""Characters that are kept of what was asked, of each thought and observation, and of each call."""
MOST_STEPS = 60
"""Steps that are kept of an episode: the first and the last half of them."""
ANSWER = "answer"
"""The action of the step in which the user was answered."""

_NAMESPACE = uuid.UUID("5a2f6f0e-6a53-5d0c-9d59-0f3f0a1c7b52")
_FAILING = re.compile(
    r"\s*(?:(?:\w*error|\w*exception|fail(?:ed|ure)|fatal)\s*:|traceback \(most recent|the tool failed\b)",
    re.IGNORECASE,
)


def episodes_of(turn: Turn, agent: str = "agent") -> list[Episode]:
    """Return the episodes in a turn, in order; none where no tool was called.

    The same message of a thread always gives an episode of the same id. What was cut off before the turn's own exchange
    carries the time of the turn, as its own is not known.

    Args:
        turn: its secrets masked already.
        agent: whose episodes they are, among the owner's agents.
    """
    spans = list(_spans(turn.messages))
    made = []
    for at, (asked, done) in enumerate(spans, 1):
        if not any(message.calls for message in done):
            continue
        took = timedelta(seconds=turn.seconds if at == len(spans) else 0.0)
        made.append(
            Episode(
                id=str(uuid.uuid5(_NAMESPACE, json.dumps([turn.thread, asked[-1].id, agent]))),
                owner=turn.owner,
                task=_task(asked),
                trajectory=_kept(list(_steps(done))),
                outcome=_outcome(done),
                started_at=turn.said_at,
                ended_at=turn.said_at + took,
                thread=turn.thread,
                message_id=asked[-1].id,
                agent=agent,
                tags=tuple(dict.fromkeys(call.name.casefold() for message in done for call in message.calls)),
            )
        )
    return made


def seems_failed(observation: str) -> bool:
    """Return whether a tool's result says by its first words that it failed: many tools return their errors as text."""
    return bool(_FAILING.match(observation))


def clipped(text: str, limit: int) -> str:
    """Return `text`, or its first `limit` characters, the last of them an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _spans(messages: Sequence[Message]) -> Iterator[tuple[list[Message], list[Message]]]:
    """Yield what the user said, and what was done about it, for each time that something was done."""
    asked: list[Message] = []
    done: list[Message] = []
    for message in messages:
        if message.role == "user" and done:
            yield asked, done
            asked, done = [], []
        if message.role == "user":
            asked.append(message)
        elif asked:
            done.append(message)
    if asked:
        yield asked, done


def _task(asked: Sequence[Message]) -> str:
    texts = [message.text.strip() for message in asked if message.text.strip()]
    return clipped("\n".join(own_words(text) or text for text in texts), LONGEST_TASK) or "(no words)"


def _rounds(done: Sequence[Message]) -> Iterator[tuple[Message, list[tuple[ToolCall, Message | None]]]]:
    """Yield what the model said, each time, with its calls and their results; ids of calls may come again in a later round."""
    for at, message in enumerate(done):
        if message.role == "assistant":
            answers = takewhile(lambda later: later.role != "assistant", done[at + 1 :])
            results = {later.answers: later for later in answers if later.answers}
            yield message, [(call, results.get(call.id)) for call in message.calls]


def _steps(done: Sequence[Message]) -> Iterator[Step]:
    """Yield a step for each call, and one for the answer."""
    for message, calls in _rounds(done):
        thought = clipped(message.text.strip(), LONGEST_TEXT)
        if not calls and thought:
            yield Step(action=ANSWER, observation=thought, failed=message.failed)
        for call, result in calls:
            told = clipped(result.text.strip(), LONGEST_TEXT) if result else "(cut off)"
            yield Step(thought=thought, action=action(call), observation=told, failed=_failed(result))
            thought = ""  # said once for all the calls of a message


def action(call: ToolCall) -> str:
    """Return a call as it is written down: `deploy(target="staging")`."""
    given = (f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in call.arguments.items())
    return clipped(f"{call.name}({', '.join(given)})", LONGEST_ACTION)


def _failed(result: Message | None) -> bool:
    return result is None or result.failed or seems_failed(result.text)


def _outcome(done: Sequence[Message]) -> Outcome:
    """Return how it ended: abandoned without an answer; failed where the last calls all failed, or the model was stopped
    while it was still calling; partial where another call failed."""
    last = done[-1]
    if last.role != "assistant" or last.calls:
        return "abandoned"
    rounds = [[_failed(result) for _, result in calls] for _, calls in _rounds(done) if calls]
    if last.failed or all(rounds[-1]):
        return "failure"
    return "partial" if any(map(any, rounds)) else "success"


def _kept(steps: Sequence[Step]) -> tuple[Step, ...]:
    if len(steps) <= MOST_STEPS:
        return tuple(steps)
    left_out = Step(action="…", observation=f"({len(steps) - MOST_STEPS} steps are left out)")
    return (*steps[: MOST_STEPS // 2], left_out, *steps[-MOST_STEPS // 2 :])
