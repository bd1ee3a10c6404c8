"""Learning from what was lived: a reflection on one episode, and the pattern in several.

Both have two makers. `extractive/1` needs no model: it only says again what the steps show. `llm/1` asks a chat model. Each
result names its maker. What tools said is quoted in both, and left out where it reads like an instruction.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from sharpwave.memory.errors import InputError
from sharpwave.memory.kinds import Episode, Step
from sharpwave.memory.lived import ANSWER
from sharpwave.memory.records import Record, Text
from sharpwave.memory.structured import ask
from sharpwave.memory.telling import LONGEST_CALL, call, described, error_of, failing, failure, shown, tool_of
from sharpwave.memory.trust import pasted
from sharpwave.prompts import render

EXTRACTIVE, MODEL = "extractive/1", "llm/1"
FEWEST, MOST = 2, 50
"""Episodes that a pattern may be looked for in."""


class Reflection(Record):
    """What one episode teaches."""

    worked: Text
    failed: Text
    differently: Text
    """What to do differently next time."""
    lesson: Text
    """One sentence that carries over to other tasks."""
    policy: str
    """What made it: `extractive/1` or `llm/1`."""

    @property
    def text(self) -> str:
        """All of it, a line each."""
        return f"Worked: {self.worked}\nFailed: {self.failed}\nNext time: {self.differently}\nLesson: {self.lesson}"


class Pattern(Record):
    """What several episodes have in common."""

    text: Text
    """What holds in them, a few sentences."""
    lesson: Text
    """One sentence that carries over to other tasks."""
    episodes: tuple[str, ...]
    """Ids of the episodes that it was found in."""
    policy: str
    """What made it: `extractive/1` or `llm/1`."""


def reflect(episode: Episode, model: BaseChatModel | None = None) -> Reflection:
    """Return what an episode teaches, by a model or, without one, read off its steps.

    An episode without steps teaches no more than its outcome.

    Raises:
        ModelError: the model failed, or gave no usable answer.
    """
    if model is None:
        return _read_off(episode)
    messages = [SystemMessage(render("reflect")), HumanMessage(described(episode))]
    answer = ask(model, messages, _Reflected, purpose="reflect")
    return Reflection(**{name: " ".join(text.split()) for name, text in answer.model_dump().items()}, policy=MODEL)


def synthesise(episodes: Sequence[Episode], model: BaseChatModel | None = None) -> Pattern:
    """Return what several episodes (2 to 50) have in common, by a model or, without one, by counting.

    Raises:
        InputError: they are too few or too many.
        ModelError: the model failed, or gave no usable answer.
    """
    if not FEWEST <= len(episodes) <= MOST:
        raise InputError(f"A pattern is looked for in {FEWEST} to {MOST} episodes; got {len(episodes)}.")
    ids = tuple(episode.id for episode in episodes)
    if model is None:
        text, lesson = _counted(episodes)
        return Pattern(text=text, lesson=lesson, episodes=ids, policy=EXTRACTIVE)
    told = "\n\n".join(f"Episode {at}\n{described(episode)}" for at, episode in enumerate(episodes, 1))
    answer = ask(model, [SystemMessage(render("pattern")), HumanMessage(told)], _Found, purpose="pattern")
    return Pattern(text=answer.pattern.strip(), lesson=" ".join(answer.lesson.split()), episodes=ids, policy=MODEL)


class _Reflected(BaseModel):
    worked: str
    failed: str
    differently: str
    lesson: str = Field(min_length=3)


class _Found(BaseModel):
    pattern: str = Field(min_length=3)
    lesson: str = Field(min_length=3)


# Without a model


def _read_off(episode: Episode) -> Reflection:
    acts = [step for step in episode.trajectory if step.action and step.action != ANSWER]
    wrong, right = [s for s in acts if failing(s)], [s for s in acts if not failing(s)]
    mended = _mended(acts)
    return Reflection(
        worked=_worked(episode, right, wrong) if acts else "unknown: no steps were recorded",
        failed=_listed(failure(step) for step in wrong) or _missing(episode),
        differently="; ".join(f"{call(good)} instead of {call(bad)}" for bad, good in mended)
        or _advice(wrong, episode),
        lesson=_lesson(episode, wrong, right, mended),
        policy=EXTRACTIVE,
    )


def _worked(episode: Episode, right: Sequence[Step], wrong: Sequence[Step]) -> str:
    if episode.outcome == "failure" and not wrong:  # one of them must have failed, and nothing says which
        return "unknown: no step is marked as the one that failed"
    return _listed(call(step) for step in right) or "nothing"


def _mended(acts: Sequence[Step]) -> list[tuple[Step, Step]]:
    """Return failed calls, each with the next call of the same tool that went well and was not the same again."""
    pairs: list[tuple[Step, Step]] = []
    for at, step in enumerate(acts):
        later = (s for s in acts[at + 1 :] if tool_of(s) == tool_of(step) and not failing(s))
        good = next(later, None) if failing(step) else None
        if good is not None and good.action != step.action and good not in [kept for _, kept in pairs]:
            pairs.append((step, good))
    return pairs


def _missing(episode: Episode) -> str:
    return "it was cut off before it was answered" if episode.outcome == "abandoned" else "nothing that was recorded"


def _advice(wrong: Sequence[Step], episode: Episode) -> str:
    if wrong:
        return "the steps show no call that mended it"
    return "the same again" if episode.outcome == "success" else "the steps do not show it"


def _lesson(episode: Episode, wrong: Sequence[Step], right: Sequence[Step], mended: Sequence[tuple[Step, Step]]) -> str:
    task = f"For “{shown(episode.task, LONGEST_CALL, foreign=pasted(episode.task))}”"
    if mended:
        bad, good = mended[-1]
        return f"{task}: {failure(bad)}; {call(good)} worked."
    if episode.outcome == "success" and right:
        return f"{task}: {_listed((call(step) for step in right), ' → ')} worked."
    if wrong:
        rest = f" {call(right[-1])} worked." if right and episode.outcome == "partial" else ""
        return f"{task}: {failure(wrong[-1])}.{rest}"
    return f"{task}: the outcome was {episode.outcome}{'' if episode.trajectory else '; no steps were recorded'}."


def _listed(texts: Iterable[str], between: str = "; ") -> str:
    """Return the first five distinct texts, and how many more there are."""
    found = list(dict.fromkeys(texts))
    return between.join([*found[:5], *([f"and {len(found) - 5} more"] if len(found) > 5 else [])])


def _counted(episodes: Sequence[Episode]) -> tuple[str, str]:
    """Return what counting says of episodes, and its most telling line."""
    outcomes = Counter(episode.outcome for episode in episodes)
    lines = [
        "Of {} episodes: {}.".format(len(episodes), ", ".join(f"{n} {name}" for name, n in outcomes.most_common()))
    ]
    steps = [step for e in episodes for step in e.trajectory if step.action and step.action != ANSWER]
    uses, wrong = Counter(map(tool_of, steps)), Counter(tool_of(step) for step in steps if failing(step))
    telling = ""
    for tool, failed in wrong.most_common(3):
        errors = Counter(_normal(error_of(s)) for s in steps if failing(s) and tool_of(s) == tool and error_of(s))
        often = f", most often with “{errors.most_common(1)[0][0]}”" if errors else ""
        lines.append(f"{shown(tool, 60)} failed {failed} of {uses[tool]} times{often}.")
        telling = telling or lines[-1]
    for (bad, good), times in Counter(_mendings(episodes)).most_common(2):
        lines.append(f"Where {bad} failed, {good} worked ({times} of {len(episodes)} episodes).")
        telling = lines[-1] if times >= FEWEST else telling
    safe = [tool for tool, n in uses.most_common() if n >= FEWEST and not wrong[tool]]
    lines += (
        [f"Never failed: {', '.join(f'{shown(tool, 60)} ({uses[tool]} times)' for tool in safe[:5])}."] if safe else []
    )
    return " ".join(lines), telling or lines[-1]


def _mendings(episodes: Sequence[Episode]) -> Iterable[tuple[str, str]]:
    for episode in episodes:
        acts = [step for step in episode.trajectory if step.action and step.action != ANSWER]
        yield from {(call(bad), call(good)) for bad, good in _mended(acts)}


def _normal(error: str) -> str:
    """Return an error without what differs from one time to the next: what comes after its first colon."""
    return error.partition(":")[0].strip()
