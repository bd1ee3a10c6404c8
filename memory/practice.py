"""From an episode to a procedure: which calls did the work, and whether a later episode made the same ones."""

import re
from collections.abc import Sequence

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from sharpwave.memory.evidence import own_words
from sharpwave.memory.kinds import Episode, Procedure
from sharpwave.memory.structured import ask
from sharpwave.prompts import quoted, render

MOST_STEPS, STEP_LENGTH, TASK_LENGTH, NAME_LENGTH = 12, 160, 300, 60

_CALL = re.compile(r"\s*([\w.-]+)\s*[({\[]")
_NO_ACTION = frozenset(("", "answer", "…"))
"""What steps say in which nothing was called."""


def action_of(step: str) -> str:
    """Return the name of what a step calls, `deploy` of `deploy(target="staging")`; the whole step where it calls nothing."""
    call = _CALL.match(step)
    return call[1] if call else " ".join(step.casefold().split())[:STEP_LENGTH]


def task_of(lived: Episode) -> str:
    """Return what an episode was about, in the user's own words, on one line; empty where there are none."""
    return _cut(" ".join(own_words(lived.task).split()), TASK_LENGTH)


def has_calls(lived: Episode) -> bool:
    """Return whether anything was called in an episode."""
    return bool(actions_of(lived, failed=True))


def drafted(lived: Episode, model: BaseChatModel | None) -> Procedure | None:
    """Return what an episode teaches as a new candidate: the calls that did not fail, in the words of the episode or, with a
    model, in its general terms. None for an episode that did not succeed, or with too many calls to be a procedure."""
    calls = [" ".join(step.action.split()) for step in lived.trajectory if not step.failed]
    steps = tuple(_cut(call, STEP_LENGTH) for call in calls if action_of(call) not in _NO_ACTION)
    if lived.outcome != "success" or not 0 < len(steps) <= MOST_STEPS:
        return None
    made = Procedure(
        owner=lived.owner,
        name=_cut(task_of(lived), NAME_LENGTH),
        agent=lived.agent,
        conditions=task_of(lived),
        steps=steps,
        actions=actions_of(lived),
        successes=1,
        learned_from=(lived.id,),
        created_at=lived.ended_at,
        used_at=lived.ended_at,
    )
    return made if model is None else _generalised(made, model)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def actions_of(lived: Episode, *, failed: bool = False) -> tuple[str, ...]:
    """Return the names of what was called, in order, with what `failed` or without; several times in a row counts once."""
    names: list[str] = []
    for step in lived.trajectory:
        name = action_of(step.action)
        if name not in _NO_ACTION and (failed or not step.failed) and names[-1:] != [name]:
            names.append(name)
    return tuple(names)


def followed(kept: Procedure, lived: Episode) -> bool:
    """Return whether an episode did what a procedure says: a success all of it, a failure as far as it came."""
    if lived.outcome == "success":
        return actions_of(lived) == _folded(kept.actions)
    tried = actions_of(lived, failed=True)
    return tried == _folded(kept.actions)[: len(tried)]


def _folded(actions: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for at, name in enumerate(actions) if at == 0 or actions[at - 1] != name)


class _Draft(BaseModel):
    """A procedure, as a model gives it."""

    name: str = Field(min_length=1)
    conditions: str = Field(min_length=1)
    steps: list[str]


def _generalised(made: Procedure, model: BaseChatModel) -> Procedure:
    """Return a draft in the model's words; as it was where the model's steps are not one for one those that were lived."""
    shown = "\n".join(
        [f"Task: {quoted(made.conditions, TASK_LENGTH)}", *(quoted(step, STEP_LENGTH) for step in made.steps)]
    )
    answer = ask(model, [SystemMessage(render("procedure")), HumanMessage(shown)], _Draft, purpose="procedure")
    name, conditions, *steps = (" ".join(text.split()) for text in (answer.name, answer.conditions, *answer.steps))
    if not (name and conditions and all(steps)) or len(steps) != len(made.steps):
        return made
    told = tuple(step[:STEP_LENGTH] for step in steps)
    return made.model_copy(update={"name": name[:NAME_LENGTH], "conditions": conditions[:TASK_LENGTH], "steps": told})
