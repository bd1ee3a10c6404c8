"""Distilling: of many things that were found, the few that an answer needs."""

import logging
from collections.abc import Callable, Sequence

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel

from sharpwave.memory.choosing import within
from sharpwave.memory.errors import BudgetExceeded, ModelError
from sharpwave.memory.records import Recall
from sharpwave.memory.structured import ask
from sharpwave.prompts import quoted, render

log = logging.getLogger(__name__)

CANDIDATES = 60
"""Most of what is distilled."""
CHOSEN = 10
"""Most of what is left."""
_LONGEST = 400
"""Characters of each that a model is shown."""


class _Chosen(BaseModel):
    labels: list[int]


def distil(
    question: str,
    candidates: Sequence[Recall],
    model: BaseChatModel | None = None,
    *,
    budget: int | None = None,
    most: int = CHOSEN,
    shown: Callable[[Sequence[Recall]], str] | None = None,
) -> tuple[list[Recall], str | None]:
    """Return the few candidates that matter to a question, and why the model did not choose them, if it failed to.

    Args:
        question: what is to be answered.
        candidates: what was found, best first; the first 60 count.
        model: names those that matter, foremost first. Without one, or where it fails or names none, they are the best by
            score.
        budget: most tokens of text in all; None is no limit.
        most: so many at most.
        shown: writes the candidates for the model, each by its label (from 1); by default its date and its text.
    """
    given = list(candidates[:CANDIDATES])
    best = list(within(given, most, budget))
    if model is None or len(given) < 2:
        return best, None
    listed = (shown or _listed)(given)
    asked = f"Notes:\n{listed}\n\nMessage: {quoted(question, 2000)}"
    try:
        answer = ask(model, [SystemMessage(render("distil")), HumanMessage(asked)], _Chosen, purpose="distil")
    except (ModelError, BudgetExceeded) as error:
        log.warning("Distilled by score: %s", error)
        return best, str(error)
    chosen = [given[label - 1] for label in dict.fromkeys(answer.labels) if 1 <= label <= len(given)]
    if not chosen:
        return best, "The model chose none of what was found."
    return list(within(chosen, most, budget)), None


def _listed(candidates: Sequence[Recall]) -> str:
    return "\n".join(
        f"[{label}] {hit.said_at:%Y-%m-%d}: {quoted(hit.text, _LONGEST)}" for label, hit in enumerate(candidates, 1)
    )
